// One line of what a change did to a note: the first that was added, else the first that was removed.
import { useRef } from "preact/hooks";
import { call } from "../api";
import { has } from "../state";
import type { Kept } from "../views/changes";
import type { NoteNode } from "../types";
import { useSeen } from "./sentences";
import { useLoad } from "./states";

interface Versions {
  versions: { version: string; change?: string; kept?: boolean }[];
}

const VERSIONS = 50;
const SHOWN = 200;

/** Read when it comes into sight. Empty where the texts are no longer kept, or no text changed. */
export function ChangedLine({ change }: { change: Kept }) {
  const place = useRef<HTMLSpanElement>(null);
  const seen = useSeen(place);
  const { data, error } = useLoad((stop) => (seen && has("diff_node") ? firstLine(change, stop) : Promise.resolve(null)), [seen, change.change]);
  const kind = data?.startsWith("-") ? "removed" : "added";
  return (
    <span ref={place} class="changed-line mono">
      {data && (
        <>
          <span class={kind}>{kind === "added" ? "+" : "−"}</span> {data.slice(1).trim().slice(0, SHOWN)}
        </>
      )}
      {error && <span class="muted">{error.message}</span>}
    </span>
  );
}

async function firstLine({ id, change }: Kept, stop: AbortSignal): Promise<string | null> {
  const { versions } = await call<Versions>("node_history", { id, limit: VERSIONS }, stop);
  const at = versions.findIndex((version) => version.change === change);
  const [own, before] = [versions[at], versions[at + 1]];
  if (!own || own.kept === false || before?.kept === false) return null;
  if (!before) {
    // Its first version: of the present one the text is known.
    if (at !== 0 || versions.length > 1) return null;
    const node = await call<NoteNode | null>("get_node", { id, max_chars: 500 }, stop);
    const line = node?.content?.split("\n").find((line) => line.trim());
    return line ? `+${line}` : null;
  }
  const { diff } = await call<{ diff: string }>("diff_node", { id, from: before.version, to: own.version }, stop);
  const lines = diff.split("\n").filter((line) => /^[+-](?![+-]{2} )/.test(line) && line.slice(1).trim());
  return lines.find((line) => line.startsWith("+")) ?? lines[0] ?? null;
}
