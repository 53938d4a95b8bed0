// The live trail: what agents and people do, newest first, without reload; and the changes that are kept, with the way back.
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { call } from "../api";
import { href, route, setParam } from "../router";
import { canWrite, connection, has, heard, memoryVersion, notesVersion, trail, trailRestarts } from "../state";
import type { Trace } from "../types";
import { ago, author, clock, count, duration, folderOf, when } from "../ui/format";
import { ChangedLine } from "../ui/changed_line";
import { Icon } from "../ui/icons";
import { useLimit } from "../ui/first";
import { FailedPart, Skeleton, useLoad } from "../ui/states";

type What = "all" | "writes" | "call" | "note" | "memory";
const WHAT: [What, string][] = [
  ["all", "All"],
  ["writes", "Writes"],
  ["call", "Calls"],
  ["note", "Notes"],
  ["memory", "Memory"],
];

/** A change as the server keeps it. */
export interface Kept {
  at: string;
  kind: string;
  id: string;
  entity_id?: number;
  title: string;
  action: string;
  by: string;
  summary: string;
  change: string;
  ids?: string[];
}

const isUndone = (change: Kept) => /; undone by n?\d+$/.test(change.summary);
/** Whether a change is about the note. */
const isAbout = (change: Kept, path: string) => change.kind === "note" && [change.id, ...(change.ids ?? [])].some((id) => id.toLowerCase() === path.toLowerCase());

/** The trail has the time of an answer, and the history that of the write before it, without parts of a second. */
const APART_MS = 2_000;

/** The kept change that a line is about, where it is only one. Of another program only its notes are known. */
function keptOf(trace: Trace, kept: Kept[]): Kept | null {
  if (trace.change !== undefined) return kept.find((change) => change.change === String(trace.change)) ?? null;
  if (trace.kind === "memory" || !trace.writes || trace.failed || !trace.object) return null;
  const by = trace.kind === "call" ? trace.who : "outside";
  const found = kept.filter((change) => change.by === by && isAbout(change, trace.object!) && Math.abs(Date.parse(change.at) - trace.at) < APART_MS + (trace.ms ?? 0));
  // A call is named after what it does: `edit_node` makes an edit.
  const same = found.length > 1 && trace.tool ? found.filter(({ action }) => trace.tool === `${action}_node`) : found;
  return same.length === 1 ? same[0]! : null;
}

export function Changes() {
  const { params } = route.value;
  const what = WHAT.find(([key]) => key === params.get("what"))?.[0] ?? "all";
  const who = params.get("who") ?? "";
  const [paused, setPaused] = useState<{ lines: Trace[]; heard: number } | null>(null);
  useEffect(() => setPaused(null), [trailRestarts.value]);
  const [limit, more] = useLimit(100);
  const { data: kept, error, retry } = useLoad(
    async (stop) => (has("recent_changes") ? (await call<{ changes: Kept[] }>("recent_changes", { limit }, stop)).changes : null),
    [notesVersion.value, memoryVersion.value, has("recent_changes"), limit],
  );
  const live = paused?.lines ?? trail.value;
  const names = useMemo(() => [...new Set(live.map((trace) => trace.who).filter(Boolean))].sort(), [live]);
  const shown = live.filter(
    (trace) => (!who || trace.who === who) && (what === "all" || trace.kind === what || (what === "writes" && (trace.writes || trace.kind !== "call"))),
  );
  const waiting = paused ? heard.value - paused.heard : 0;
  return (
    <div class="view changes">
      <header class="view-head">
        <h1>Changes</h1>
        <div class="bar-line">
          <div class="segments" role="group" aria-label="What">
            {WHAT.map(([key, label]) => (
              <button key={key} aria-pressed={what === key} onClick={() => setParam("what", key === "all" ? null : key)}>
                {label}
              </button>
            ))}
          </div>
          {(names.length > 1 || who) && (
            <select class="field" aria-label="Who" value={who} onChange={(event) => setParam("who", event.currentTarget.value)}>
              <option value="">Everyone</option>
              {[...new Set([...names, ...(who ? [who] : [])])].map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          )}
          <button class="button quiet" aria-pressed={!!paused} onClick={() => setPaused(paused ? null : { lines: trail.value, heard: heard.value })}>
            <Icon name={paused ? "play" : "pause"} size={14} /> {paused ? `Resume${waiting > 0 ? ` (${count(waiting)} new)` : ""}` : "Pause"}
          </button>
        </div>
      </header>
      {shown.length ? (
        <ol class="feed" aria-live="off">
          {shown.map((trace, at) => (
            <Line key={`${trace.at}-${live.length - at}`} trace={trace} kept={kept ? keptOf(trace, kept) : null} />
          ))}
        </ol>
      ) : (
        <p class="quiet-line waiting" role="status">
          {connection.value !== "live"
            ? "Not connected. Calls and changes appear here again when the server answers."
            : live.length
              ? "Nothing of this kind yet."
              : "Nothing since this page was opened. Each call of an agent and each changed file appears here as it happens."}
        </p>
      )}
      {has("recent_changes") ? <History changes={kept} more={more(kept?.length ?? 0)} error={error} retry={retry} /> : <Files />}
    </div>
  );
}

/** The page of what a line is about. */
export function addressOf(trace: Trace): string | null {
  const isNote = trace.object && (trace.kind === "note" || /\.(md|markdown)$/i.test(trace.object));
  return isNote ? href("note", trace.object!) : trace.entity !== undefined ? href("memory", trace.entity) : null;
}

function Line({ trace, kept }: { trace: Trace; kept: Kept | null }) {
  const to = addressOf(trace);
  return (
    <li class={`line ${trace.kind} ${trace.failed ? "failed" : ""}`}>
      <time class="mono" title={when(trace.at)}>
        {clock(trace.at)}
      </time>
      <span class={`who ${trace.kind === "call" || trace.who ? "agent" : ""}`}>{trace.who || "file"}</span>
      <span class="tool mono">{trace.tool ?? (trace.kind === "note" ? "changed" : trace.kind)}</span>
      <span class="what">
        {to && trace.text ? <a href={to}>{trace.text}</a> : trace.text}
        {kept?.kind === "note" && <ChangedLine change={kept} />}
      </span>
      {kept ? <Undo change={kept} /> : <span />}
      <span class="took mono">{trace.failed ? "failed" : trace.ms !== undefined ? duration(trace.ms) : ""}</span>
    </li>
  );
}

/** The way back, asked for twice: the second time it says what is undone. */
function Undo({ change }: { change: Kept }) {
  const [state, setState] = useState<"offered" | "asked" | "done" | Error>("offered");
  if (isUndone(change) || state === "done") return <span class="undo muted">undone</span>;
  if (!canWrite.value || !has("undo_change")) return <span />;
  if (state instanceof Error) {
    return (
      <span class="undo notice stale" role="alert">
        {state.message}
      </span>
    );
  }
  const undo = () => call("undo_change", { change: change.change }).then(() => setState("done"), setState);
  return (
    <span class="undo">
      {state === "asked" ? (
        <>
          <button class="text-button danger" onClick={undo}>
            Undo this change
          </button>
          <button class="text-button" onClick={() => setState("offered")}>
            Cancel
          </button>
        </>
      ) : (
        <button class="text-button" aria-label={`Undo: ${change.title || change.id}`} onClick={() => setState("asked")}>
          Undo
        </button>
      )}
    </span>
  );
}

/** Changes to notes and memory, from before this page was opened too. */
function History({ changes, more, error, retry }: { changes: Kept[] | null; more: ComponentChildren; error: Error | null; retry: () => void }) {
  return (
    <section class="after">
      <h2>History</h2>
      {error && <FailedPart what="The history cannot be read" error={error} retry={retry} />}
      {!changes ? (
        !error && <Skeleton rows={8} />
      ) : !changes.length ? (
        <p class="quiet-line">No change is recorded yet.</p>
      ) : (
        <ul class="rows kept">
          {changes.map((change) => {
            // The page of an observation or a relation is that of its entity.
            const to = change.kind === "note" ? href("note", change.id) : change.entity_id === undefined ? null : href("memory", change.entity_id);
            const title = change.title || change.id;
            return (
              <li key={change.change}>
                <span class="row">
                  <span class="name">{to ? <a href={to}>{title}</a> : title}</span>
                  <span class="where" title={change.summary}>
                    <span class={change.by && change.by !== "outside" ? "agent" : ""}>{author(change.by)}</span> · {change.kind === "note" ? change.summary : change.action.replace(/_/g, " ")}
                  </span>
                  <Undo change={change} />
                  <span class="when" title={when(Date.parse(change.at))}>
                    {ago(Date.parse(change.at))}
                  </span>
                </span>
                {change.kind === "note" && <ChangedLine change={change} />}
              </li>
            );
          })}
        </ul>
      )}
      {more}
    </section>
  );
}

interface Listed {
  pages: { filepath: string; title: string; updated_at: string }[];
}

/** Where the server offers no history: notes by the times of their files. */
function Files() {
  const { data, error, retry } = useLoad((stop) => call<Listed>("ubp_list_pages", { sort: "updated_at", order: "desc", limit: 50 }, stop), [notesVersion.value]);
  return (
    <section class="after">
      <h2>Earlier</h2>
      {error && <FailedPart what="The notes cannot be listed" error={error} retry={retry} />}
      {!data ? (
        !error && <Skeleton rows={8} />
      ) : (
        <ul class="rows">
          {data.pages.map((page) => (
            <li key={page.filepath}>
              <a href={href("note", page.filepath)}>
                <span class="name">{page.title}</span>
                <span class="where">{folderOf(page.filepath)}</span>
                <span class="when" title={when(Date.parse(page.updated_at))}>
                  {ago(Date.parse(page.updated_at))}
                </span>
              </a>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
