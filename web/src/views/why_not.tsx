// Why a note is not among the results: its rank further down, and which words of the query it has.
import { useState } from "preact/hooks";
import { call } from "../api";
import { graph } from "../state";
import type { NoteNode } from "../types";
import { ENOUGH, fuzzy } from "../ui/chooser";
import { useLoad } from "../ui/states";
import { type Results, terms } from "./search";

/** As many as the tool gives. */
const DEEP = 50;
const SUGGESTED = 6;

export function WhyNot({ results }: { results: Results }) {
  const [open, setOpen] = useState(false);
  const [typed, setTyped] = useState("");
  const [note, setNote] = useState<string | null>(null);
  const notes = graph.value?.notes;
  const suggested =
    open && typed && !note && notes
      ? notes.id
          .map((id, at) => ({ id, title: notes.title[at]!, score: fuzzy(typed, notes.title[at]!) }))
          .filter((row) => row.score > ENOUGH)
          .sort((a, b) => b.score - a.score)
          .slice(0, SUGGESTED)
      : [];
  return (
    <details class="why-not" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>A note is missing?</summary>
      <input
        class="field"
        type="search"
        aria-label="Title of the missing note"
        placeholder="Title of the note you expected"
        value={typed}
        onInput={(event) => {
          setTyped(event.currentTarget.value);
          setNote(null);
        }}
      />
      <ul class="plain">
        {suggested.map((row) => (
          <li key={row.id}>
            <button
              class="text-button"
              onClick={() => {
                setTyped(row.title);
                setNote(row.id);
              }}
            >
              {row.title} <span class="muted">{row.id}</span>
            </button>
          </li>
        ))}
      </ul>
      {note && <Reason note={note} results={results} />}
    </details>
  );
}

interface Ranked {
  id: string;
  score: number;
}

function Reason({ note, results }: { note: string; results: Results }) {
  const { data, error } = useLoad(
    async (stop) => {
      const [ranked, node] = await Promise.all([
        call<Ranked[]>("search", { query: results.query, limit: DEEP }, stop),
        call<NoteNode | null>("get_node", { id: note, max_chars: 50_000 }, stop),
      ]);
      return { rank: ranked.findIndex((row) => row.id === note.toLowerCase()), ranked, node };
    },
    [note, results.query],
    [note],
  );
  if (error) return <p class="muted">{error.message}</p>;
  if (!data) return <p class="muted">Looking…</p>;
  const { rank, ranked, node } = data;
  const text = `${node?.title ?? ""} ${node?.tags.join(" ") ?? ""} ${node?.content ?? ""}`.toLowerCase();
  const words = terms(results.query);
  const has = words.filter((word) => text.includes(word));
  const lacks = words.filter((word) => !text.includes(word));
  const shown = results.pages.findIndex((page) => page.filepath.toLowerCase() === note.toLowerCase());
  return (
    <div class="notice" role="status">
      {shown >= 0 ? (
        <p>It is result {shown + 1}. A filter at the left may hide it.</p>
      ) : rank >= 0 ? (
        <p>
          It is result {rank + 1} with a score of {Math.round(ranked[rank]!.score * 100)}; the last one shown has{" "}
          {Math.round((results.pages[results.pages.length - 1]?.score ?? 0) * 100)}.
        </p>
      ) : (
        <p>
          It is not among the first {DEEP}. The last of these has a score of {Math.round((ranked[ranked.length - 1]?.score ?? 0) * 100)}.
        </p>
      )}
      <p>
        {has.length > 0 && <>Its text has {has.join(", ")}. </>}
        {lacks.length > 0 && <>Its text does not have {lacks.join(", ")}, so only meaning and links count for {lacks.length === 1 ? "it" : "them"}.</>}
      </p>
    </div>
  );
}
