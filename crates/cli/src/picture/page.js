// The picture as a page: move, zoom, find a node and see its neighbours, by mouse or keys. EDGES are pairs of nodes, ORDER has the
// nodes by importance, LABELS the node of each label.
const svg = document.querySelector("svg");
const view = svg.viewBox.baseVal;
const whole = [view.x, view.y, view.width, view.height];
const nodes = [...svg.querySelectorAll(".node")];
const labels = [...svg.querySelectorAll(".label")];
const links = svg.querySelector(".links");
const about = document.querySelector(".about");
const find = document.querySelector("input");
const lines = document.createElementNS(svg.namespaceURI, "g");
links.after(lines);
let own = -1;

const middle = (node) => {
  const box = nodes[node].getBBox();
  return [box.x + box.width / 2, box.y + box.height / 2];
};
const zoom = (factor, x = view.x + view.width / 2, y = view.y + view.height / 2) => {
  const width = Math.min(whole[2] * 4, Math.max(40, view.width * factor));
  const real = width / view.width;
  view.x = x - (x - view.x) * real;
  view.y = y - (y - view.y) * real;
  view.width = width;
  view.height *= real;
};
const light = (shown) => {
  svg.classList.toggle("some", shown !== null);
  nodes.forEach((node, at) => node.classList.toggle("lit", !!shown?.has(at)));
  labels.forEach((label, at) => label.classList.toggle("lit", !!shown?.has(LABELS[at])));
};
const select = (node, moves) => {
  nodes[own]?.classList.remove("own");
  own = node;
  lines.replaceChildren();
  if (node < 0) {
    about.textContent = "";
    return light(null);
  }
  const shown = new Set([node]);
  const from = middle(node);
  for (let at = 0; at < EDGES.length; at += 2) {
    if (EDGES[at] !== node && EDGES[at + 1] !== node) continue;
    const other = EDGES[at] === node ? EDGES[at + 1] : EDGES[at];
    if (shown.has(other)) continue;
    shown.add(other);
    const line = document.createElementNS(svg.namespaceURI, "path");
    line.setAttribute("class", "lit-link");
    line.setAttribute("d", `M${from}L${middle(other)}`);
    lines.append(line);
  }
  light(shown);
  nodes[node].classList.add("own");
  const number = shown.size - 1;
  about.textContent = `${nodes[node].querySelector("title").textContent} · ${number} ${number === 1 ? "neighbor" : "neighbors"}`;
  const [x, y] = from;
  const isOutside = x < view.x || y < view.y || x > view.x + view.width || y > view.y + view.height;
  if (moves && isOutside) {
    view.x = x - view.width / 2;
    view.y = y - view.height / 2;
  }
};
const step = (by) => {
  const at = own < 0 ? (by > 0 ? -1 : 0) : ORDER.indexOf(own);
  select(ORDER[(at + by + ORDER.length) % ORDER.length], true);
};

svg.addEventListener("wheel", (event) => {
  event.preventDefault();
  const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  zoom(event.deltaY > 0 ? 1.15 : 1 / 1.15, point.x, point.y);
}, { passive: false });
let moved = 0;
svg.addEventListener("pointerdown", () => (moved = 0));
svg.addEventListener("pointermove", (event) => {
  if (!event.buttons) return;
  const scale = Math.max(view.width / svg.clientWidth, view.height / svg.clientHeight);
  view.x -= event.movementX * scale;
  view.y -= event.movementY * scale;
  moved += Math.abs(event.movementX) + Math.abs(event.movementY);
  svg.classList.add("moving");
});
svg.addEventListener("pointerup", () => svg.classList.remove("moving"));
svg.addEventListener("click", (event) => {
  if (moved < 4) select(nodes.indexOf(event.target.closest(".node")), false);
});
find.addEventListener("input", () => {
  const words = find.value.trim().toLowerCase();
  select(words ? (ORDER.find((node) => nodes[node].querySelector("title").textContent.toLowerCase().includes(words)) ?? -1) : -1, true);
});
const KEYS = {
  ArrowLeft: () => (view.x -= view.width * 0.08),
  ArrowRight: () => (view.x += view.width * 0.08),
  ArrowUp: () => (view.y -= view.height * 0.08),
  ArrowDown: () => (view.y += view.height * 0.08),
  "+": () => zoom(1 / 1.4),
  "=": () => zoom(1 / 1.4),
  "-": () => zoom(1.4),
  0: () => ([view.x, view.y, view.width, view.height] = whole),
  n: () => step(1),
  p: () => step(-1),
  "/": () => find.focus(),
  Escape: () => select(-1, false),
};
addEventListener("keydown", (event) => {
  if (event.target === find && event.key !== "Escape") return;
  if (!KEYS[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  if (event.target === find) find.blur();
  KEYS[event.key]();
});
