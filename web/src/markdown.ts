// Markdown to safe HTML. Three walls: the renderer escapes what is text, DOMPurify removes what is not in a short list of elements, and
// the page's Content-Security-Policy runs no script but our own.
import DOMPurify from "dompurify";
import MarkdownIt from "markdown-it";
import type { LinkedPage } from "./types";

export interface Heading {
  id: string;
  text: string;
  level: number;
}

export interface Rendered {
  fragment: DocumentFragment;
  headings: Heading[];
  hasMath: boolean;
}

const markdown = new MarkdownIt({ html: true, linkify: true, typographer: false });
const escape = markdown.utils.escapeHtml;

/* [[target|label]] and ![[target]] */
markdown.inline.ruler.before("link", "wikilink", (state, silent) => {
  const isEmbed = state.src.charCodeAt(state.pos) === 0x21;
  const start = isEmbed ? state.pos + 1 : state.pos;
  if (!state.src.startsWith("[[", start)) return false;
  const end = state.src.indexOf("]]", start + 2);
  const inside = end < 0 ? "" : state.src.slice(start + 2, end);
  if (!inside || inside.includes("\n") || inside.includes("[[")) return false;
  if (!silent) {
    const [target = "", ...label] = inside.split(/\\?\|/);
    const token = state.push("wikilink", "", 0);
    token.meta = { target: target.trim(), label: label.join("|").trim(), isEmbed };
  }
  state.pos = end + 2;
  return true;
});
markdown.renderer.rules.wikilink = (tokens, at) => {
  const { target, label, isEmbed } = tokens[at]!.meta as { target: string; label: string; isEmbed: boolean };
  const text = label || target.replace(/^#\^?/, "").replace(/#\^?/, " › ");
  const kind = isEmbed ? "data-embed" : "data-wikilink";
  return `<a ${kind}="${escape(target)}" data-label="${escape(label)}">${escape(text)}</a>`;
};

/* $inline$ and $$block$$ */
markdown.inline.ruler.before("escape", "math", (state, silent) => {
  const { src, pos } = state;
  if (src[pos] !== "$") return false;
  const mark = src[pos + 1] === "$" ? "$$" : "$";
  const end = src.indexOf(mark, pos + mark.length);
  const tex = end < 0 ? "" : src.slice(pos + mark.length, end);
  const isPrice = mark === "$" && (/^\s|\s$/.test(tex) || /\d/.test(src[end + 1] ?? ""));
  if (!tex.trim() || isPrice) return false;
  if (!silent) state.push("math", "", 0).meta = { tex, display: mark === "$$" };
  state.pos = end + mark.length;
  return true;
});
markdown.renderer.rules.math = (tokens, at) => {
  const { tex, display } = tokens[at]!.meta as { tex: string; display: boolean };
  return `<code data-math="${display ? "block" : "inline"}">${escape(tex)}</code>`;
};
markdown.block.ruler.before("fence", "math_block", (state, startLine, endLine, silent) => {
  const line = (n: number) => state.src.slice(state.bMarks[n]! + state.tShift[n]!, state.eMarks[n]!);
  if (line(startLine).trim() !== "$$") return false;
  let last = startLine + 1;
  while (last < endLine && line(last).trim() !== "$$") last++;
  if (last >= endLine) return false;
  if (!silent) {
    const token = state.push("math", "", 0);
    token.meta = { tex: state.getLines(startLine + 1, last, 0, false), display: true };
    token.map = [startLine, last];
  }
  state.line = last + 1;
  return true;
});

/* ==marked== */
markdown.inline.ruler.before("emphasis", "mark", (state, silent) => {
  if (!state.src.startsWith("==", state.pos)) return false;
  const end = state.src.indexOf("==", state.pos + 2);
  if (end < state.pos + 3) return false;
  if (!silent) {
    state.push("mark_open", "mark", 1);
    state.push("text", "", 0).content = state.src.slice(state.pos + 2, end);
    state.push("mark_close", "mark", -1);
  }
  state.pos = end + 2;
  return true;
});

const ALLOWED = {
  ALLOWED_TAGS: (
    "a abbr b blockquote br caption code dd del details dfn div dl dt em figcaption figure h1 h2 h3 h4 h5 h6 hr i ins kbd li mark " +
    "ol p pre q s samp small span strike strong sub summary sup table tbody td tfoot th thead tr u ul var wbr"
  ).split(" "),
  ALLOWED_ATTR: (
    "href src alt title align start reversed colspan rowspan open lang dir data-wikilink data-embed data-label data-math data-image class"
  ).split(" "),
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true as const,
};

/* HTML in a note: elements of the list with plain attributes pass, everything else is dropped before a browser's parser sees it.
   DOMPurify would drop it too, but a parser already reports what the page's policy forbids. */
const KEPT_ELEMENTS = new Set([...ALLOWED.ALLOWED_TAGS, "img"]);
const KEPT_ATTRIBUTES = new Set("href src alt title align start colspan rowspan open lang dir".split(" "));
const WITH_CONTENT = /<(script|style|iframe|noscript|template|svg|math|object|textarea|title|xmp)\b[^]*?(?:<\/\1\s*>|$)/gi;
const TAG = /<(\/?)([a-z][a-z0-9]*)((?:\s+[^\s"'>=/]+(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'>]+))?)*)\s*(\/?)>/gi;
const ATTRIBUTE = /([^\s"'>=/]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?/g;

function plainHtml(html: string): string {
  let text = "";
  let end = 0;
  const source = html.replace(WITH_CONTENT, "");
  for (const match of source.matchAll(TAG)) {
    text += source.slice(end, match.index).replace(/</g, "&lt;");
    end = match.index + match[0].length;
    const name = match[2]!.toLowerCase();
    if (!KEPT_ELEMENTS.has(name)) continue;
    const attributes = [...match[3]!.matchAll(ATTRIBUTE)].filter(([, key]) => KEPT_ATTRIBUTES.has(key!.toLowerCase()));
    const kept = attributes.map(([, key, a, b, c]) => ` ${key!.toLowerCase()}="${(a ?? b ?? c ?? "").replace(/"/g, "&quot;")}"`);
    // A picture is shown by its name alone: its address must not be loaded on the way.
    text += name === "img" ? imagePlace(kept.join("")) : `<${match[1]}${name}${match[1] ? "" : kept.join("")}>`;
  }
  return text + source.slice(end).replace(/</g, "&lt;");
}
const imagePlace = (attributes: string) => `<span data-image="" ${attributes.replace(/ (href|align|src)="[^"]*"/g, "")}></span>`;

markdown.renderer.rules.html_block = (tokens, at) => plainHtml(tokens[at]!.content);
markdown.renderer.rules.html_inline = (tokens, at) => plainHtml(tokens[at]!.content);
markdown.renderer.rules.image = (tokens, at) => {
  const token = tokens[at]!;
  return `<span data-image="${escape(String(token.attrGet("src") ?? ""))}" title="${escape(token.content)}"></span>`;
};

const SAFE_LINK = /^(https?:|mailto:|obsidian:|#|[^:]*$|[^:]*[/?#].*:)/i;

/** Renders a note. Targets of links are looked for among the pages that the server says it links to. */
export function render(source: string, from: string, outlinks: LinkedPage[]): Rendered {
  const html = withoutInlineStyle(markdown.render(withoutComments(source)));
  const fragment = DOMPurify.sanitize(html, ALLOWED);
  for (const element of fragment.querySelectorAll("[class]")) {
    // Classes of foreign HTML would put on our clothes; those of code blocks name a language.
    const language = /(?:^|\s)language-([\w+#-]+)/.exec(element.className)?.[1];
    element.removeAttribute("class");
    if (language && element.tagName === "CODE") element.setAttribute("data-language", language);
  }
  const find = linkFinder(from, outlinks);
  fragment.querySelectorAll<HTMLAnchorElement>("a").forEach((link) => linked(link, find));
  fragment.querySelectorAll<HTMLElement>("[data-image]").forEach(pictured);
  fragment.querySelectorAll("li").forEach(tasked);
  fragment.querySelectorAll("blockquote").forEach(calledOut);
  fragment.querySelectorAll("table").forEach(scrolled);
  fragment.querySelectorAll("pre").forEach((block) => {
    block.tabIndex = 0;
    const language = block.querySelector("code")?.getAttribute("data-language");
    if (language) block.setAttribute("data-language", language);
  });
  tagged(fragment);
  return { fragment, headings: outlined(fragment), hasMath: !!fragment.querySelector("[data-math]") };
}

/** markdown-it aligns cells by a style attribute, which the page's policy forbids; `align` says the same. */
function withoutInlineStyle(html: string): string {
  return html.replace(/<(t[hd]) style="text-align:(left|right|center)">/g, '<$1 align="$2">');
}

function withoutComments(source: string): string {
  return source.replace(/^%%[^]*?%%$/gm, "").replace(/<!--[^]*?-->/g, "");
}

const fold = (text: string) => text.normalize("NFC").toLowerCase().replace(/[-_ ]+/g, " ").trim();
const stem = (path: string) => path.slice(path.lastIndexOf("/") + 1).replace(/\.(md|markdown)$/i, "");

export type FindLink = (target: string) => { path: string; heading: string } | null;

/** Which page a link means. The server has resolved the links of this note: only its pages come into question. */
export function linkFinder(from: string, outlinks: LinkedPage[]): FindLink {
  const names = new Map<string, string>();
  const add = (name: string, path: string) => {
    const key = fold(name);
    if (!names.has(key)) names.set(key, path);
  };
  for (const page of outlinks) {
    const bare = page.filepath.replace(/\.(md|markdown)$/i, "");
    const parts = bare.split("/");
    for (let at = 0; at < parts.length; at++) add(parts.slice(at).join("/"), page.filepath);
    add(page.title, page.filepath);
    if (/^(_?index|readme)$/i.test(stem(page.filepath))) add(parts.slice(0, -1).join("/"), page.filepath);
  }
  const folder = from.slice(0, Math.max(0, from.lastIndexOf("/")));
  return (target) => {
    const [name = "", ...rest] = target.split("#");
    const heading = rest.join("#").replace(/^\^/, "");
    if (!name) return { path: from, heading };
    const bare = normal(name.replace(/\?.*$/, "").replace(/\/+$/, "").replace(/\.(md|markdown)$/i, ""));
    const candidates = [bare, normal(`${folder}/${bare}`), bare.replace(/^\/+/, "")];
    const parts = bare.split("/").filter(Boolean);
    for (let at = 1; at < parts.length; at++) candidates.push(parts.slice(at).join("/"));
    for (const candidate of candidates) {
      const path = names.get(fold(candidate));
      if (path) return { path, heading };
    }
    return null;
  };
}

function normal(path: string): string {
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "." && part !== "") parts.push(part);
  }
  return parts.join("/");
}

const decode = (text: string) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

function noteHref(path: string, heading: string): string {
  const tail = path.split("/").map(encodeURIComponent).join("/");
  return `#/note/${tail}${heading ? encodeURIComponent(`#${heading}`) : ""}`;
}

function linked(link: HTMLAnchorElement, find: FindLink) {
  const wiki = link.getAttribute("data-wikilink") ?? link.getAttribute("data-embed");
  const written = link.getAttribute("href") ?? "";
  if (wiki === null && /^(https?:|mailto:)/i.test(written)) {
    link.target = "_blank";
    link.rel = "noopener noreferrer";
    link.className = "external";
    return;
  }
  link.removeAttribute("href");
  if (wiki === null && (!written || !SAFE_LINK.test(written))) return;
  const found = find(wiki ?? decode(written));
  if (found) {
    link.setAttribute("href", noteHref(found.path, found.heading));
    link.setAttribute("data-note", found.path);
    link.className = "internal";
  } else {
    link.className = "broken";
    link.title = `No note: ${wiki ?? written}`;
  }
}

/** Pictures are not loaded: the policy allows no other host, and the tools give text alone. */
function pictured(place: HTMLElement) {
  const source = place.dataset.image ?? "";
  place.className = "image-place";
  place.textContent = place.title || stem(decode(source)) || "image";
  place.title = source;
}

function tasked(item: HTMLLIElement) {
  const first = item.firstElementChild?.tagName === "P" ? item.firstElementChild.firstChild : item.firstChild;
  if (first?.nodeType !== Node.TEXT_NODE) return;
  const match = /^\s*\[([ xX/-])\]\s+/.exec(first.textContent ?? "");
  if (!match) return;
  first.textContent = (first.textContent ?? "").slice(match[0].length);
  const box = document.createElement("span");
  const done = match[1] !== " ";
  box.className = done ? "task done" : "task";
  box.setAttribute("role", "img");
  box.setAttribute("aria-label", done ? "done" : "to do");
  item.classList.add("has-task");
  first.parentNode?.insertBefore(box, first);
}

function calledOut(quote: HTMLQuoteElement) {
  const first = quote.querySelector("p");
  const text = first?.firstChild;
  if (!first || text?.nodeType !== Node.TEXT_NODE) return;
  const match = /^\[!([\w-]+)\][+-]?[ \t]*/.exec(text.textContent ?? "");
  if (!match) return;
  const kind = match[1]!.toLowerCase();
  const [title = "", ...rest] = (text.textContent ?? "").slice(match[0].length).split("\n");
  const head = document.createElement("div");
  head.className = "callout-title";
  head.textContent = title.trim() || kind.charAt(0).toUpperCase() + kind.slice(1);
  text.textContent = rest.join("\n");
  if (!first.textContent?.trim()) first.remove();
  quote.classList.add("callout");
  quote.dataset.kind = kind;
  quote.prepend(head);
}

function scrolled(table: HTMLTableElement) {
  const frame = document.createElement("div");
  frame.className = "table-frame";
  frame.tabIndex = 0;
  frame.setAttribute("role", "region");
  frame.setAttribute("aria-label", "Table");
  table.replaceWith(frame);
  frame.append(table);
}

/** Makes `#tags` in the text links to a search. */
function tagged(fragment: DocumentFragment) {
  const walker = document.createTreeWalker(fragment, NodeFilter.SHOW_TEXT);
  const texts: Text[] = [];
  while (walker.nextNode()) texts.push(walker.currentNode as Text);
  for (const text of texts) {
    if (text.parentElement?.closest("a, code, pre, h1, h2, h3, h4, h5, h6")) continue;
    const parts = text.data.split(/(?<=^|\s)(#[\p{L}\p{N}_/-]*[\p{L}_/-][\p{L}\p{N}_/-]*)/u);
    if (parts.length === 1) continue;
    text.replaceWith(
      ...parts.map((part, at) => {
        if (at % 2 === 0) return part;
        const tag = document.createElement("a");
        tag.className = "tag";
        tag.href = `#/search/${encodeURIComponent(`tag:${part.slice(1)}`)}`;
        tag.textContent = part;
        return tag;
      }),
    );
  }
}

function outlined(fragment: DocumentFragment): Heading[] {
  const used = new Set<string>();
  return [...fragment.querySelectorAll<HTMLElement>("h1, h2, h3, h4, h5, h6")].map((heading) => {
    const text = heading.textContent?.trim() ?? "";
    const base = headingId(text);
    let id = base;
    for (let n = 2; used.has(id); n++) id = `${base}-${n}`;
    used.add(id);
    heading.id = id;
    heading.tabIndex = -1;
    return { id, text, level: Number(heading.tagName.slice(1)) };
  });
}

/** Ours start with `h-`, so that no heading takes the name of something of the page. */
export const headingId = (text: string) => `h-${fold(text).replace(/[^\p{L}\p{N}]+/gu, "-")}`;

/** The first lines as plain text. */
export function excerpt(source: string, chars = 240): string {
  const text = source
    .replace(/```[^]*?(```|$)/g, " ")
    .replace(/!?\[\[([^\]|]*\|)?([^\]]*)\]\]/g, "$2")
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/<[^>]*>/g, " ")
    .replace(/^(#+\s+|\s*\|).*$/gm, " ")
    .replace(/[*_`>#|=-]{1,}/g, " ")
    .replace(/\s+/g, " ")
    .trim();
  return text.length > chars ? `${text.slice(0, chars).replace(/\s+\S*$/, "")}…` : text;
}

/** The sentence around the first link to a page, in three parts: before, the link's text, after. */
export function sentenceAround(source: string, from: string, outlinks: LinkedPage[], to: string): [string, string, string] | null {
  const find = linkFinder(from, outlinks);
  const pattern = /!?\[\[([^\]|\n]+)(?:\\?\|([^\]\n]*))?\]\]|\[([^\]\n]*)\]\(([^)\s]+)[^)]*\)/g;
  for (const match of source.matchAll(pattern)) {
    const target = match[1] ?? decode(match[4] ?? "");
    if (find(target)?.path !== to) continue;
    const label = match[2] || match[3] || match[1] || "";
    const start = match.index;
    const before = clean(source.slice(Math.max(0, start - 220), start)).split(/(?<=[.!?。])\s|\n/).pop() ?? "";
    const after = inline(source.slice(start + match[0].length, start + match[0].length + 220)).split(/\n|(?<=[.!?。])\s/)[0] ?? "";
    return [before.slice(-160).trimStart(), label, after.slice(0, 160)];
  }
  return null;
}

/** Without the marks of links, emphasis and code. */
const inline = (text: string) =>
  text
    .replace(/!?\[\[(?:[^\]|\n]*\|)?([^\]\n]*)\]\]/g, "$1")
    .replace(/!?\[([^\]\n]*)\]\([^)\n]*\)/g, "$1")
    .replace(/[*_`]+/g, "");

/** And without those at the start of lines. */
const clean = (text: string) => inline(text.replace(/^[\s>]*(?:[-*+]|\d+\.)?\s*(\[.\]\s*)?/gm, ""));

/** Draws formulas; the renderer is loaded only where there are any. */
export async function drawMath(root: ParentNode) {
  const places = [...root.querySelectorAll<HTMLElement>("[data-math]")];
  if (!places.length) return;
  const { default: temml } = await import("temml");
  for (const place of places) {
    const span = document.createElement(place.dataset.math === "block" ? "div" : "span");
    span.className = "math";
    try {
      const html = temml.renderToString(place.textContent ?? "", { displayMode: place.dataset.math === "block", throwOnError: true });
      span.append(
        DOMPurify.sanitize(html.replace(/ style="[^"]*"/g, ""), {
          USE_PROFILES: { mathMl: true },
          FORBID_ATTR: ["style", "href"],
          RETURN_DOM_FRAGMENT: true,
        }),
      );
      place.replaceWith(span);
    } catch {
      place.title = "This formula cannot be drawn";
    }
  }
}
