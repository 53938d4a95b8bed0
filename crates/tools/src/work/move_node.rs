//! `move_node`: moves or renames a note or a folder of notes, links included.

use quipu_core::index::Snapshot;
use quipu_core::model::{NoteId, VaultPath};
use quipu_core::notes::{MovedNotes, NoteError, NoteMove};
use quipu_core::quoted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer_size::{LIST_ROOM, fitting};
use crate::not_found::write_error;
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Note id; with "/" at the end a folder.
    #[schemars(length(min = 1))]
    id: String,
    /// New path: "archive/plan.md", or "archive/" to keep the name.
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
    /// Number of other files of a folder, such as images, that moved along.
    #[serde(skip_serializing_if = "Option::is_none")]
    other_files: Option<usize>,
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

/// Notes named in warnings.
const MAX_LOST: usize = 5;

impl Tool for MoveNode {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "move_node";
    const DESCRIPTION: &'static str = "Move a note, or a folder with all its files, to another path; links to it and \
        in it are rewritten. undo_change reverts a move. For a new title use update_node.";
    const ACCESS: Access = Access::Destroy;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let wanted = NoteMove { id: &params.id, to: &params.to, update_links: params.update_links };
        let MovedNotes { moved, updated_links, dangling, lost_links, other_files, kept } =
            call.knowledge.move_notes(call.session, call.request, &wanted).map_err(|error| {
                let is_missing = matches!(error, NoteError::NotFound { .. });
                match folder_of_name(&call.knowledge.snapshot(), &params.id).filter(|_| is_missing) {
                    Some(folder) => {
                        ToolError { message: format!("{error}; the folder is {}", quoted(&folder)), ..error.into() }
                    }
                    None => write_error(call, &params.id, error),
                }
            })?;
        for link in &dangling {
            let link = quoted(link.as_str());
            call.warn(format!(
                "{link}: this symbolic link led to what was moved and now leads nowhere; correct or remove it"
            ));
        }
        warn_of_lost_links(call, &lost_links);
        warn_of_kept(call, &params.id, &kept);
        let node = |(old_id, id): (NoteId, NoteId)| MovedNode { old_id: old_id.to_string(), id: id.to_string() };
        let mut moved: Vec<MovedNode> = moved.into_iter().map(node).collect();
        let (updated_links, updated_links_total) = listed_ids(call, &updated_links);
        let mut output = Output {
            id: None,
            old_id: None,
            moved: None,
            moved_total: None,
            other_files: None,
            updated_links,
            updated_links_total,
        };
        if params.id.ends_with('/') {
            output.other_files = Some(other_files);
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

/// The folder that a client means by a name without `/` at the end.
fn folder_of_name(snapshot: &Snapshot, name: &str) -> Option<String> {
    let folder = NoteId::new(&format!("{}/", name.trim_end_matches('/'))).to_string();
    snapshot.files().any(|key| snapshot.note(key).id.as_str().starts_with(&folder)).then_some(folder)
}

/// Names what a folder's move left behind.
fn warn_of_kept(call: &Call<'_>, folder: &str, kept: &[String]) {
    if kept.is_empty() {
        return;
    }
    let names: Vec<String> = kept.iter().take(MAX_LOST).map(|name| quoted(name)).collect();
    let more = kept.len() - names.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    call.warn(format!(
        "{}: {} files or folders stay, since they are hidden, excluded, git-ignored or symbolic links: {}{more}",
        quoted(folder),
        kept.len(),
        names.join(", ")
    ));
}

/// Names the links that mean nothing now.
pub(crate) fn warn_of_lost_links(call: &Call<'_>, lost: &[(VaultPath, String)]) {
    for (path, target) in lost.iter().take(MAX_LOST) {
        let (path, target) = (quoted(path.as_str()), quoted(target));
        call.warn(format!(
            "{path}: its link to {target} was not rewritten, since its bytes are not UTF-8 or its place cannot hold the new path; correct it"
        ));
    }
    if let Some(more) = lost.len().checked_sub(MAX_LOST).filter(|more| *more > 0) {
        let notes = if more == 1 { "note has" } else { "notes have" };
        call.warn(format!("{more} more {notes} a link that was not rewritten"));
    }
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
            "other_files": 0,
            "updated_links": ["new/c.md"]
        });
        assert_eq!(answer, expected);
        assert_eq!(harness.vault.paths(), ["new/a.md", "new/c.md", "new/sub/B.md", "x.md"]);
        assert_eq!(harness.vault.text("new/c.md").unwrap(), "[[a]] [[new/a]]\n");
    }

    #[test]
    fn other_files_move_with_their_folder() {
        let vault = "//- old/a.md\n![p](./img/p%20q.png) ![[p q.png]] ![s](../shared/s.png)\n//- old/img/p q.png\nP\n\
            //- old/data.csv\n1,2\n//- old/.hidden\nx\n//- old/sub/.env\ny\n//- x.md\n[t](old/data.csv) ![p](old/img/p%20q.png 'T')\n\
            //- shared/s.png\nS\n//- shared/b.md\n[d](../old/DATA.csv) [n](../old/none.csv)\n";
        let harness = Harness::new(vault);
        let called = harness.called("move_node", json!({"id": "old/", "to": "archive/2026/"}));
        let crate::Reply::Answer(answer) = called.reply else { panic!("{called:?}") };
        let expected = json!({
            "moved": [{"old_id": "old/a.md", "id": "archive/2026/a.md"}],
            "other_files": 2,
            "updated_links": ["archive/2026/a.md", "shared/b.md", "x.md"]
        });
        assert_eq!(answer, expected);
        let warning = "\"old/\": 2 files or folders stay, since they are hidden, excluded, git-ignored or symbolic links: \
            \"old/.hidden\", \"old/sub/.env\"";
        assert_eq!(called.warnings.last().map(String::as_str), Some(warning));
        let text = |path: &str| harness.vault.text(path).unwrap();
        assert_eq!(text("archive/2026/a.md"), "![p](./img/p%20q.png) ![[p q.png]] ![s](../../shared/s.png)\n");
        assert_eq!(text("x.md"), "[t](archive/2026/data.csv) ![p](archive/2026/img/p%20q.png 'T')\n");
        assert_eq!(text("shared/b.md"), "[d](../archive/2026/data.csv) [n](../old/none.csv)\n");
        assert_eq!((text("archive/2026/img/p q.png"), text("old/.hidden")), ("P\n".into(), "x\n".into()));
        let (code, message) = harness.fails("move_node", json!({"id": "archive/", "to": "y/", "update_links": false}));
        assert_eq!((code.as_str(), message.contains("2 note(s) link to it")), ("LINK_INTEGRITY", true), "{message}");
        harness.call("move_node", json!({"id": "archive/2026/", "to": "old/"}));
        assert_eq!(text("x.md"), "[t](old/data.csv) ![p](old/img/p%20q.png 'T')\n");
    }

    #[test]
    fn existing_file_at_the_target_refuses_the_folder_move() {
        let harness = Harness::new("//- old/a.md\n[x](p.png)\n//- old/p.png\nP\n//- new/P.png\nother\n");
        let (code, message) = harness.fails("move_node", json!({"id": "old/", "to": "new/"}));
        assert_eq!(
            (code.as_str(), message.starts_with("new/P.png already exists")),
            ("NODE_EXISTS", true),
            "{message}"
        );
        assert_eq!(harness.vault.paths(), ["new/P.png", "old/a.md", "old/p.png"]);
    }

    #[test]
    fn links_in_frontmatter_follow_a_move_and_a_rename() {
        let harness = Harness::new(
            "//- a.md\n---\nup: \"[[b]]\" # c\nsee: ['[[notes/b#h|x]]', \"[m](notes/b.md)\"]\n---\n//- notes/b.md\n---\nup: \"[m](../a.md)\"\n---\n",
        );
        let answer = harness.call("move_node", json!({"id": "notes/b.md", "to": "deep/er/c.md"}));
        assert_eq!(answer["updated_links"], json!(["a.md", "deep/er/c.md"]));
        let text = |path: &str| harness.vault.text(path).unwrap();
        assert_eq!(text("a.md"), "---\nup: \"[[c]]\" # c\nsee: ['[[deep/er/c#h|x]]', \"[m](deep/er/c.md)\"]\n---\n");
        assert_eq!(text("deep/er/c.md"), "---\nup: \"[m](../../a.md)\"\n---\n");
        harness.call("get_node", json!({"id": "deep/er/c.md"}));
        let update = json!({"id": "deep/er/c.md", "title": "D e", "update_links": true});
        assert_eq!(harness.call("update_node", update)["id"], "deep/er/d e.md");
        let renamed = "---\nup: \"[[D e]]\" # c\nsee: ['[[deep/er/D e#h|x]]', \"[m](deep/er/D%20e.md)\"]\n---\n";
        assert_eq!(text("a.md"), renamed);
    }

    #[test]
    fn a_note_that_is_not_utf8_moves_byte_for_byte() {
        let harness = Harness::new("//- b.md\nB\n");
        harness.vault.put("a.md", b"caf\xE9 [[b]] [b](b.md) \xFF\n");
        harness.vault.put("c.md", b"---\nup: \"[[x/a|\xE9]]\"\n---\n[a](a.md) \xFE\n");
        let apply = || harness.knowledge.apply(&quipu_core::index::FileBatch::All, &|_| {}).unwrap();
        apply();
        harness.call("move_node", json!({"id": "a.md", "to": "x/"}));
        assert_eq!(harness.vault.bytes("x/a.md").unwrap(), b"caf\xE9 [[b]] [b](../b.md) \xFF\n");
        assert_eq!(harness.vault.bytes("c.md").unwrap(), b"---\nup: \"[[x/a|\xE9]]\"\n---\n[a](x/a.md) \xFE\n");
        let called = harness.called("move_node", json!({"id": "x/a.md", "to": "y/a.md"}));
        assert_eq!(harness.vault.bytes("c.md").unwrap(), b"---\nup: \"[[x/a|\xE9]]\"\n---\n[a](y/a.md) \xFE\n");
        let lost = "\"c.md\": its link to \"x/a\" was not rewritten, since its bytes are not UTF-8 or its place cannot \
                    hold the new path; correct it";
        assert!(called.warnings.iter().any(|warning| warning == lost), "{:?}", called.warnings);
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
            ("D", "x/", "NODE_NOT_FOUND", "the folder is \"d/\""),
            ("takn.md", "x/", "NODE_NOT_FOUND", "near names: \"Taken.md\""),
            ("/", "x/", "INVALID_PARAMS", "root folder"),
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
