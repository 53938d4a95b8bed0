// Why a note is not among the results: what the last of them has, and which words of the query the note has.
import { useState } from "preact/hooks";
import { call } from "../api";
import { graph } from "../state";
import type { NoteNode } from "../types";
import { ENOUGH, fuzzy } from "../ui/chooser";
import { count } from "../ui/format";
import { useLoad } from "../ui/states";
import { type Results, terms } from "./search";

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

function Reason({ note, results }: { note: string; results: Results }) {
  const { data, error } = useLoad((stop) => call<NoteNode | null>("get_node", { id: note, max_chars: 50_000 }, stop), [note], [note]);
  if (error) return <p class="muted">{error.message}</p>;
  if (!data) return <p class="muted">Looking…</p>;
  const text = `${data.title} ${data.tags.join(" ")} ${data.content ?? ""}`.toLowerCase();
  const words = terms(results.query);
  const has = words.filter((word) => text.includes(word));
  const lacks = words.filter((word) => !text.includes(word));
  const shown = results.pages.findIndex((page) => page.filepath.toLowerCase() === note.toLowerCase());
  const last = results.pages.at(-1);
  return (
    <div class="notice" role="status">
      {shown >= 0 ? (
        <p>It is result {shown + 1}. A filter at the left may hide it.</p>
      ) : results.pages.length > 0 && (
        <p>
          It is not among the first {count(results.pages.length)} of {count(results.total)}.
          {last && last.score > 0 && <> The last of these has a score of {Math.round(last.score * 100)}.</>}
        </p>
      )}
      <p>
        {has.length > 0 && <>Its text has {has.join(", ")}. </>}
        {lacks.length > 0 && <>Its text does not have {lacks.join(", ")}, so only meaning and links count for {lacks.length === 1 ? "it" : "them"}.</>}
      </p>
    </div>
  );
}
