// The picture: WebGL for nodes and edges (sigma), the camera, and what the pointer does. The overlay draws the rest.
import Graph from "graphology";
import Sigma from "sigma";
import { createEdgeProgram } from "./edge_program";
import type { Model } from "./model";
import { type Look, Overlay, type Shown } from "./overlay";
import { ShapeProgram } from "./shapes";

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
const TYPED_WIDTH = 2.6;
/** Where the sheet with the selected node begins on a phone, as a share of the height. */
const SHEET_TOP = 0.4;

export class Scene {
  private readonly sigma: Sigma;
  private readonly graph: Graph;
  private readonly overlay: Overlay;
  private readonly shown: Shown;
  private slowFrames = 0;
  private isDestroyed = false;

  constructor(
    readonly container: HTMLElement,
    readonly model: Model,
    look: Look,
    events: Events,
  ) {
    this.shown = { look, focus: [], path: null, hovered: null, matches: null, hidden: new Uint8Array(model.size), typed: [], loops: [] };
    this.graph = this.build();
    const edges = model.data.edges.length / 3;
    this.sigma = new Sigma(this.graph, container, {
      renderLabels: false,
      renderEdgeLabels: false,
      enableEdgeEvents: false,
      hideEdgesOnMove: edges > MANY_EDGES,
      defaultEdgeType: "line",
      defaultNodeType: "shape",
      nodeProgramClasses: { shape: ShapeProgram },
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
    this.overlay = new Overlay(this.sigma, container, model, this.shown);
    this.sigma.on("afterRender", () => {
      this.overlay.draw();
      this.watchSpeed();
    });
    this.sigma.on("resize", () => this.overlay.resize());
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
    this.sigma.getCamera().setState(this.fitted(model.order, 0.3));
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

  private build(): Graph {
    const { model } = this;
    const { data } = model;
    const graph = new Graph({ type: "undirected", multi: true, allowSelfLoops: true });
    for (let node = 0; node < model.size; node++) {
      graph.addNode(node, { x: data.x[node], y: data.y[node], size: model.radius[node], ...this.nodeLook(node) });
    }
    for (let at = 0; at < data.edges.length; at += 3) {
      graph.addEdgeWithKey(at / 3, data.edges[at], data.edges[at + 1], this.edgeLook(at));
    }
    return graph;
  }

  private nodeLook(node: number) {
    const colour = this.shown.look.colour(node);
    this.shown.hidden[node] = colour ? 0 : 1;
    return { color: colour ?? "#888", shape: this.shown.look.shape(node), hidden: !colour };
  }

  /** By the place of an edge. The nodes come first: an edge of a hidden node is hidden. */
  private edgeLook(at: number) {
    const { look, hidden, typed, loops } = this.shown;
    const [source, target, type] = [this.model.data.edges[at]!, this.model.data.edges[at + 1]!, this.model.data.edges[at + 2]!];
    const isHidden = !!(hidden[source] || hidden[target]) || look.hiddenTypes.has(type);
    const isTyped = look.typeColour(type) !== null;
    // The graphics card draws nothing between a node and itself.
    if (source === target && !isHidden) loops.push(at);
    else if (isTyped && !isHidden) typed.push(at);
    return { color: look.edge(source, target, type), size: isTyped ? TYPED_WIDTH : 1, hidden: isHidden };
  }

  /** Colours and filters again: for another theme, legend or time. */
  recolour(look: Look) {
    if (look === this.shown.look) return;
    this.shown.look = look;
    this.shown.typed = [];
    this.shown.loops = [];
    // In place, with one event: at an event for each of the two the drawing library would go through all of them too.
    this.graph.forEachNode((key, attributes) => Object.assign(attributes, this.nodeLook(Number(key))));
    this.graph.forEachEdge((key, attributes) => Object.assign(attributes, this.edgeLook(Number(key) * 3)));
    this.sigma.refresh();
  }

  select(nodes: number[], path: number[] | null) {
    this.shown.focus = nodes;
    this.shown.path = path;
    this.sigma.scheduleRender();
  }

  highlight(matches: Set<number> | null) {
    this.shown.matches = matches;
    this.sigma.scheduleRender();
  }

  private hover(node: number | null) {
    this.shown.hovered = node;
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
}
