//! Random calls of every tool. Ids are drawn from few, so that many calls are about the same things, and some about what does not
//! exist.

use quipu_testkit::generate::Random;
use serde_json::{Value, json};

const WORDS: [&str; 10] =
    ["plugin", "vault", "link", "graph view", "template", "ノート", "theme", "sync", "markdown file", "設定"];

const NAMES: [&str; 8] = [
    "Ada Lovelace",
    "Ada Lovelacce",
    "Grace Hopper",
    "Rain gauge",
    "雨量計",
    "Sync plugin",
    "the sync plugin",
    "Graph 1.2",
];

const TYPES: [&str; 4] = ["Person", "Project", "component", "Concept"];
const DOC_TYPES: [&str; 3] = ["guide", "other", "todo"];

/// Draws calls.
pub(super) struct Draw {
    random: Random,
    /// Notes, also those that calls create.
    ids: Vec<String>,
    /// Versions of notes that were listed.
    versions: Vec<(String, String)>,
    number: usize,
}

impl Draw {
    pub(super) fn new(seed: u64, ids: Vec<String>) -> Self {
        Self { random: Random(seed), ids, versions: Vec::new(), number: 0 }
    }

    /// One of the tools, and its arguments.
    pub(super) fn call(&mut self, tools: &[String]) -> (String, Value) {
        let tool = tools[self.random.below(tools.len())].clone();
        self.number += 1;
        let arguments = self.arguments(&tool);
        (tool, arguments)
    }

    /// Remembers what later calls can be about.
    pub(super) fn learn(&mut self, tool: &str, answer: &Value) {
        let id = answer["id"].as_str().map(str::to_owned);
        match (tool, id) {
            ("create_node" | "move_node" | "update_node", Some(id)) => self.ids.push(id),
            ("node_history", Some(id)) => {
                let versions = answer["versions"].as_array().into_iter().flatten();
                let versions = versions.filter_map(|version| version["version"].as_str());
                self.versions.extend(versions.map(|version| (id.clone(), version.to_owned())));
            }
            _ => {}
        }
    }

    fn id(&mut self) -> String {
        match self.random.below(20) {
            0 => "no/such.md".to_owned(),
            // Notes of calls before, which have a history.
            1..8 => self.ids[self.ids.len() - 1 - self.random.below(self.ids.len().min(12))].clone(),
            _ => self.ids[self.random.below(self.ids.len())].clone(),
        }
    }

    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.random.below(choices.len())]
    }

    fn word(&mut self) -> &'static str {
        self.of(&WORDS)
    }

    fn item(&mut self) -> usize {
        1 + self.random.below(40)
    }

    fn is(&mut self) -> bool {
        self.random.below(2) == 0
    }

    fn text(&mut self) -> String {
        format!("{} {}", self.word(), self.random.below(20))
    }

    fn version(&mut self) -> (String, String) {
        match self.versions.len() {
            0 => (self.id(), "0123456789abcdef".to_owned()),
            count => self.versions[self.random.below(count)].clone(),
        }
    }

    fn arguments(&mut self, tool: &str) -> Value {
        let of_notes = self.of_notes(tool).or_else(|| self.of_pages(tool)).or_else(|| self.of_work(tool));
        let found = of_notes.or_else(|| self.of_memory(tool)).or_else(|| self.of_upkeep(tool));
        found.unwrap_or_else(|| panic!("no arguments are drawn for the tool {tool}: add them"))
    }

    fn of_notes(&mut self, tool: &str) -> Option<Value> {
        Some(match tool {
            "search" => json!({ "query": self.text(), "limit": 5, "include_content": self.is() }),
            "get_node" => {
                json!({ "id": self.id(), "depth": self.random.below(2), "outline": self.is(), "include_entities": self.is() })
            }
            "get_neighbors" => {
                let direction = self.of(&["in", "out", "both"]);
                json!({ "id": self.id(), "direction": direction, "include_content": self.is(), "include_entities": true })
            }
            "find_path" => json!({ "source": self.id(), "target": self.id() }),
            "get_hubs" => {
                let metric = self.of(&["in_degree", "out_degree", "pagerank"]);
                json!({ "metric": metric, "limit": 5 + self.random.below(20) })
            }
            "search_by_tags" => json!({ "tags": [self.word(), "moc"], "mode": self.of(&["any", "all"]) }),
            "random_node" => json!({}),
            "list_nodes" => json!({ "offset": self.random.below(self.ids.len()), "limit": 20 }),
            "resolve_nodes" => {
                let strategy = self.of(&["exact", "fuzzy"]);
                json!({ "names": [self.word(), self.id()], "strategy": strategy })
            }
            "nodes_exist" => json!({ "ids": [self.id(), "no/such.md"] }),
            "create_node" => {
                let content = format!("See [[{}]] and a {}.", self.id(), self.word());
                json!({ "id": format!("new/note{}.md", self.number), "content": content, "tags": ["drawn"] })
            }
            "update_node" => match self.random.below(3) {
                0 => json!({ "id": self.id(), "content": format!("All new: [[{}]]\n", self.id()) }),
                1 => json!({ "id": self.id(), "tags": [self.word()] }),
                _ => json!({ "id": self.id(), "title": format!("Title {}", self.number), "update_links": self.is() }),
            },
            "delete_node" => json!({ "id": self.id() }),
            "list_documents" => json!({ "limit": 20, "offset": self.random.below(self.ids.len()) }),
            "get_document" => {
                json!({ "path": self.id(), "resolve_embeds": self.is(), "offset": self.random.below(99) })
            }
            "search_docs" => json!({ "query": self.word() }),
            _ => return None,
        })
    }

    fn of_pages(&mut self, tool: &str) -> Option<Value> {
        Some(match tool {
            "ubp_search" => json!({ "query": self.text(), "limit": 5, "include_linked": self.is() }),
            "ubp_get_page" => json!({ "filepath": self.id(), "outline": self.is() }),
            "ubp_get_context" => json!({ "filepath": self.id(), "max_size": 5000, "include_entities": self.is() }),
            "ubp_fulltext_search" => json!({ "query": self.word() }),
            "ubp_list_pages" => {
                let sort = self.of(&["title", "filepath"]);
                let order = self.of(&["asc", "desc"]);
                let all = json!({ "sort": sort, "order": order, "limit": 20, "offset": self.random.below(50) });
                if self.is() { all } else { json!({ "doc_type": self.of(&DOC_TYPES), "sort": sort, "limit": 20 }) }
            }
            "ubp_get_graph" => json!({ "center": self.id(), "depth": 1 + self.random.below(2) }),
            _ => return None,
        })
    }

    fn of_work(&mut self, tool: &str) -> Option<Value> {
        Some(match tool {
            "edit_node" => {
                let edit = match self.random.below(3) {
                    0 => json!({ "op": "append", "text": format!("added{}", self.number) }),
                    1 => json!({ "op": "set_property", "key": "drawn", "value": self.number }),
                    _ => json!({ "op": "add_tags", "tags": [self.word()] }),
                };
                json!({ "id": self.id(), "edits": [edit], "dry_run": self.random.below(5) == 0 })
            }
            "move_node" => {
                json!({ "id": self.id(), "to": format!("moved/note{}.md", self.number), "update_links": self.is() })
            }
            "query_nodes" => match self.random.below(3) {
                0 => json!({ "where": [{ "field": "links_in", "op": "gt", "value": self.random.below(9) }] }),
                1 => json!({ "where": [{ "field": "property.drawn", "op": "exists" }], "fields": ["tags", "chars"] }),
                _ => json!({ "group_by": self.of(&["tags", "folder", "doc_type"]) }),
            },
            "recent_changes" => json!({ "limit": 5 + self.random.below(20) }),
            "node_history" => json!({ "id": self.id() }),
            "diff_node" => {
                let (id, from) = self.version();
                json!({ "id": id, "from": from })
            }
            "revert_node" => {
                let (id, version) = self.version();
                json!({ "id": id, "version": version })
            }
            "summarize_node" => json!({ "id": self.id(), "max_chars": 200 + self.random.below(500) }),
            "suggest_tags" => json!({ "id": self.id() }),
            "extract_entities" => json!({ "id": self.id(), "limit": 10 }),
            _ => return None,
        })
    }

    fn of_memory(&mut self, tool: &str) -> Option<Value> {
        let (id, other, name, text) = (self.item(), self.item(), self.of(&NAMES), self.text());
        Some(match tool {
            "get_version" | "get_current_time" | "get_context" | "clear_context" => json!({}),
            "create_entity" => {
                let name = if self.is() { format!("{name} {}", self.random.below(30)) } else { name.to_owned() };
                let force = self.random.below(4) == 0;
                json!({ "name": name, "entity_type": self.of(&TYPES), "observations": [text], "force": force })
            }
            "get_entity" => json!({ "entity_id": id, "limit": 1 + self.random.below(9) }),
            "update_entity" => {
                json!({ "entity_id": id, "description": format!("{text} [[{}]]", self.id()), "aliases": name })
            }
            "delete_entity" => json!({ "entity_id": id }),
            "create_observation" => json!({ "entity_id": id, "text_content": text }),
            "delete_observation" => json!({ "observation_id": id }),
            "create_relation" => json!({ "from_entity_id": id, "to_entity_id": other, "relation_type": "part_of" }),
            "delete_relation" => json!({ "relation_id": 1 + self.random.below(15) }),
            "find_relations" => json!({ "from_entity_id": id }),
            "search_entities" => json!({ "query": name }),
            "list_entities" => json!({ "per_page": 10, "page": 1 + self.random.below(3) }),
            "search_subgraph" => json!({ "query": text, "search_in_name": self.is() }),
            "get_subgraph_by_ids" => json!({ "entity_ids": [id, other] }),
            "set_context" => json!({ "project_id": id }),
            "bulk_update" => {
                let entity = json!({ "name": format!("{name} of {}", self.number), "entity_type": self.of(&TYPES) });
                let observation = json!({ "entity_id": id, "text_content": text });
                json!({ "entities": [entity], "observations": [observation] })
            }
            "suggest_merges" => json!({ "threshold": 0.5 }),
            _ => return None,
        })
    }

    fn of_upkeep(&mut self, tool: &str) -> Option<Value> {
        let (id, other) = (self.item(), self.item());
        Some(match tool {
            "merge_entities" => {
                json!({ "entity_id": id, "into_entity_id": other, "dry_run": self.random.below(4) == 0 })
            }
            "update_observation" => json!({ "observation_id": id, "text_content": self.text() }),
            "undo_change" => match self.random.below(2) {
                0 => json!({ "change": 1 + self.random.below(1 + self.number / 6) }),
                _ => json!({ "change": format!("n{}", 1 + self.random.below(2 + self.number / 8)) }),
            },
            "redact" => match self.random.below(3) {
                0 => json!({ "kind": "note", "id": self.id(), "reason": "a secret" }),
                1 => json!({ "kind": "entity", "id": id, "reason": "a secret" }),
                _ => json!({ "kind": "observation", "id": id, "reason": "a secret" }),
            },
            _ => return None,
        })
    }
}
