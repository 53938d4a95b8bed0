// What agents remember: entities by type, and one entity in time.
import { useMemo, useState } from "preact/hooks";
import { call } from "../api";
import { wikiText } from "../plain_text";
import { go, href, route, setParam } from "../router";
import { graph, has, memoryVersion } from "../state";
import type { Entity } from "../types";
import { ago, count, plural, when } from "../ui/format";
import { Icon } from "../ui/icons";
import { Empty, Failed, Skeleton, useLoad } from "../ui/states";
import { Duplicates } from "./duplicates";
import { EntityHistory } from "./entity_history";
import { Relations } from "./entity_relations";

interface Named {
  entity_id: number;
  name: string;
  entity_type: string;
}

const PER_PAGE = 100;
/** Requests at a time. */
const TOGETHER = 6;

interface EntitiesPage {
  entities: Named[];
  pagination: { total_pages: number };
}

async function everyEntity(stop: AbortSignal): Promise<Named[]> {
  const read = (page: number) => call<EntitiesPage>("list_entities", { page, per_page: PER_PAGE }, stop);
  const { entities, pagination } = await read(1);
  const pages = [entities];
  let next = 2;
  const reader = async () => {
    while (next <= pagination.total_pages) {
      const page = next++;
      pages[page - 1] = (await read(page)).entities;
    }
  };
  await Promise.all(Array.from({ length: TOGETHER }, reader));
  return pages.flat();
}

export function Memory({ arg }: { arg: string }) {
  if (arg === "duplicates") return <Duplicates />;
  if (/^\d+$/.test(arg)) return <EntityPage id={Number(arg)} />;
  return <EntityList />;
}

const LISTED = 400;

function EntityList() {
  const version = memoryVersion.value;
  const { data, error, retry } = useLoad(everyEntity, [version]);
  const { params } = route.value;
  const [type, filter] = [params.get("type"), params.get("name") ?? ""];
  const [shownCount, setShown] = useState(LISTED);
  const details = graph.value?.entities;
  const counts = useMemo(() => {
    const seen = new Map<number, [number, number]>();
    details?.id.forEach((id, at) => seen.set(id, [details.observations[at]!, details.modified[at]!]));
    return seen;
  }, [details]);
  const types = useMemo(() => {
    const numbers = new Map<string, number>();
    for (const entity of data ?? []) numbers.set(entity.entity_type, (numbers.get(entity.entity_type) ?? 0) + 1);
    return [...numbers].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]));
  }, [data]);
  if (error && !data) return <Failed what="Memory cannot be read" error={error} retry={retry} />;
  if (data && !data.length) {
    return (
      <Empty icon="memory" title="Agents have remembered nothing yet">
        <p>When an agent calls create_entity, create_observation or bulk_update, what it learned appears here, with who wrote it and when.</p>
      </Empty>
    );
  }
  const words = filter.trim().toLowerCase();
  const shown = (data ?? []).filter((entity) => (!type || entity.entity_type === type) && (!words || entity.name.toLowerCase().includes(words)));
  return (
    <div class="view memory">
      <header class="view-head">
        <h1>Memory</h1>
        <p class="muted">{data ? `${plural(data.length, "entity", "entities")} of ${plural(types.length, "type")}` : " "}</p>
        {has("suggest_merges") && (
          <a class="button quiet" href={href("memory", "duplicates")}>
            <Icon name="merge" size={16} /> Possible duplicates
          </a>
        )}
      </header>
      <div class="search-body">
        <nav class="facets" aria-label="Types">
          <section>
            <h2>Type</h2>
            {types.map(([name, number]) => (
              <button key={name} class="facet" aria-pressed={type === name} onClick={() => setParam("type", type === name ? null : name)}>
                <span>{name}</span>
                <span class="count">{count(number)}</span>
              </button>
            ))}
          </section>
        </nav>
        <div class="results">
          <input class="field" type="search" placeholder="Filter by name" aria-label="Filter by name" value={filter} onInput={(event) => setParam("name", event.currentTarget.value)} />
          {!data ? (
            <Skeleton rows={10} />
          ) : (
            <ul class="rows entities">
              {shown.slice(0, shownCount).map((entity) => {
                const [observations = 0, modified = 0] = counts.get(entity.entity_id) ?? [];
                return (
                  <li key={entity.entity_id}>
                    <a href={href("memory", entity.entity_id)}>
                      <span class="name">{entity.name}</span>
                      <span class="where">{entity.entity_type}</span>
                      <span class="where">{counts.size ? plural(observations, "observation") : ""}</span>
                      <span class="when">{modified ? ago(modified * 1000) : ""}</span>
                    </a>
                  </li>
                );
              })}
            </ul>
          )}
          {shown.length > shownCount && (
            <button class="button quiet" onClick={() => setShown(shownCount + LISTED)}>
              Show {count(Math.min(LISTED, shown.length - shownCount))} of {count(shown.length - shownCount)} more
            </button>
          )}
        </div>
      </div>
    </div>
  );
}

function EntityPage({ id }: { id: number }) {
  const version = memoryVersion.value;
  const { data, error, retry } = useLoad((stop) => call<Entity>("get_entity", { entity_id: id, limit: 1000 }, stop), [id, version], [id]);
  if (error && !data) return <Failed what="The entity cannot be shown" error={error} retry={retry} />;
  if (!data) {
    return (
      <div class="view memory reading">
        <Skeleton kind="text" rows={9} />
      </div>
    );
  }
  const observations = [...data.observations].sort((a, b) => b.created_at.localeCompare(a.created_at));
  return (
    <div class="view memory reading">
      <p class="crumbs">
        <a href={href("memory")}>Memory</a> / {data.entity_type}
      </p>
      <h1>{data.name}</h1>
      <p class="meta">
        <span title={when(Date.parse(data.updated_at))}>changed {ago(Date.parse(data.updated_at))}</span>
        <span>created {ago(Date.parse(data.created_at))}</span>
        {data.aliases && <span>also called {data.aliases}</span>}
        <span class="tools">
          <button class="text-button" onClick={() => go("graph", `entity/${id}`)}>
            <Icon name="graph" size={15} /> Graph
          </button>
        </span>
      </p>
      {data.description && <p class="lead">{linked(data.description, data)}</p>}
      {(data.relations_from.length > 0 || data.relations_to.length > 0) && (
        <section class="after">
          <h2>Relations</h2>
          <Relations entity={data} />
        </section>
      )}
      <section class="after">
        <h2>
          Observations <span class="count">{data.observations_total ?? data.memory_observations_count}</span>
        </h2>
        {observations.length ? (
          <ol class="timeline">
            {observations.map((observation) => {
              const isOver = observation.superseded_by !== undefined || observation.valid_until !== undefined;
              return (
                <li key={observation.observation_id} class={isOver ? "over" : ""}>
                  <time dateTime={observation.created_at} title={when(Date.parse(observation.created_at))}>
                    {ago(Date.parse(observation.created_at))}
                  </time>
                  <p>{isOver ? <s>{linked(observation.observation_content, data)}</s> : linked(observation.observation_content, data)}</p>
                </li>
              );
            })}
          </ol>
        ) : (
          <p class="muted">No observations.</p>
        )}
      </section>
      {has("recent_changes") && <EntityHistory id={data.entity_id} />}
    </div>
  );
}

/** `[[links]]` in memory lead to the notes that the server found for them; those without a note lead to a search. */
function linked(text: string, entity: Entity) {
  return text.split(/\[\[((?:[^[\]]|\[(?!\[)){1,1000})\]\]/).map((part, at) => {
    if (at % 2 === 0) return part;
    const [target = "", label = ""] = part.split("|");
    const note = entity.notes?.find(({ link, title }) => [part, target, target.split("#")[0]].includes(link) || title.toLowerCase() === target.toLowerCase());
    return (
      <a key={at} class={note ? undefined : "broken"} href={note ? href("note", note.id) : href("search", target)} title={note ? undefined : `No note: ${target}`}>
        {wikiText(target, label)}
      </a>
    );
  });
}
