// The view inside a chat (MCP Apps): the answer of a tool as a picture or a list. It speaks JSON-RPC with the host over postMessage and
// loads nothing. Everything from the vault becomes text, never markup.
import { Boxes } from "../graph/boxes";
import { plainText } from "../plain_text";
import { place } from "./place";

interface Shown {
  key: string;
  title: string;
  detail: string;
  memory: boolean;
}
interface Link {
  source: string;
  target: string;
}

/** More would be a blot at the size of a chat. */
const MAX_NODES = 150;
const WIDTH = 720;
/** Higher for more nodes. */
const heightOf = (nodes: number) => Math.min(560, 280 + 4 * nodes);
const FONT = "11px system-ui, sans-serif";
const LETTERS = 28;

const root = document.documentElement;
const main = document.getElementById("view")!;
let sent = 0;
let tool = "";
let args: Record<string, unknown> = {};

const post = (message: object) => parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
const waiting = new Map<number, (result: any) => void>();
function request(method: string, params: object): Promise<any> {
  const id = ++sent;
  post({ id, method, params });
  return new Promise((resolve) => waiting.set(id, resolve));
}

function element(name: string, className = "", text = ""): HTMLElement {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.textContent = text;
  return made;
}
function drawn(name: string, attributes: Record<string, string | number>): SVGElement {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  return made;
}

/** Asks the agent about something that was clicked. */
function ask(about: Shown) {
  const text = about.memory ? `Tell me about the entity "${about.title}" in memory (${about.detail}).` : `Show me the note "${about.title}" (${about.detail}).`;
  request("ui/message", { role: "user", content: [{ type: "text", text }] });
}

const ofNode = (node: any): Shown =>
  node.entity_id === undefined
    ? { key: String(node.id ?? node.doc_id), title: String(node.title ?? node.id), detail: String(node.filepath ?? node.id), memory: false }
    : { key: `entity:${node.entity_id}`, title: String(node.name), detail: String(node.entity_type), memory: true };

/** Names beside the nodes, those with most links first; none over another or over a node. The others are told when one points at them. */
function labels(nodes: Shown[], points: [number, number][], radius: (n: number) => number, weight: (n: number) => number, height: number): SVGElement[] {
  const taken = new Boxes(WIDTH, height);
  points.forEach(([x, y], n) => taken.block(x - radius(n), y - radius(n), 2 * radius(n), 2 * radius(n)));
  const measure = document.createElement("canvas").getContext("2d")!;
  measure.font = FONT;
  const made: SVGElement[] = [];
  for (const n of [...nodes.keys()].sort((a, b) => weight(b) - weight(a))) {
    const { title } = nodes[n]!;
    const text = title.length > LETTERS ? `${title.slice(0, LETTERS - 1)}…` : title;
    const width = measure.measureText(text).width + 6;
    const [[x, y], r] = [points[n]!, radius(n) + 2];
    const places = [[x + r, y - 7], [x - r - width, y - 7], [x - width / 2, y + r], [x - width / 2, y - r - 14]] as const;
    const place = places.find(([left, top]) => taken.take(left, top, width, 14));
    if (!place) continue;
    const label = drawn("text", { x: place[0] + 3, y: place[1] + 11 });
    label.textContent = text;
    made.push(label);
  }
  return made;
}

function graph(all: Shown[], links: Link[], centre = "") {
  const nodes = all.slice(0, MAX_NODES);
  const at = new Map(nodes.map((node, n) => [node.key, n]));
  const edges = links.flatMap(({ source, target }) => (at.has(source) && at.has(target) ? [[at.get(source)!, at.get(target)!] as [number, number]] : []));
  const degree = nodes.map(() => 0);
  for (const [a, b] of edges) {
    degree[a]!++;
    degree[b]!++;
  }
  const height = heightOf(nodes.length);
  const points = place(nodes.length, edges, WIDTH, height);
  const svg = drawn("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "group", "aria-label": `Graph of ${nodes.length} nodes and ${edges.length} links` });
  for (const [a, b] of edges) svg.append(drawn("line", { x1: points[a]![0], y1: points[a]![1], x2: points[b]![0], y2: points[b]![1] }));
  const radius = (n: number) => 4 + Math.min(6, Math.sqrt(degree[n]!));
  nodes.forEach((node, n) => {
    const [[x, y], r] = [points[n]!, radius(n)];
    const kind = `node ${node.memory ? "memory" : ""} ${node.key === centre ? "centre" : ""}`;
    const shape = node.memory
      ? drawn("rect", { x: x - r, y: y - r, width: 2 * r, height: 2 * r, class: kind })
      : drawn("circle", { cx: x, cy: y, r, class: kind });
    shape.setAttribute("tabindex", "0");
    shape.setAttribute("role", "button");
    shape.setAttribute("aria-label", node.title);
    const title = drawn("title", {});
    title.textContent = node.title;
    shape.append(title);
    shape.addEventListener("click", () => ask(node));
    shape.addEventListener("keydown", (event) => (event as KeyboardEvent).key === "Enter" && ask(node));
    svg.append(shape);
  });
  svg.append(...labels(nodes, points, radius, (n) => (nodes[n]!.key === centre ? Infinity : degree[n]!), height));
  const rest = all.length > nodes.length ? `, the first ${nodes.length} of ${all.length}` : "";
  main.replaceChildren(svg, element("p", "quiet", `${nodes.length} nodes, ${edges.length} links${rest}. Click one to ask about it.`));
}

function button(node: Shown): HTMLElement {
  const made = element("button", "", node.title);
  made.addEventListener("click", () => ask(node));
  return made;
}

/** An excerpt comes in one line: what began its lines is inside. */
const excerpt = (text: string) => plainText(text).replace(/(^|\s)(?:> ?)+(?=\s|$)/g, "$1").replace(/([.:!?]) [-*] /g, "$1 · ").replace(/\s+/g, " ");

function list(rows: any[]) {
  const items = rows.map((row) => {
    const item = element("li");
    item.append(button(ofNode(row)), element("span", "quiet", `  ${row.section ? `§ ${row.section}` : ""}`));
    if (row.excerpt) item.append(element("p", "", excerpt(String(row.excerpt))));
    if (typeof row.score === "number") {
      const bar = element("span", "bar");
      bar.style.width = `${Math.round(Math.max(0, Math.min(1, row.score)) * 120)}px`;
      bar.title = `Score ${Math.round(row.score * 100)}`;
      item.append(bar);
    }
    return item;
  });
  const made = element("ol");
  made.append(...items);
  main.replaceChildren(items.length ? made : element("p", "quiet", "Nothing found."));
}

function pairs(rows: any[]) {
  const made = element("ul");
  for (const row of rows) {
    const item = element("li");
    item.append(button(ofNode(row.entity_a)), element("span", "quiet", "  and  "), button(ofNode(row.entity_b)));
    item.append(element("p", "quiet", row.recommendation === "high_confidence_merge" ? "Likely the same" : "Review both before you merge them"));
    made.append(item);
  }
  main.replaceChildren(rows.length ? made : element("p", "quiet", "No two entities look alike."));
}

function path(ids: string[]) {
  const made = element("ol", "path");
  for (const id of ids) {
    const item = element("li");
    item.append(button({ key: id, title: id, detail: id, memory: false }));
    made.append(item);
  }
  main.replaceChildren(made, element("p", "quiet", `${ids.length - 1} links`));
}

function neighbours(rows: any[]) {
  const own = String(args.id ?? "");
  const near = rows.map(ofNode);
  const middle: Shown = { key: "centre", title: own, detail: own, memory: false };
  graph([middle, ...near], near.map((node) => ({ source: "centre", target: node.key })), "centre");
}

function show(result: any) {
  const text = result.content?.find((block: any) => block.type === "text")?.text ?? "";
  if (result.isError) return main.replaceChildren(element("p", "", text));
  let value = result.structuredContent;
  if (value === undefined) {
    try {
      value = JSON.parse(text);
    } catch {
      return main.replaceChildren(element("pre", "", text));
    }
  }
  if (Array.isArray(value?.nodes) && Array.isArray(value.edges)) graph(value.nodes.map(ofNode), value.edges, String(args.center ?? ""));
  else if (Array.isArray(value?.path)) path(value.path.map(String));
  else if (Array.isArray(value) && (tool === "suggest_merges" || value[0]?.entity_a)) pairs(value);
  else if (Array.isArray(value) && tool === "get_neighbors") neighbours(value);
  else if (Array.isArray(value)) list(value);
  else main.replaceChildren(element("pre", "", JSON.stringify(value, null, 2)));
}

function dress(context: any) {
  if (context?.theme) root.dataset.theme = context.theme;
  for (const [name, value] of Object.entries(context?.styles?.variables ?? {})) {
    if (name.startsWith("--") && typeof value === "string") root.style.setProperty(name, value);
  }
  tool = context?.toolInfo?.tool?.name ?? tool;
}

addEventListener("message", (event) => {
  const message = event.data;
  if (event.source !== parent || message?.jsonrpc !== "2.0") return;
  if (message.method === undefined) {
    waiting.get(message.id)?.(message.result);
    waiting.delete(message.id);
  } else if (message.id !== undefined) post({ id: message.id, result: {} });
  else if (message.method === "ui/notifications/tool-input") args = message.params?.arguments ?? {};
  else if (message.method === "ui/notifications/tool-result") show(message.params ?? {});
  else if (message.method === "ui/notifications/host-context-changed") dress(message.params);
});

async function begin() {
  const answer = await request("ui/initialize", {
    appInfo: { name: "quipu", version: "1" },
    appCapabilities: { availableDisplayModes: ["inline"] },
    protocolVersion: "2026-01-26",
  });
  dress(answer?.hostContext);
  post({ method: "ui/notifications/initialized", params: {} });
  new ResizeObserver(() => post({ method: "ui/notifications/size-changed", params: { width: root.scrollWidth, height: Math.ceil(document.body.getBoundingClientRect().height) } })).observe(document.body);
}
begin();
