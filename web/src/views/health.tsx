// Whether all is well: counters, progress, latency, warnings with what to do, and who is connected.
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { href } from "../router";
import { connection, graph, graphError, has, loadGraph, loadStatus, status, statusError } from "../state";
import { buildModel, type Model } from "../graph/model";
import type { Status, WarningGroup } from "../types";
import { count, duration, plural } from "../ui/format";
import { useFirst } from "../ui/first";
import { Failed, FailedPart, FreshnessMark, Skeleton, Spark } from "../ui/states";

const REFRESH_MS = 3_000;

export function Health() {
  const known = status.value;
  useEffect(() => {
    const timer = setInterval(loadStatus, REFRESH_MS);
    loadGraph();
    return () => clearInterval(timer);
  }, []);
  const data = graph.value;
  const model = useMemo(() => (data ? buildModel(data) : null), [data]);
  if (!known && statusError.value) return <Failed what="The state of the server cannot be read" error={statusError.value} retry={loadStatus} />;
  if (!known) return <div class="view health"><Skeleton kind="cards" rows={4} /></div>;
  return (
    <div class="view health">
      <header class="view-head">
        <h1>Health</h1>
        <p class="muted">
          Quipu {known.version} · up {uptime(known.uptime_s)} · {connection.value === "live" ? "connected" : "not connected"}
        </p>
      </header>
      {statusError.value && connection.value === "live" && <FailedPart what="These numbers are not new" error={statusError.value} retry={loadStatus} />}
      <Counters known={known} />
      <div class="grid">
        <Latencies />
        <section class="panel">
          <header>
            <h2>Connected clients</h2>
          </header>
          {known.clients.length ? (
            <ul class="rows">
              {known.clients.map((client) => (
                <li key={client.name}>
                  <span class="row">
                    <span class="name">{client.name}</span>
                    <span class="where">{plural(client.calls, "call")}</span>
                    <span class="when">{client.last_s < 5 ? "now" : `${duration(client.last_s * 1000)} ago`}</span>
                  </span>
                </li>
              ))}
            </ul>
          ) : (
            <p class="quiet-line">No agent has called since the server started.</p>
          )}
        </section>
        <Warnings />
        <StaleNotes model={model} />
        <Orphans model={model} />
      </div>
    </div>
  );
}

/** What counts, each with its last hour. */
function Counters({ known }: { known: Status }) {
  const { hour } = known;
  const embedded = known.to_embed ? known.embedded / known.to_embed : 1;
  const isByMeaning = known.to_embed > 0 || has("search");
  const shares = hour.to_embed.map((all, at) => (all ? Math.floor((hour.embedded[at]! / all) * 100) : 0));
  const queued = hour.queue.at(-1)!;
  return (
    <div class="counters">
      <Counter name="Notes" value={count(known.notes)} note={!known.indexed ? "still reading" : queued ? `${plural(queued, "file")} waited for the index` : "all in the index"}>
        <Spark values={hour.queue} label="Files that waited for the index in the last hour, by minute" />
      </Counter>
      {isByMeaning ? (
        <Counter name="Meaning" value={`${Math.floor(embedded * 100)} %`} note={known.to_embed ? `${count(known.embedded)} of ${count(known.to_embed)} passages` : "no passages"}>
          <Spark values={shares} most={100} label="Passages with a vector in the last hour, in percent, by minute" />
        </Counter>
      ) : (
        <Counter name="Meaning" value="Off" note="search compares words alone" />
      )}
      <Counter name="Calls" value={count(hour.calls.reduce((sum, calls) => sum + calls, 0))} note="by agents in the last hour">
        <Spark values={hour.calls} label="Calls by agents in the last hour, by minute" />
      </Counter>
      <Counter name="Memory use" value={known.memory_mb ? `${count(known.memory_mb)} MB` : "–"} note="of the server, in the last hour">
        <Spark values={hour.memory_mb} label="Memory of the server in the last hour, in MB, by minute" />
      </Counter>
    </div>
  );
}

function uptime(seconds: number): string {
  if (seconds < 90) return plural(Math.round(seconds), "second");
  if (seconds < 5400) return plural(Math.round(seconds / 60), "minute");
  if (seconds < 129600) return plural(Math.round(seconds / 3600), "hour");
  return plural(Math.round(seconds / 86400), "day");
}

function Counter({ name, value, note, children }: { name: string; value: string; note: string; children?: ComponentChildren }) {
  return (
    <section class="counter">
      <h2>{name}</h2>
      <p class="value">{value}</p>
      {children ?? <span class="no-plot" />}
      <p class="muted small">{note}</p>
    </section>
  );
}

function Latencies() {
  const [rows, more] = useFirst([...(status.value?.latency ?? [])].sort((a, b) => b.calls - a.calls), 12);
  const hour = status.value?.hour.p95_ms ?? {};
  return (
    <section class="panel">
      <header>
        <h2>Latency by tool</h2>
      </header>
      {rows.length ? (
        <table class="latency">
          <thead>
            <tr>
              <th scope="col">Tool</th>
              <th scope="col">Calls</th>
              <th scope="col">Median</th>
              <th scope="col">95 %</th>
              <th scope="col" class="plot">
                Last hour
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.tool}>
                <th scope="row" class="mono">{row.tool}</th>
                <td>{count(row.calls)}</td>
                <td>{duration(row.p50_ms)}</td>
                <td>{duration(row.p95_ms)}</td>
                <td class="plot">
                  <Spark values={hour[row.tool] ?? []} label={`95 % of the calls of ${row.tool} in the last hour, in milliseconds, by minute`} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : (
        <p class="quiet-line">No calls yet.</p>
      )}
      {more}
    </section>
  );
}

/** What each kind of warning is called, and what to do about it. */
const KINDS: Record<WarningGroup["kind"], [string, string]> = {
  broken_link: ["Broken links", "Create the note, or correct the link."],
  frontmatter: ["Frontmatter", "Correct the YAML between the lines of dashes; the text is read all the same."],
  limit: ["Very large notes", "Split the note: only a part of it is used."],
  other: ["Other", "`quipu doctor` says more."],
};

/** A warning begins with the path of its note. */
function withLink(line: string) {
  const path = /^"([^"]+\.(?:md|markdown))":?/i.exec(line);
  if (!path) return line;
  return (
    <>
      <a href={href("note", path[1]!)}>{path[1]}</a>
      {line.slice(path[0].length).replace(/^/, ":").replace(/^::/, ":")}
    </>
  );
}

function Warnings() {
  const known = status.value!;
  return (
    <section class="panel">
      <header>
        <h2>
          Warnings <span class="count">{count(known.warnings_total)}</span>
        </h2>
      </header>
      {known.warnings.length ? known.warnings.map((group) => <Group key={group.kind} group={group} />) : <p class="quiet-line">Nothing odd in the vault.</p>}
    </section>
  );
}

function Group({ group }: { group: WarningGroup }) {
  const [shown, setShown] = useState(LISTED);
  const [name, fix] = KINDS[group.kind];
  return (
    <details class="group">
      <summary>
        <span class="name">{name}</span> <span class="count">{count(group.total)}</span>
      </summary>
      <p class="muted small">{fix}</p>
      <ul class="plain small">
        {group.first.slice(0, shown).map((line, at) => (
          <li key={at}>{withLink(line)}</li>
        ))}
      </ul>
      {group.first.length > shown ? (
        <button class="text-button" onClick={() => setShown(shown + 50)}>
          Show more
        </button>
      ) : (
        group.total > group.first.length && (
          <p class="muted small">
            and {count(group.total - group.first.length)} more; <code>quipu doctor</code> lists all
          </p>
        )
      )}
    </details>
  );
}

/** Notes whose sources changed after them, the worst first. */
function StaleNotes({ model }: { model: Model | null }) {
  const marks = { stale: 0, possibly_stale: 1 } as Record<string, number>;
  const stale = model?.order.filter((node) => model.freshness[node]! in marks).sort((a, b) => marks[model.freshness[a]!]! - marks[model.freshness[b]!]!) ?? [];
  const tracked = model?.freshness.filter((level) => level !== "untracked").length ?? 0;
  return (
    <NoteList
      title="Stale pages"
      model={model}
      nodes={stale}
      none={tracked ? `${plural(tracked, "page")} with sources, none of them stale.` : "No note names its sources. List files under source_refs in the frontmatter, and this shows when they change."}
      mark={(node) => <FreshnessMark value={model!.freshness[node]!} />}
    />
  );
}

function Orphans({ model }: { model: Model | null }) {
  const linked = useMemo(() => (model ? linkedNotes(model) : new Set<number>()), [model]);
  const orphans = model?.order.filter((node) => node < model.notes && !linked.has(node)) ?? [];
  return <NoteList title="Unlinked notes" model={model} nodes={orphans} none="Every note is linked." />;
}

/** Notes with a link to or from a note, as the server counts them: what memory mentions may be unlinked all the same. */
function linkedNotes({ data, notes }: Model): Set<number> {
  const linked = new Set<number>();
  for (let at = 0; at < data.edges.length; at += 3) {
    const [source, target] = [data.edges[at]!, data.edges[at + 1]!];
    if (source < notes && target < notes) linked.add(source).add(target);
  }
  return linked;
}

const LISTED = 12;

function NoteList(props: { title: string; model: Model | null; nodes: number[]; none: string; mark?: (node: number) => ComponentChildren }) {
  const { title, model, nodes, none, mark } = props;
  const [shown, setShown] = useState(LISTED);
  return (
    <section class="panel">
      <header>
        <h2>
          {title} <span class="count">{model ? count(nodes.length) : ""}</span>
        </h2>
      </header>
      {!model && graphError.value ? (
        <FailedPart what="The notes cannot be read" error={graphError.value} retry={loadGraph} />
      ) : !model ? (
        <Skeleton rows={4} />
      ) : nodes.length ? (
        <>
          <ul class="rows">
            {nodes.slice(0, shown).map((node) => (
              <li key={node}>
                <a href={href("note", model.data.notes.id[node]!)}>
                  <span class="name">{model.names[node]}</span>
                  <span class="where">{model.data.folders[model.data.notes.folder[node]!]}</span>
                  {mark?.(node)}
                </a>
              </li>
            ))}
          </ul>
          {nodes.length > shown && (
            <button class="text-button" onClick={() => setShown(shown + 50)}>
              Show more
            </button>
          )}
        </>
      ) : (
        <p class="quiet-line">{none}</p>
      )}
    </section>
  );
}
