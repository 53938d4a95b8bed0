// What the colours and shapes of nodes tell: eight hues, the ninth and later grey. The legend names each.
import { author } from "../ui/format";
import { DARK, LIGHT } from "./palette";
import { categoryShape, type Shape } from "./shapes";
import { detailsOf, distinct, isEntity, type Model, typeOf } from "./model";

export const COLOURINGS = ["community", "folder", "tag", "type", "changed", "freshness", "author"] as const;
export type ColourBy = (typeof COLOURINGS)[number];

export const palette = (dark: boolean) => (dark ? DARK : LIGHT);
export const other = (dark: boolean) => (dark ? "#7d828c" : "#8e939c");

export interface Legend {
  label: string;
  colour: string;
  /** Beside the colour, so that hues which look alike to a reader stay apart. */
  shape: Shape;
  count: number;
  /** Which category a node has; the legend's rows are also the filter. */
  category: string;
}

const AGES: [string, number][] = [
  ["Today", 1],
  ["This week", 7],
  ["This month", 31],
  ["This year", 366],
  ["Older", Infinity],
];
const AGE_LIGHT = ["#0b7a55", "#2f9b78", "#6bae98", "#a3bdb4", "#b9bcc2"];
const AGE_DARK = ["#57e0b0", "#3fbd92", "#3a8f74", "#426a5d", "#4c5058"];

const MEMORY = "Memory: ";
const NO_TAG = "No tag";
const NO_AUTHOR = "Not recorded";

/** Staleness of notes, by the files they are about; the words and meanings of the rest of the page. */
const FRESHNESS = { stale: "Stale", possibly_stale: "Possibly stale", fresh: "Fresh", untracked: "Untracked" } as const;
const FRESHNESS_SHAPES: Shape[] = ["triangle", "diamond", "circle", "ring"];
const FRESHNESS_LIGHT = ["#c0392f", "#c98a12", "#1f8f5c", "#b4b7bd"];
const FRESHNESS_DARK = ["#f5938b", "#e6b056", "#62cc99", "#565b64"];

/** One, but for tags and authors: a note has all of them, not only the first. */
function categoriesOf(model: Model, node: number, by: ColourBy, now: number): string[] {
  if (by === "changed") {
    const days = (now - model.modified[node]! * 1000) / 86_400_000;
    return [AGES.find(([, most]) => days <= most)![0]];
  }
  if (by === "freshness") return [FRESHNESS[model.freshness[node]!]];
  if (by === "author" && !isEntity(model, node)) {
    const names = model.authors.get(node);
    return names ? names.map(author) : [NO_AUTHOR];
  }
  if (isEntity(model, node) && by !== "community") return [MEMORY + typeOf(model, node)];
  if (by === "type") return [typeOf(model, node)];
  if (by === "tag") {
    // A nested tag counts as its topmost part.
    const tags = (model.data.notes.tags[node] ?? []).map((tag) => `#${model.data.tags[tag]!.split("/")[0]}`);
    return tags.length ? [...new Set(tags)] : [NO_TAG];
  }
  if (by === "community") return [model.degree[node] ? `c${model.data.community[node]}` : "Unlinked"];
  return [topFolder(model, model.data.folders[model.data.notes.folder[node]!] ?? "")];
}

/** The level of folders that tells notes apart: below a folder that holds nearly everything, its subfolders. */
function topFolder(model: Model, folder: string): string {
  const prefix = commonFolder(model);
  const rest = folder.startsWith(prefix) ? folder.slice(prefix.length) : folder;
  const first = rest.split("/")[0] ?? "";
  return first ? prefix + first : prefix.replace(/\/$/, "") || "(top)";
}

const prefixes = new WeakMap<Model, string>();
function commonFolder(model: Model): string {
  const known = prefixes.get(model);
  if (known !== undefined) return known;
  let prefix = "";
  for (let depth = 0; depth < 3; depth++) {
    const counts = new Map<string, number>();
    for (const number of model.data.notes.folder) {
      const folder = model.data.folders[number]!;
      if (!folder.startsWith(prefix)) continue;
      const first = folder.slice(prefix.length).split("/")[0]!;
      if (first) counts.set(first, (counts.get(first) ?? 0) + 1);
    }
    const [name, count] = [...counts].sort((a, b) => b[1] - a[1])[0] ?? ["", 0];
    if (!name || count < 0.9 * model.notes) break;
    prefix += `${name}/`;
  }
  prefixes.set(model, prefix);
  return prefix;
}

/** Nodes without what the colours tell apart: grey, and last. */
const isRest = (category: string) => category === "Unlinked" || category === NO_TAG || category === NO_AUTHOR;

export interface Painted {
  /** The categories of each node, in the order of the legend. */
  categories: string[][];
  colours: Map<string, string>;
  shapes: Map<string, Shape>;
  /** Largest first. */
  legend: Legend[];
}

/** What every node belongs to, the colour of each category, and the legend. */
export function colour(model: Model, by: ColourBy, dark: boolean): Painted {
  const now = Date.now();
  const categories = Array.from({ length: model.size }, (_, node) => categoriesOf(model, node, by, now));
  const counts = new Map<string, number>();
  for (const category of categories.flat()) counts.set(category, (counts.get(category) ?? 0) + 1);
  let legend: Legend[];
  const row = (label: string, colour: string, shape: Shape = "circle"): Legend => ({ label, category: label, colour, shape, count: counts.get(label) ?? 0 });
  if (by === "changed") {
    const ramp = dark ? AGE_DARK : AGE_LIGHT;
    legend = AGES.map(([label], at) => row(label, ramp[at]!));
  } else if (by === "freshness") {
    const ramp = dark ? FRESHNESS_DARK : FRESHNESS_LIGHT;
    legend = Object.values(FRESHNESS).map((label, at) => row(label, ramp[at]!, FRESHNESS_SHAPES[at]));
  } else {
    const hues = palette(dark);
    const sorted = [...counts].sort((a, b) => Number(isRest(a[0])) - Number(isRest(b[0])) || b[1] - a[1]);
    const labels = by === "community" ? communityNames(model, sorted.map(([category]) => category)) : sorted.map(([category]) => category);
    legend = sorted.map(([category, count], at) => ({
      category,
      count,
      colour: isRest(category) ? other(dark) : (hues[at] ?? other(dark)),
      // Groups have their names in the picture, and memory has squares.
      shape: category.startsWith(MEMORY) ? "square" : by === "community" || isRest(category) || at >= hues.length ? "circle" : categoryShape(at),
      label: labels[at]!,
    }));
  }
  if (by === "tag" || by === "author") {
    const rank = new Map(legend.map((row, at) => [row.category, at]));
    for (const list of categories) list.sort((a, b) => rank.get(a)! - rank.get(b)!);
  }
  return { categories, colours: new Map(legend.map((row) => [row.category, row.colour])), shapes: new Map(legend.map((row) => [row.category, row.shape])), legend };
}

/** Those with a name in the picture have the same here. The others are too small for that: named by their most central node. */
function communityNames(model: Model, categories: string[]): string[] {
  const known = new Map(model.communities.map((community) => [`c${community.number}`, community.label]));
  const members = new Map<string, number[]>();
  for (const node of model.order) {
    if (!model.degree[node]) continue;
    const category = `c${model.data.community[node]}`;
    const list = members.get(category);
    if (list) list.push(node);
    else members.set(category, [node]);
  }
  const name = (category: string) => {
    const own = members.get(category);
    const label = known.get(category) ?? (own ? model.names[own[0]!]! : category);
    return { label, details: own ? detailsOf(model, own) : [] };
  };
  return distinct(categories.map(name));
}
