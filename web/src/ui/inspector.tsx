// The panel at the right: what is selected, in short, and where it leads.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { call } from "../api";
import { excerpt } from "../markdown";
import { readPage } from "../page";
import { entityKey } from "../graph/model";
import { go, href, route } from "../router";
import { memoryVersion, notesVersion } from "../state";
import type { Entity, LinkedPage, NoteNode } from "../types";
import { ago, count, folderOf, plural } from "./format";
import { Icon } from "./icons";
import { pathFrom } from "./path_picker";
import { SentenceFrom, SentenceText, sentenceIn } from "./sentences";
import { Failed, FreshnessMark, Skeleton, useLoad } from "./states";

export type Selection = { kind: "note"; id: string } | { kind: "entity"; id: number } | null;
export const selection = signal<Selection>(null);

export function Inspector() {
  const selected = selection.value;
  if (!selected) return null;
  return (
    <aside class="inspector" aria-label="Selection">
      <button class="icon-button close" aria-label="Close" onClick={() => (selection.value = null)}>
        <Icon name="close" />
      </button>
      {selected.kind === "note" ? <NoteCard key={selected.id} id={selected.id} /> : <EntityCard key={selected.id} id={selected.id} />}
    </aside>
  );
}

function NoteCard({ id }: { id: string }) {
  const version = notesVersion.value;
  const { data, error, retry } = useLoad(
    async (stop) => {
      const [page, node] = await Promise.all([
        readPage(id, stop),
        call<NoteNode | null>("get_node", { id, max_chars: 600, include_entities: true }, stop),
      ]);
      return { page, node };
    },
    [id, version],
    [id],
  );
  if (error) return <Failed what="The note cannot be shown" error={error} retry={retry} />;
  if (!data) return <Skeleton kind="text" rows={7} />;
  const { page, node } = data;
  return (
    <>
      <p class="over">
        {folderOf(page.filepath) || "Top folder"}
        {page.doc_type !== "other" && <> · {page.doc_type}</>}
      </p>
      <h2>{page.title}</h2>
      <p class="meta">
        <FreshnessMark value={page.staleness} quiet />
        <span title={page.updated_at}>changed {ago(Date.parse(page.updated_at))}</span>
      </p>
      <p class="lead">{excerpt(page.content) || <i>No text</i>}</p>
      <div class="actions">
        <a class="button" href={href("note", page.filepath)}>
          Open
        </a>
        <GraphActions address={`note/${page.filepath}`} from={page.filepath} />
      </div>
      {!!node?.tags.length && (
        <p class="tags">
          {node.tags.map((tag) => (
            <a key={tag} class="tag" href={href("search", `tag:${tag}`)}>
              #{tag}
            </a>
          ))}
        </p>
      )}
      <Links title="Links to it" pages={page.backlinks} sentence={(from) => <SentenceFrom from={from} to={page.filepath} />} />
      <Links
        title="It links to"
        pages={page.outlinks}
        sentence={(to) => {
          const sentence = sentenceIn(page, to);
          return sentence && <p class="sentence"><SentenceText sentence={sentence} /></p>;
        }}
      />
      {!!node?.entities?.length && (
        <section>
          <h3>In memory</h3>
          <LinkedEntities entities={node.entities} />
        </section>
      )}
    </>
  );
}

/** Where it is among the others, and how it hangs together with one of them. */
function GraphActions({ address, from }: { address: string; from: string }) {
  const isShown = route.value.view === "graph" && route.value.arg === address;
  return (
    <>
      {!isShown && (
        <button class="button quiet" onClick={() => go("graph", address)}>
          Show in graph
        </button>
      )}
      <button class="button quiet" onClick={() => (pathFrom.value = from)}>
        Path to…
      </button>
    </>
  );
}

/** The entities whose texts link to a note. */
export function LinkedEntities({ entities }: { entities: NonNullable<NoteNode["entities"]> }) {
  return (
    <ul class="plain">
      {entities.map((entity) => (
        <li key={entity.entity_id}>
          <a href={href("memory", entity.entity_id)}>{entity.name}</a> <span class="muted">{entity.entity_type}</span>
        </li>
      ))}
    </ul>
  );
}

const SHOWN = 12;

/** Pages that it links to or that link to it, each with the sentence that has the link. */
function Links({ title, pages, sentence }: { title: string; pages: LinkedPage[]; sentence: (path: string) => ComponentChildren }) {
  if (!pages.length) return null;
  const shown = merged(pages);
  return (
    <section>
      <h3>
        {title} <span class="count">{count(shown.length)}</span>
      </h3>
      <ul class="plain">
        {shown.slice(0, SHOWN).map((page) => (
          <li key={page.filepath}>
            <a
              href={href("note", page.filepath)}
              onClick={(event) => {
                event.preventDefault();
                // In the graph the address says what is selected: Back leads to the one before.
                if (route.value.view === "graph") go("graph", `note/${page.filepath}`, { params: route.value.params });
                else selection.value = { kind: "note", id: page.filepath };
              }}
            >
              {page.title}
            </a>
            {page.link_type !== "references" && <span class="kind">{page.link_type.replace(/_/g, " ")}</span>}
            {sentence(page.filepath)}
          </li>
        ))}
      </ul>
      {shown.length > SHOWN && <p class="muted small">and {count(shown.length - SHOWN)} more</p>}
    </section>
  );
}

/** A page that is linked in several ways stands once, with the way that says more. */
function merged(pages: LinkedPage[]): LinkedPage[] {
  const byPath = new Map<string, LinkedPage>();
  for (const page of pages) {
    const known = byPath.get(page.filepath);
    if (!known || known.link_type === "references") byPath.set(page.filepath, page);
  }
  return [...byPath.values()];
}

function EntityCard({ id }: { id: number }) {
  const version = memoryVersion.value;
  const { data, error, retry } = useLoad((stop) => call<Entity>("get_entity", { entity_id: id, limit: 20 }, stop), [id, version], [id]);
  if (error) return <Failed what="The entity cannot be shown" error={error} retry={retry} />;
  if (!data) return <Skeleton kind="text" rows={7} />;
  return (
    <>
      <p class="over">Memory · {data.entity_type}</p>
      <h2>{data.name}</h2>
      <p class="meta">
        <span>changed {ago(Date.parse(data.updated_at))}</span>
        <span>{plural(data.memory_observations_count, "observation")}</span>
      </p>
      {data.description && <p class="lead">{data.description}</p>}
      <div class="actions">
        <a class="button" href={href("memory", id)}>
          Open
        </a>
        <GraphActions address={`entity/${id}`} from={entityKey(id)} />
      </div>
      <Relations entity={data} />
      <ul class="plain observations">
        {data.observations.filter((observation) => observation.superseded_by === undefined).slice(0, 5).map((observation) => (
          <li key={observation.observation_id}>{observation.observation_content}</li>
        ))}
      </ul>
    </>
  );
}

const RELATIONS = 8;

/** How an entity hangs together with others, in short sentences. */
function Relations({ entity }: { entity: Entity }) {
  const all = [
    ...entity.relations_from.map((relation) => ({ ...relation, id: relation.to_entity_id, name: relation.to_entity_name, out: true })),
    ...entity.relations_to.map((relation) => ({ ...relation, id: relation.from_entity_id, name: relation.from_entity_name, out: false })),
  ];
  if (!all.length) return null;
  return (
    <section>
      <h3>
        Relations <span class="count">{count(all.length)}</span>
      </h3>
      <ul class="plain">
        {all.slice(0, RELATIONS).map(({ relation_id, relation_type, id, name, out }) => {
          const other = <a href={href("memory", id)}>{name ?? `Entity ${id}`}</a>;
          const type = <span class="muted">{relation_type.replace(/_/g, " ")}</span>;
          return <li key={`${relation_id} ${out}`}>{out ? <>{type} {other}</> : <>{other} {type} it</>}</li>;
        })}
      </ul>
      {all.length > RELATIONS && <p class="muted small">and {count(all.length - RELATIONS)} more</p>}
    </section>
  );
}
