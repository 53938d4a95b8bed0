//! The whole graph at once, for a picture: notes with their links, entities with their relations, and the links from memory to notes.
//!
//! In columns, since fifty thousand rows of named fields would be mostly names.

use quipu_core::index::{HubMetric, Snapshot};
use quipu_core::memory::{Entity, EntityId, Memory, Relation, RelationId};
use quipu_core::model::{DocType, LinkType, Note, NoteId, NoteKey, Value};
use quipu_core::staleness::{Staleness, source_refs};
use quipu_core::{ChangeKind, Knowledge, RecentChange, RecentFilter};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::registry::Registry;
use crate::tool_error::ToolError;

/// Rows of memory read at a time.
const BATCH: usize = 4096;

/// Writes in the history of notes that are read for their authors.
const WRITES: usize = 5_000;

/// The type of an edge from an entity to a note that its texts link to.
const MENTIONS: &str = "mentions";

/// Notes first, then entities; an edge names them by their place in that order.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WholeGraph {
    /// Names that the columns refer to by number.
    pub folders: Vec<String>,
    /// Types of notes.
    pub types: Vec<String>,
    /// Tags of notes.
    pub tags: Vec<String>,
    /// Types of links.
    pub link_types: Vec<String>,
    /// In order of id.
    pub notes: NoteColumns,
    /// In order of id.
    pub entities: EntityColumns,
    /// The notes that name their sources; every other note is untracked.
    #[serde(default)]
    pub freshness: FreshnessColumns,
    /// The names that `written` refers to: as the frontmatter has them, else those of clients; `outside` for other programs.
    #[serde(default)]
    pub authors: Vec<String>,
    /// The place of a note and that of one of its authors, one behind the other. A note of which nothing is known is not there.
    #[serde(default)]
    pub written: Vec<u32>,
    /// Source, target and type of each edge, one behind the other.
    pub edges: Vec<u32>,
}

/// The notes, one list for each field.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NoteColumns {
    /// The path, by which every tool finds the note.
    pub id: Vec<String>,
    pub title: Vec<String>,
    /// Its folder's place in `folders`.
    pub folder: Vec<u32>,
    /// Its type's place in `types`.
    #[serde(rename = "type")]
    pub doc_type: Vec<u32>,
    /// Its tags' places in `tags`.
    pub tags: Vec<Vec<u32>>,
    /// When the file last changed, in seconds since 1970.
    pub modified: Vec<i64>,
    /// PageRank in millionths.
    pub rank: Vec<u32>,
}

/// The notes of each staleness, by their place.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FreshnessColumns {
    /// No source changed since.
    pub fresh: Vec<u32>,
    /// A source changed recently.
    pub possibly_stale: Vec<u32>,
    /// A source changed long ago, or was deleted.
    pub stale: Vec<u32>,
}

/// The entities, one list for each field.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EntityColumns {
    /// The number of the entity.
    pub id: Vec<i64>,
    pub name: Vec<String>,
    #[serde(rename = "type")]
    pub entity_type: Vec<String>,
    /// How many there are.
    pub observations: Vec<u32>,
    /// When it last changed, in seconds since 1970.
    pub modified: Vec<i64>,
}

impl WholeGraph {
    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.notes.id.len() + self.entities.id.len()
    }

    /// The part within some links of a node, in either direction.
    #[must_use]
    pub fn around(&self, middle: usize, depth: usize) -> Self {
        let mut near = vec![false; self.len()];
        near[middle] = true;
        for _ in 0..depth {
            let before = near.clone();
            for edge in self.edges.chunks_exact(3) {
                let (source, target) = (edge[0] as usize, edge[1] as usize);
                near[source] |= before[target];
                near[target] |= before[source];
            }
        }
        self.only(&near)
    }

    /// The nodes that are wanted, with the edges between them.
    fn only(&self, wanted: &[bool]) -> Self {
        let notes = self.notes.id.len();
        let kept = |from: usize| move |place: usize| wanted[from + place];
        let (notes_kept, entities_kept) = (kept(0), kept(notes));
        let mut places = Vec::with_capacity(wanted.len());
        let mut next = 0;
        for is_wanted in wanted {
            places.push(next);
            next += u32::from(*is_wanted);
        }
        let moved = |notes: &[u32]| {
            let wanted = notes.iter().map(|note| *note as usize).filter(|note| wanted[*note]);
            wanted.map(|note| places[note]).collect()
        };
        let edges = self.edges.chunks_exact(3).filter(|edge| wanted[edge[0] as usize] && wanted[edge[1] as usize]);
        Self {
            folders: self.folders.clone(),
            types: self.types.clone(),
            tags: self.tags.clone(),
            link_types: self.link_types.clone(),
            notes: NoteColumns {
                id: those(&self.notes.id, notes_kept),
                title: those(&self.notes.title, notes_kept),
                folder: those(&self.notes.folder, notes_kept),
                doc_type: those(&self.notes.doc_type, notes_kept),
                tags: those(&self.notes.tags, notes_kept),
                modified: those(&self.notes.modified, notes_kept),
                rank: those(&self.notes.rank, notes_kept),
            },
            entities: EntityColumns {
                id: those(&self.entities.id, entities_kept),
                name: those(&self.entities.name, entities_kept),
                entity_type: those(&self.entities.entity_type, entities_kept),
                observations: those(&self.entities.observations, entities_kept),
                modified: those(&self.entities.modified, entities_kept),
            },
            freshness: FreshnessColumns {
                fresh: moved(&self.freshness.fresh),
                possibly_stale: moved(&self.freshness.possibly_stale),
                stale: moved(&self.freshness.stale),
            },
            authors: self.authors.clone(),
            written: self
                .written
                .chunks_exact(2)
                .filter(|pair| wanted[pair[0] as usize])
                .flat_map(|pair| [places[pair[0] as usize], pair[1]])
                .collect(),
            edges: edges.flat_map(|edge| [places[edge[0] as usize], places[edge[1] as usize], edge[2]]).collect(),
        }
    }

    /// Whether there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn those<T: Clone>(all: &[T], kept: impl Fn(usize) -> bool) -> Vec<T> {
    all.iter().enumerate().filter(|(place, _)| kept(*place)).map(|(_, one)| one.clone()).collect()
}

/// Names with the numbers they got.
#[derive(Default)]
struct GraphNames {
    list: Vec<String>,
    places: FxHashMap<String, u32>,
}

impl GraphNames {
    fn number(&mut self, name: &str) -> u32 {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        let place = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        self.list.push(name.to_owned());
        self.places.insert(name.to_owned(), place);
        place
    }
}

impl Registry {
    /// The vault and its memory at this moment. Without a memory, or where it cannot be read, notes alone.
    pub fn whole_graph(&self) -> Result<WholeGraph, ToolError> {
        let snapshot = self.knowledge.snapshot();
        let mut graph = WholeGraph::default();
        let mut link_types = GraphNames::default();
        add_notes(&snapshot, &mut graph, &mut link_types);
        graph.freshness = freshness(&self.knowledge, &snapshot);
        add_authors(&self.knowledge, &snapshot, &mut graph);
        if let Ok(memory) = &self.memory {
            let places = add_entities(memory, &mut graph, &mut link_types)?;
            let mentions = self.knowledge.notes_linked_from_memory(&snapshot)?;
            let kind = if mentions.is_empty() { 0 } else { link_types.number(MENTIONS) };
            for (entity, note) in mentions {
                if let Some(entity) = places.get(&entity) {
                    graph.edges.extend([*entity, snapshot.place(note), kind]);
                }
            }
        }
        graph.link_types = link_types.list;
        Ok(graph)
    }
}

fn add_notes(snapshot: &Snapshot, graph: &mut WholeGraph, link_types: &mut GraphNames) {
    let (mut folders, mut types, mut tags) = (GraphNames::default(), GraphNames::default(), GraphNames::default());
    let ranks: FxHashMap<NoteKey, f64> = snapshot.hubs(HubMetric::PageRank, usize::MAX).into_iter().collect();
    for key in snapshot.files() {
        let note: &Note = snapshot.note(key);
        let path = note.path.as_str();
        let columns = &mut graph.notes;
        columns.id.push(path.to_owned());
        columns.title.push(note.title.clone());
        columns.folder.push(folders.number(path.rsplit_once('/').map_or("", |(folder, _)| folder)));
        columns.doc_type.push(types.number(DocType::of(note).name()));
        columns.tags.push(note.tags.iter().map(|tag| tags.number(&tag.name)).collect());
        columns.modified.push(note.stat.modified_ns / 1_000_000_000);
        columns.rank.push((ranks.get(&key).copied().unwrap_or_default() * 1e6) as u32);
        for (target, link_type) in snapshot.typed_links(key) {
            let kind = link_types.number(name_of(link_type));
            graph.edges.extend([snapshot.place(key), snapshot.place(target), kind]);
        }
    }
    (graph.folders, graph.types, graph.tags) = (folders.list, types.list, tags.list);
}

fn freshness(knowledge: &Knowledge, snapshot: &Snapshot) -> FreshnessColumns {
    let sourced: Vec<NoteKey> = snapshot.files().filter(|key| !source_refs(snapshot.note(*key)).is_empty()).collect();
    // Pages that could not be compared are reported one by one.
    let (judged, _) = knowledge.freshness(snapshot, &sourced);
    let mut columns = FreshnessColumns::default();
    for (key, judged) in sourced.into_iter().zip(judged) {
        match judged.staleness {
            Staleness::Fresh => columns.fresh.push(snapshot.place(key)),
            Staleness::PossiblyStale => columns.possibly_stale.push(snapshot.place(key)),
            Staleness::Stale => columns.stale.push(snapshot.place(key)),
            Staleness::Untracked => {}
        }
    }
    columns
}

/// Who wrote each note: the frontmatter says it, else the newest entry of the history.
fn add_authors(knowledge: &Knowledge, snapshot: &Snapshot, graph: &mut WholeGraph) {
    let kinds = vec![ChangeKind::Note];
    let filter = RecentFilter { since_ns: i64::MIN, cursor: None, kinds, by: None, entity: None, limit: WRITES };
    let mut writers: FxHashMap<NoteId, String> = FxHashMap::default();
    // A history that cannot be read is reported by the tools that are about it.
    for change in knowledge.recent_changes(None, &filter).map(|found| found.changes).unwrap_or_default() {
        if let RecentChange::Notes(write) = change {
            for file in &write.files {
                writers.entry(file.path.note_id()).or_insert_with(|| write.by.clone());
            }
        }
    }
    let mut names = GraphNames::default();
    for key in snapshot.files() {
        let note = snapshot.note(key);
        let mut authors =
            ["author", "authors"].into_iter().filter_map(|key| note.property(key)).flat_map(texts).peekable();
        if authors.peek().is_some() {
            for author in authors {
                graph.written.extend([snapshot.place(key), names.number(&author)]);
            }
        } else if let Some(writer) = writers.get(&note.path.note_id()) {
            graph.written.extend([snapshot.place(key), names.number(writer)]);
        }
    }
    graph.authors = names.list;
}

fn texts(value: &Value) -> Vec<String> {
    let one = |value: &Value| Some(value.to_plain_text()?.trim().to_owned()).filter(|text| !text.is_empty());
    match value {
        Value::List(items) => items.iter().filter_map(one).collect(),
        other => one(other).into_iter().collect(),
    }
}

fn name_of(link_type: LinkType) -> &'static str {
    match link_type {
        LinkType::References => "references",
        LinkType::DependsOn => "depends_on",
        LinkType::Implements => "implements",
        LinkType::Extends => "extends",
        LinkType::ConflictsWith => "conflicts_with",
    }
}

/// Adds entities and their relations. Gives the place of each entity among all nodes.
fn add_entities(
    memory: &Memory,
    graph: &mut WholeGraph,
    link_types: &mut GraphNames,
) -> Result<FxHashMap<EntityId, u32>, ToolError> {
    let store = memory.store();
    let mut places = FxHashMap::default();
    let first = graph.notes.id.len();
    let mut after = EntityId(0);
    loop {
        let batch: Vec<Entity> = store.entities_after(after, BATCH)?;
        let Some(last) = batch.last() else { break };
        after = last.id;
        for entity in batch {
            places.insert(entity.id, u32::try_from(first + graph.entities.id.len()).unwrap_or(u32::MAX));
            graph.entities.id.push(entity.id.0);
            graph.entities.name.push(entity.name);
            graph.entities.entity_type.push(entity.entity_type);
            graph.entities.observations.push(u32::try_from(entity.observation_count).unwrap_or(u32::MAX));
            graph.entities.modified.push(entity.updated_ns / 1_000_000_000);
        }
    }
    let mut after = RelationId(0);
    loop {
        let batch: Vec<Relation> = store.relations_after(after, BATCH)?;
        let Some(last) = batch.last() else { return Ok(places) };
        after = last.id;
        for relation in batch {
            if let (Some(from), Some(to)) = (places.get(&relation.from), places.get(&relation.to)) {
                graph.edges.extend([*from, *to, link_types.number(&relation.relation_type)]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::FreshnessColumns;
    use crate::testing::Harness;

    const VAULT: &str = "//- a.md\n[[b]] [[nowhere]] #x/y\n//- folder/b.md\n---\ndoc_type: spec\ndepends_on: [\"[[c]]\"]\n---\n//- c.md\n";

    #[test]
    fn whole_graph_has_notes_entities_and_the_links_between_them() {
        let harness = Harness::new(VAULT);
        let made = harness
            .call("create_entity", json!({"name": "Ada", "entity_type": "User", "observations": ["Wrote [[c]]."]}));
        let other = harness.call("create_entity", json!({"name": "Engine", "entity_type": "Concept"}));
        let relation =
            json!({"from_entity_id": made["entity_id"], "to_entity_id": other["entity_id"], "relation_type": "built"});
        harness.call("create_relation", relation);
        let graph = harness.registry.whole_graph().unwrap();
        assert_eq!(graph.notes.id, ["a.md", "c.md", "folder/b.md"]);
        assert_eq!(graph.entities.name, ["Ada", "Engine"]);
        assert_eq!(graph.entities.observations, [1, 0]);
        let name = |place: u32| match graph.notes.id.get(place as usize) {
            Some(id) => id.clone(),
            None => graph.entities.name[place as usize - graph.notes.id.len()].clone(),
        };
        let edge = |edge: &[u32]| format!("{} {} {}", name(edge[0]), graph.link_types[edge[2] as usize], name(edge[1]));
        let edges: Vec<String> = graph.edges.chunks_exact(3).map(edge).collect();
        assert_eq!(
            edges,
            ["a.md references folder/b.md", "folder/b.md depends_on c.md", "Ada built Engine", "Ada mentions c.md"]
        );
        assert_eq!(graph.folders[graph.notes.folder[2] as usize], "folder");
        assert_eq!(graph.types[graph.notes.doc_type[2] as usize], "spec");
        assert_eq!(graph.tags[graph.notes.tags[0][0] as usize], "x/y");
    }

    #[test]
    fn whole_graph_says_which_notes_are_stale() {
        let harness = Harness::not_started("//- a.md\n[[doc]]\n//- doc.md\n---\nsource_refs: a.rs\n---\n");
        harness.sources.put("a.rs", "1");
        harness.knowledge.start(&|_| {}).unwrap();
        let freshness = || harness.registry.whole_graph().unwrap().freshness;
        assert_eq!(freshness(), FreshnessColumns { fresh: vec![1], ..FreshnessColumns::default() });
        harness.sources.put("a.rs", "2");
        assert_eq!(freshness(), FreshnessColumns { possibly_stale: vec![1], ..FreshnessColumns::default() });
        harness.clock.advance(8 * 86_400_000_000_000);
        assert_eq!(freshness(), FreshnessColumns { stale: vec![1], ..FreshnessColumns::default() });
        let alone = harness.registry.whole_graph().unwrap().around(1, 0);
        assert_eq!((alone.notes.id, alone.freshness.stale), (vec!["doc.md".to_owned()], vec![0]));
    }

    #[test]
    fn whole_graph_says_who_wrote_a_note() {
        let harness = Harness::new(
            "//- a.md\n---\nauthor: Ada\n---\n//- b.md\n---\nauthors: [Ben, \" Cem \"]\n---\n//- c.md\nText.\n",
        );
        harness.call("create_node", json!({"id": "d.md", "content": "Text.", "tags": []}));
        let graph = harness.registry.whole_graph().unwrap();
        let written = |graph: &super::WholeGraph| -> Vec<String> {
            let pair =
                |pair: &[u32]| format!("{} {}", graph.notes.id[pair[0] as usize], graph.authors[pair[1] as usize]);
            graph.written.chunks_exact(2).map(pair).collect()
        };
        assert_eq!(written(&graph)[..3], ["a.md Ada", "b.md Ben", "b.md Cem"]);
        assert!(written(&graph)[3].starts_with("d.md "), "its writer is in the history, and c.md has none");
        assert_eq!(written(&graph.around(1, 0)), ["b.md Ben", "b.md Cem"]);
    }

    #[test]
    fn around_keeps_near_nodes_in_both_directions() {
        let graph = Harness::new(VAULT).registry.whole_graph().unwrap();
        let near = |middle: usize, depth: usize| {
            let part = graph.around(middle, depth);
            (part.notes.id.join(" "), part.edges.len() / 3)
        };
        assert_eq!(near(0, 1), ("a.md folder/b.md".to_owned(), 1));
        assert_eq!(near(1, 1), ("c.md folder/b.md".to_owned(), 1));
        assert_eq!(near(1, 2), ("a.md c.md folder/b.md".to_owned(), 2));
    }
}
