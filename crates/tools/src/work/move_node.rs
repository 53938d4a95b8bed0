//! `move_node`: moves or renames a note or a folder of notes, links included.

use quipu_core::model::NoteId;
use quipu_core::notes::{MovedNotes, NoteMove};
use quipu_core::quoted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer_size::{LIST_ROOM, fitting};
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Note id; with "/" at the end a folder.
    #[schemars(length(min = 1))]
    id: String,
    /// New path: "archive/plan.md", or "archive/" to keep the name. A folder gets this path. Case is kept.
    #[schemars(length(min = 1))]
    to: String,
    /// Rewrite links to it; otherwise links that would break prevent the move.
    #[serde(default = "default_true")]
    update_links: bool,
}

fn default_true() -> bool {
    true
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    old_id: Option<String>,
    /// The notes of a folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    moved: Option<Vec<MovedNode>>,
    /// Present when not all are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    moved_total: Option<usize>,
    /// Notes whose links were rewritten.
    updated_links: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_links_total: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
struct MovedNode {
    old_id: String,
    id: String,
}

pub(crate) struct MoveNode;

impl Tool for MoveNode {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "move_node";
    const DESCRIPTION: &'static str = "Move a note or a folder to another path; all links keep their meaning. Refused \
        whole if a file is in the way. Move it back to undo. For a new title use update_node.";
    const ACCESS: Access = Access::Destroy;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let wanted = NoteMove { id: &params.id, to: &params.to, update_links: params.update_links };
        let MovedNotes { moved, updated_links, dangling } =
            call.knowledge.move_notes(call.session, call.request, &wanted)?;
        for link in &dangling {
            let link = quoted(link.as_str());
            call.warn(format!(
                "{link}: this symbolic link led to a moved file and now leads nowhere; correct or remove it"
            ));
        }
        let node = |(old_id, id): (NoteId, NoteId)| MovedNode { old_id: old_id.to_string(), id: id.to_string() };
        let mut moved: Vec<MovedNode> = moved.into_iter().map(node).collect();
        let (updated_links, updated_links_total) = listed_ids(call, &updated_links);
        let mut output =
            Output { id: None, old_id: None, moved: None, moved_total: None, updated_links, updated_links_total };
        if params.id.ends_with('/') {
            let total = moved.len();
            moved.truncate(fitting(&moved, LIST_ROOM / 2));
            if moved.len() < total {
                call.warn(format!("{total} notes were moved; {} of them are listed", moved.len()));
                output.moved_total = Some(total);
            }
            output.moved = Some(moved);
        } else if let Some(MovedNode { old_id, id }) = moved.pop() {
            (output.id, output.old_id) = (Some(id), Some(old_id));
        }
        Ok(output)
    }
}

/// The ids of notes whose links were rewritten, as far as they fit into half an answer, and their number if there are more.
pub(crate) fn listed_ids(call: &Call<'_>, ids: &[NoteId]) -> (Vec<String>, Option<usize>) {
    let mut listed: Vec<String> = ids.iter().map(NoteId::to_string).collect();
    listed.truncate(fitting(&listed, LIST_ROOM / 2));
    if listed.len() == ids.len() {
        return (listed, None);
    }
    call.warn(format!("links were rewritten in {} notes; {} of them are listed", ids.len(), listed.len()));
    (listed, Some(ids.len()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::Harness;

    const VAULT: &str = "\
//- notes/Plan.md
---
aliases: [The Plan]
---
Self [[Plan#Part]], near [near](near.md#x), up [[./near]], far [far](../Far.md), root [root](/Far.md), ![pic](img/a.png).
//- notes/near.md
[plan](Plan.md#part) and [[The Plan]] and ![[plan]] and [[notes/Plan|label]]
//- Far.md
[plan](notes/Plan.md) [[plan]]
//- notes/img/a.png
";

    #[test]
    fn a_note_moves_with_its_links() {
        let harness = Harness::new(VAULT);
        let answer = harness.call("move_node", json!({"id": "notes/plan.md", "to": "Archive/2026/"}));
        let expected = json!({
            "id": "archive/2026/plan.md",
            "old_id": "notes/plan.md",
            "updated_links": ["archive/2026/plan.md", "far.md", "notes/near.md"]
        });
        assert_eq!(answer, expected);
        assert_eq!(harness.vault.paths(), ["Archive/2026/Plan.md", "Far.md", "notes/img/a.png", "notes/near.md"]);
        let text = harness.vault.text("Archive/2026/Plan.md").unwrap();
        assert!(
            text.ends_with(
                "Self [[Plan#Part]], near [near](../../notes/near.md#x), up [[../../notes/near]], \
                 far [far](../../Far.md), root [root](/Far.md), ![pic](../../notes/img/a.png).\n"
            ),
            "{text}"
        );
        assert_eq!(
            harness.vault.text("notes/near.md").unwrap(),
            "[plan](../Archive/2026/Plan.md#part) and [[The Plan]] and ![[plan]] and [[Archive/2026/Plan|label]]\n"
        );
        assert_eq!(harness.vault.text("Far.md").unwrap(), "[plan](Archive/2026/Plan.md) [[plan]]\n");
        let back = harness.call("move_node", json!({"id": "archive/2026/plan.md", "to": "notes/Plan.md"}));
        assert_eq!(back["id"], "notes/plan.md");
        for (path, text) in quipu_testkit::fixture::files(VAULT) {
            assert_eq!(harness.vault.text(&path).as_deref(), Some(text.as_str()), "{path} after moving back");
        }
    }

    #[test]
    fn a_folder_merges_into_another_and_keeps_its_case() {
        let harness = Harness::new(
            "//- Old/a.md\n[b](sub/B.md) [[c]] [x](../x.md)\n//- Old/sub/B.md\n[a](../a.md)\n//- new/c.md\n[[a]] [[Old/a]]\n//- x.md\n",
        );
        let answer = harness.call("move_node", json!({"id": "old/", "to": "New/"}));
        let expected = json!({
            "moved": [{"old_id": "old/a.md", "id": "new/a.md"}, {"old_id": "old/sub/b.md", "id": "new/sub/b.md"}],
            "updated_links": ["new/c.md"]
        });
        assert_eq!(answer, expected);
        assert_eq!(harness.vault.paths(), ["new/a.md", "new/c.md", "new/sub/B.md", "x.md"]);
        assert_eq!(harness.vault.text("new/c.md").unwrap(), "[[a]] [[new/a]]\n");
    }

    #[test]
    fn one_conflict_refuses_a_whole_folder() {
        let harness = Harness::new("//- old/a.md\nA\n//- old/b.md\nB\n//- new/B.md\nother\n//- x.md\n[[old/a]]\n");
        let (code, message) = harness.fails("move_node", json!({"id": "old/", "to": "new/"}));
        assert_eq!((code.as_str(), message.starts_with("new/B.md already exists")), ("NODE_EXISTS", true), "{message}");
        assert_eq!(harness.vault.paths(), ["new/B.md", "old/a.md", "old/b.md", "x.md"]);
        assert_eq!(harness.vault.text("x.md").unwrap(), "[[old/a]]\n");
    }

    #[test]
    fn links_to_third_notes_keep_their_meaning() {
        let harness = Harness::new("//- a/index.md\n//- b/deep/index.md\n//- s.md\n[[index]]\n");
        let answer = harness.call("move_node", json!({"id": "b/deep/index.md", "to": "/"}));
        assert_eq!((&answer["id"], &answer["updated_links"]), (&json!("index.md"), &json!(["s.md"])));
        assert_eq!(harness.vault.text("s.md").unwrap(), "[[a/index]]\n");
    }

    #[test]
    fn without_update_links_a_broken_link_refuses_the_move() {
        let harness = Harness::new("//- a.md\n//- b.md\n[[a]]\n//- c.md\n[x](a.md)\n");
        let arguments = json!({"id": "a.md", "to": "x/", "update_links": false});
        let (code, message) = harness.fails("move_node", arguments.clone());
        assert_eq!((code.as_str(), message.contains("1 note(s) link to it")), ("LINK_INTEGRITY", true), "{message}");
        harness.call("delete_node", json!({"id": "c.md"}));
        assert_eq!(harness.call("move_node", arguments)["id"], "x/a.md", "a wikilink by name still resolves");
        assert_eq!(harness.vault.text("b.md").unwrap(), "[[a]]\n");
    }

    #[test]
    fn wrong_arguments_are_named() {
        let harness = Harness::new("//- a.md\n//- d/b.md\n//- Taken.md\n");
        for (id, to, code, says) in [
            ("nope.md", "x.md", "NODE_NOT_FOUND", "nope.md"),
            ("nope/", "x/", "NODE_NOT_FOUND", "nope/"),
            ("/", "x/", "INVALID_PARAMS", "top of the vault"),
            ("a.md", "x", "INVALID_PARAMS", "ends in .md"),
            ("a.md", "../x.md", "INVALID_PARAMS", "inside the vault"),
            ("a.md", "/etc/x.md", "INVALID_PARAMS", "absolute"),
            ("a.md", "x:y.md", "INVALID_PARAMS", "other systems"),
            ("a.md", ".quipu/x.md", "INVALID_PARAMS", "hidden"),
            ("a.md", "taken.md", "NODE_EXISTS", "Taken.md"),
            ("d/", "d/e/", "INVALID_PARAMS", "into itself"),
            ("d/", "e.md", "INVALID_PARAMS", "to a folder"),
        ] {
            let (got, message) = harness.fails("move_node", json!({"id": id, "to": to}));
            assert!(got == code && message.contains(says), "{id} to {to}: {got}, {message}");
        }
        assert_eq!(harness.vault.paths(), ["Taken.md", "a.md", "d/b.md"]);
        let same = json!({"id": "a.md", "old_id": "a.md", "updated_links": []});
        assert_eq!(harness.call("move_node", json!({"id": "a.md", "to": "a.md"})), same);
        assert_eq!(harness.call("move_node", json!({"id": "a.md", "to": "A.md"})), same, "only the case changes");
        assert_eq!(harness.vault.paths(), ["A.md", "Taken.md", "d/b.md"]);
        assert_eq!(harness.call("move_node", json!({"id": "d/", "to": "D"}))["moved"][0]["id"], "d/b.md");
        assert_eq!(harness.vault.paths(), ["A.md", "D/b.md", "Taken.md"]);
    }

    #[test]
    fn a_long_answer_is_cut_and_counted() {
        let vault: String = (0..900).map(|n| format!("//- old/note number {n}.md\n[x](../far.md)\n")).collect();
        let harness = Harness::new(&(vault + "//- far.md\n"));
        let called = harness.called("move_node", json!({"id": "old/", "to": "deep/new/"}));
        let crate::Reply::Answer(answer) = called.reply else { panic!("{:?}", called.reply) };
        assert_eq!((&answer["moved_total"], &answer["updated_links_total"]), (&json!(900), &json!(900)));
        assert!(answer.to_string().len() < 40_000);
        assert_eq!(called.warnings.len(), 2, "{:?}", called.warnings);
    }
}
