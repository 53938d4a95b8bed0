// What kinds of links there are, and how each looks. Plain links have the colours of their groups; typed ones have their own, an
// arrow, and a name where they are selected.
import { type Model } from "./model";

export interface LinkTypeRow {
  /** Its place in `link_types`. */
  type: number;
  name: string;
  label: string;
  count: number;
  /** Null for plain links. */
  colour: string | null;
}

const PLAIN = "references";
const KNOWN: Record<string, [string, string]> = {
  depends_on: ["#1f5fbf", "#7fb0ff"],
  implements: ["#0b7d61", "#46cfa6"],
  extends: ["#7a4fd0", "#b69bff"],
  conflicts_with: ["#c0392f", "#ff8a80"],
  mentions: ["#7d6a9c", "#a996cc"],
};
/** For the relations of memory, whose types are free words: the most frequent first, then grey. */
const OTHERS: [string, string][] = [
  ["#b25f00", "#f0a541"],
  ["#1d7f9e", "#62c6ea"],
  ["#a8326d", "#ec7fb0"],
  ["#7d700f", "#cfc04a"],
];
const GREY: [string, string] = ["#747a84", "#9096a1"];

export const linkLabel = (name: string) => name.replace(/_/g, " ");

/** All types, the most frequent first. */
export function linkTypes(model: Model, dark: boolean): LinkTypeRow[] {
  const { edges, link_types } = model.data;
  const counts = new Array<number>(link_types.length).fill(0);
  for (let at = 2; at < edges.length; at += 3) counts[edges[at]!]!++;
  const rows = link_types.map((name, type) => ({ type, name, label: linkLabel(name), count: counts[type]! }));
  rows.sort((a, b) => b.count - a.count || a.name.localeCompare(b.name));
  const free = [...OTHERS];
  return rows.map((row) => {
    const [light, darker] = KNOWN[row.name] ?? (row.name === PLAIN ? GREY : (free.shift() ?? GREY));
    return { ...row, colour: row.name === PLAIN ? null : dark ? darker : light };
  });
}
