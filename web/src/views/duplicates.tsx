// Entities that may be one thing: two columns with the differences marked, what a merge would make of them, and the way back.
import { useState } from "preact/hooks";
import { call } from "../api";
import { href } from "../router";
import { canWrite, has, memoryVersion } from "../state";
import type { Entity, Merge, Relation } from "../types";
import { plural } from "../ui/format";
import { Empty, Failed, FailedPart, Skeleton, useLoad } from "../ui/states";

/** What Home counts and this page shows. */
const LIKELY = { limit: 50, threshold: 0.3 };
export const likelyMerges = (stop: AbortSignal) => call<Merge[]>("suggest_merges", LIKELY, stop);
/** There may be more of as many as were asked for. */
export const orMore = (pairs: Merge[]) => (pairs.length === LIKELY.limit ? " or more" : "");

/** Observations of each entity that are compared. */
const COMPARED = 50;

export function Duplicates() {
  const version = memoryVersion.value;
  const { data, error, retry } = useLoad(likelyMerges, [version]);
  // A pair that was merged stays in sight: its undo is there.
  const [merged, setMerged] = useState<Merge[]>([]);
  if (error && !data) return <Failed what="Duplicates cannot be looked for" error={error} retry={retry} />;
  const keyOf = (pair: Merge) => `${pair.entity_a.entity_id}-${pair.entity_b.entity_id}`;
  const kept = new Set(merged.map(keyOf));
  const pairs = [...merged, ...(data ?? []).filter((pair) => !kept.has(keyOf(pair)))];
  return (
    <div class="view memory reading">
      <p class="crumbs">
        <a href={href("memory")}>Memory</a> / duplicates
      </p>
      <h1>Possible duplicates</h1>
      <p class="muted">
        {data && data.length > 0 && `${plural(data.length, "pair")}${orMore(data)}. `}Entities whose names and types are close. Look at both before you join them.
      </p>
      {!data ? (
        <Skeleton kind="cards" rows={4} />
      ) : !pairs.length ? (
        <Empty icon="check" title="No two entities look alike" />
      ) : (
        <ul class="pairs">
          {pairs.map((pair) => (
            <Pair key={keyOf(pair)} pair={pair} keep={() => setMerged((before) => (kept.has(keyOf(pair)) ? before : [pair, ...before]))} />
          ))}
        </ul>
      )}
    </div>
  );
}

function Pair({ pair, keep }: { pair: Merge; keep: () => void }) {
  const [open, setOpen] = useState(false);
  return (
    <li class="pair">
      <button class="pair-head" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span class="name">{pair.entity_a.name}</span>
        <span class="muted">and</span>
        <span class="name">{pair.entity_b.name}</span>
        <span class={`mark ${pair.recommendation === "high_confidence_merge" ? "amber" : "none"}`}>
          {pair.recommendation === "high_confidence_merge" ? "Likely the same" : "Review"}
        </span>
      </button>
      {open && <Compared pair={pair} keep={keep} />}
    </li>
  );
}

interface MergeResult {
  entity_id: number;
  moved: { observations: number; relations: number; aliases: number };
  change: number | null;
}

/** What is about to be merged, and what the server says that would move. */
interface Plan {
  from: Entity;
  into: Entity;
  moved: MergeResult["moved"];
}

const said = ({ moved }: { moved: MergeResult["moved"] }) => `${plural(moved.observations, "observation")} and ${plural(moved.relations, "relation")}`;

function Compared({ pair, keep }: { pair: Merge; keep: () => void }) {
  const [plan, setPlan] = useState<Plan | null>(null);
  const [merged, setMerged] = useState<MergeResult | null>(null);
  const [failed, setFailed] = useState<Error | null>(null);
  const { data, error, retry } = useLoad(
    (stop) =>
      Promise.all([pair.entity_a, pair.entity_b].map((entity) => call<Entity>("get_entity", { entity_id: entity.entity_id, limit: COMPARED }, stop))),
    [pair.entity_a.entity_id, pair.entity_b.entity_id],
  );
  if (error && !data) return <FailedPart what="The two cannot be compared" error={error} retry={retry} />;
  if (!data) return <Skeleton rows={4} />;
  const [a, b] = data as [Entity, Entity];
  const run = (work: Promise<unknown>) => work.then(() => setFailed(null), setFailed);
  const ask = async (from: Entity, into: Entity) => {
    const { moved } = await call<MergeResult>("merge_entities", { entity_id: from.entity_id, into_entity_id: into.entity_id, dry_run: true });
    setPlan({ from, into, moved });
  };
  const merge = async ({ from, into }: Plan) => {
    keep();
    setMerged(await call<MergeResult>("merge_entities", { entity_id: from.entity_id, into_entity_id: into.entity_id }));
    setPlan(null);
  };
  return (
    <div class="compared">
      {[a, b].map((entity, at) => {
        const other = at ? a : b;
        const known = new Set(other.observations.map((observation) => observation.observation_content));
        return (
          <div key={entity.entity_id}>
            <h3>
              <a href={href("memory", entity.entity_id)}>{entity.name}</a>
            </h3>
            <p class={entity.entity_type === other.entity_type ? "muted" : "differs"}>{entity.entity_type}</p>
            {entity.description && <p class={entity.description === other.description ? "" : "differs"}>{entity.description}</p>}
            <ul class="plain">
              {entity.observations.map((observation) => (
                <li key={observation.observation_id} class={known.has(observation.observation_content) ? "muted" : "differs"}>
                  {observation.observation_content}
                </li>
              ))}
            </ul>
            <Rest entity={entity} />
            {canWrite.value && has("merge_entities") && !merged && (
              <button class="button" aria-pressed={plan?.into === entity} onClick={() => run(ask(other, entity))}>
                Keep this one
              </button>
            )}
          </div>
        );
      })}
      {failed && <p class="notice stale" role="alert">{failed.message}</p>}
      {plan && <Preview plan={plan} merge={() => run(merge(plan))} cancel={() => setPlan(null)} />}
      {merged && (
        <p class="notice fresh">
          Merged: {said(merged)} moved.{" "}
          {merged.change !== null && has("undo_change") && (
            <button class="text-button" onClick={() => run(call("undo_change", { change: merged.change }).then(() => setMerged(null)))}>
              Undo
            </button>
          )}
        </p>
      )}
    </div>
  );
}

/** Observations that are not compared. A merge moves them too. */
function Rest({ entity }: { entity: Entity }) {
  const left = (entity.observations_total ?? 0) - entity.observations.length;
  if (left <= 0) return null;
  return (
    <p class="muted small">
      and <a href={href("memory", entity.entity_id)}>{plural(left, "older observation")}</a>
    </p>
  );
}

const names = (text: string | null) => (text ?? "").split(/[,;|]/).map((name) => name.trim()).filter(Boolean);

/** The entity as it would be, with what is new to it marked. */
function Preview({ plan, merge, cancel }: { plan: Plan; merge: () => void; cancel: () => void }) {
  const { from, into } = plan;
  const own = [into.name, ...names(into.aliases)].map((name) => name.toLowerCase());
  const added = [from.name, ...names(from.aliases)].filter((name) => !own.includes(name.toLowerCase()));
  // Both are one then: a relation between them is none.
  const pair = [from.entity_id, into.entity_id];
  const type = (relation: Relation) => relation.relation_type.replace(/_/g, " ");
  const ends = (entity: Entity): string[] => [
    ...entity.relations_from.filter((it) => !pair.includes(it.to_entity_id)).map((it) => `${into.name} ${type(it)} ${it.to_entity_name ?? `Entity ${it.to_entity_id}`}`),
    ...entity.relations_to.filter((it) => !pair.includes(it.from_entity_id)).map((it) => `${it.from_entity_name ?? `Entity ${it.from_entity_id}`} ${type(it)} ${into.name}`),
  ];
  const before = ends(into);
  const known = new Set(before);
  const kept = new Set(into.observations.map((observation) => observation.observation_content));
  const isNew = (observation: { observation_content: string }) => !kept.has(observation.observation_content);
  const gained = ends(from).filter((line) => !known.has(line) && known.add(line));
  return (
    <section class="preview" aria-label="After the merge">
      <h3>After the merge: {into.name}</h3>
      <p class="muted">
        {said(plan)} move from {from.name}, which is then deleted. You can undo this.
      </p>
      <dl class="properties">
        <dt>type</dt>
        <dd>{into.entity_type}</dd>
        {(names(into.aliases).length > 0 || added.length > 0) && (
          <>
            <dt>also called</dt>
            <dd>
              {names(into.aliases).join(", ")}
              {names(into.aliases).length > 0 && added.length > 0 && ", "}
              {added.length > 0 && <ins>{added.join(", ")}</ins>}
            </dd>
          </>
        )}
        {(into.description || from.description) && (
          <>
            <dt>description</dt>
            <dd>{into.description ? into.description : <ins>{from.description}</ins>}</dd>
          </>
        )}
      </dl>
      <ul class="plain">
        {into.observations.map((observation) => (
          <li key={observation.observation_id}>{observation.observation_content}</li>
        ))}
        {from.observations.filter(isNew).map((observation) => (
          <li key={observation.observation_id}>
            <ins>{observation.observation_content}</ins>
          </li>
        ))}
        {into.description && from.description && from.description !== into.description && (
          <li>
            <ins>{from.description}</ins>
          </li>
        )}
        {before.map((line) => (
          <li key={line} class="muted">
            {line}
          </li>
        ))}
        {gained.map((line) => (
          <li key={line}>
            <ins>{line}</ins>
          </li>
        ))}
      </ul>
      <div class="actions">
        <button class="button primary" onClick={merge}>
          Merge
        </button>
        <button class="button quiet" onClick={cancel}>
          Cancel
        </button>
      </div>
    </section>
  );
}
