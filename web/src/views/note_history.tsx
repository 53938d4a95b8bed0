// Versions of a note as a timeline, each with its difference from the present text, and the way back.
import { useState } from "preact/hooks";
import { call } from "../api";
import { unifiedRows } from "../line_diff";
import { canWrite, has } from "../state";
import { ago, author, count, when } from "../ui/format";
import { useLimit } from "../ui/first";
import { SideBySide } from "../ui/side_by_side";
import { FailedPart, Skeleton, useLoad } from "../ui/states";

interface Version {
  version: string;
  at: string;
  by: string;
  action: string;
  chars: number;
  /** False when its text is not kept. */
  kept?: boolean;
}

/** A revert makes the same text a version again, at another time. */
const keyOf = (entry: Version) => `${entry.version} ${entry.at}`;

export function History({ path, version }: { path: string; version?: string }) {
  const [open, setOpen] = useState(false);
  const [chosen, setChosen] = useState<string | null>(null);
  const [limit, more] = useLimit(50);
  const { data, error, retry } = useLoad(
    (stop) => (open ? call<{ versions: Version[] }>("node_history", { id: path, limit }, stop) : Promise.resolve(null)),
    [open, path, version, limit],
    [path],
  );
  return (
    <details class="after history" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <h2>History</h2>
      </summary>
      {!open ? null : error ? (
        <FailedPart what="The history cannot be read" error={error} retry={retry} />
      ) : !data ? (
        <Skeleton rows={3} />
      ) : (
        <ol class="timeline">
          {data.versions.map((entry, at) => (
            <li key={keyOf(entry)}>
              {at === 0 || entry.kept === false ? (
                <p>
                  <Line entry={entry} /> <span class="kind">{at === 0 ? "current" : "text not kept"}</span>
                </p>
              ) : (
                <button class="version" aria-expanded={chosen === keyOf(entry)} onClick={() => setChosen(chosen === keyOf(entry) ? null : keyOf(entry))}>
                  <Line entry={entry} />
                </button>
              )}
              {at > 0 && chosen === keyOf(entry) && <Difference path={path} entry={entry} current={version} done={() => setChosen(null)} />}
            </li>
          ))}
          {data.versions.length === 1 && <li class="muted small">No earlier version is kept.</li>}
          {more(data.versions.length) && <li>{more(data.versions.length)}</li>}
        </ol>
      )}
    </details>
  );
}

function Line({ entry }: { entry: Version }) {
  const at = Date.parse(entry.at);
  return (
    <>
      <time title={when(at)}>{ago(at)}</time> {entry.action} <span class="muted">by {author(entry.by)} · {count(entry.chars)} characters</span>
    </>
  );
}

function Difference({ path, entry, current, done }: { path: string; entry: Version; current?: string; done: () => void }) {
  const [failed, setFailed] = useState<Error | null>(null);
  const [asked, setAsked] = useState(false);
  const { data, error, retry } = useLoad((stop) => call<{ diff: string }>("diff_node", { id: path, from: entry.version }, stop), [path, entry.version, current]);
  if (error) return <FailedPart what="The versions cannot be compared" error={error} retry={retry} />;
  if (!data) return <Skeleton rows={3} />;
  const rows = unifiedRows(data.diff);
  return (
    <>
      {data.diff.trim() ? <SideBySide rows={rows} left={`Then, ${ago(Date.parse(entry.at))}`} right="Now" /> : <p class="muted">Its text is that of the present version.</p>}
      {failed && (
        <p class="notice stale" role="alert">
          {failed.message}
        </p>
      )}
      {canWrite.value && has("revert_node") && data.diff.trim() && (
        <div class="actions">
          {asked ? (
            <>
              <span role="alert">Replace the present text by this version? The present one stays in the history.</span>
              <button class="button primary" onClick={() => call("revert_node", { id: path, version: entry.version }).then(done, setFailed)}>
                Revert
              </button>
              <button class="button quiet" onClick={() => setAsked(false)}>
                Cancel
              </button>
            </>
          ) : (
            <button class="button" onClick={() => setAsked(true)}>
              Revert to this version
            </button>
          )}
        </div>
      )}
    </>
  );
}
