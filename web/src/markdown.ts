// Markdown to safe HTML, in a time that grows with its length alone. Three walls: the renderer escapes what is text, DOMPurify removes what is not in a short list of elements, and
// the page's Content-Security-Policy runs no script but our own.
import DOMPurify from "dompurify";
import MarkdownIt, { type StateBlock } from "markdown-it";
import { highlight } from "./highlight";
import { ELEMENTS, plainHtml, scanTag, wellFormed } from "./html_tags";
import { bounded } from "./paragraphs";
import { inlineText, LINK_TYPE, lineText, plainText, wikiText } from "./plain_text";
import type { LinkedPage } from "./types";

export interface Heading {
  id: string;
  text: string;
  level: number;
}

export interface Rendered {
  fragment: DocumentFragment;
  headings: Heading[];
}

const markdown = new MarkdownIt({ html: true, linkify: true, typographer: false });
const escape = markdown.utils.escapeHtml;

/** Of a link's target and label. Longer ones are text: looking for the end of each `[[` in a whole note would take forever. */
const MAX_LINK = 1_000;
const IMAGE = /\.(png|jpe?g|gif|webp|avif|bmp|svg)$/i;

/* [[target|label]] and ![[target]] */
markdown.inline.ruler.before("link", "wikilink", (state, silent) => {
  const isEmbed = state.src.charCodeAt(state.pos) === 0x21;
  const start = isEmbed ? state.pos + 1 : state.pos;
  if (!state.src.startsWith("[[", start)) return false;
  const inside = state.src.slice(start + 2, start + 2 + MAX_LINK).split("]]", 1)[0]!;
  const end = start + 2 + inside.length;
  if (!inside || !state.src.startsWith("]]", end) || inside.includes("\n") || inside.includes("[[")) return false;
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
  if (isEmbed && IMAGE.test(target.split("#", 1)[0]!)) return `<span data-image="${escape(target)}" data-label="${escape(label)}"></span>`;
  const type = LINK_TYPE.test(label) ? label : "";
  const text = wikiText(target, label);
  const kind = isEmbed ? "data-embed" : "data-wikilink";
  return `<a ${kind}="${escape(target)}" data-label="${escape(type)}">${escape(text)}</a>`;
};

/** The line that closes a block, in the same list item or quote: as for a code fence, less indentation ends the search. -1 without one. The
 * last search in vain is kept: every later opening in those lines would repeat it. */
function closingLine(state: StateBlock, mark: string, startLine: number, endLine: number, closes: (line: string) => boolean): number {
  const vain = state.env as Record<string, [number, number] | undefined>;
  const [from, to] = vain[mark] ?? [0, 0];
  if (startLine >= from && startLine < to) return -1;
  let at = startLine + 1;
  for (; at < endLine; at++) {
    const line = lineOf(state, at).trimEnd();
    if (line && state.sCount[at]! < state.blkIndent) break;
    if (closes(line)) return at;
  }
  vain[mark] = [startLine, at];
  return -1;
}
const lineOf = (state: StateBlock, n: number) => state.src.slice(state.bMarks[n]! + state.tShift[n]!, state.eMarks[n]!);

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
  if (lineOf(state, startLine).trim() !== "$$") return false;
  const last = closingLine(state, "$$", startLine, endLine, (line) => line.trim() === "$$");
  if (last < 0) return false;
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

/* %%comments%% of Obsidian: whole lines, or inside one. */
markdown.block.ruler.before("fence", "comment_block", (state, startLine, endLine, silent) => {
  const first = lineOf(state, startLine).trimEnd();
  if (!first.startsWith("%%")) return false;
  const isWhole = first.length >= 4 && first.endsWith("%%");
  const last = isWhole ? startLine : closingLine(state, "%%", startLine, endLine, (line) => line.endsWith("%%"));
  if (last < 0) return false;
  if (!silent) state.line = last + 1;
  return true;
});
markdown.inline.ruler.before("escape", "comment", (state) => {
  if (!state.src.startsWith("%%", state.pos)) return false;
  const end = state.src.indexOf("%%", state.pos + 2);
  if (end < 0) return false;
  state.pos = end + 2;
  return true;
});

/* [^footnote] and [^footnote]: its text, with the indented lines below it. */
const FOOTNOTE = /^\[\^([^\]\s]{1,80})\]/;
markdown.block.ruler.before(
  "reference",
  "footnote_text",
  (state, startLine, endLine, silent) => {
    const first = lineOf(state, startLine);
    const name = FOOTNOTE.exec(first)?.[1];
    if (!name || first[name.length + 3] !== ":") return false;
    if (silent) return true;
    let next = startLine + 1;
    while (next < endLine && state.sCount[next]! >= state.blkIndent + 2 && !state.isEmpty(next)) next++;
    const texts = [first.slice(name.length + 4), ...Array.from({ length: next - startLine - 1 }, (_, n) => lineOf(state, startLine + 1 + n))];
    state.push("footnote_open", "div", 1).attrSet("data-footnote-text", name);
    const inline = state.push("inline", "", 0);
    inline.content = texts.join("\n").trim();
    inline.children = [];
    state.push("footnote_close", "div", -1);
    state.line = next;
    return true;
  },
  { alt: ["paragraph"] },
);
markdown.inline.ruler.before("link", "footnote", (state, silent) => {
  const found = state.src[state.pos] === "[" && FOOTNOTE.exec(state.src.slice(state.pos, state.pos + 84));
  if (!found) return false;
  if (!silent) state.push("footnote", "", 0).content = found[1]!;
  state.pos += found[0].length;
  return true;
});
markdown.renderer.rules.footnote = (tokens, at) => `<sup data-footnote="${escape(tokens[at]!.content)}"></sup>`;

/* HTML: elements of a short list with plain attributes pass, everything else is dropped before a browser's parser sees it. DOMPurify
   would drop it too, but a parser already reports what the page's policy forbids. */
markdown.inline.ruler.at("html_inline", (state, silent) => {
  const { src, pos } = state;
  if (src[pos] !== "<") return false;
  let end: number;
  if (src.startsWith("<!--", pos)) {
    // Kept with the state: the label of an image inside has a text of its own.
    const memo = state as typeof state & { hasNoComment?: boolean };
    const close = memo.hasNoComment ? -1 : src.indexOf("-->", pos + 4);
    if (close < 0) {
      memo.hasNoComment = true;
      return false;
    }
    end = close + 3;
  } else {
    const tag = scanTag(src, pos);
    if (!tag.name) return false;
    end = tag.end;
  }
  if (!silent) state.push("html_inline", "", 0).content = src.slice(pos, end);
  state.pos = end;
  return true;
});
markdown.renderer.rules.html_block = (tokens, at) => plainHtml(tokens[at]!.content);
markdown.renderer.rules.html_inline = (tokens, at) => plainHtml(tokens[at]!.content);
markdown.renderer.rules.image = (tokens, at) => {
  const token = tokens[at]!;
  return `<span data-image="${escape(String(token.attrGet("src") ?? ""))}" title="${escape(token.content)}"></span>`;
};

const ALLOWED = {
  ALLOWED_TAGS: ELEMENTS,
  ALLOWED_ATTR: (
    "href src alt title align start reversed colspan rowspan open lang dir data-wikilink data-embed data-label data-math data-image data-footnote data-footnote-text class"
  ).split(" "),
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true as const,
};

/** Of these schemes, or without one: what a colon ends before a slash is a scheme. */
const SAFE_LINK = /^(https?:|mailto:|obsidian:|[^:/?#]*([/?#]|$))/i;

/** Renders a note. Targets of links are looked for among the pages that the server says it links to. */
export function render(source: string, from: string, outlinks: LinkedPage[]): Rendered {
  const html = wellFormed(withoutInlineStyle(markdown.render(source, {})));
  const fragment = DOMPurify.sanitize(html, ALLOWED);
  for (const element of fragment.querySelectorAll("[class]")) {
    // Classes of foreign HTML would put on our clothes; those of code blocks name a language.
    const language = /(?:^|\s)language-([\w+#-]+)/.exec(element.className)?.[1];
    element.removeAttribute("class");
    if (language && element.tagName === "CODE") element.setAttribute("data-language", language);
  }
  bounded(fragment);
  const find = linkFinder(from, outlinks);
  fragment.querySelectorAll<HTMLAnchorElement>("a").forEach((link) => linked(link, find));
  fragment.querySelectorAll<HTMLElement>("[data-image]").forEach(pictured);
  fragment.querySelectorAll("li").forEach(tasked);
  fragment.querySelectorAll("blockquote").forEach(calledOut);
  fragment.querySelectorAll("table").forEach(scrolled);
  fragment.querySelectorAll("pre").forEach((block) => {
    block.tabIndex = 0;
    const code = block.querySelector("code");
    const language = code?.getAttribute("data-language");
    // What was cut into parts stays plain.
    if (!code || !language || code.firstElementChild) return;
    block.setAttribute("data-language", language);
    highlight(code, language);
  });
  footnoted(fragment);
  tagged(fragment);
  return { fragment, headings: outlined(fragment) };
}

/** markdown-it aligns cells by a style attribute, which the page's policy forbids; `align` says the same. */
function withoutInlineStyle(html: string): string {
  return html.replace(/<(t[hd]) style="text-align:(left|right|center)">/g, '<$1 align="$2">');
}

const fold = (text: string) => text.normalize("NFC").toLowerCase().replace(/[-_ ]+/g, " ").trim();
const stem = (path: string) => path.slice(path.lastIndexOf("/") + 1).replace(/\.(md|markdown)$/i, "");

export type FindLink = (target: string) => { path: string; heading: string } | null;

/** Parts of a path that tell pages apart, from its end. */
const MAX_PARTS = 32;

/** Which page a link means. The server has resolved the links of this note: only its pages come into question. */
export function linkFinder(from: string, outlinks: LinkedPage[]): FindLink {
  const names = new Map<string, string>();
  const add = (name: string, path: string) => {
    const key = fold(name);
    if (!names.has(key)) names.set(key, path);
  };
  // A note may link to itself, which the server does not count.
  for (const page of [...outlinks, { filepath: from, title: stem(from) }]) {
    const bare = page.filepath.replace(/\.(md|markdown)$/i, "");
    const parts = bare.split("/");
    for (let at = Math.max(0, parts.length - MAX_PARTS); at < parts.length; at++) add(parts.slice(at).join("/"), page.filepath);
    add(page.title, page.filepath);
    if (/^(_?index|readme)$/i.test(stem(page.filepath))) add(parts.slice(0, -1).join("/"), page.filepath);
  }
  const folder = from.slice(0, Math.max(0, from.lastIndexOf("/")));
  return (target) => {
    const [name = "", ...rest] = target.split("#");
    const heading = rest.join("#").replace(/^\^/, "");
    if (!name) return { path: from, heading };
    const bare = normal(name.split("?", 1)[0]!).replace(/\.(md|markdown)$/i, "");
    const candidates = [bare, normal(`${folder}/${bare}`)];
    const parts = bare.split("/").filter(Boolean).slice(-MAX_PARTS);
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
    const type = link.getAttribute("data-label");
    if (type) link.after(badge(type));
  } else {
    link.className = "broken";
    link.title = `No note: ${wiki ?? written}`;
  }
}

function badge(type: string): HTMLElement {
  const badge = document.createElement("span");
  badge.className = "kind";
  badge.textContent = type.replace(/_/g, " ");
  return badge;
}

/** The place of an image. Those of the vault are drawn when they come into sight; those of other sites are links. */
function pictured(place: HTMLElement) {
  const source = place.dataset.image ?? "";
  const file = source.split(/[?#]/, 1)[0]!;
  const label = place.dataset.label ?? "";
  const width = /^(\d{1,4})(x\d+)?$/.exec(label)?.[1];
  const name = place.title || (width ? "" : label) || nameOfFile(decode(file)) || "image";
  place.className = "image-place";
  place.textContent = name;
  place.removeAttribute("data-image");
  place.removeAttribute("title");
  if (/^(https?:)?\/\//i.test(source)) {
    const link = document.createElement("a");
    link.href = source;
    link.target = "_blank";
    link.rel = "noopener noreferrer";
    link.className = "external";
    link.textContent = name;
    link.title = "Images of other sites are not loaded";
    place.replaceChildren(link);
  } else if (IMAGE.test(file)) {
    place.dataset.vaultImage = decode(file);
    if (width) place.dataset.width = width;
  } else {
    place.title = source.slice(0, 200);
  }
}
const nameOfFile = (path: string) => path.slice(path.lastIndexOf("/") + 1);

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

/** Numbers footnotes in the order of their marks, and puts their texts at the end. A mark without a text stays as it was written. */
function footnoted(fragment: DocumentFragment) {
  const texts = new Map([...fragment.querySelectorAll<HTMLElement>("[data-footnote-text]")].map((text) => [text.dataset.footnoteText!, text]));
  const numbers = new Map<string, number>();
  // Read once: one text may have many marks.
  const titles = new Map([...texts].map(([name, text]) => [name, text.textContent!.trim().slice(0, 200)]));
  for (const mark of fragment.querySelectorAll<HTMLElement>("[data-footnote]")) {
    const name = mark.dataset.footnote!;
    if (!texts.has(name)) {
      mark.replaceWith(`[^${name}]`);
      continue;
    }
    const number = numbers.get(name) ?? numbers.size + 1;
    numbers.set(name, number);
    const button = document.createElement("button");
    button.className = "footnote";
    button.dataset.footnote = String(number);
    button.setAttribute("aria-label", `Footnote ${number}`);
    button.title = titles.get(name)!;
    button.textContent = String(number);
    mark.replaceChildren(button);
    mark.removeAttribute("data-footnote");
  }
  if (!texts.size) return;
  const list = document.createElement("ol");
  list.className = "footnotes";
  const order = (name: string) => numbers.get(name) ?? Infinity;
  for (const [name, text] of [...texts].sort((a, b) => order(a[0]) - order(b[0]))) {
    const item = document.createElement("li");
    if (numbers.has(name)) item.dataset.footnoteText = String(numbers.get(name));
    item.tabIndex = -1;
    item.append(...text.childNodes);
    text.remove();
    list.append(item);
  }
  fragment.append(list);
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
  const used = new Map<string, number>();
  return [...fragment.querySelectorAll<HTMLElement>("h1, h2, h3, h4, h5, h6")].map((heading) => {
    const text = heading.textContent?.trim() ?? "";
    const base = headingId(text);
    const before = used.get(base) ?? 0;
    used.set(base, before + 1);
    // A colon is in no id that is made of text.
    const id = before ? `${base}:${before + 1}` : base;
    heading.id = id;
    heading.tabIndex = -1;
    return { id, text, level: Number(heading.tagName.slice(1)) };
  });
}

/** Ours start with `h-`, so that no heading takes the name of something of the page. */
export const headingId = (text: string) => `h-${fold(text).replace(/[^\p{L}\p{N}]+/gu, "-")}`;

/** The first lines as plain text, without code, headings and tables. */
export function excerpt(source: string, chars = 240): string {
  const prose = source
    .slice(0, 10 * chars)
    .replace(/```[^]*?(```|$)/g, " ")
    .replace(/^(#+\s+|\s*\||\[\^[^\]\s]+\]:).*$/gm, " ");
  const text = plainText(prose);
  return text.length > chars ? `${text.slice(0, chars).replace(/\s+\S*$/, "")}…` : text;
}

const AROUND = 220;
/** Where a paragraph, an item of a list, or another block ends. A sentence may go on over the end of a line. */
const BLOCK = /\n(?=[ \t]*(?:\n|[-*+][ \t]|[>#|]|\d{1,9}[.)][ \t]|```|~~~))/;
/** The line of a heading that text follows. */
const HEADING = /^\s*#{1,6}[ \t][^\n]*\n/;

/** The sentence around the first link to a page, in three parts: before, the link's text, after. Null where no text has the link. */
export function sentenceAround(source: string, from: string, outlinks: LinkedPage[], to: string): [string, string, string] | null {
  const find = linkFinder(from, outlinks);
  const pattern = /!?\[\[((?:[^[\]|\n]|\[(?!\[)){1,400})(?:\\?\|([^\]\n]{0,400}))?\]\]|\[([^[\]\n]{0,400})\]\(([^)\s]{1,400})(?:\s[^)]{0,400})?\)/g;
  for (const match of source.matchAll(pattern)) {
    const target = match[1] ?? decode(match[4] ?? "");
    if (find(target)?.path !== to) continue;
    const label = match[1] === undefined ? inlineText(match[3] ?? "") : wikiText(match[1], match[2] ?? "");
    const [start, end] = [match.index, match.index + match[0].length];
    // Where the text is cut, a link may be: half of it is left out.
    const cut = source.slice(Math.max(0, start - AROUND), start);
    const before = start > AROUND ? cut.replace(/^[^[\n]*?\]\]?(\([^)\n]*\))?/, "") : cut;
    const following = source.slice(end, end + AROUND);
    const after = end + AROUND < source.length ? following.replace(/!?\[\[?[^\]\n]*\]?$/, "") : following;
    const sentences = (text: string) => text.replace(/\n\s*/g, " ").split(/(?<=[.!?。])\s/);
    const [block, rest] = [before.split(BLOCK).pop()!.replace(HEADING, ""), after.split(BLOCK)[0]!];
    return [sentences(lineText(block)).pop()!.slice(-160).trimStart(), label, sentences(inlineText(rest))[0]!.slice(0, 160)];
  }
  return null;
}
