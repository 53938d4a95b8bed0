//! `get_node`: one note by id, alone or with its neighbours.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::node::Node;
use crate::answer_size::{LIST_ROOM, json_chars};
use crate::entities::{EntityName, MAX_ENTITIES, linking_entities};
use crate::not_found::node_not_found;
use crate::parts::{Heading, PartParams};
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;
use crate::truncate::NEIGHBOUR;

/// Neighbours listed in each direction; the counts cover all.
const MAX_NEIGHBORS: usize = 20;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Path from the vault root, in any case.
    id: String,
    /// 1 adds linking and linked notes, up to 20 each.
    #[serde(default)]
    #[schemars(range(max = 1))]
    depth: u8,
    /// Add memory entities that link to it.
    #[serde(default)]
    include_entities: bool,
    #[serde(flatten)]
    part: PartParams,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    #[serde(flatten)]
    node: Node,
    #[serde(skip_serializing_if = "Option::is_none")]
    outline: Option<Vec<Heading>>,
    #[serde(flatten)]
    context: Option<Context>,
    /// Only on request; at most 20.
    #[serde(skip_serializing_if = "Option::is_none")]
    entities: Option<Vec<EntityName>>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Context {
    /// Nodes that link here.
    incoming_neighbors: Vec<Node>,
    /// Nodes this one links to.
    outgoing_neighbors: Vec<Node>,
    incoming_count: usize,
    outgoing_count: usize,
}

pub(crate) struct GetNode;

impl Tool for GetNode {
    type Params = Params;
    type Output = Option<Output>;

    const NAME: &'static str = "get_node";
    const DESCRIPTION: &'static str = "Read one note by id: text (first 10,000 characters, then offset; or one \
        section), tags, links, properties; null if there is none. For a name use resolve_nodes.";
    const ACCESS: Access = Access::Read;

    fn call(call: &Call<'_>, params: Params) -> Result<Option<Output>, ToolError> {
        let Some(read) = call.read(&params.id)? else {
            call.warn(node_not_found(&call.knowledge.snapshot(), &params.id));
            return Ok(None);
        };
        let (node, outline) = Node::in_part(call, &read, &params.part)?;
        let context = (params.depth == 1).then(|| {
            let snapshot = &read.snapshot;
            let (incoming, outgoing) = (snapshot.graph().incoming(read.key), snapshot.graph().out(read.key));
            let mut room = LIST_ROOM.saturating_sub(json_chars(&node));
            let mut neighbors = |keys, share| {
                let nodes = Node::list_within(call, snapshot, first(keys), Some(NEIGHBOUR), room / share);
                room = room.saturating_sub(json_chars(&nodes));
                nodes
            };
            Context {
                incoming_neighbors: neighbors(&snapshot.incoming(read.key, MAX_NEIGHBORS), 2),
                outgoing_neighbors: neighbors(outgoing, 1),
                incoming_count: incoming.len(),
                outgoing_count: outgoing.len(),
            }
        });
        let around = || linking_entities(call, &read.snapshot, read.key, MAX_ENTITIES);
        let entities = params.include_entities.then(around).transpose()?;
        Ok(Some(Output { node, outline, context, entities }))
    }
}

fn first<T>(items: &[T]) -> &[T] {
    &items[..items.len().min(MAX_NEIGHBORS)]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::{Harness, check};

    const GRAPH: &str = "\
//- notes/GraphCore.md
---
tags: [architecture, core]
status: stable
rank: 3
reviewed: {by: [ada, bob], score: 0.5}
---

The hub. Uses [[StoreProvider]], [[Node]] and again [[storeprovider|the store]].
//- notes/StoreProvider.md
---
tags: provider
---
Keeps data. See [[Node]].
//- notes/Node.md
One note.
//- Architecture.md
All around [[GraphCore]].
";

    #[test]
    fn depth_zero_returns_the_note_alone() {
        let expected = json!({
            "id": "notes/graphcore.md",
            "title": "GraphCore",
            "version": "5fb356f20637cb88",
            "content": "The hub. Uses [[StoreProvider]], [[Node]] and again [[storeprovider|the store]].\n",
            "tags": ["architecture", "core"],
            "links": [
                {"id": "notes/storeprovider.md", "title": "StoreProvider"},
                {"id": "notes/node.md", "title": "Node"}
            ],
            "properties": {"status": "stable", "rank": 3, "reviewed": {"by": ["ada", "bob"], "score": 0.5}}
        });
        check(GRAPH, "get_node", json!({"id": "notes/graphcore.md"}), expected.clone());
        check(GRAPH, "get_node", json!({"id": "Notes/GraphCore.md", "depth": "0"}), expected);
    }

    #[test]
    fn depth_one_adds_neighbours() {
        let answer = Harness::new(GRAPH).call("get_node", json!({"id": "notes/graphcore.md", "depth": 1}));
        let node = |id: &str, title: &str, content: &str, tags: &[&str], links: &[(&str, &str)]| {
            let links: Vec<_> = links.iter().map(|(id, title)| json!({"id": id, "title": title})).collect();
            json!({"id": id, "title": title, "content": content, "tags": tags, "links": links, "properties": {}})
        };
        let core = [("notes/graphcore.md", "GraphCore")];
        assert_eq!(
            answer["incomingNeighbors"],
            json!([node("architecture.md", "Architecture", "All around [[GraphCore]].\n", &[], &core)])
        );
        let store = node(
            "notes/storeprovider.md",
            "StoreProvider",
            "Keeps data. See [[Node]].\n",
            &["provider"],
            &[("notes/node.md", "Node")],
        );
        assert_eq!(answer["outgoingNeighbors"], json!([store, node("notes/node.md", "Node", "One note.\n", &[], &[])]));
        assert_eq!((&answer["incomingCount"], &answer["outgoingCount"]), (&json!(1), &json!(2)));
        assert_eq!(answer["title"], "GraphCore");
    }

    #[test]
    fn every_tool_gives_a_file_the_same_version_until_it_changes() {
        let harness = Harness::new("//- a.md\nOne.\n");
        let version = |tool: &str, name: &str| harness.call(tool, json!({name: "a.md"}))["version"].clone();
        let all = || [version("get_node", "id"), version("get_document", "path"), version("ubp_get_page", "filepath")];
        let before = all();
        assert_eq!(before, ["f2648a6ab64dbe24"; 3]);
        let written = harness.call("update_node", json!({"id": "a.md", "content": "Two.\n"}))["version"].clone();
        assert_ne!(written, before[0]);
        assert_eq!(all(), [written.clone(), written.clone(), written]);
        harness.vault.put("a.md", "One.\n");
        assert_eq!(all(), before);
    }

    #[test]
    fn a_missing_note_is_null() {
        for id in ["notes/missing.md", "notes", "", "../etc/passwd", "/etc/passwd.md", "a\u{0}.md"] {
            check(GRAPH, "get_node", json!({"id": id}), json!(null));
        }
    }

    #[test]
    fn a_missing_id_is_named_with_near_names() {
        let harness = Harness::new("//- notes/Graph View.md\n//- notes/Grape vine.md\n//- other.md\n[[Graph View]]\n");
        let near = "\"notes/graph view.md\", \"notes/grape vine.md\"";
        for (tool, arguments, missing) in [
            ("get_node", json!({"id": "Graph view"}), format!("no note has the id \"Graph view\"; near names: {near}")),
            (
                "get_node",
                json!({"id": "x/grpah view.md"}),
                "no note has the id \"x/grpah view.md\"; near names: \"notes/graph view.md\"".into(),
            ),
            ("get_neighbors", json!({"id": "nope.md"}), "no note has the id \"nope.md\"".into()),
            ("find_path", json!({"source": "other.md", "target": "zzz"}), "no note has the id \"zzz\"".into()),
        ] {
            assert_eq!(harness.called(tool, arguments).warnings, [missing], "{tool}");
        }
        let both = harness.called("find_path", json!({"source": "zzz", "target": "qqq"})).warnings;
        assert_eq!(both, ["no note has the id \"zzz\"", "no note has the id \"qqq\""]);
        let page = harness.call("ubp_get_page", json!({"filepath": "graph view.md"}));
        let message =
            "no page has the path \"graph view.md\"; near names: \"notes/Graph View.md\", \"notes/Grape vine.md\"";
        assert_eq!(page, json!({"protocol": {"code": -32602, "message": message}}));
        let long = harness.called("get_node", json!({"id": "x".repeat(1_000_000)})).warnings;
        assert!(long[0].len() < 300, "{}", long[0].len());
    }

    #[test]
    fn at_most_twenty_neighbours_are_listed_and_all_are_counted() {
        let hub = (0..25).map(|number| format!("[[n{number:02}]] ")).collect::<String>();
        let mut vault = format!("//- hub.md\n{hub}\n");
        for number in 0..25 {
            vault += &format!("//- n{number:02}.md\n[[hub]] {}\n", "long ".repeat(100));
        }
        let answer = Harness::new(&vault).call("get_node", json!({"id": "hub.md", "depth": 1}));
        let incoming = answer["incomingNeighbors"].as_array().unwrap();
        assert_eq!((incoming.len(), answer["outgoingNeighbors"].as_array().unwrap().len()), (20, 20));
        assert_eq!((&answer["incomingCount"], &answer["outgoingCount"]), (&json!(25), &json!(25)));
        let content = incoming[0]["content"].as_str().unwrap();
        assert_eq!(content.chars().count(), 200);
        assert!(content.ends_with("... [truncated]"));
    }

    #[test]
    fn a_long_text_is_cut() {
        let harness = Harness::new(&format!("//- long.md\n{}\n", "あ".repeat(10_001)));
        let answer = harness.call("get_node", json!({"id": "long.md"}));
        assert_eq!(answer["content"], format!("{}... [truncated]", "あ".repeat(9_985)));
    }

    #[test]
    fn a_long_text_is_read_in_parts_that_join_without_a_gap() {
        let text = format!("{}👨‍👩‍👧 the end\n", "é日 ".repeat(9_000));
        let harness = Harness::new(&format!("//- long.md\n{text}"));
        let total = text.chars().count();
        for max_chars in [1, 4_000, 50_000] {
            let (mut joined, mut offset) = (String::new(), if max_chars == 1 { total - 12 } else { 0 });
            joined.extend(text.chars().take(offset));
            loop {
                let node = harness.call("get_node", json!({"id": "long.md", "offset": offset, "max_chars": max_chars}));
                joined += node["content"].as_str().unwrap();
                let Some(part) = node.get("truncated") else { break };
                assert_eq!((&part["offset"], &part["total_chars"]), (&json!(offset), &json!(total)));
                let Some(next) = part["next_offset"].as_u64() else { break };
                offset = usize::try_from(next).unwrap();
            }
            assert_eq!(joined, text, "{max_chars}");
        }
        let cut = harness.call("get_node", json!({"id": "long.md"}));
        assert_eq!(cut["truncated"], json!({"offset": 0, "next_offset": 9_985, "total_chars": total}));
        let called = harness.called("get_node", json!({"id": "long.md", "offset": u32::MAX}));
        let past = format!("`offset` 4294967295 is past the end: the text has {total} characters");
        assert_eq!(called.warnings, [past]);
        let crate::Reply::Answer(behind) = called.reply else { panic!("{called:?}") };
        assert_eq!(behind["truncated"], json!({"offset": total, "next_offset": null, "total_chars": total}));
        for (tool, name) in [("get_document", "path"), ("ubp_get_page", "filepath")] {
            let answer = harness.call(tool, json!({name: "long.md", "offset": 9_985, "max_chars": 3}));
            let expected: String = text.chars().skip(9_985).take(3).collect();
            assert_eq!(answer["content"], expected, "{tool}");
            assert_eq!(answer["truncated"]["next_offset"], 9_988, "{tool}");
        }
    }

    #[test]
    fn an_outline_and_a_section_are_read_by_heading() {
        let long = "word ".repeat(4_000);
        let text = format!("---\nx: 1\n---\n\nIntro.\n\n## A\n{long}\n### B\nunder a\n## C\n### B\nunder c\n");
        let harness = Harness::new(&format!("//- long.md\n{text}"));
        let outline = json!([
            {"heading": "A", "level": 2, "line": 7, "chars": 20_020},
            {"heading": "B", "level": 3, "line": 9, "chars": 14},
            {"heading": "C", "level": 2, "line": 11, "chars": 19},
            {"heading": "B", "level": 3, "line": 12, "chars": 14},
        ]);
        for (tool, name) in [("get_node", "id"), ("get_document", "path"), ("ubp_get_page", "filepath")] {
            let read = |arguments: serde_json::Value| {
                let mut all = json!({name: "long.md"});
                all.as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
                harness.call(tool, all)
            };
            let answer = read(json!({"outline": true}));
            assert_eq!(answer["outline"], outline, "{tool}");
            assert_eq!(answer["content"].as_str().unwrap_or_default(), "", "{tool}");
            assert_eq!(read(json!({"section": "C > B"}))["content"], "### B\nunder c\n", "{tool}");
            let cut = read(json!({"section": "a", "offset": 5, "max_chars": 9}));
            assert_eq!(cut["content"], "word word", "{tool}");
            assert_eq!(cut["truncated"], json!({"offset": 5, "next_offset": 14, "total_chars": 20_020}), "{tool}");
            let failed = read(json!({"section": "B"})).to_string();
            assert!(failed.contains("2 headings are") && failed.contains("line 12"), "{tool}: {failed}");
        }
    }

    #[test]
    fn all_sections_read_one_by_one_permit_an_update() {
        let harness = Harness::new("//- a.md\n# A\none\n# B\ntwo\n");
        let read = |section: &str| harness.call("get_node", json!({"id": "a.md", "section": section}));
        read("B");
        let update = json!({"id": "a.md", "content": "new"});
        assert_eq!(harness.fails("update_node", update.clone()).0, "PROVIDER_ERROR");
        read("A");
        assert_eq!(harness.call("update_node", update)["content"], "new");
    }

    #[test]
    fn embedded_notes_are_shown_in_place() {
        let vault = "//- a.md\nsee ![[b]] and ![[c#Part]] and ![[gone]] ![[pic.png]]\n//- b.md\n---\nx: 1\n---\nB, ![[a]] ![[c#No]]\n\
            //- c.md\n# Part\ninside\n# Other\noutside\n";
        let harness = Harness::new(vault);
        let resolved = "see B, ![[a]] ![[c#No]] and # Part\ninside and ![[gone]] ![[pic.png]]\n";
        for (tool, name) in [("get_node", "id"), ("get_document", "path"), ("ubp_get_page", "filepath")] {
            let answer = harness.call(tool, json!({name: "a.md", "resolve_embeds": true}));
            assert_eq!(answer["content"], resolved, "{tool}");
        }
        // What was shown is not the text of the note.
        let (code, _) = harness.fails("update_node", json!({"id": "a.md", "content": resolved}));
        assert_eq!(code, "PROVIDER_ERROR");
    }

    #[test]
    fn embedded_blocks_are_shown_and_missing_ones_are_reported() {
        let vault = "//- a.md\n![[b#^p]] / ![[b#^item]] / ![[b#^table]] / ![[b#^no]]\n\
            //- b.md\n# H\nfirst\nsecond ^p\n\n- one\n- two ^item\n\n| t |\n|---|\n\n^table\n";
        let harness = Harness::new(vault);
        let called = harness.called("get_node", json!({"id": "a.md", "resolve_embeds": true}));
        let crate::Reply::Answer(answer) = &called.reply else { panic!("{called:?}") };
        assert_eq!(answer["content"], "first\nsecond / - two / | t |\n|---| / ![[b#^no]]\n");
        let told = "\"a.md\": 1 embedded notes are not shown in full; read them by their id";
        assert!(called.warnings.iter().any(|warning| warning == told), "{:?}", called.warnings);
    }

    #[test]
    fn embedded_notes_without_text_are_read_up_to_a_limit() {
        let harness = Harness::new(&format!("//- a.md\n{}\n//- b.md\n^p\n", "![[b#^p]]".repeat(250)));
        let called = harness.called("get_node", json!({"id": "a.md", "resolve_embeds": true, "max_chars": 50_000}));
        let told = "\"a.md\": 50 embedded notes are not shown in full; read them by their id";
        assert!(called.warnings.iter().any(|warning| warning == told), "{:?}", called.warnings);
    }

    #[test]
    fn embeds_inside_an_embed_are_shown_without_an_error() {
        let harness = Harness::new("//- a.md\n![[b|x ![[c]] y]] end\n//- b.md\nB\n//- c.md\nC\n");
        let answer = harness.call("get_node", json!({"id": "a.md", "resolve_embeds": true}));
        assert!(answer["content"].as_str().unwrap().ends_with(" end\n"), "{answer}");
    }

    #[test]
    fn embeds_of_a_note_with_many_links_are_resolved_in_linear_time() {
        let links = (0..40_000).map(|number| format!("- n{number}\n")).collect::<String>();
        let harness = Harness::new(&format!("//- a.md\n---\nreferences:\n{links}---\n{}\n", "![[x]]".repeat(6_000)));
        let time = |resolve_embeds: bool| {
            let started = std::time::Instant::now();
            harness.call("get_document", json!({"path": "a.md", "resolve_embeds": resolve_embeds}));
            started.elapsed()
        };
        let (plain, resolved) = (time(false), time(true));
        assert!(resolved < plain * 3 + std::time::Duration::from_millis(200), "{resolved:?}, and {plain:?} as written");
    }

    #[test]
    fn embedded_notes_count_for_max_chars() {
        let long = "word ".repeat(4_000);
        let harness = Harness::new(&format!(
            "//- a.md\nBefore.\n![[b]]\nBetween.\n![[c]]\nAfter.\n//- b.md\nshort\n//- c.md\n{long}\n"
        ));
        let (mut joined, mut offset, mut calls) = (String::new(), 0, 0);
        loop {
            let arguments = json!({"id": "a.md", "resolve_embeds": true, "offset": offset, "max_chars": 40});
            let node = harness.call("get_node", arguments);
            let content = node["content"].as_str().unwrap();
            assert!(content.chars().count() <= 40, "{content}");
            joined += content;
            calls += 1;
            let Some(next) = node["truncated"]["next_offset"].as_u64() else { break };
            assert!(next > offset, "{node}");
            offset = next;
        }
        assert_eq!((joined.as_str(), calls), ("Before.\nshort\nBetween.\nwo... [truncated]\nAfter.\n", 2));
        for (tool, name) in [("get_document", "path"), ("ubp_get_page", "filepath")] {
            let answer = harness.call(tool, json!({name: "c.md", "resolve_embeds": true, "max_chars": 30}));
            assert_eq!(answer["content"].as_str().unwrap().len(), 30, "{tool}");
        }
    }

    #[test]
    fn a_part_has_its_own_links() {
        let many = (0..50).map(|number| format!("[[n{number}]] ")).collect::<String>();
        let vault = format!("//- a.md\n# A\n[[x]]\n# B\n{many}\n# C\n[[x]] [y](y.md) `[[z]]`\n");
        let harness = Harness::new(&vault);
        let links = |arguments: serde_json::Value| {
            let mut all = json!({"id": "a.md"});
            all.as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
            let called = harness.called("get_node", all);
            let crate::Reply::Answer(answer) = called.reply else { panic!("{called:?}") };
            let ids = answer["links"].as_array().unwrap().iter().map(|link| link["id"].as_str().unwrap().to_owned());
            (ids.collect::<Vec<_>>(), answer["links_total"].clone())
        };
        assert_eq!(links(json!({"section": "C"})), (vec!["x".into(), "y.md".into()], json!(52)));
        assert_eq!(links(json!({"outline": true})), (vec![], json!(52)));
        assert_eq!(links(json!({"offset": 4, "max_chars": 6})), (vec!["x".into()], json!(52)));
        assert_eq!(links(json!({})).0.len(), 52);
    }

    #[test]
    fn unresolved_links_stay_as_written() {
        let vault = "//- a.md\n[[Not There#Part|label]] [[a]] ![[pic.png]] [x](gone%20away.md) [[Not There]]\n";
        let answer = Harness::new(vault).call("get_node", json!({"id": "a.md", "depth": 1}));
        let links = json!([
            {"id": "Not There", "title": "Not There"},
            {"id": "a.md", "title": "A"},
            {"id": "pic.png", "title": "pic.png"},
            {"id": "gone away.md", "title": "gone away.md"}
        ]);
        assert_eq!(answer["links"], links);
        // A link to itself is there to see and counts for nothing.
        assert_eq!((&answer["incomingCount"], &answer["outgoingCount"]), (&json!(0), &json!(0)));
    }

    #[test]
    fn more_than_a_hundred_links_are_cut_with_a_warning() {
        let links = (0..120).map(|number| format!("[[n{number}]] ")).collect::<String>();
        let harness = Harness::new(&format!("//- many.md\n{links}\n"));
        let called = harness.called("get_node", json!({"id": "many.md"}));
        let crate::Reply::Answer(answer) = called.reply else { panic!("{called:?}") };
        assert_eq!(answer["links"].as_array().unwrap().len(), 100);
        assert_eq!(answer["links_total"], 120);
        assert_eq!(called.warnings[0], "\"many.md\": 100 of its 120 links are listed");
    }

    #[test]
    fn an_outside_change_is_visible_at_once() {
        let harness = Harness::new("//- a.md\nold\n");
        assert_eq!(harness.call("get_node", json!({"id": "a.md"}))["content"], "old\n");
        harness.vault.put("a.md", "new [[b]]\n");
        assert_eq!(harness.call("get_node", json!({"id": "a.md"}))["content"], "new [[b]]\n");
        harness.vault.put("b.md", "made elsewhere\n");
        assert_eq!(harness.call("get_node", json!({"id": "b.md"}))["content"], "made elsewhere\n");
        assert_eq!(harness.call("get_neighbors", json!({"id": "b.md"}))[0]["id"], "a.md");
        harness.vault.remove("a.md");
        assert_eq!(harness.call("get_node", json!({"id": "a.md"})), json!(null));
    }

    #[test]
    fn files_that_differ_only_in_case_have_distinct_ids() {
        let vault =
            "//- Twin.md\nupper [[x]]\n//- twin.md\n---\naliases: [low]\n---\nlower\n//- x.md\n[[low]] [[Twin]]\n";
        let harness = Harness::new(vault);
        let get = |id: &str| harness.call("get_node", json!({"id": id, "depth": 1}));
        let (upper, lower) = (get("Twin.md"), get("twin.md"));
        assert_eq!((&upper["id"], &upper["content"]), (&json!("Twin.md"), &json!("upper [[x]]\n")));
        assert_eq!((&lower["id"], &lower["content"]), (&json!("twin.md"), &json!("lower\n")));
        let links = json!([{"id": "twin.md", "title": "Twin"}, {"id": "Twin.md", "title": "Twin"}]);
        assert_eq!((&get("x.md")["links"], &get("x.md")["incomingCount"]), (&links, &json!(1)));
        // When the owner of the lowercased id goes, the other has that id.
        harness.vault.remove("twin.md");
        harness.knowledge.apply(&quipu_core::index::FileBatch::All, &|_| {}).unwrap();
        assert_eq!(get("twin.md")["content"], "upper [[x]]\n");
        assert_eq!(get("x.md")["links"][1], json!({"id": "twin.md", "title": "Twin"}));
        // Of two that are both not in lower case the first in byte order has it.
        harness.vault.put("TWIN.md", "capitals");
        harness.knowledge.apply(&quipu_core::index::FileBatch::All, &|_| {}).unwrap();
        assert_eq!((&get("TWIN.md")["id"], &get("Twin.md")["id"]), (&json!("twin.md"), &json!("Twin.md")));
        let (code, message) = harness.fails("update_node", json!({"id": "twin.md", "content": "x"}));
        let expected = "cannot write twin.md: it matches TWIN.md, Twin.md; give one of these paths exactly";
        assert_eq!((code.as_str(), message.as_str()), ("INVALID_PARAMS", expected));
    }

    #[test]
    fn special_characters_are_preserved() {
        let text = "tab\t bell\u{7} escape\u{1b} nul\u{0} \u{2028}\u{202e} 👨‍👩‍👧 \"quoted\" \\\n";
        let harness = Harness::new("");
        harness.vault.put("odd.md", text);
        let answer = harness.call("get_node", json!({"id": "odd.md"}));
        assert_eq!(answer["content"], text);
        let wire = answer.to_string();
        assert!(!wire.contains(|character: char| character.is_control()), "{wire}");
    }

    #[test]
    fn a_file_that_cannot_be_read_is_a_failure() {
        let harness = Harness::new(GRAPH);
        harness.vault.refuse_reading("notes/Node.md");
        let (code, message) = harness.fails("get_node", json!({"id": "notes/node.md"}));
        assert_eq!(code, "PROVIDER_ERROR");
        assert_eq!(message, "cannot read notes/Node.md: Permission denied (os error 13)");
    }
}
