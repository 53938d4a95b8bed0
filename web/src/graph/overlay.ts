// What is drawn over and under the nodes: two plain canvases for what must never be wrong, hulls below, highlights and labels above. A
// highlight is drawn over a veil instead of recolouring the graph, so hovering costs the neighbourhood and not the whole.
import type Sigma from "sigma";
import { Boxes } from "./boxes";
import { type Bond, bonds, type HiddenTypes, type Model, neighbours, typesOf } from "./model";
import { type Shape, shapePath } from "./shapes";

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
  shape: (node: number) => Shape;
}

/** What stands out, and how everything looks. The scene changes it. */
export interface Shown {
  look: Look;
  focus: number[];
  path: number[] | null;
  hovered: number | null;
  matches: Set<number> | null;
  /** One for each node that a filter hides. */
  hidden: Uint8Array;
  /** The places of typed edges that are shown. */
  typed: number[];
  /** The places of edges from a node to itself that are shown. */
  loops: number[];
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

/** Arrows and names of links that are drawn at once. */
const MAX_ARROWS = 400;
const MAX_LINK_NAMES = 30;
const MAX_LABELS = 140;
/** With more nodes in view, labels take the place beside their node or none. */
const CROWDED = 150;
const FONT = '-apple-system, BlinkMacSystemFont, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';

export class Overlay {
  private readonly hulls: CanvasRenderingContext2D;
  private readonly above: CanvasRenderingContext2D;
  private readonly widths = new Map<string, number>();
  /** What is written in the picture and where, for tests. */
  written: { text: string; box: [number, number, number, number] }[] = [];

  constructor(
    private readonly sigma: Sigma,
    private readonly container: HTMLElement,
    private readonly model: Model,
    private readonly shown: Shown,
  ) {
    this.hulls = this.layer("hulls", { beforeLayer: "edges" });
    this.above = this.layer("above", { beforeLayer: "mouse" });
    this.resize();
  }

  private layer(id: string, place: object): CanvasRenderingContext2D {
    const canvas = this.sigma.createCanvas(id, place);
    canvas.style.pointerEvents = "none";
    return canvas.getContext("2d")!;
  }

  resize() {
    const { width, height } = this.sigma.getDimensions();
    const ratio = window.devicePixelRatio || 1;
    for (const context of [this.hulls, this.above]) {
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

  draw() {
    const { width, height } = this.sigma.getDimensions();
    this.hulls.clearRect(0, 0, width, height);
    this.above.clearRect(0, 0, width, height);
    const ratio = this.sigma.getCamera().ratio;
    const at = this.projection();
    const size = (node: number) => this.sigma.scaleSize(this.model.radius[node]);
    this.drawHulls(ratio);
    const centre = this.shown.hovered ?? null;
    const lit = this.litNodes(centre);
    const frame: Frame = { at, size, ratio, lit, width, height, taken: new Boxes(width, height) };
    this.written = [];
    this.reserve(frame);
    if (lit) this.drawLit(lit, centre, frame);
    else this.drawArrows(frame);
    this.drawLoops(frame);
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
  litNodes(centre: number | null): Set<number> | null {
    if (this.shown.path) return new Set(this.shown.path);
    const centres = centre === null ? this.shown.focus : [centre];
    const near = (node: number) => neighbours(this.model, node, this.shown.look.hiddenTypes);
    if (centres.length) return new Set([...centres, ...centres.flatMap(near).filter((node) => !this.shown.hidden[node])]);
    return this.shown.matches;
  }

  private drawHulls(ratio: number) {
    // Soft shapes are for the far view; near, they would be fog.
    const strength = Math.min(1, Math.max(0, (ratio - 0.25) / 0.35));
    if (!strength || this.model.communities.length < 2) return;
    const context = this.hulls;
    // The canvas is transparent as a whole: two hulls that overlap do not add up to a third shape.
    context.canvas.style.opacity = String((this.shown.look.dark ? 0.16 : 0.1) * strength);
    context.lineJoin = "round";
    for (const community of this.model.communities.slice(0, 60)) {
      const shown = community.members.filter((node) => !this.shown.hidden[node]);
      if (shown.length < community.members.length / 2 || community.hull.length < 3) continue;
      const colour = this.shown.look.groupColour(shown) ?? this.shown.look.muted;
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
    const { look } = this.shown;
    context.globalAlpha = look.dark ? 0.78 : 0.82;
    context.fillStyle = look.background;
    context.fillRect(0, 0, width, height);
    context.globalAlpha = 1;
    const centres = this.shown.path ?? (centre === null ? this.shown.focus : [centre]);
    const links = this.litLinks(lit, centres);
    this.drawLinks(links, frame);
    for (const node of lit) {
      const [x, y] = at(node);
      if (x < -20 || y < -20 || x > width + 20 || y > height + 20) continue;
      const radius = size(node);
      context.fillStyle = look.colour(node) ?? look.muted;
      context.fill(new Path2D(shapePath(look.shape(node), x, y, radius)), "evenodd");
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

  /** Links of a node to itself: a loop above it. Under a veil only that of a selected node. */
  private drawLoops({ at, size, lit, width, height }: Frame) {
    const { edges } = this.model.data;
    const context = this.above;
    for (const edge of this.shown.loops) {
      const node = edges[edge]!;
      const [x, y] = at(node);
      if (x < 0 || y < 0 || x > width || y > height || (lit && !lit.has(node))) continue;
      const radius = size(node);
      context.strokeStyle = this.shown.look.typeColour(edges[edge + 2]!) ?? this.shown.look.muted;
      context.lineWidth = 1.5;
      context.beginPath();
      context.arc(x, y - radius - 0.6 * radius, 0.9 * radius, 0, 2 * Math.PI);
      context.stroke();
    }
  }

  /** The links along the path, or those of what is selected. */
  private litLinks(lit: Set<number>, centres: number[]): Link[] {
    const { model } = this;
    const { path } = this.shown;
    const hidden = this.shown.look.hiddenTypes;
    const of = (node: number, wanted: (other: number) => boolean) =>
      bonds(model, node, hidden).filter(({ other }) => wanted(other)).map((bond) => ({ ...bond, node }));
    if (path) return path.slice(1).flatMap((node, at) => of(path[at]!, (other) => other === node));
    return centres.flatMap((node, n) => of(node, (other) => lit.has(other) && !centres.slice(0, n).includes(other)));
  }

  private drawLinks(links: Link[], { at, size }: Frame) {
    const context = this.above;
    const { look, path } = this.shown;
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
    return typesOf(bond).find((type) => this.shown.look.typeColour(type) !== null) ?? null;
  }

  /** Types beside the middle of their links: all along a path, else those that are not plain. */
  private nameLinks(links: Link[], { at, taken }: Frame) {
    const { look, path } = this.shown;
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
    for (const edge of this.shown.typed) {
      const [from, to] = [at(edges[edge]!), at(edges[edge + 1]!)];
      if (to[0] < 0 || to[1] < 0 || to[0] > width || to[1] > height) continue;
      if (Math.hypot(to[0] - from[0], to[1] - from[1]) < 24) continue;
      if (seen.push([from, to, edges[edge + 1]!, edges[edge + 2]!]) > MAX_ARROWS) return;
    }
    for (const [from, to, target, type] of seen) {
      this.above.fillStyle = this.shown.look.typeColour(type)!;
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
    const { model } = this;
    const { look } = this.shown;
    const visible = this.visible(at, lit, width, height);
    const isFar = ratio > 0.45 && model.communities.length > 1 && model.size > 60 && !lit;
    const named = new Set<string>();
    if (isFar) {
      for (const community of model.communities.slice(0, 30)) {
        if (community.members.every((node) => this.shown.hidden[node])) continue;
        named.add(community.label);
        const { x, y } = this.sigma.graphToViewport(community);
        const px = Math.round(Math.min(width < 600 ? 14 : 18, 12 + Math.sqrt(community.members.length / model.size) * 14));
        // In the middle of its hull, else a little below or above.
        const places = [0, 1.6, -1.6, 3, -3].map((lines) => y + lines * px);
        places.some((py) => this.label(taken, community.label, x, py, `600 ${px}px ${FONT}`, px, look.text, "center"));
      }
    }
    const most = isFar ? 24 : lit ? 50 : MAX_LABELS;
    const enough = isFar ? 5.5 : 2;
    let drawn = 0;
    const centres = new Set(this.shown.path ?? (this.shown.hovered === null ? this.shown.focus : [this.shown.hovered]));
    const first = lit ? [...lit].sort((a, b) => Number(centres.has(b)) - Number(centres.has(a)) || model.radius[b]! - model.radius[a]!) : model.order;
    for (const node of first) {
      if (drawn >= most) break;
      if (this.shown.hidden[node] || (lit && !lit.has(node))) continue;
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
      // Beside it; else below, above, at the other side, aslant, or a line farther.
      const places: [number, number, CanvasTextAlign][] = [
        [x + radius + 5, y, "left"],
        [x, y + radius + 10, "center"],
        [x, y - radius - 10, "center"],
        [x - radius - 5, y, "right"],
        [x + 0.7 * radius + 4, y - 0.7 * radius - 6, "left"],
        [x + 0.7 * radius + 4, y + 0.7 * radius + 6, "left"],
        [x - 0.7 * radius - 4, y - 0.7 * radius - 6, "right"],
        [x - 0.7 * radius - 4, y + 0.7 * radius + 6, "right"],
        [x - 12, y - radius - 10, "left"],
        [x + 12, y - radius - 10, "right"],
        [x - 12, y + radius + 10, "left"],
        [x + 12, y + radius + 10, "right"],
        [x, y + radius + 26, "center"],
        [x, y - radius - 26, "center"],
      ];
      const tries = isCentre || visible.length <= CROWDED ? places : places.slice(0, 1);
      if (tries.some(([px, py, align]) => this.label(taken, text, px, py, font, 12, colour, align))) drawn++;
    }
  }

  /** The nodes in view, as far as it matters how many. */
  private visible(at: (node: number) => [number, number], lit: Set<number> | null, width: number, height: number): number[] {
    const found: number[] = [];
    for (const node of lit ?? this.model.order) {
      if (this.shown.hidden[node]) continue;
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
    context.strokeStyle = this.shown.look.background;
    context.globalAlpha = 0.85;
    context.lineWidth = 3.5;
    context.strokeText(shown, x, y);
    context.globalAlpha = 1;
    context.fillStyle = colour;
    context.fillText(shown, x, y);
    return true;
  }
}
