// What a person wants to know first: what changed and by whom, what matters, what needs a decision.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { call } from "../api";
import { href } from "../router";
import { canWrite, graph, graphError, has, lastVisit, loadGraph, loadStatus, memoryVersion, notesVersion, status, statusError, trail } from "../state";
import { ago, clock, count, folderOf, plural } from "../ui/format";
import { Empty, Failed, FailedPart, Skeleton, useLoad } from "../ui/states";
import { addressOf, type Kept } from "./changes";
import { likelyMerges, orMore } from "./duplicates";

interface Listed {
  filepath: string;
  title: string;
  updated_at: string;
  link_count: number;
}
interface Hub {
  id: string;
  title: string;
  score: number;
}

/** Rows of a list at first. */
const LISTED = 8;
/** Changed notes that are read. */
const CHANGED = 200;

export function Home() {
  const version = notesVersion.value;
  const known = status.value;
  const recent = useLoad(
    (stop) => call<{ pages: Listed[]; total: number }>("ubp_list_pages", { sort: "updated_at", order: "desc", limit: CHANGED }, stop),
    [version],
  );
  const writers = useWriters(version);
  const [shown, setShown] = useState(LISTED);
  const hubs = useLoad((stop) => call<Hub[]>("get_hubs", { metric: "pagerank", limit: LISTED }, stop), [version]);
  if (known && known.indexed && known.notes === 0 && known.entities === 0) return <EmptyVault />;
  if (recent.error && !recent.data) return <Failed what="The vault cannot be read" error={recent.error} retry={recent.retry} />;
  const newer = recent.data?.pages.filter((page) => lastVisit && Date.parse(page.updated_at) > lastVisit) ?? [];
  const isSince = newer.length > 0;
  const changed = isSince ? newer : (recent.data?.pages.slice(0, LISTED) ?? []);
  // The list is longer than what was read of it.
  const isMore = newer.length === CHANGED && (recent.data?.total ?? 0) > CHANGED;
  return (
    <div class="view home">
      <header class="view-head">
        <h1>{known?.vault ?? " "}</h1>
        <p class="muted">
          {known ? (
            <>
              {plural(known.notes, "note")}, {plural(known.links, "link")} and {plural(known.entities, "entity", "entities")} in memory.
              {!known.indexed && " Still reading the vault."}
            </>
          ) : (
            " "
          )}
        </p>
      </header>
      <div class="grid">
        <Panel title={isSince ? "Changed since your last visit" : "Changed last"} count={isSince ? `${count(newer.length)}${isMore ? " or more" : ""}` : ""} more={["All changes", href("changes")]}>
          {recent.data ? (
            <>
            <ul class="rows">
              {changed.slice(0, shown).map((page) => (
                <li key={page.filepath}>
                  <a href={href("note", page.filepath)}>
                    <span class="name">{page.title}</span>
                    <span class="where">{folderOf(page.filepath)}</span>
                    {writers.has(page.filepath.toLowerCase()) && <span class="who agent">{writers.get(page.filepath.toLowerCase())}</span>}
                    <span class="when">{ago(Date.parse(page.updated_at))}</span>
                  </a>
                </li>
              ))}
            </ul>
            {changed.length > shown && (
              <button class="text-button more" onClick={() => setShown(shown + 50)}>
                Show {count(Math.min(50, changed.length - shown))} more
              </button>
            )}
            </>
          ) : (
            <Skeleton rows={8} />
          )}
        </Panel>
        <Panel title="Most central notes" more={["Graph", href("graph")]}>
          {hubs.error && !hubs.data ? (
            <FailedPart what="Central notes cannot be read" error={hubs.error} retry={hubs.retry} />
          ) : hubs.data ? (
            <ul class="rows">
              {hubs.data.map((hub) => (
                <li key={hub.id}>
                  <a href={href("note", hub.id)}>
                    <span class="name">{hub.title}</span>
                    <span class="where">{folderOf(hub.id)}</span>
                    <Bar value={hub.score / (hubs.data![0]?.score || 1)} />
                  </a>
                </li>
              ))}
            </ul>
          ) : (
            <Skeleton rows={8} />
          )}
        </Panel>
        <Attention isLater={!!hubs.data} />
        <Panel title="Live" more={["Changes", href("changes")]}>
          {trail.value.length ? (
            <ul class="rows trail">
              {trail.value.slice(0, 8).map((trace, at) => (
                <li key={trace.at + at}>
                  <a href={addressOf(trace) ?? href("changes")}>
                    <span class="when mono">{clock(trace.at)}</span>
                    <span class={`who ${trace.who ? "agent" : ""}`}>{trace.who || "file"}</span>
                    <span class="name">{trace.text || trace.tool}</span>
                  </a>
                </li>
              ))}
            </ul>
          ) : (
            <p class="quiet-line">
              Nothing yet. Calls of agents and changes of files appear here as they happen.
            </p>
          )}
        </Panel>
      </div>
    </div>
  );
}

/** The agents that wrote notes last, by path; other programs are not named. */
function useWriters(version: number): Map<string, string> {
  const { data } = useLoad(
    (stop) => (has("recent_changes") ? call<{ changes: Kept[] }>("recent_changes", { kinds: ["note"], limit: 50 }, stop) : Promise.resolve(null)),
    [version, has("recent_changes")],
  );
  const writers = new Map<string, string>();
  for (const { id, ids, by } of [...(data?.changes ?? [])].reverse()) {
    for (const path of [id, ...(ids ?? [])]) {
      if (by && by !== "outside") writers.set(path.toLowerCase(), by);
      else writers.delete(path.toLowerCase());
    }
  }
  return writers;
}

function Panel({ title, count, more, children }: { title: string; count?: string; more?: [string, string]; children: ComponentChildren }) {
  return (
    <section class="panel">
      <header>
        <h2>
          {title} {count && <span class="count">{count}</span>}
        </h2>
        {more && <a href={more[1]}>{more[0]}</a>}
      </header>
      {children}
    </section>
  );
}

function Bar({ value }: { value: number }) {
  return (
    <svg class="bar" width="64" height="6" aria-hidden="true">
      <rect width="64" height="6" rx="3" class="track" />
      <rect width={Math.max(3, 64 * value)} height="6" rx="3" class="value" />
    </svg>
  );
}

/** Decisions that wait: each row leads to where it is made. `isLater`: what the eye sees first is there. */
function Attention({ isLater }: { isLater: boolean }) {
  const known = status.value;
  const memory = memoryVersion.value;
  const merges = useLoad(
    (stop) => (has("suggest_merges") ? likelyMerges(stop) : Promise.resolve([])),
    [memory, has("suggest_merges")],
  );
  // The graph says which pages are stale, and opens at once then.
  const isReady = !!known?.indexed && isLater;
  useEffect(() => {
    if (isReady && !graph.value) loadGraph();
  }, [isReady]);
  const stale = graph.value?.freshness.stale.length ?? (graphError.value ? graphError.value : null);
  // Null while it is not known.
  const rows: [string, string, number | Error | null, string][] = known
    ? [
        ["Broken links", "Links whose note does not exist", known.broken_links, href("health")],
        ["Unlinked notes", "No link leads to or from them", known.orphans, href("health")],
        ["Stale pages", "Their sources changed after them", stale, href("health")],
        [merges.data && orMore(merges.data) ? "or more possible duplicates" : "Possible duplicates", "Entities that may be one thing", merges.error ?? merges.data?.length ?? null, href("memory", "duplicates")],
        ["Warnings", "Files with something odd", known.warnings_total - known.broken_links, href("health")],
      ]
    : [];
  return (
    <Panel title="Needs attention" more={["Health", href("health")]}>
      {known ? (
        <ul class="rows counts">
          {rows.map(([name, what, number, to]) => (
            <li key={name}>
              <a href={to}>
                <span class={`number ${number ? "" : "zero"}`}>{typeof number === "number" ? count(number) : number ? "?" : " "}</span>
                <span class="name">{name}</span>
                <span class="where">{number instanceof Error ? number.message : what}</span>
              </a>
            </li>
          ))}
        </ul>
      ) : statusError.value ? (
        <FailedPart what="The state of the vault cannot be read" error={statusError.value} retry={loadStatus} />
      ) : (
        <Skeleton rows={5} />
      )}
    </Panel>
  );
}

function EmptyVault() {
  return (
    <Empty icon="note" title="This vault is empty">
      <p>
        Quipu shows Markdown notes and what agents remember. Put a note into the folder, or connect an agent and let it write. It appears here
        at once.
      </p>
      <p>
        <code class="command">quipu install claude-code</code>
      </p>
      {!canWrite.value && <p class="muted small">This page reads only.</p>}
    </Empty>
  );
}
