// The picture: WebGL for nodes and edges (sigma), two plain canvases for what must never be wrong: hulls below, highlights and labels
// above. A highlight is drawn over a veil instead of recolouring the graph, so hovering costs the neighbourhood and not the whole.
import { NodeSquareProgram } from "@sigma/node-square";
import Graph from "graphology";
import Sigma from "sigma";
import { NodeCircleProgram } from "sigma/rendering";
import { Boxes } from "./boxes";
import { createEdgeProgram } from "./edge_program";
import { type Bond, bonds, type HiddenTypes, isEntity, type Model, neighbours, typesOf } from "./model";

export interface Look {
  dark: boolean;
  background: string;
  text: string;
  muted: string;
  accent: string;
  edge: (source: number, target: number, type: number) => string;
  /** The colour of a type of links, and null for plain ones. */
  typeColour: (type: number) => string | null;
  typeName: (type: number) => string;
  hiddenTypes: HiddenTypes;
  /** The colour of a group as a whole, and null where its nodes have several. */
  groupColour: (members: number[]) => string | null;
  /** The colour of a node, and null when a filter hides it. */
  colour: (node: number) => string | null;
}

/** A link between two nodes in the picture. */
type Link = Bond & { node: number };

/** What one drawing needs: where nodes are, how large, what stands out, and where there is room. */
interface Frame {
  at: (node: number) => [number, number];
  size: (node: number) => number;
  ratio: number;
  lit: Set<number> | null;
  width: number;
  height: number;
  taken: Boxes;
}

export interface Events {
  click: (node: number, shift: boolean) => void;
  clickStage: () => void;
  open: (node: number) => void;
}

/** Above this, edges are left out while the camera moves; below, where this machine turns out to be too slow for them. */
const MANY_EDGES = 20_000;
const SLOW_FRAME_MS = 40;
const SLOW_FRAMES = 2;
/** From here on, long edges fade. */
const DENSE_EDGES = 600;
/** Arrows and names of links that are drawn at once. */
const MAX_ARROWS = 400;
const MAX_LINK_NAMES = 30;
const TYPED_WIDTH = 2.6;
const MAX_LABELS = 140;
/** With more nodes in view, labels take the place beside their node or none. */
const CROWDED = 150;
/** Where the sheet with the selected node begins on a phone, as a share of the height. */
const SHEET_TOP = 0.4;
const FONT = '-apple-system, BlinkMacSystemFont, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';

export class Scene {
  private readonly sigma: Sigma;
  private readonly graph: Graph;
  private readonly hulls: CanvasRenderingContext2D;
  private readonly above: CanvasRenderingContext2D;
  private focus: number[] = [];
  private path: number[] | null = null;
  private hovered: number | null = null;
  private matches: Set<number> | null = null;
  private hidden = new Uint8Array(0);
  private widths = new Map<string, number>();
  private look: Look;
  private typed: number[] = [];
  private slowFrames = 0;
  private isDestroyed = false;
  /** What is written in the picture and where, for tests. */
  written: { text: string; box: [number, number, number, number] }[] = [];

  constructor(
    readonly container: HTMLElement,
    readonly model: Model,
    look: Look,
    events: Events,
  ) {
    this.look = look;
    this.graph = this.build();
    const edges = model.data.edges.length / 3;
    this.sigma = new Sigma(this.graph, container, {
      renderLabels: false,
      renderEdgeLabels: false,
      enableEdgeEvents: false,
      hideEdgesOnMove: edges > MANY_EDGES,
      defaultEdgeType: "line",
      defaultNodeType: "circle",
      nodeProgramClasses: { circle: NodeCircleProgram, square: NodeSquareProgram },
      edgeProgramClasses: { line: createEdgeProgram(Math.min(1, Math.max(0, Math.log10(edges / DENSE_EDGES)))) },
      // Thinner lines have gaps where they run aslant, which only a dense graph hides.
      minEdgeThickness: edges > 5_000 ? 1 : 1.7,
      minCameraRatio: 0.01,
      maxCameraRatio: 2.5,
      stagePadding: 40,
      zoomingRatio: 1.5,
      // On a small screen the same nodes stand closer together.
      zoomToSizeRatioFunction: (ratio) => Math.sqrt(ratio) / Math.min(1, Math.max(0.5, Math.min(container.clientWidth, container.clientHeight) / 700)),
      doubleClickZoomingRatio: 1,
      zIndex: false,
      allowInvalidContainer: true,
    });
    this.hulls = this.layer("hulls", { beforeLayer: "edges" });
    this.above = this.layer("above", { beforeLayer: "mouse" });
    this.sigma.on("afterRender", () => {
      this.draw();
      this.watchSpeed();
    });
    this.sigma.on("resize", () => this.resize());
    this.sigma.on("enterNode", ({ node }) => this.hover(Number(node)));
    this.sigma.on("leaveNode", () => this.hover(null));
    let clicked = "";
    this.sigma.on("clickNode", ({ node, event }) => {
      clicked = node;
      events.click(Number(node), (event.original as MouseEvent).shiftKey);
    });
    // Two quick clicks on two nodes are no double click, nor is a shift-click.
    this.sigma.on("doubleClickNode", ({ node, event, preventSigmaDefault }) => {
      preventSigmaDefault();
      const { shiftKey } = event.original as MouseEvent;
      if (node === clicked && !shiftKey) events.open(Number(node));
      else events.click(Number(node), shiftKey);
    });
    this.sigma.on("clickStage", () => events.clickStage());
    this.resize();
    this.sigma.getCamera().setState(this.fitted(model.order, 0.3));
    this.recolour(look);
  }

  /** Edges that a machine draws too slowly are left out while the camera moves. A frame that is late waits for the one before. */
  private watchSpeed() {
    if (!this.sigma.getMouseCaptor().isMoving) return;
    const start = performance.now();
    requestAnimationFrame(() => {
      const isSlow = performance.now() - start > SLOW_FRAME_MS;
      this.slowFrames = isSlow ? this.slowFrames + 1 : Math.max(0, this.slowFrames - 1);
      if (this.slowFrames >= SLOW_FRAMES && !this.isDestroyed) this.sigma.setSetting("hideEdgesOnMove", true);
    });
  }

  private layer(id: string, place: object): CanvasRenderingContext2D {
    const canvas = this.sigma.createCanvas(id, place);
    canvas.style.pointerEvents = "none";
    return canvas.getContext("2d")!;
  }

  private build(): Graph {
    const { model } = this;
    const { data } = model;
    const graph = new Graph({ type: "undirected", multi: true, allowSelfLoops: true });
    for (let node = 0; node < model.size; node++) {
      graph.addNode(node, {
        x: data.x[node],
        y: data.y[node],
        size: model.radius[node],
        type: isEntity(model, node) ? "square" : "circle",
        color: "#888",
      });
    }
    for (let at = 0; at < data.edges.length; at += 3) {
      if (data.edges[at] !== data.edges[at + 1]) graph.addEdgeWithKey(at / 3, data.edges[at], data.edges[at + 1], { size: 1, color: "#888" });
    }
    return graph;
  }

  /** Colours and filters again: for another theme, legend or time. */
  recolour(look: Look) {
    this.look = look;
    const { model } = this;
    this.hidden = new Uint8Array(model.size);
    this.graph.updateEachNodeAttributes(
      (key, attributes) => {
        const colour = look.colour(Number(key));
        this.hidden[Number(key)] = colour ? 0 : 1;
        return { ...attributes, color: colour ?? "#888", hidden: !colour };
      },
      { attributes: ["color", "hidden"] },
    );
    const { edges } = model.data;
    this.graph.updateEachEdgeAttributes(
      (key, attributes) => {
        const at = Number(key) * 3;
        const [source, target] = [edges[at]!, edges[at + 1]!];
        const type = edges[at + 2]!;
        const hidden = !!(this.hidden[source] || this.hidden[target]) || look.hiddenTypes.has(type);
        return { ...attributes, color: look.edge(source, target, type), size: look.typeColour(type) ? TYPED_WIDTH : 1, hidden };
      },
      { attributes: ["color", "hidden", "size"] },
    );
    this.typed = [];
    for (let at = 0; at < edges.length; at += 3) {
      const [source, target, type] = [edges[at]!, edges[at + 1]!, edges[at + 2]!];
      if (look.typeColour(type) && !look.hiddenTypes.has(type) && !this.hidden[source] && !this.hidden[target]) this.typed.push(at);
    }
    this.sigma.refresh();
  }

  select(nodes: number[], path: number[] | null) {
    this.focus = nodes;
    this.path = path;
    this.sigma.scheduleRender();
  }

  highlight(matches: Set<number> | null) {
    this.matches = matches;
    this.sigma.scheduleRender();
  }

  private hover(node: number | null) {
    this.hovered = node;
    this.container.classList.toggle("over-node", node !== null);
    this.sigma.scheduleRender();
  }

  /** Moves the camera so that some nodes fill the part of the picture that nothing covers. */
  show(nodes: number[], isSelected = false) {
    if (!nodes.length) return;
    const state = this.fitted(nodes, 0.08, isSelected);
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (!calm) this.sigma.getCamera().animate(state, { duration: 180 });
    else this.sigma.getCamera().setState(state);
  }

  /** The camera that shows some nodes beside the legend and below the controls. */
  private fitted(nodes: Iterable<number>, least: number, isSelected = false) {
    const { x, y } = this.model.data;
    let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const node of nodes) {
      left = Math.min(left, x[node]!);
      right = Math.max(right, x[node]!);
      low = Math.min(low, y[node]!);
      high = Math.max(high, y[node]!);
    }
    const state = { x: 0.5, y: 0.5, ratio: 1, angle: 0 };
    // Two corners on the screen, at a ratio of one: everything below is in these pixels.
    const corner = (x: number, y: number) => this.sigma.graphToViewport({ x, y }, { cameraState: state });
    const [a, b] = [corner(left, high), corner(right, low)];
    const free = this.freeArea(isSelected);
    state.ratio = Math.min(2.4, Math.max(least, (b.x - a.x) / free.width, (b.y - a.y) / free.height));
    const middle = this.sigma.graphToViewport({ x: (left + right) / 2, y: (low + high) / 2 }, { cameraState: state });
    const at = (x: number, y: number) => this.sigma.viewportToFramedGraph({ x, y }, { cameraState: state });
    const [is, wanted] = [at(middle.x, middle.y), at(free.x + free.width / 2, free.y + free.height / 2)];
    state.x += is.x - wanted.x;
    state.y += is.y - wanted.y;
    return state;
  }

  /** What neither controls nor legend cover, with room for labels at the edges. */
  private freeArea(isSelected: boolean) {
    const { width, height } = this.sigma.getDimensions();
    const covered = (selector: string) => this.container.parentElement?.querySelector(selector)?.getBoundingClientRect();
    const own = this.container.getBoundingClientRect();
    const legend = covered(".legend:not(.folded)");
    const isPhone = innerWidth < 700;
    const left = legend && !isPhone ? legend.right - own.left + 24 : 24;
    const top = (covered(".graph-top")?.bottom ?? own.top) - own.top + 24;
    const right = width - (isPhone ? 40 : Math.min(140, width * 0.12));
    // On a phone the sheet with the selected node covers the lower part.
    const bottom = (isPhone && isSelected ? height * SHEET_TOP : height) - (isPhone ? (isSelected ? 20 : 56) : 32);
    return { x: left, y: top, width: Math.max(80, right - left), height: Math.max(80, bottom - top) };
  }

  zoom(factor: number) {
    const camera = this.sigma.getCamera();
    camera.animate({ ratio: Math.min(2.5, Math.max(0.01, camera.ratio * factor)) }, { duration: 120 });
  }

  pan(dx: number, dy: number) {
    const camera = this.sigma.getCamera();
    camera.setState({ x: camera.x + dx * camera.ratio * 0.08, y: camera.y + dy * camera.ratio * 0.08 });
  }

  reset() {
    this.sigma.getCamera().animate(this.fitted(this.model.order, 0.3), { duration: 180 });
  }

  cameraState() {
    return this.sigma.getCamera().getState();
  }
  setCamera(state: { x: number; y: number; ratio: number; angle: number }) {
    this.sigma.getCamera().setState(state);
  }

  destroy() {
    this.isDestroyed = true;
    this.sigma.kill();
  }

  private resize() {
    const { width, height } = this.sigma.getDimensions();
    const ratio = window.devicePixelRatio || 1;
    for (const context of [this.hulls, this.above]) {
      if (!context) continue;
      context.canvas.width = width * ratio;
      context.canvas.height = height * ratio;
      context.canvas.style.width = `${width}px`;
      context.canvas.style.height = `${height}px`;
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
    }
  }

  /** From graph to screen, as one affine map: cheaper than asking for each of 50,000 nodes. */
  private projection() {
    const origin = this.sigma.graphToViewport({ x: 0, y: 0 });
    const right = this.sigma.graphToViewport({ x: 1000, y: 0 });
    const up = this.sigma.graphToViewport({ x: 0, y: 1000 });
    const [ax, ay] = [(right.x - origin.x) / 1000, (right.y - origin.y) / 1000];
    const [bx, by] = [(up.x - origin.x) / 1000, (up.y - origin.y) / 1000];
    const { x, y } = this.model.data;
    return (node: number): [number, number] => this.project(x[node]!, y[node]!, origin, ax, ay, bx, by);
  }
  private project(x: number, y: number, o: { x: number; y: number }, ax: number, ay: number, bx: number, by: number): [number, number] {
    return [o.x + x * ax + y * bx, o.y + x * ay + y * by];
  }

  private draw() {
    const { width, height } = this.sigma.getDimensions();
    if (!this.above || !this.hulls) return;
    this.hulls.clearRect(0, 0, width, height);
    this.above.clearRect(0, 0, width, height);
    const ratio = this.sigma.getCamera().ratio;
    const at = this.projection();
    const size = (node: number) => this.sigma.scaleSize(this.model.radius[node]);
    this.drawHulls(ratio);
    const centre = this.hovered ?? null;
    const lit = this.litNodes(centre);
    const frame: Frame = { at, size, ratio, lit, width, height, taken: new Boxes(width, height) };
    this.written = [];
    this.reserve(frame);
    if (lit) this.drawLit(lit, centre, frame);
    else this.drawArrows(frame);
    this.drawLabels(frame);
  }

  /** Controls, and in an open view nodes: no label stands on them. In a crowded one there is no other place than on nodes. */
  private reserve({ at, size, lit, width, height, taken }: Frame) {
    const own = this.container.getBoundingClientRect();
    for (const part of this.container.parentElement?.querySelectorAll(".legend, .graph-top > *, .graph-tools > *, .graph-hint") ?? []) {
      const box = part.getBoundingClientRect();
      if (box.width && box.height) taken.block(box.left - own.left, box.top - own.top, box.width, box.height);
    }
    const visible = this.visible(at, lit, width, height);
    if (visible.length > CROWDED) return;
    for (const node of visible) {
      const [x, y] = at(node);
      const radius = size(node);
      taken.block(x - radius, y - radius, 2 * radius, 2 * radius);
    }
  }

  /** What stands out, if something does. */
  private litNodes(centre: number | null): Set<number> | null {
    if (this.path) return new Set(this.path);
    const centres = centre === null ? this.focus : [centre];
    const near = (node: number) => neighbours(this.model, node, this.look.hiddenTypes);
    if (centres.length) return new Set([...centres, ...centres.flatMap(near).filter((node) => !this.hidden[node])]);
    return this.matches;
  }

  private drawHulls(ratio: number) {
    // Soft shapes are for the far view; near, they would be fog.
    const strength = Math.min(1, Math.max(0, (ratio - 0.25) / 0.35));
    if (!strength || this.model.communities.length < 2) return;
    const context = this.hulls;
    // The canvas is transparent as a whole: two hulls that overlap do not add up to a third shape.
    context.canvas.style.opacity = String((this.look.dark ? 0.16 : 0.1) * strength);
    context.lineJoin = "round";
    for (const community of this.model.communities.slice(0, 60)) {
      const shown = community.members.filter((node) => !this.hidden[node]);
      if (shown.length < community.members.length / 2 || community.hull.length < 3) continue;
      const colour = this.look.groupColour(shown) ?? this.look.muted;
      context.fillStyle = colour;
      context.strokeStyle = colour;
      context.lineWidth = 26;
      context.beginPath();
      for (const point of community.hull) {
        const { x, y } = this.sigma.graphToViewport({ x: point[0], y: point[1] });
        context.lineTo(x, y);
      }
      context.closePath();
      context.stroke();
      context.fill();
    }
  }

  private drawLit(lit: Set<number>, centre: number | null, frame: Frame) {
    const { at, size, width, height } = frame;
    const context = this.above;
    const { look, model } = this;
    context.globalAlpha = look.dark ? 0.78 : 0.82;
    context.fillStyle = look.background;
    context.fillRect(0, 0, width, height);
    context.globalAlpha = 1;
    const centres = this.path ?? (centre === null ? this.focus : [centre]);
    const links = this.litLinks(lit, centres);
    this.drawLinks(links, frame);
    for (const node of lit) {
      const [x, y] = at(node);
      if (x < -20 || y < -20 || x > width + 20 || y > height + 20) continue;
      const radius = size(node);
      context.fillStyle = look.colour(node) ?? look.muted;
      context.beginPath();
      if (isEntity(model, node)) context.rect(x - radius, y - radius, 2 * radius, 2 * radius);
      else context.arc(x, y, radius, 0, 2 * Math.PI);
      context.fill();
      if (centres.includes(node)) {
        context.strokeStyle = look.text;
        context.lineWidth = 2;
        context.beginPath();
        context.arc(x, y, radius + 4, 0, 2 * Math.PI);
        context.stroke();
      }
    }
    this.nameLinks(links, frame);
  }

  /** The links along the path, or those of what is selected. */
  private litLinks(lit: Set<number>, centres: number[]): Link[] {
    const { model, path } = this;
    const hidden = this.look.hiddenTypes;
    const of = (node: number, wanted: (other: number) => boolean) =>
      bonds(model, node, hidden).filter(({ other }) => wanted(other)).map((bond) => ({ ...bond, node }));
    if (path) return path.slice(1).flatMap((node, at) => of(path[at]!, (other) => other === node));
    return centres.flatMap((node, n) => of(node, (other) => lit.has(other) && !centres.slice(0, n).includes(other)));
  }

  private drawLinks(links: Link[], { at, size }: Frame) {
    const context = this.above;
    const { look, path } = this;
    // Of a hub with a thousand links only the direction shows.
    const strength = path ? 1 : Math.min(1, Math.sqrt(60 / Math.max(1, links.length)));
    for (const link of links) {
      const typed = this.typeOf(link);
      const colour = (typed !== null && look.typeColour(typed)) || look.accent;
      context.globalAlpha = strength * (typed === null && !path ? 0.6 : 1);
      context.strokeStyle = colour;
      context.fillStyle = colour;
      context.lineWidth = path ? 2.5 : typed === null ? 1.25 : 2;
      const [from, to] = [at(link.node), at(link.other)];
      context.beginPath();
      context.moveTo(...from);
      context.lineTo(...to);
      context.stroke();
      if (!path && links.length > MAX_ARROWS) continue;
      if (link.out.size) this.arrow(from, to, size(link.other), path ? 10 : 8);
      if (link.into.size) this.arrow(to, from, size(link.node) + 4, path ? 10 : 8);
    }
    context.globalAlpha = 1;
  }

  /** The first type of a link that is not plain. */
  private typeOf(bond: Bond): number | null {
    return typesOf(bond).find((type) => this.look.typeColour(type) !== null) ?? null;
  }

  /** Types beside the middle of their links: all along a path, else those that are not plain. */
  private nameLinks(links: Link[], { at, taken }: Frame) {
    const { look, path } = this;
    let named = 0;
    for (const link of links) {
      const shown = typesOf(link).filter((type) => path || look.typeColour(type) !== null);
      if (!shown.length || named >= MAX_LINK_NAMES) continue;
      const [from, to] = [at(link.node), at(link.other)];
      if (Math.hypot(to[0] - from[0], to[1] - from[1]) < 48) continue;
      const colour = look.typeColour(shown[0]!) ?? look.muted;
      const text = shown.map(look.typeName).join(", ");
      // At the middle, else nearer to one of the ends.
      const places = [0.5, 0.62, 0.38].map((part): [number, number] => [from[0] + (to[0] - from[0]) * part, from[1] + (to[1] - from[1]) * part]);
      if (places.some(([x, y]) => this.label(taken, text, x, y, `500 11px ${FONT}`, 11, colour, "center"))) named++;
    }
  }

  /** The directions of typed links, as far as there is room for them. */
  private drawArrows({ at, size, width, height }: Frame) {
    const { edges } = this.model.data;
    const seen: [[number, number], [number, number], number, number][] = [];
    for (const edge of this.typed) {
      const [from, to] = [at(edges[edge]!), at(edges[edge + 1]!)];
      if (to[0] < 0 || to[1] < 0 || to[0] > width || to[1] > height) continue;
      if (Math.hypot(to[0] - from[0], to[1] - from[1]) < 24) continue;
      if (seen.push([from, to, edges[edge + 1]!, edges[edge + 2]!]) > MAX_ARROWS) return;
    }
    for (const [from, to, target, type] of seen) {
      this.above.fillStyle = this.look.typeColour(type)!;
      this.arrow(from, to, size(target), 7);
    }
  }

  /** The head of an arrow, where it meets a node. */
  private arrow(from: [number, number], to: [number, number], radius: number, length: number) {
    const angle = Math.atan2(to[1] - from[1], to[0] - from[0]);
    const [x, y] = [to[0] - (radius + 1) * Math.cos(angle), to[1] - (radius + 1) * Math.sin(angle)];
    const context = this.above;
    context.beginPath();
    context.moveTo(x, y);
    for (const side of [-0.4, 0.4]) context.lineTo(x - length * Math.cos(angle + side), y - length * Math.sin(angle + side));
    context.closePath();
    context.fill();
  }

  /** Most important first, and none over another. */
  private drawLabels({ at, size, ratio, lit, width, height, taken }: Frame) {
    const { model, look } = this;
    const visible = this.visible(at, lit, width, height);
    const isFar = ratio > 0.45 && model.communities.length > 1 && model.size > 60 && !lit;
    const named = new Set<string>();
    if (isFar) {
      for (const community of model.communities.slice(0, 30)) {
        if (community.members.every((node) => this.hidden[node])) continue;
        named.add(community.label);
        const { x, y } = this.sigma.graphToViewport(community);
        const px = Math.round(Math.min(width < 600 ? 14 : 18, 12 + Math.sqrt(community.members.length / model.size) * 14));
        this.label(taken, community.label, x, y, `600 ${px}px ${FONT}`, px, look.text, "center");
      }
    }
    const most = isFar ? 24 : lit ? 50 : MAX_LABELS;
    const enough = isFar ? 5.5 : 2;
    let drawn = 0;
    const centres = new Set(this.path ?? (this.hovered === null ? this.focus : [this.hovered]));
    const first = lit ? [...lit].sort((a, b) => Number(centres.has(b)) - Number(centres.has(a)) || model.radius[b]! - model.radius[a]!) : model.order;
    for (const node of first) {
      if (drawn >= most) break;
      if (this.hidden[node] || (lit && !lit.has(node))) continue;
      const [x, y] = at(node);
      if (x < 0 || y < 0 || x > width || y > height) continue;
      const radius = size(node);
      if (!lit && radius < enough && model.size > 120) break;
      const isCentre = centres.has(node);
      const font = `${isCentre ? 600 : 400} 12px ${FONT}`;
      const colour = isCentre || lit || isFar ? look.text : look.muted;
      const text = model.names[node]!;
      // Its community bears its name already.
      if (named.has(text)) continue;
      // Beside it; else below, above, or at the other side.
      const places: [number, number, CanvasTextAlign][] = [
        [x + radius + 5, y, "left"],
        [x, y + radius + 10, "center"],
        [x, y - radius - 10, "center"],
        [x - radius - 5, y, "right"],
      ];
      const tries = isCentre || visible.length <= CROWDED ? places : places.slice(0, 1);
      if (tries.some(([px, py, align]) => this.label(taken, text, px, py, font, 12, colour, align))) drawn++;
    }
  }

  /** The nodes in view, as far as it matters how many. */
  private visible(at: (node: number) => [number, number], lit: Set<number> | null, width: number, height: number): number[] {
    const found: number[] = [];
    for (const node of lit ?? this.model.order) {
      if (this.hidden[node]) continue;
      const [x, y] = at(node);
      if (x >= 0 && y >= 0 && x <= width && y <= height && found.push(node) > CROWDED) break;
    }
    return found;
  }

  private label(taken: Boxes, text: string, x: number, y: number, font: string, px: number, colour: string, align: CanvasTextAlign): boolean {
    const context = this.above;
    const shown = text.length > 44 ? `${text.slice(0, 42)}…` : text;
    context.font = font;
    const key = font + shown;
    let width = this.widths.get(key);
    if (width === undefined) {
      width = context.measureText(shown).width;
      this.widths.set(key, width);
    }
    const left = align === "center" ? x - width / 2 : align === "right" ? x - width : x;
    const box: [number, number, number, number] = [left - 3, y - px * 0.7, width + 6, px * 1.4];
    if (!taken.take(...box)) return false;
    this.written.push({ text: shown, box });
    context.textBaseline = "middle";
    context.lineJoin = "round";
    context.textAlign = align;
    context.strokeStyle = this.look.background;
    context.globalAlpha = 0.85;
    context.lineWidth = 3.5;
    context.strokeText(shown, x, y);
    context.globalAlpha = 1;
    context.fillStyle = colour;
    context.fillText(shown, x, y);
    return true;
  }
}
