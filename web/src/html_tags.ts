// HTML inside a note, reduced to plain elements. One pass from left to right: a hostile note costs its length and no more, and what is
// no well-formed tag is text.

/** Elements that a note may use. */
export const ELEMENTS = (
  "a abbr b blockquote br caption code dd del details dfn div dl dt em figcaption figure h1 h2 h3 h4 h5 h6 hr i ins kbd li mark " +
  "ol p pre q s samp small span strike strong sub summary sup table tbody td tfoot th thead tr u ul var wbr"
).split(" ");
const KEPT_ELEMENTS = new Set(ELEMENTS);
const KEPT_ATTRIBUTES = new Set("href alt title align start colspan rowspan open lang dir".split(" "));
/** A table is laid out in a grid that each span fills, and `dir=auto` is looked for in all of the text at each change. */
const LIMITED: Record<string, RegExp> = { colspan: /^\d{1,2}$/, rowspan: /^\d{1,2}$/, dir: /^(ltr|rtl)$/i };
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
  const kept = attributes.filter(([key, value]) => KEPT_ATTRIBUTES.has(key) && (LIMITED[key]?.test(value) ?? true)).map(([key, value]) => ` ${key}="${quoted(value)}"`);
  return `<${name}${kept.join("")}>`;
}

const set = (names: string) => new Set(names.split(" "));
const VOID = set("br hr wbr");
const CELLS = set("td th caption");
const TABLE_PARTS = set("td th caption tr tbody thead tfoot");
const ROW_PARENTS = set("table tr tbody thead tfoot");
const BESIDE_PARAGRAPHS = set("blockquote details summary div dl dt dd figure figcaption h1 h2 h3 h4 h5 h6 hr li ol p pre table ul");

/** What a start tag ends, and the elements that keep it from ending more, as in a browser's parser. */
const ENDS: Record<string, [ended: Set<string>, within: Set<string>]> = {
  li: [set("li"), set("ul ol table td th caption")],
  dt: [set("dt dd"), set("dl table td th caption")],
  dd: [set("dt dd"), set("dl table td th caption")],
  td: [CELLS, set("table")],
  th: [CELLS, set("table")],
  tr: [set("td th caption tr"), set("table")],
  ...Object.fromEntries(["tbody", "thead", "tfoot", "caption"].map((name) => [name, [TABLE_PARTS, set("table")]])),
};
const IN_TABLE = set("table");
const IN_CELL = set("td th caption table");
const PARAGRAPH: [Set<string>, Set<string>] = [set("p"), IN_CELL];

/** Deeper elements lose their tags; their text stays. */
const MAX_DEPTH = 100;

/** Each tag closed, in order and where it was opened. What is open at the end of a block a browser opens again in every block that
 * follows, and it copies subtrees to repair a wrong order: small notes would become huge pages. */
export function wellFormed(html: string): string {
  const open: string[] = [];
  const dropped = new Map<string, number>();
  let [out, text] = ["", 0];
  const close = (from: number) => {
    while (open.length > from) out += `</${open.pop()}>`;
    if (!open.length) dropped.clear();
  };
  /** Ends the outermost of these elements that stands inside of the innermost of those. */
  const end = ([ended, within]: [Set<string>, Set<string>]) => {
    let found = open.length;
    for (let at = open.length - 1; at >= 0 && !within.has(open[at]!); at--) if (ended.has(open[at]!)) found = at;
    close(found);
  };
  for (let at = html.indexOf("<"); at >= 0; ) {
    const { name, closing, end: after } = scanTag(html, at);
    if (name) {
      out += html.slice(text, at);
      text = after;
      if (closing) {
        const hidden = dropped.get(name) ?? 0;
        const found = hidden || VOID.has(name) ? -1 : innermost(open, name);
        if (name === "br") out += "<br>";
        else if (hidden) dropped.set(name, hidden - 1);
        else if (found >= 0) close(found);
      } else {
        if (ENDS[name]) end(ENDS[name]);
        if (BESIDE_PARAGRAPHS.has(name)) end(PARAGRAPH);
        const fits = TABLE_PARTS.has(name) === ROW_PARENTS.has(open.at(-1) ?? "");
        if (VOID.has(name)) out += html.slice(at, after);
        else if (!fits || open.length >= MAX_DEPTH) dropped.set(name, (dropped.get(name) ?? 0) + 1);
        else {
          open.push(name);
          out += html.slice(at, after);
        }
      }
    }
    at = html.indexOf("<", after);
  }
  out += html.slice(text);
  close(0);
  return out;
}

/** Where an end tag finds its element: one outside of a table's cell is not ended from inside. */
function innermost(open: string[], name: string): number {
  const within = TABLE_PARTS.has(name) || name === "table" ? IN_TABLE : IN_CELL;
  for (let at = open.length - 1; at >= 0; at--) {
    if (open[at] === name) return at;
    if (within.has(open[at]!)) return -1;
  }
  return -1;
}
