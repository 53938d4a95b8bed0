// The view inside a chat (MCP Apps): the answer of a tool as a picture or a list. It speaks JSON-RPC with the host over postMessage and
// loads nothing. Everything from the vault becomes text, never markup.
import { type SmallLink, smallGraph } from "../graph/small_graph";
import { plainText } from "../plain_text";

interface Shown {
  key: string;
  title: string;
  detail: string;
  memory: boolean;
}

/** More would be a blot at the size of a chat. */
const MAX_NODES = 150;
const WIDTH = 720;
/** Higher for more nodes. */
const heightOf = (nodes: number) => Math.min(560, 280 + 4 * nodes);

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
/** Asks the agent about something that was clicked. */
function ask(about: Shown) {
  const text = about.memory ? `Tell me about the entity "${about.title}" in memory (${about.detail}).` : `Show me the note "${about.title}" (${about.detail}).`;
  request("ui/message", { role: "user", content: [{ type: "text", text }] });
}

const ofNode = (node: any): Shown =>
  node.entity_id === undefined
    ? { key: String(node.id ?? node.doc_id), title: String(node.title ?? node.id), detail: String(node.filepath ?? node.id), memory: false }
    : { key: `entity:${node.entity_id}`, title: String(node.name), detail: String(node.entity_type), memory: true };

function graph(all: Shown[], links: SmallLink[], centre = "") {
  const nodes = all.slice(0, MAX_NODES);
  const shown = new Set(nodes.map((node) => node.key));
  const drawn = links.filter(({ source, target }) => shown.has(source) && shown.has(target));
  const open = (key: string) => ask(nodes.find((node) => node.key === key)!);
  const svg = smallGraph({ nodes, links: drawn, centre, width: WIDTH, height: heightOf(nodes.length), open });
  const rest = all.length > nodes.length ? `, the first ${nodes.length} of ${all.length}` : "";
  main.replaceChildren(svg, element("p", "quiet", `${nodes.length} nodes, ${drawn.length} links${rest}. Click one to ask about it.`));
}

/** The node that an argument names: by its id or its path. */
function named(nodes: Shown[], argument: unknown): string {
  const wanted = String(argument ?? "").toLowerCase();
  return nodes.find(({ key, detail }) => [key, detail].some((name) => name.toLowerCase() === wanted))?.key ?? "";
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

function path(ids: string[] | undefined) {
  if (!ids) return main.replaceChildren(element("p", "quiet", `No path of links leads from ${String(args.source)} to ${String(args.target)}.`));
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
  if (Array.isArray(value?.nodes) && Array.isArray(value.edges)) {
    const nodes: Shown[] = value.nodes.map(ofNode);
    graph(nodes, value.edges, named(nodes, args.center));
  } else if (Array.isArray(value?.path) || (value === null && tool === "find_path")) path(value?.path.map(String));
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
