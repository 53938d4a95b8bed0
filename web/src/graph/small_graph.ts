// A small graph as one SVG: in a chat, and around an entity. Positions are computed here. Everything becomes text, never markup.
import { Boxes } from "./boxes";
import { place } from "./place";

export interface SmallNode {
  key: string;
  title: string;
  /** Squares are entities of memory, circles are notes. */
  memory: boolean;
}

export interface SmallLink {
  source: string;
  target: string;
  /** Written beside the link. */
  label?: string;
}

export interface SmallGraph {
  nodes: SmallNode[];
  links: SmallLink[];
  /** The key of the node in the middle. */
  centre?: string;
  width: number;
  height: number;
  isDirected?: boolean;
  open: (key: string) => void;
}

const FONT = "11px system-ui, sans-serif";
const LETTERS = 28;

function drawn(name: string, attributes: Record<string, string | number>): SVGElement {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  return made;
}

const cut = (text: string) => (text.length > LETTERS ? `${text.slice(0, LETTERS - 1)}…` : text);

/** Text where there is room for it. */
class Labels {
  private readonly taken: Boxes;
  private readonly measure = document.createElement("canvas").getContext("2d")!;

  constructor(width: number, height: number) {
    this.taken = new Boxes(width, height);
    this.measure.font = FONT;
  }

  block(x: number, y: number, radius: number) {
    this.taken.block(x - radius, y - radius, 2 * radius, 2 * radius);
  }

  width(text: string): number {
    return this.measure.measureText(text).width + 6;
  }

  /** At the first of some places where nothing is, by their left upper corner. */
  write(text: string, places: (readonly [number, number])[], kind = ""): SVGElement | null {
    const width = this.width(text);
    const place = places.find(([left, top]) => this.taken.take(left, top, width, 14));
    if (!place) return null;
    const label = drawn("text", { x: place[0] + 3, y: place[1] + 11, class: kind });
    label.textContent = text;
    return label;
  }
}

export function smallGraph({ nodes, links, centre = "", width, height, isDirected, open }: SmallGraph): SVGElement {
  const at = new Map(nodes.map((node, n) => [node.key, n]));
  const known = links.filter(({ source, target }) => at.has(source) && at.has(target));
  const edges = known.map(({ source, target }): [number, number] => [at.get(source)!, at.get(target)!]);
  const degree = nodes.map(() => 0);
  for (const [a, b] of edges) {
    degree[a]!++;
    degree[b]!++;
  }
  const points = place(nodes.length, edges.filter(([a, b]) => a !== b), width, height);
  const radius = (n: number) => 4 + Math.min(6, Math.sqrt(degree[n]!));
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `Graph of ${nodes.length} nodes and ${edges.length} links` });
  const labels = new Labels(width, height);
  points.forEach(([x, y], n) => labels.block(x, y, radius(n)));
  for (const [a, b] of edges) svg.append(...line(points[a]!, points[b]!, radius(a), radius(b), !!isDirected));
  nodes.forEach((node, n) => svg.append(shape(node, points[n]!, radius(n), node.key === centre, open)));
  const weight = (n: number) => (nodes[n]!.key === centre ? Infinity : degree[n]!);
  // Those with most links first. The others are named when one points at them.
  for (const n of [...nodes.keys()].sort((a, b) => weight(b) - weight(a))) {
    const text = cut(nodes[n]!.title);
    const [[x, y], r, length] = [points[n]!, radius(n) + 2, labels.width(text)];
    const [right, left, below, above] = [[x + r, y - 7], [x - r - length, y - 7], [x - length / 2, y + r], [x - length / 2, y - r - 14]] as const;
    // Beside a node the heads of arrows stand more often than above and below it.
    const label = labels.write(text, isDirected ? [below, above, right, left] : [right, left, below, above]);
    if (label) svg.append(label);
  }
  const names = new Map<string, Set<string>>();
  known.forEach(({ label }, n) => {
    const key = [...edges[n]!].sort().join();
    if (label) names.set(key, (names.get(key) ?? new Set()).add(label));
  });
  for (const [key, texts] of names) {
    const [a, b] = key.split(",").map(Number);
    if (a === b) continue;
    const [[ax, ay], [bx, by], text] = [points[a!]!, points[b!]!, cut([...texts].join(", "))];
    // At the middle, else nearer to one of the ends.
    const places = [0.5, 0.62, 0.38].map((part) => [ax + (bx - ax) * part - labels.width(text) / 2, ay + (by - ay) * part - 7] as const);
    const label = labels.write(text, places, "link-name");
    if (label) svg.append(label);
  }
  return svg;
}

/** A link, with the head of an arrow where it has a direction. A link to itself is a loop above the node. */
function line(from: [number, number], to: [number, number], fromRadius: number, toRadius: number, isDirected: boolean): SVGElement[] {
  const [dx, dy] = [to[0] - from[0], to[1] - from[1]];
  const length = Math.hypot(dx, dy);
  if (!length) return [drawn("circle", { class: "loop", cx: from[0], cy: from[1] - fromRadius - 5, r: 6, fill: "none" })];
  const made = [drawn("line", { x1: from[0], y1: from[1], x2: to[0], y2: to[1] })];
  if (isDirected) {
    const [ux, uy] = [dx / length, dy / length];
    const [x, y] = [to[0] - ux * (toRadius + 1), to[1] - uy * (toRadius + 1)];
    const side = (turn: number) => `${x - 7 * ux + turn * 3 * uy} ${y - 7 * uy - turn * 3 * ux}`;
    made.push(drawn("path", { class: "head", d: `M${x} ${y}L${side(1)}L${side(-1)}Z` }));
  }
  return made;
}

function shape(node: SmallNode, [x, y]: [number, number], r: number, isCentre: boolean, open: (key: string) => void): SVGElement {
  const kind = `node ${node.memory ? "memory" : ""} ${isCentre ? "centre" : ""}`;
  const made = node.memory
    ? drawn("rect", { x: x - r, y: y - r, width: 2 * r, height: 2 * r, class: kind })
    : drawn("circle", { cx: x, cy: y, r, class: kind });
  made.setAttribute("tabindex", "0");
  made.setAttribute("role", "button");
  made.setAttribute("aria-label", node.title);
  const title = drawn("title", {});
  title.textContent = node.title;
  made.append(title);
  made.addEventListener("click", () => open(node.key));
  made.addEventListener("keydown", (event) => (event as KeyboardEvent).key === "Enter" && open(node.key));
  return made;
}
