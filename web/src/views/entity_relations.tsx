// The relations of an entity: a small graph of those around it, and all of them in words.
import { useEffect, useRef, useState } from "preact/hooks";
import { smallGraph } from "../graph/small_graph";
import { go, href } from "../router";
import { graph } from "../state";
import type { Entity } from "../types";
import { count } from "../ui/format";

const DRAWN = 24;
const LISTED = 14;

interface Side {
  id: number;
  name: string;
  type: string;
  out: boolean;
  key: string;
}

const words = (type: string) => type.replace(/_/g, " ");

function sidesOf(entity: Entity): Side[] {
  const name = (id: number, name?: string) => name ?? `Entity ${id}`;
  return [
    ...entity.relations_from.map((it) => ({ id: it.to_entity_id, name: name(it.to_entity_id, it.to_entity_name), type: words(it.relation_type), out: true, key: `${it.relation_id} out` })),
    ...entity.relations_to.map((it) => ({ id: it.from_entity_id, name: name(it.from_entity_id, it.from_entity_name), type: words(it.relation_type), out: false, key: `${it.relation_id} into` })),
  ];
}

export function Relations({ entity }: { entity: Entity }) {
  const [shown, setShown] = useState(LISTED);
  const sides = sidesOf(entity);
  const rest = sides.length - shown;
  return (
    <>
      <Around entity={entity} sides={sides} />
      <ul class="plain relations">
        {sides.slice(0, shown).map(({ id, name, type, out, key }) => {
          const other = <a href={href("memory", id)}>{name}</a>;
          return (
            <li key={key}>
              {out ? (
                <>
                  <span class="muted">{type}</span> {other}
                </>
              ) : (
                <>
                  {other} <span class="muted">{type} it</span>
                </>
              )}
            </li>
          );
        })}
      </ul>
      {rest > 0 && (
        <button class="button quiet" onClick={() => setShown(shown + 100)}>
          Show {count(Math.min(100, rest))} more
        </button>
      )}
    </>
  );
}

/** The entity with its first neighbours, and what is known of the relations among these. */
function Around({ entity, sides }: { entity: Entity; sides: Side[] }) {
  const place = useRef<HTMLDivElement>(null);
  const data = graph.value;
  useEffect(() => {
    const box = place.current!;
    const names = new Map([[entity.entity_id, entity.name], ...sides.map(({ id, name }) => [id, name] as [number, string])].slice(0, DRAWN + 1) as [number, string][]);
    const nodes = [...names].map(([id, title]) => ({ key: String(id), title, memory: true }));
    const own = String(entity.entity_id);
    const links = sides.map(({ id, type, out }) => (out ? { source: own, target: String(id), label: type } : { source: String(id), target: own, label: type }));
    if (data) {
      const notes = data.notes.id.length;
      for (let at = 0; at < data.edges.length; at += 3) {
        const [source, target] = [data.entities.id[data.edges[at]! - notes], data.entities.id[data.edges[at + 1]! - notes]];
        if (source === undefined || target === undefined || !names.has(source) || !names.has(target)) continue;
        // Those of the entity itself are known.
        if (source !== entity.entity_id && target !== entity.entity_id) links.push({ source: String(source), target: String(target), label: words(data.link_types[data.edges[at + 2]!]!) });
      }
    }
    let drawn = 0;
    const draw = () => {
      // A few nodes do not need all of the room.
      const width = Math.max(280, Math.min(box.clientWidth, 200 + 80 * nodes.length));
      if (width === drawn) return;
      drawn = width;
      const height = Math.min(360, 140 + 14 * nodes.length);
      const picture = smallGraph({ nodes, links, centre: own, width, height, isDirected: true, open: (id) => go("memory", id) });
      picture.setAttribute("width", String(width));
      box.replaceChildren(picture);
    };
    const watching = new ResizeObserver(draw);
    watching.observe(box);
    return () => watching.disconnect();
  }, [entity, data]);
  return <div class="small-graph" ref={place} />;
}
