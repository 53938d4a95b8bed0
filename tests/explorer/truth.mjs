// The picture is true: every node and edge in it is one that the tools answer, and the other way round. So it is for what the page gets,
// what it draws, and the file that `quipu picture` writes.
import { check, quipu, until, visit } from "./session.mjs";

const same = (a, b) => a.size === b.size && [...a].every((item) => b.has(item));
const differing = (a, b) => [[...a].filter((item) => !b.has(item)).slice(0, 3), [...b].filter((item) => !a.has(item)).slice(0, 3)];

/** A few entities with relations between them and links to notes, written as an agent does. */
export async function seedMemory(ask) {
  const call = async (tool, args) => (await ask(`/api/call/${tool}`, args)).answer;
  const { notes } = await ask("/api/graph");
  // Notes from everywhere in the vault. A link has no bracket in it.
  const linkable = notes.id.filter((id) => !/[[\]|#^]/.test(id));
  const targets = Array.from({ length: 12 }, (_, n) => linkable[Math.floor((n * linkable.length) / 12)]);
  const ids = [];
  for (let n = 0; n < 6; n++) {
    const observations = [`Links to [[${targets[2 * n]}]] and [[${targets[2 * n + 1]}]].`, "Links to nothing."];
    ids.push((await call("create_entity", { name: `Seeded ${n}`, entity_type: n % 2 ? "Person" : "Place", observations, force: true })).entity_id);
  }
  for (let n = 0; n < 6; n++) {
    await call("create_relation", { from_entity_id: ids[n], to_entity_id: ids[(n + 1) % 6], relation_type: n % 2 ? "knows" : "led_by" });
  }
}

async function everyEntity(call) {
  const all = [];
  for (let page = 1; ; page++) {
    const { entities, pagination } = await call("list_entities", { page, per_page: 100 });
    all.push(...entities);
    if (page >= pagination.total_pages) return all;
  }
}

/** Edges of a picture by what they join, as the tools name the ends. */
function sorted(edges, isEntity) {
  const kinds = { links: new Set(), relations: new Set(), mentions: new Set() };
  for (const [source, target, type] of edges) {
    const kind = !isEntity(source) ? "links" : !isEntity(target) ? "mentions" : "relations";
    kinds[kind].add(`${source}\n${target}\n${type}`);
  }
  return kinds;
}
const isEntity = (key) => key.startsWith("entity ");

/** What the graphics card was given, once the page has drawn what was written last. */
async function drawnIn(tab, nodes) {
  await visit(tab, "#/graph");
  await until(() => tab.evaluate((nodes) => window.quipuScene.graph.order === nodes, nodes));
  const drawn = await tab.evaluate(() => {
    const { graph, model } = window.quipuScene;
    const { data, notes } = model;
    const key = (node) => (Number(node) < notes ? data.notes.id[node] : `entity ${data.entities.id[node - notes]}`);
    return {
      nodes: graph.mapNodes((node, { x, y, hidden }) => [key(node), x === data.x[node] && y === data.y[node] && !hidden]),
      edges: graph.mapEdges((edge, { hidden }, source, target) => [key(source), key(target), data.link_types[data.edges[3 * edge + 2]], !hidden]),
    };
  });
  check("nothing is hidden in a picture without filters, and every node is at its place", drawn.nodes.every(([, is]) => is) && drawn.edges.every(([, , , is]) => is));
  return drawn;
}

/** What `quipu picture` writes. */
function exported(place) {
  const { nodes, edges } = JSON.parse(quipu(place, "picture", "--format", "json"));
  const key = (id) => id.replace(/^entity:/, "entity ");
  return { nodes: nodes.map(({ id }) => [key(id)]), edges: edges.map(({ source, target, type }) => [key(source), key(target), type]) };
}

export async function isTrue(name, ask, tab, place) {
  const call = async (tool, args) => (await ask(`/api/call/${tool}`, args)).answer;
  const graph = await ask("/api/graph");
  const notes = graph.notes.id.length;
  const key = (node) => (node < notes ? graph.notes.id[node] : `entity ${graph.entities.id[node - notes]}`);
  const edges = Array.from({ length: graph.edges.length / 3 }, (_, n) => graph.edges.slice(3 * n, 3 * n + 3)).map(([source, target, type]) => [key(source), key(target), graph.link_types[type]]);
  const drawn = sorted(edges, isEntity);
  const answer = await call("ubp_get_graph", { max_nodes: 100_000 });
  const paths = new Map(answer.nodes.map((node) => [node.id, node.filepath]));
  const links = new Set(answer.edges.map((edge) => `${paths.get(edge.source)}\n${paths.get(edge.target)}\n${edge.type}`));
  check(`${name}: the notes are those of the tools`, same(new Set(graph.notes.id), new Set(paths.values())), notes);
  check(`${name}: the links are those of the tools`, same(drawn.links, links), differing(drawn.links, links));

  const entities = await everyEntity(call);
  const told = new Set(entities.map((entity) => `${entity.entity_id} ${entity.name} ${entity.entity_type}`));
  const shown = new Set(graph.entities.id.map((id, at) => `${id} ${graph.entities.name[at]} ${graph.entities.type[at]}`));
  check(`${name}: the entities are those of the tools`, same(shown, told), differing(shown, told));
  const relations = new Set();
  const mentions = new Set();
  const byId = new Map(graph.notes.id.map((id) => [id.toLowerCase(), id]));
  for (const { entity_id } of entities) {
    const entity = await call("get_entity", { entity_id, limit: 1000 });
    for (const relation of entity.relations_from) relations.add(`entity ${entity_id}\nentity ${relation.to_entity_id}\n${relation.relation_type}`);
    for (const note of entity.notes ?? []) mentions.add(`entity ${entity_id}\n${byId.get(note.id.toLowerCase())}\nmentions`);
  }
  check(`${name}: the relations are those of the tools`, same(drawn.relations, relations), differing(drawn.relations, relations));
  check(`${name}: the notes that memory mentions are those of the tools`, same(drawn.mentions, mentions), differing(drawn.mentions, mentions));
  const back = new Set();
  for (const note of new Set([...drawn.mentions].map((mention) => mention.split("\n")[1]))) {
    const node = await call("get_node", { id: note, max_chars: 10, include_entities: true });
    for (const { entity_id } of node.entities ?? []) back.add(`entity ${entity_id}\n${note}\nmentions`);
  }
  check(`${name}: and each of these notes names the entities`, same(drawn.mentions, back), differing(drawn.mentions, back));
  check(`${name}: every node has a position`, graph.x.length === notes + graph.entities.id.length && graph.x.concat(graph.y).every(Number.isFinite));
  const expected = { nodes: new Set([...paths.values(), ...entities.map(({ entity_id }) => `entity ${entity_id}`)]), links, relations, mentions };
  for (const [what, picture] of [["the drawing", await drawnIn(tab, expected.nodes.size)], ["the exported picture", exported(place)]]) {
    const nodes = new Set(picture.nodes.map(([key]) => key));
    check(`${name}: the nodes of ${what} are those of the tools`, picture.nodes.length === nodes.size && same(nodes, expected.nodes), differing(nodes, expected.nodes));
    const kinds = sorted(picture.edges, isEntity);
    for (const kind of ["links", "relations", "mentions"]) {
      check(`${name}: the ${kind} of ${what} are those of the tools`, same(kinds[kind], expected[kind]), differing(kinds[kind], expected[kind]));
    }
    check(`${name}: ${what} has no edge twice`, picture.edges.length === links.size + relations.size + mentions.size, picture.edges.length);
  }
  return { entities: entities.length, relations: relations.size, mentions: mentions.size };
}
