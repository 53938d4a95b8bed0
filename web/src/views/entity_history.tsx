// What happened to an entity: each change with its author, newest first, and the way back.
import { useState } from "preact/hooks";
import { call } from "../api";
import { canWrite, has, memoryVersion } from "../state";
import { ago, author, when } from "../ui/format";
import { useLimit } from "../ui/first";
import { FailedPart, Skeleton, useLoad } from "../ui/states";

interface Change {
  at: string;
  action: string;
  by: string;
  summary: string;
  change: string;
  kind: string;
  title: string;
}

export function EntityHistory({ id }: { id: number }) {
  const [open, setOpen] = useState(false);
  const [failed, setFailed] = useState<Error | null>(null);
  const [limit, more] = useLimit(50);
  const { data, error, retry } = useLoad(
    (stop) => (open ? call<{ changes: Change[] }>("recent_changes", { entity_id: id, limit }, stop) : Promise.resolve(null)),
    [open, id, memoryVersion.value, limit],
    [id],
  );
  const mayUndo = canWrite.value && has("undo_change");
  return (
    <details class="after history" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <h2>History</h2>
      </summary>
      {failed && (
        <p class="notice stale" role="alert">
          {failed.message}
        </p>
      )}
      {!open ? null : error ? (
        <FailedPart what="The history cannot be read" error={error} retry={retry} />
      ) : !data ? (
        <Skeleton rows={3} />
      ) : (
        <ol class="timeline">
          {data.changes.map((entry) => (
            <li key={entry.change}>
              <time title={when(Date.parse(entry.at))}>{ago(Date.parse(entry.at))}</time> {entry.action.replace(/_/g, " ")}{" "}
              <span class="muted">by {author(entry.by)}</span>
              <p>{entry.kind === "relation" ? entry.summary.replace(/(: )\S+ \S+ \S+/, (_, colon) => colon + entry.title) : entry.summary}</p>
              {mayUndo && !/; undone by \d+$/.test(entry.summary) && (
                <button class="text-button" onClick={() => call("undo_change", { change: entry.change }).then(() => setFailed(null), setFailed)}>
                  Undo
                </button>
              )}
            </li>
          ))}
          {more(data.changes.length) && <li>{more(data.changes.length)}</li>}
        </ol>
      )}
    </details>
  );
}
