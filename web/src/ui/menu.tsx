// The command menu: every note, entity, tag, view and action by a few letters.
import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { go, route } from "../router";
import { call } from "../api";
import { kept } from "../place";
import { canWrite, graph, has, isDark, loadGraph, status, toggleTheme } from "../state";
import { type Choice, Chooser, ENOUGH, fuzzy } from "./chooser";
import { chosenEditor, EDITORS, editorAddress } from "./editors";
import { folderOf } from "./format";
import type { IconName } from "./icons";

export const menuOpen = signal(false);
export const helpOpen = signal(false);

interface Entry extends Choice {
  weight: number;
}

const RECENT = kept("recent");
const recent = (): string[] => JSON.parse(localStorage.getItem(RECENT) ?? "[]");
function remember(key: string) {
  localStorage.setItem(RECENT, JSON.stringify([key, ...recent().filter((old) => old !== key)].slice(0, 30)));
}

function entries(): Entry[] {
  const view = (name: string, icon: IconName, keys: string, to: Parameters<typeof go>[0]): Entry => ({
    name, icon, detail: keys, key: `view:${to}`, run: () => go(to), weight: 0.15,
  });
  const list: Entry[] = [
    view("Home", "home", "g h", "home"),
    view("Graph", "graph", "g g", "graph"),
    view("Search", "search", "g s", "search"),
    view("Memory", "memory", "g m", "memory"),
    view("Changes", "changes", "g c", "changes"),
    view("Health", "health", "g e", "health"),
    { name: `Switch to ${isDark.value ? "light" : "dark"} theme`, icon: "theme", detail: "t", key: "do:theme", run: toggleTheme, weight: 0.1 },
    { name: "Show all keys", icon: "help", detail: "?", key: "do:help", run: () => (helpOpen.value = true), weight: 0.1 },
    { name: "Possible duplicates", icon: "merge", detail: "Memory", key: "do:duplicates", run: () => go("memory", "duplicates"), weight: 0.1 },
    { name: "Copy address of this page", icon: "copy", detail: "", key: "do:copy", run: () => navigator.clipboard?.writeText(location.href), weight: 0 },
  ];
  const { view: current, arg } = route.value;
  if (current === "note" && status.value?.folder) {
    const open = () => location.assign(editorAddress(`${status.value!.folder}/${arg.split("#")[0]}`));
    list.push({ name: `Open this note in ${EDITORS[chosenEditor()]}`, icon: "edit", detail: "", key: "do:editor", run: open, weight: 0.2 });
  }
  if (current === "note") {
    list.push({ name: "Show this note in the graph", icon: "graph", detail: "", key: "do:graph", run: () => go("graph", `note/${arg}`), weight: 0.2 });
  }
  const data = graph.value;
  if (data) {
    data.notes.id.forEach((id, at) =>
      list.push({ name: data.notes.title[at]!, detail: folderOf(id), icon: "note", key: `note:${id}`, run: () => go("note", id), weight: 0 }),
    );
    data.entities.id.forEach((id, at) =>
      list.push({ name: data.entities.name[at]!, detail: data.entities.type[at]!, icon: "memory", key: `entity:${id}`, run: () => go("memory", id), weight: 0 }),
    );
    for (const tag of data.tags) {
      list.push({ name: `#${tag}`, detail: "Tag", icon: "search", key: `tag:${tag}`, run: () => go("search", `tag:${tag}`), weight: -0.05 });
    }
  }
  return list;
}

const SHOWN = 12;
/** Why the last note could not be created. */
const notCreated = signal("");

async function newNote(title: string) {
  try {
    const node = await call<{ id: string }>("create_node", { id: `${title.replace(/[\\/:*?"<>|#^[\]]+/g, " ").trim()}.md`, title, content: "", tags: [] });
    go("note", node.id);
  } catch (error) {
    notCreated.value = (error as Error).message;
    menuOpen.value = true;
  }
}

export function CommandMenu() {
  const open = menuOpen.value;
  const data = graph.value;
  const all = useMemo(() => (open ? entries() : []), [open, data]);
  const find = (words: string): Choice[] => {
    const old = recent();
    const score = (entry: Entry) => {
      const place = old.indexOf(entry.key);
      const bonus = entry.weight + (place >= 0 ? 0.3 - place / 200 : 0);
      if (!words) return place >= 0 ? 2 - place / 100 : entry.weight;
      const match = fuzzy(words, entry.name);
      return match > ENOUGH ? match + bonus : 0;
    };
    const search: Choice = { name: `Search the text for “${words}”`, icon: "search", detail: "", key: "do:search", run: () => go("search", words) };
    const fresh: Choice = { name: `New note “${words}”`, icon: "edit", detail: "", key: "do:new", run: () => newNote(words) };
    const scored = all.map((entry) => ({ entry, score: score(entry) })).filter((row) => row.score > 0);
    const best: Choice[] = scored.sort((a, b) => b.score - a.score).slice(0, SHOWN).map((row) => row.entry);
    const found = words ? [...best.slice(0, SHOWN - 2), search, ...(canWrite.value && has("create_node") ? [fresh] : [])] : best;
    const kept = (choice: Choice) => ({ ...choice, run: () => (remember(choice.key), choice.run()) });
    return found.map(kept);
  };
  return (
    <Chooser
      open={open}
      close={() => (menuOpen.value = false)}
      label="Search or jump"
      placeholder="Jump to a note, entity, tag or view"
      find={find}
      data={all}
      opened={loadGraph}
      typedInto={() => (notCreated.value = "")}
    >
      {notCreated.value && (
        <p class="notice stale" role="alert">
          {notCreated.value}
        </p>
      )}
    </Chooser>
  );
}

const KEYS: [string, string][] = [
  ["Ctrl K or ⌘ K", "Search or jump"],
  ["/", "Search"],
  ["g h", "Home"],
  ["g g", "Graph"],
  ["g s", "Search"],
  ["g m", "Memory"],
  ["g c", "Changes"],
  ["g e", "Health"],
  ["j k", "Move in lists"],
  ["Enter", "Open"],
  ["Space", "Preview a result"],
  ["t", "Light or dark"],
  ["Esc", "Close or deselect"],
  ["Arrows + − 0", "Move and zoom the graph"],
  ["n p", "Next and previous node in the graph"],
  ["f", "Path from the selected node"],
  ["l", "Only what is around the selected node"],
  ["?", "This list"],
];

export function Help() {
  const open = helpOpen.value;
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (open) dialog.current?.showModal();
    else dialog.current?.close();
  }, [open]);
  return (
    <dialog ref={dialog} class="menu help" aria-label="Keys" onClose={() => (helpOpen.value = false)} onClick={(event) => event.target === dialog.current && (helpOpen.value = false)}>
      <div class="menu-box">
        <h2>Keys</h2>
        <dl>
          {KEYS.map(([key, what]) => (
            <div key={key}>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{what}</dd>
            </div>
          ))}
        </dl>
        <button class="button" onClick={() => (helpOpen.value = false)}>
          Close
        </button>
      </div>
    </dialog>
  );
}
