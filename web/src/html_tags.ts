// HTML inside a note, reduced to plain elements. One pass from left to right: a hostile note costs its length and no more, and what is
// no well-formed tag is text.

/** Elements that a note may use. */
export const ELEMENTS = (
  "a abbr b blockquote br caption code dd del details dfn div dl dt em figcaption figure h1 h2 h3 h4 h5 h6 hr i ins kbd li mark " +
  "ol p pre q s samp small span strike strong sub summary sup table tbody td tfoot th thead tr u ul var wbr"
).split(" ");
const KEPT_ELEMENTS = new Set(ELEMENTS);
const KEPT_ATTRIBUTES = new Set("href alt title align start colspan rowspan open lang dir".split(" "));
/** Dropped with everything inside. */
const WITH_CONTENT = new Set("script style iframe noscript template svg math object textarea title xmp".split(" "));

interface Tag {
  name: string;
  closing: boolean;
  attributes: [string, string][];
  /** Behind the tag; where `name` is empty, how far the text reaches that is no tag. */
  end: number;
}

const NAME = /[a-z][a-z0-9-]*/iy;
const SPACE = /\s*/y;
const ATTRIBUTE = /[^\s"'<>=/]+/y;
const UNQUOTED = /[^\s"'<>=`]+/y;

function eat(pattern: RegExp, source: string, at: number): string {
  pattern.lastIndex = at;
  return pattern.exec(source)?.[0] ?? "";
}

/** The tag at a `<`. */
export function scanTag(source: string, start: number): Tag {
  const closing = source[start + 1] === "/";
  let at = start + (closing ? 2 : 1);
  const name = eat(NAME, source, at).toLowerCase();
  const none = (end: number): Tag => ({ name: "", closing, attributes: [], end });
  if (!name) return none(start + 1);
  at += name.length;
  const attributes: [string, string][] = [];
  for (;;) {
    const space = eat(SPACE, source, at);
    at += space.length;
    if (source[at] === ">") return { name, closing, attributes, end: at + 1 };
    if (source[at] === "/" && source[at + 1] === ">") return { name, closing, attributes, end: at + 2 };
    const key = space ? eat(ATTRIBUTE, source, at) : "";
    if (!key) return none(at);
    at += key.length;
    const gap = eat(SPACE, source, at).length;
    let value = "";
    if (source[at + gap] === "=") {
      at += gap + 1;
      at += eat(SPACE, source, at).length;
      const quote = source[at];
      if (quote === '"' || quote === "'") {
        const end = source.indexOf(quote, at + 1);
        if (end < 0) return none(at + 1);
        value = source.slice(at + 1, end);
        at = end + 1;
      } else {
        value = eat(UNQUOTED, source, at);
        if (!value) return none(at);
        at += value.length;
      }
    }
    attributes.push([key.toLowerCase(), value]);
  }
}

const escape = (text: string) => text.replace(/&(?!#?\w+;)/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
const quoted = (value: string) => value.replace(/"/g, "&quot;").replace(/</g, "&lt;");

/** Elements of the list with plain attributes; an image as the place where it is drawn later. */
export function plainHtml(source: string): string {
  let html = "";
  let text = 0;
  let at = source.indexOf("<");
  const closers = new Map<string, number>();
  while (at >= 0) {
    const comment = source.startsWith("<!--", at) ? source.indexOf("-->", at + 4) : -1;
    const tag = comment < 0 ? scanTag(source, at) : null;
    let end = tag ? tag.end : comment + 3;
    if (!tag || tag.name) {
      html += escape(source.slice(text, at));
      if (tag && !tag.closing && WITH_CONTENT.has(tag.name)) end = afterContent(source, tag, closers);
      else if (tag) html += written(tag);
      text = end;
    } else if (source.startsWith("<!--", at)) {
      // No comment is closed from here on.
      break;
    }
    at = source.indexOf("<", end);
  }
  return html + escape(source.slice(text));
}

/** Behind the closing tag of an element, or at the end. The place of the last one that was found is kept: each is looked for once. */
function afterContent(source: string, tag: Tag, closers: Map<string, number>): number {
  const known = closers.get(tag.name);
  let found = known !== undefined && known >= tag.end ? known : -2;
  if (found === -2) {
    const closer = new RegExp(`</${tag.name}`, "gi");
    closer.lastIndex = tag.end;
    found = closer.exec(source)?.index ?? source.length;
    closers.set(tag.name, found);
  }
  const end = source.indexOf(">", found);
  return found >= source.length || end < 0 ? source.length : end + 1;
}

function written({ name, closing, attributes }: Tag): string {
  const value = (key: string) => attributes.find(([own]) => own === key)?.[1] ?? "";
  if (name === "img") return closing ? "" : `<span data-image="${quoted(value("src"))}" title="${quoted(value("alt"))}"></span>`;
  if (!KEPT_ELEMENTS.has(name)) return "";
  if (closing) return `</${name}>`;
  const kept = attributes.filter(([key]) => KEPT_ATTRIBUTES.has(key)).map(([key, value]) => ` ${key}="${quoted(value)}"`);
  return `<${name}${kept.join("")}>`;
}
