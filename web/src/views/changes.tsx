// The live trail: what agents and people do, newest first, without reload.
import { useMemo, useState } from "preact/hooks";
import { call } from "../api";
import { href } from "../router";
import { connection, has, notesVersion, trail } from "../state";
import type { Trace } from "../types";
import { ago, clock, duration, folderOf, when } from "../ui/format";
import { Icon } from "../ui/icons";
import { Skeleton, useLoad } from "../ui/states";

type What = "all" | "writes" | "call" | "note" | "memory";
const WHAT: [What, string][] = [
  ["all", "All"],
  ["writes", "Writes"],
  ["call", "Calls"],
  ["note", "Notes"],
  ["memory", "Memory"],
];

export function Changes() {
  const [what, setWhat] = useState<What>("all");
  const [who, setWho] = useState("");
  const [paused, setPaused] = useState<Trace[] | null>(null);
  const live = paused ?? trail.value;
  const names = useMemo(() => [...new Set(live.map((trace) => trace.who).filter(Boolean))].sort(), [live]);
  const shown = live.filter(
    (trace) => (!who || trace.who === who) && (what === "all" || trace.kind === what || (what === "writes" && (trace.writes || trace.kind !== "call"))),
  );
  const waiting = paused ? trail.value.length - paused.length : 0;
  return (
    <div class="view changes">
      <header class="view-head">
        <h1>Changes</h1>
        <div class="bar-line">
          <div class="segments" role="group" aria-label="What">
            {WHAT.map(([key, label]) => (
              <button key={key} aria-pressed={what === key} onClick={() => setWhat(key)}>
                {label}
              </button>
            ))}
          </div>
          {names.length > 1 && (
            <select class="field" aria-label="Who" value={who} onChange={(event) => setWho(event.currentTarget.value)}>
              <option value="">Everyone</option>
              {names.map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          )}
          <button class="button quiet" aria-pressed={!!paused} onClick={() => setPaused(paused ? null : trail.value)}>
            <Icon name={paused ? "play" : "pause"} size={14} /> {paused ? `Resume${waiting > 0 ? ` (${waiting} new)` : ""}` : "Pause"}
          </button>
        </div>
      </header>
      {shown.length ? (
        <ol class="feed" aria-live="off">
          {shown.map((trace, at) => (
            <Line key={`${trace.at}-${live.length - at}`} trace={trace} />
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
      <Earlier />
    </div>
  );
}

function Line({ trace }: { trace: Trace }) {
  const to = trace.kind === "note" && trace.object ? href("note", trace.object) : trace.object && /\.md$/i.test(trace.object) ? href("note", trace.object) : null;
  return (
    <li class={`line ${trace.kind} ${trace.failed ? "failed" : ""}`}>
      <time class="mono" title={when(trace.at)}>
        {clock(trace.at)}
      </time>
      <span class={`who ${trace.kind === "call" || trace.who ? "agent" : ""}`}>{trace.who || "file"}</span>
      <span class="tool mono">{trace.tool ?? trace.kind}</span>
      <span class="what">{to ? <a href={to}>{trace.text}</a> : trace.text}</span>
      <span class="took mono">{trace.failed ? "failed" : trace.ms !== undefined ? duration(trace.ms) : ""}</span>
    </li>
  );
}

interface Recent {
  changes: { at: string; kind: string; id: string; entity_id?: number; title: string; action: string; by: string; summary: string }[];
}
interface Listed {
  pages: { filepath: string; title: string; updated_at: string }[];
}

/** What happened before: from the log where the server has the tool for it, else by the times of files. */
function Earlier() {
  const version = notesVersion.value;
  const withLog = has("recent_changes");
  const { data } = useLoad(
    async (stop) => {
      if (withLog) {
        const { changes } = await call<Recent>("recent_changes", { limit: 50 }, stop);
        return changes.map((change) => ({
          at: Date.parse(change.at), who: change.by, title: change.title || change.id,
          // The page of an observation or a relation is that of its entity.
          to: change.kind === "note" ? href("note", change.id) : change.entity_id === undefined ? null : href("memory", change.entity_id),
          where: change.kind === "note" ? change.summary : change.action.replace(/_/g, " "),
        }));
      }
      const { pages } = await call<Listed>("ubp_list_pages", { sort: "updated_at", order: "desc", limit: 50 }, stop);
      return pages.map((page) => ({
        at: Date.parse(page.updated_at), who: "", title: page.title, to: href("note", page.filepath), where: folderOf(page.filepath),
      }));
    },
    [version, withLog],
  );
  return (
    <section class="after">
      <h2>Earlier</h2>
      {!data ? (
        <Skeleton rows={8} />
      ) : (
        <ul class="rows">
          {data.map((row, at) => {
            const cells = (
              <>
                <span class="name">{row.title}</span>
                <span class="where">{row.who ? `${row.who} · ${row.where}` : row.where}</span>
                <span class="when" title={when(row.at)}>{ago(row.at)}</span>
              </>
            );
            return <li key={at}>{row.to ? <a href={row.to}>{cells}</a> : <span class="row">{cells}</span>}</li>;
          })}
        </ul>
      )}
    </section>
  );
}
