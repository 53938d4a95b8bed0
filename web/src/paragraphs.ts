// Paragraphs of a length that a browser can lay out. The time to break lines grows with the square of what stands in one paragraph.

const BLOCKS = new Set(
  "P DIV UL OL LI DL DT DD PRE TABLE CAPTION THEAD TBODY TFOOT TR TD TH BLOCKQUOTE DETAILS SUMMARY FIGURE FIGCAPTION H1 H2 H3 H4 H5 H6 HR".split(" "),
);
/** No paragraph that is meant to be read has as many elements: it becomes plain text. */
const MAX_INLINE = 4_000;
/** Nor as many characters: it is cut into parts of this length, which are laid out as they come into sight. */
const MAX_CHARS = 20_000;
const PART = 4_000;
/** Letters without a space, in a script of which a browser shapes whole words. Scripts that are written without spaces are broken anywhere. */
const WORD = /[^\s\p{ASCII}\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]+/gu;
const MAX_WORD = 1_000;
/** A table with more columns becomes plain text. */
const MAX_COLUMNS = 2_000;

interface Run {
  nodes: ChildNode[];
  elements: number;
  chars: number;
  isEndless: boolean;
}

/** Bounds every paragraph. Gives what an inline element adds to the paragraph it stands in, and null for what holds paragraphs. */
export function bounded(element: ParentNode & Node): Run | null {
  const name = element.nodeName;
  if (name === "PRE") return preformatted(element as Element);
  if (name === "TABLE" && [...(element as HTMLTableElement).rows].some((row) => columns(row) > MAX_COLUMNS)) element.textContent = element.textContent;
  const runs: Run[] = [];
  let run: Run | null = null;
  let holdsBlocks = !(element instanceof Element) || BLOCKS.has(name);
  for (const child of [...element.childNodes]) {
    const inside = child instanceof Element ? bounded(child) : sizeOf(child.textContent ?? "");
    if (!inside) {
      holdsBlocks = true;
      run = null;
      continue;
    }
    if (!run) runs.push((run = { nodes: [], elements: 0, chars: 0, isEndless: false }));
    run.nodes.push(child);
    run.elements += inside.elements + (child instanceof Element ? 1 : 0);
    run.chars += inside.chars;
    run.isEndless ||= inside.isEndless;
  }
  if (!holdsBlocks) return run ?? sizeOf("");
  runs.forEach(shorten);
  return null;
}

const columns = (row: HTMLTableRowElement) => [...row.cells].reduce((sum, cell) => sum + cell.colSpan, 0);
const isEndless = (text: string) => !!text.match(WORD)?.some((word) => word.length > MAX_WORD);
const sizeOf = (text: string): Run => ({ nodes: [], elements: 0, chars: text.length, isEndless: isEndless(text) });

function shorten({ nodes, elements, chars, isEndless }: Run) {
  const text = () => nodes.map((node) => node.textContent).join("");
  if (elements <= MAX_INLINE && chars <= MAX_CHARS && !isEndless) return;
  const kept: (ChildNode | string)[] = elements > MAX_INLINE ? [text()] : nodes;
  const place = document.createComment("");
  nodes[0]!.before(place);
  nodes.forEach((node) => node.remove());
  place.replaceWith(...(chars > MAX_CHARS || isEndless ? parts(kept) : kept));
}

/** The parts of a paragraph: whole elements and pieces of text. */
function parts(nodes: (ChildNode | string)[]): Node[] {
  const made: HTMLElement[] = [];
  let left = 0;
  for (const node of nodes) {
    const text = (typeof node === "string" ? node : node.textContent) ?? "";
    const pieces = node instanceof Element && text.length <= PART ? [node] : Array.from({ length: Math.ceil(text.length / PART) }, (_, at) => text.slice(at * PART, (at + 1) * PART));
    for (const piece of pieces) {
      const length = typeof piece === "string" ? piece.length : text.length;
      if (length > left) {
        made.push(document.createElement("span"));
        made.at(-1)!.className = "part";
        left = PART;
      }
      made.at(-1)!.append(piece);
      left -= length;
    }
  }
  return made;
}

/** Code: each of its lines is a paragraph. */
function preformatted(block: Element): null {
  const text = block.textContent ?? "";
  const inner = block.querySelector("code") ?? block;
  if (text.split("\n").some((line) => line.length > MAX_CHARS) || isEndless(text)) inner.replaceChildren(...parts([text]));
  else if (block.querySelectorAll("*").length > MAX_INLINE) inner.textContent = text;
  return null;
}
