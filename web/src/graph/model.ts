// The graph as the picture needs it: one row a node, whatever it is, and the questions that the view asks.
import type { Freshness, GraphData } from "../types";

export type NodeKind = "note" | "entity";

export interface Model {
  data: GraphData;
  size: number;
  notes: number;
  names: string[];
  /** Most central first. */
  order: number[];
  radius: Float32Array;
  degree: Uint32Array;
  /** Neighbours of node n: `targets[starts[n]..starts[n + 1]]`, with the edge's type and direction beside. */
  starts: Uint32Array;
  targets: Uint32Array;
  types: Uint16Array;
  outward: Uint8Array;
  places: Map<string, number>;
  communities: Community[];
  modified: Float64Array;
  freshness: Freshness[];
  /** Of notes, as far as they are known. */
  authors: Map<number, string[]>;
}

export interface Community {
  number: number;
  /** No two of them are the same. */
  label: string;
  members: number[];
  x: number;
  y: number;
  hull: [number, number][];
}

export const entityKey = (id: number) => `entity:${id}`;
export const noteKey = (id: string) => id.toLowerCase();

export function isEntity(model: Model, node: number): boolean {
  return node >= model.notes;
}

export function typeOf(model: Model, node: number): string {
  const { data, notes } = model;
  return node < notes ? (data.types[data.notes.type[node]!] ?? "other") : (data.entities.type[node - notes] ?? "Entity");
}

export function keyOf(model: Model, node: number): string {
  const { data, notes } = model;
  return node < notes ? data.notes.id[node]! : entityKey(data.entities.id[node - notes]!);
}

export function buildModel(data: GraphData): Model {
  const notes = data.notes.id.length;
  const entities = data.entities.id.length;
  const size = notes + entities;
  const names = [...data.notes.title, ...data.entities.name];
  const edges = data.edges.length / 3;
  const degree = new Uint32Array(size);
  for (let at = 0; at < data.edges.length; at += 3) {
    degree[data.edges[at]!]!++;
    degree[data.edges[at + 1]!]!++;
  }
  const starts = new Uint32Array(size + 1);
  for (let node = 0; node < size; node++) starts[node + 1] = starts[node]! + degree[node]!;
  const next = starts.slice();
  const targets = new Uint32Array(edges * 2);
  const types = new Uint16Array(edges * 2);
  const outward = new Uint8Array(edges * 2);
  for (let at = 0; at < data.edges.length; at += 3) {
    const [source, target, type] = [data.edges[at]!, data.edges[at + 1]!, data.edges[at + 2]!];
    const there = next[source]!++;
    targets[there] = target;
    types[there] = type;
    outward[there] = 1;
    const back = next[target]!++;
    targets[back] = source;
    types[back] = type;
  }
  const weight = new Float64Array(size);
  const mostRank = Math.max(1, ...sampleMax(data.notes.rank));
  const mostSeen = Math.max(1, ...sampleMax(data.entities.observations));
  for (let node = 0; node < size; node++) {
    weight[node] =
      node < notes
        ? data.notes.rank[node]! / mostRank
        : 0.25 * Math.min(1, (degree[node]! + data.entities.observations[node - notes]!) / (mostSeen + 8));
  }
  const radius = new Float32Array(size);
  const scale = size > 20_000 ? 0.55 : size > 4_000 ? 0.75 : size > 800 ? 1 : 1.25;
  // Notes without links stand close together around the rest: smaller, they are dots and not a line.
  for (let node = 0; node < size; node++) radius[node] = scale * (degree[node] || size < 200 ? 2.2 + 10 * Math.sqrt(weight[node]!) : 1.7);
  const order = Array.from({ length: size }, (_, node) => node).sort((a, b) => weight[b]! - weight[a]! || a - b);
  const places = new Map<string, number>();
  for (let node = 0; node < size; node++) {
    places.set(node < notes ? noteKey(data.notes.id[node]!) : entityKey(data.entities.id[node - notes]!), node);
  }
  const modified = Float64Array.from([...data.notes.modified, ...data.entities.modified]);
  const freshness = new Array<Freshness>(size).fill("untracked");
  for (const level of ["fresh", "possibly_stale", "stale"] as const) for (const node of data.freshness[level]) freshness[node] = level;
  const model: Model = {
    data, size, notes, names, order, radius, degree, starts, targets, types, outward, places, modified, freshness,
    authors: authorsOf(data),
    communities: [],
  };
  model.communities = findCommunities(model, order);
  return model;
}

/** The authors of each note that has some. */
export function authorsOf(data: GraphData): Map<number, string[]> {
  const authors = new Map<number, string[]>();
  for (let at = 0; at < data.written.length; at += 2) {
    const [note, name] = [data.written[at]!, data.authors[data.written[at + 1]!]!];
    const known = authors.get(note);
    if (known) known.push(name);
    else authors.set(note, [name]);
  }
  return authors;
}

/** The maximum in a list that may be too long to be arguments of a call. */
function sampleMax(values: number[]): [number] {
  let most = 0;
  for (const value of values) if (value > most) most = value;
  return [most];
}

const SMALL = 100;

/** The members of a group that stand together: stragglers would stretch its hull over its neighbours. */
function together(members: number[], x: number[], y: number[]): number[] {
  const middle = (values: number[]) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
  const [mx, my] = [middle(members.map((node) => x[node]!)), middle(members.map((node) => y[node]!))];
  const distance = (node: number) => Math.hypot(x[node]! - mx, y[node]! - my);
  const reach = 2.2 * middle(members.map(distance));
  const near = [...members].sort((a, b) => distance(a) - distance(b));
  // Of a few nothing is left out that two thirds of them are not nearer than.
  return near.filter((node, at) => at < (2 * members.length) / 3 || (distance(node) <= reach && at < Math.max(12, 0.85 * members.length)));
}

function findCommunities(model: Model, order: number[]): Community[] {
  const { data, degree } = model;
  const members = new Map<number, number[]>();
  for (const node of order) {
    if (!degree[node]) continue;
    const own = data.community[node]!;
    const list = members.get(own);
    if (list) list.push(node);
    else members.set(own, [node]);
  }
  // In a small graph each group that the legend names has its place in the picture.
  const least = model.size < SMALL ? 3 : Math.max(5, model.size / 400);
  const found: Community[] = [];
  for (const [number, list] of members) {
    if (list.length < least) continue;
    const near = together(list, data.x, data.y);
    const mean = (values: number[]) => near.reduce((sum, node) => sum + values[node]!, 0) / near.length;
    const [x, y] = [mean(data.x), mean(data.y)];
    found.push({
      number, x, y,
      members: list,
      label: communityLabel(model, list),
      hull: convexHull(near.map((node) => [data.x[node]!, data.y[node]!])),
    });
  }
  found.sort((a, b) => b.members.length - a.members.length);
  const labels = distinct(found.map(({ label, members }) => ({ label, details: detailsOf(model, members) })));
  return found.map((community, at) => ({ ...community, label: labels[at]! }));
}

/** Names that would be the same get a second part that tells them apart, and a number where none does. */
export function distinct(names: { label: string; details: string[] }[]): string[] {
  const same = new Map<string, number[]>();
  names.forEach(({ label }, at) => same.set(label, [...(same.get(label) ?? []), at]));
  const result = names.map(({ label }) => label);
  for (const [label, places] of same) {
    if (places.length === 1) continue;
    const most = Math.max(...places.map((at) => names[at]!.details.length));
    const second = Array.from({ length: most }, (_, n) => places.map((at) => names[at]!.details[n] ?? "")).find((details) => new Set(details).size === details.length);
    places.forEach((at, n) => (result[at] = second?.[n] ? `${label} · ${second[n]}` : n ? `${label} (${n + 1})` : label));
  }
  return result;
}

/** What tells a group from another of the same name: the folder above, else its most central members. */
export function detailsOf(model: Model, members: number[]): string[] {
  const label = communityLabel(model, members);
  const folder = (node: number) => (node < model.notes ? (model.data.folders[model.data.notes.folder[node]!] ?? "") : "");
  const note = members.find((node) => node < model.notes) ?? members[0]!;
  const above = folder(note).split("/").filter((part) => part !== label);
  const named = members.filter((node) => model.names[node] !== label).map((node) => model.names[node]!);
  return [above.at(-1) ?? "", above.slice(-2).join("/"), named[0] ?? "", note < model.notes ? "" : typeOf(model, note)].filter(Boolean);
}

/** The folder that most of them share, else the most central of them. */
function communityLabel(model: Model, members: number[]): string {
  const counts = new Map<number, number>();
  for (const node of members) {
    if (node < model.notes) {
      const folder = model.data.notes.folder[node]!;
      counts.set(folder, (counts.get(folder) ?? 0) + 1);
    }
  }
  const [folder, most] = [...counts].sort((a, b) => b[1] - a[1])[0] ?? [0, 0];
  const name = model.data.folders[folder] ?? "";
  const isOwn = model.data.folders.length > 3 && most >= 0.7 * members.length && name !== "";
  return isOwn && name.includes("/") ? name.slice(name.lastIndexOf("/") + 1) : model.names[members[0]!]!;
}

/** Andrew's monotone chain. */
function convexHull(points: [number, number][]): [number, number][] {
  const sorted = [...points].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  if (sorted.length < 3) return sorted;
  const turn = (o: [number, number], a: [number, number], b: [number, number]) =>
    (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0]);
  const half = (list: [number, number][]) => {
    const chain: [number, number][] = [];
    for (const point of list) {
      while (chain.length > 1 && turn(chain[chain.length - 2]!, chain[chain.length - 1]!, point) <= 0) chain.pop();
      chain.push(point);
    }
    chain.pop();
    return chain;
  };
  return [...half(sorted), ...half(sorted.reverse())];
}

/** The links between a node and one of its neighbours, all in one: their types, by the way they point. */
export interface Bond {
  other: number;
  out: Set<number>;
  into: Set<number>;
}

export const typesOf = (bond: Bond): number[] => [...new Set([...bond.out, ...bond.into])];

/** The types of links that are not shown, by their place. */
export type HiddenTypes = ReadonlySet<number>;
const NONE: HiddenTypes = new Set();

/** What a node is linked to, each node once. */
export function bonds(model: Model, node: number, hidden: HiddenTypes = NONE): Bond[] {
  const found = new Map<number, Bond>();
  for (let at = model.starts[node]!; at < model.starts[node + 1]!; at++) {
    const [other, type] = [model.targets[at]!, model.types[at]!];
    if (hidden.has(type)) continue;
    let bond = found.get(other);
    if (!bond) found.set(other, (bond = { other, out: new Set(), into: new Set() }));
    (model.outward[at] ? bond.out : bond.into).add(type);
  }
  return [...found.values()];
}

export function neighbours(model: Model, node: number, hidden: HiddenTypes = NONE): number[] {
  return bonds(model, node, hidden).map(({ other }) => other);
}

/** The nodes within some links. */
export function around(model: Model, node: number, depth: number, hidden: HiddenTypes = NONE): Set<number> {
  const found = new Set([node]);
  let ring = [node];
  for (let step = 0; step < depth; step++) {
    ring = ring.flatMap((from) => neighbours(model, from, hidden)).filter((to) => !found.has(to) && found.add(to));
  }
  return found;
}

/** A shortest path, whichever way the links point. */
export function shortestPath(model: Model, from: number, to: number, hidden: HiddenTypes = NONE): number[] | null {
  const before = new Int32Array(model.size).fill(-1);
  before[from] = from;
  let ring = [from];
  while (ring.length && before[to] === -1) {
    const next: number[] = [];
    for (const node of ring) {
      for (let at = model.starts[node]!; at < model.starts[node + 1]!; at++) {
        const other = model.targets[at]!;
        if (before[other] === -1 && !hidden.has(model.types[at]!)) {
          before[other] = node;
          next.push(other);
        }
      }
    }
    ring = next;
  }
  if (before[to] === -1) return null;
  const path = [to];
  while (path[0] !== from) path.unshift(before[path[0]!]!);
  return path;
}

/** What the address of the graph names: nothing, `note/PATH`, `entity/NUMBER`, or `path/FROM/TO` with an entity as `entity:NUMBER`. */
export function nodesOfAddress(model: Model, arg: string): number[] {
  const [kind = "", ...rest] = arg.split("/");
  const place = (key: string) => model.places.get(key.startsWith("entity:") ? key : noteKey(key));
  if (kind === "path") {
    // Paths of notes have slashes too: the right one has a node at each side.
    for (let at = 1; at < rest.length; at++) {
      const [from, to] = [place(rest.slice(0, at).join("/")), place(rest.slice(at).join("/"))];
      if (from !== undefined && to !== undefined) return from === to ? [from] : [from, to];
    }
    return [];
  }
  const node = place(kind === "entity" ? entityKey(Number(rest[0])) : rest.join("/"));
  return arg && node !== undefined ? [node] : [];
}

export function addressOfNodes(model: Model, nodes: number[]): string {
  const [first, second] = nodes;
  if (first === undefined) return "";
  if (second !== undefined) return `path/${keyOf(model, first)}/${keyOf(model, second)}`;
  return isEntity(model, first) ? `entity/${model.data.entities.id[first - model.notes]}` : `note/${keyOf(model, first)}`;
}
