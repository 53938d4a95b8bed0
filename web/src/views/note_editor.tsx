// The editor: plain text, saved with the guard of every write. The text a person typed is never lost: it stays in the tab until it is saved
// or discarded, also over a reload, and when the note changed meanwhile both texts are shown.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError, call } from "../api";
import { lineDiff, withoutEqual } from "../line_diff";
import { kept } from "../place";
import type { NoteNode } from "../types";
import { SideBySide } from "../ui/side_by_side";
import { type ReadNote, read } from "./note";

interface Draft {
  text: string;
  /** What it was made from. */
  base: string;
  version: string;
}

const key = (path: string) => `${kept("draft")} ${path}`;

export function draftOf(path: string): Draft | null {
  const draft = sessionStorage.getItem(key(path));
  return draft ? (JSON.parse(draft) as Draft) : null;
}

function keep(path: string, draft: Draft | null) {
  if (!draft || draft.text === unified(draft.base)) sessionStorage.removeItem(key(path));
  else {
    try {
      sessionStorage.setItem(key(path), JSON.stringify(draft));
    } catch {
      // Too long for the browser's storage: it lives as long as the page.
    }
  }
}

/** A text field has `\n` alone. */
const unified = (text: string) => text.replace(/\r\n?/g, "\n");

/** With the line ends of the note, so that saving changes no line that was not edited. */
function withLineEnds(text: string, base: string): string {
  const crlf = base.match(/\r\n/g)?.length ?? 0;
  return crlf > 0 && crlf === (base.match(/\n/g)?.length ?? 0) ? text.replace(/\n/g, "\r\n") : text;
}

export function Editor({ now, close }: { now: ReadNote; close: () => void }) {
  const path = now.page.filepath;
  const [draft, setDraft] = useState<Draft>(() => draftOf(path) ?? { text: unified(now.text), base: now.text, version: now.node?.version ?? "" });
  const [theirs, setTheirs] = useState<ReadNote | null>(null);
  const [failed, setFailed] = useState<Error | null>(null);
  const [busy, setBusy] = useState(false);
  const [leaving, setLeaving] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => field.current?.focus(), []);
  useEffect(() => keep(path, draft), [path, draft]);
  // The note is read again while it is edited: what is on disk may not be what the editor started from.
  useEffect(() => {
    const isOther = now.node?.version !== draft.version;
    if (isOther && now.text === draft.base) setDraft({ ...draft, version: now.node?.version ?? "" });
    else setTheirs(isOther ? now : null);
  }, [now, draft.version]);
  const isChanged = draft.text !== unified(draft.base);
  const leave = () => {
    keep(path, null);
    close();
  };
  const save = async (over?: ReadNote) => {
    setBusy(true);
    setFailed(null);
    const expected = over?.node?.version ?? draft.version;
    try {
      await call<NoteNode>("update_node", { id: path, content: withLineEnds(draft.text, draft.base), expected_version: expected });
      return leave();
    } catch (error) {
      const found = error instanceof ApiError && error.status === 200 ? await read(path).catch(() => null) : null;
      if (found?.node && found.node.version !== expected) setTheirs(found);
      else setFailed(error as Error);
    }
    setBusy(false);
  };
  return (
    <div class="editor">
      {failed && (
        <div class="notice stale" role="alert">
          <strong>Not saved.</strong> {failed.message} Your text stays in this tab.
        </div>
      )}
      {theirs && <Conflict mine={draft.text} theirs={theirs} keepMine={() => save(theirs)} takeTheirs={leave} />}
      <textarea
        ref={field}
        aria-label="Text of the note"
        value={draft.text}
        onInput={(event) => setDraft({ ...draft, text: event.currentTarget.value })}
        onKeyDown={(event) => {
          if (event.isComposing) return;
          if (event.key === "Escape") isChanged ? setLeaving(true) : leave();
          if (event.key === "Enter" && (event.metaKey || event.ctrlKey) && isChanged && !theirs) save();
        }}
        spellcheck
      />
      <div class="actions">
        {leaving ? (
          <>
            <span role="alert">Discard your changes?</span>
            <button class="button" onClick={leave}>
              Discard
            </button>
            <button class="button quiet" onClick={() => setLeaving(false)}>
              Keep editing
            </button>
          </>
        ) : (
          <>
            {!theirs && (
              <button class="button primary" onClick={() => save()} disabled={busy || !isChanged}>
                Save
              </button>
            )}
            <button class="button quiet" onClick={() => (isChanged ? setLeaving(true) : leave())}>
              Cancel
            </button>
            <span class="muted small">Ctrl Enter saves, Esc cancels. Frontmatter stays as it is.</span>
          </>
        )}
      </div>
    </div>
  );
}

function Conflict({ mine, theirs, keepMine, takeTheirs }: { mine: string; theirs: ReadNote; keepMine: () => void; takeTheirs: () => void }) {
  const rows = useMemo(() => withoutEqual(lineDiff(unified(theirs.text), mine)), [mine, theirs]);
  return (
    <section class="conflict" aria-label="Conflict">
      <div class="notice amber" role="alert">
        <strong>The note was changed while you were editing.</strong> Both texts are below, and nothing of either is lost. Edit yours until it has
        what you want from both, then save it; the version on disk stays in the history.
      </div>
      {rows.length ? <SideBySide rows={rows} left="On disk now" right="Your text" /> : <p class="muted">Both texts are equal now.</p>}
      <div class="actions">
        <button class="button primary" onClick={keepMine}>
          Save my text
        </button>
        <button class="button" onClick={takeTheirs}>
          Discard mine, keep the text on disk
        </button>
      </div>
    </section>
  );
}
