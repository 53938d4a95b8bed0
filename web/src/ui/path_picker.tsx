// The second end of a path, by its name: for the keyboard and for touch, where there is no shift-click.
import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { entityKey } from "../graph/model";
import { go } from "../router";
import { graph, loadGraph } from "../state";
import { type Choice, Chooser, ENOUGH, fuzzy } from "./chooser";
import { folderOf } from "./format";

/** Where the path begins, while its end is chosen: the path of a note, or `entity:` and a number. */
export const pathFrom = signal<string | null>(null);

const SHOWN = 12;

export function PathPicker() {
  const from = pathFrom.value;
  const data = graph.value;
  const all = useMemo(() => (from === null || !data ? [] : choices(from)), [from, data]);
  const find = (typed: string) => {
    if (!typed) return all.slice(0, SHOWN);
    const scored = all.map((choice) => ({ choice, score: fuzzy(typed, choice.name) })).filter(({ score }) => score > ENOUGH);
    return scored.sort((a, b) => b.score - a.score).slice(0, SHOWN).map(({ choice }) => choice);
  };
  return (
    <Chooser open={from !== null} close={() => (pathFrom.value = null)} label="Path to" placeholder="Path to a note or an entity" find={find} data={all} opened={loadGraph} />
  );
}

/** Every other node, the most central first. */
function choices(from: string): Choice[] {
  const { notes, entities } = graph.value!;
  const choice = (key: string, name: string, detail: string, icon: "note" | "memory"): Choice => ({
    key, name, detail, icon, run: () => go("graph", `path/${from}/${key}`),
  });
  const order = notes.id.map((_, at) => at).sort((a, b) => notes.rank[b]! - notes.rank[a]!);
  return [
    ...order.map((at) => choice(notes.id[at]!, notes.title[at]!, folderOf(notes.id[at]!), "note")),
    ...entities.id.map((id, at) => choice(entityKey(id), entities.name[at]!, entities.type[at]!, "memory")),
  ].filter(({ key }) => key.toLowerCase() !== from.toLowerCase());
}
