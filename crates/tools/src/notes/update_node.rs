//! `update_node`: changes the text, tags or title of a note, unless it has an edit that this client has not seen.

use quipu_core::model::VaultPath;
use quipu_core::notes::{NoteUpdate, UnreadText};
use quipu_core::{quoted, shell_quoted};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::node::Node;
use crate::hints::warn_of_mentions;
use crate::not_found::write_error;
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;
use crate::work::move_node::{listed_ids, warn_of_lost_links};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Note id.
    id: String,
    /// New title. Renames the file in its folder, so the id changes.
    #[schemars(length(min = 1))]
    title: Option<String>,
    /// New text; read a long note to its end first. Frontmatter stays unless the text has its own.
    content: Option<String>,
    /// New tags in place of those in the frontmatter.
    #[schemars(length(max = 1000), inner(length(min = 1)))]
    tags: Option<Vec<String>>,
    /// With title: rewrite incoming links; otherwise they prevent the rename.
    #[serde(default)]
    update_links: bool,
    /// Fail unless the note has this version.
    expected_version: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    #[serde(flatten)]
    node: Node,
    /// After a rename: notes whose links were rewritten.
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_links: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_links_total: Option<usize>,
}

pub(crate) struct UpdateNode;

impl Tool for UpdateNode {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "update_node";
    const DESCRIPTION: &'static str = "Replace a note's title, whole text or tags (at least one) and return it. Fails \
        if it changed since you read it; the replaced version is kept. To change parts of it use edit_node; to move \
        it use move_node.";
    const ACCESS: Access = Access::Destroy;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let update = NoteUpdate {
            id: &params.id,
            title: params.title.as_deref(),
            content: params.content.as_deref(),
            tags: params.tags.as_deref(),
            update_links: params.update_links,
            expected_version: params.expected_version.as_deref(),
        };
        let updated = call.knowledge.update_note(call.session, call.request, &update);
        let updated = updated.map_err(|error| write_error(call, &params.id, error))?;
        if let Some(unread) = updated.unread {
            warn_of_unread(call, &updated.note.note().path, &unread);
        }
        let renamed = quoted(updated.note.note().path.as_str());
        for link in &updated.dangling {
            let link = quoted(link.as_str());
            call.warn(format!(
                "{link}: this symbolic link led to the renamed file and now leads nowhere; point it to {renamed} or remove it"
            ));
        }
        warn_of_lost_links(call, &updated.lost_links);
        if params.content.is_some() {
            warn_of_mentions(call, &updated.note.note().path, updated.note.body(), "");
        }
        let (updated_links, updated_links_total) = match updated.updated_links {
            Some(ids) => {
                let (listed, total) = listed_ids(call, &ids);
                (Some(listed), total)
            }
            None => (None, None),
        };
        Ok(Output { node: Node::single(call, &updated.note)?, updated_links, updated_links_total })
    }
}

/// Says how to bring text back that was replaced unread. Clients without the tool get the command alone.
fn warn_of_unread(call: &Call<'_>, path: &VaultPath, unread: &UnreadText) {
    let UnreadText { version, chars } = unread;
    let mut message = format!(
        "{}: {chars} characters that you had not read were replaced; revert_node with version \"{version}\" brings them back",
        quoted(path.as_str())
    );
    if call.knowledge.is_of_folder() {
        let end_of_options = if path.as_str().starts_with('-') { "-- " } else { "" };
        let path = shell_quoted(path.as_str());
        message += &format!("; in a shell, `quipu revert {end_of_options}{path} {version}` does");
    }
    call.warn(message);
}

#[cfg(test)]
mod tests {
    use quipu_core::Session;
    use serde_json::json;

    use crate::Reply;
    use crate::testing::Harness;

    const NOTE: &str = "\
//- notes/Plan.md
---
# Kept as it is.
status:   draft
tags: [old]   # with a comment
---

Old text.
";

    #[test]
    fn a_mistyped_id_gets_near_names() {
        let (code, message) = Harness::new(NOTE).fails("update_node", json!({"id": "notes/plam.md", "content": "x"}));
        let expected = "no note has the id notes/plam.md; near names: \"notes/Plan.md\"";
        assert_eq!((code.as_str(), message.as_str()), ("NODE_NOT_FOUND", expected));
    }

    #[test]
    fn text_and_tags_change_and_other_bytes_stay() {
        let harness = Harness::new(NOTE);
        let arguments = json!({"id": "notes/plan.md", "content": "New text.\n", "tags": ["new", "#two"]});
        let expected = json!({
            "id": "notes/plan.md",
            "title": "Plan",
            "version": "903e9aa4643fdfd2",
            "content": "New text.\n",
            "tags": ["new", "two"],
            "links": [],
            "properties": {"status": "draft"}
        });
        assert_eq!(harness.call("update_node", arguments), expected);
        assert_eq!(harness.call("get_node", json!({"id": "notes/plan.md"})), expected);
        let text = harness.vault.text("notes/Plan.md").unwrap();
        assert!(text.starts_with("---\n# Kept as it is.\nstatus:   draft\ntags: [new, two]"), "{text}");
        assert!(text.ends_with("\n---\n\nNew text.\n"), "{text}");
    }

    /// A person edits for minutes, and the page reads the note again meanwhile: what the client was shown last is not what the
    /// edit started from.
    #[test]
    fn an_expected_version_guards_against_edits_that_were_seen() {
        let harness = Harness::new(NOTE);
        let read = harness.call("get_node", json!({"id": "notes/plan.md"}));
        harness.call("update_node", json!({"id": "notes/plan.md", "content": "By another.\n"}));
        harness.call("get_node", json!({"id": "notes/plan.md"}));
        let late = json!({"id": "notes/plan.md", "content": "Late.\n", "expected_version": read["version"]});
        let (code, message) = harness.fails("update_node", late);
        assert!(code == "PROVIDER_ERROR" && message.contains("is not the version"), "{code} {message}");
        let now = harness.call("get_node", json!({"id": "notes/plan.md"}));
        let again = json!({"id": "notes/plan.md", "content": "Late.\n", "expected_version": now["version"]});
        assert_eq!(harness.call("update_node", again)["content"], "Late.\n");
    }

    #[test]
    fn a_title_renames_the_file_in_its_folder() {
        let harness = Harness::new(NOTE);
        let answer = harness.call("update_node", json!({"id": "notes/plan.md", "title": "Grand Plan"}));
        assert_eq!((&answer["id"], &answer["title"]), (&json!("notes/grand plan.md"), &json!("Grand Plan")));
        assert_eq!(harness.vault.paths(), ["notes/Grand Plan.md"]);
        assert_eq!(harness.call("get_node", json!({"id": "notes/plan.md"})), json!(null));
        assert!(harness.vault.text("notes/Grand Plan.md").unwrap().contains("\ntitle: Grand Plan\n"));
    }

    #[test]
    fn an_update_without_changes_is_refused() {
        let harness = Harness::new(NOTE);
        for arguments in
            [json!({"id": "notes/plan.md"}), json!({"id": "notes/plan.md", "title": null, "update_links": true})]
        {
            let expected = ("INVALID_PARAMS".into(), "give at least one of `title`, `content` and `tags`".into());
            assert_eq!(harness.fails("update_node", arguments), expected);
        }
        let missing = harness.fails("update_node", json!({"id": "Notes/Other.md", "tags": []}));
        assert_eq!(missing, ("NODE_NOT_FOUND".into(), "no note has the id notes/other.md".into()));
    }

    #[test]
    fn a_title_that_cannot_be_a_file_name_is_refused() {
        let harness = Harness::new("//- a.md\n//- Taken.md\n");
        for title in ["", "  ", "x/y", "x\\y", "..", "x\ny", ".hidden"] {
            let (code, message) = harness.fails("update_node", json!({"id": "a.md", "title": title}));
            assert_eq!(code, "INVALID_PARAMS", "{title:?}: {message}");
        }
        let (code, message) = harness.fails("update_node", json!({"id": "a.md", "title": "taken"}));
        assert_eq!((code.as_str(), &message[..8]), ("NODE_EXISTS", "Taken.md"));
        assert_eq!(harness.vault.paths(), ["Taken.md", "a.md"]);
    }

    #[test]
    fn a_note_that_others_link_to_is_not_renamed() {
        let harness = Harness::new("//- a.md\n//- b.md\n[[a]]\n//- c.md\n[x](a.md)\n");
        let (code, message) = harness.fails("update_node", json!({"id": "a.md", "title": "New"}));
        assert_eq!(code, "LINK_INTEGRITY");
        assert_eq!(
            message,
            "cannot rename or move a.md: 2 note(s) link to it; pass `update_links: true` to rewrite their links too"
        );
        assert_eq!(harness.call("update_node", json!({"id": "a.md", "content": "x", "tags": ["t"]}))["content"], "x");
        // The same name in other capitals breaks no link.
        assert_eq!(harness.call("update_node", json!({"id": "a.md", "title": "A"}))["id"], "a.md");
        assert_eq!(harness.vault.paths(), ["A.md", "b.md", "c.md"]);
    }

    #[test]
    fn update_links_rewrites_incoming_links() {
        let harness = Harness::new(
            "\
//- notes/Old Name.md
Itself: [[Old Name]] and [[#Part]].
//- index.md
---
related: \"[[Old Name]]\"
---
Plain [[Old Name]], labelled [[old-name|the plan]], part [[Old Name#Part|here]], block [[notes/Old Name#^b1]].
Embedded ![[Old Name]], in a path [[notes/old name]], with an ending [[Old Name.md]].
Markdown [one](notes/Old%20Name.md#part \"Title\"), [two](<notes/Old Name.md>), [three][ref].
Not a link: `[[Old Name]]`, and [[Older Name]].

| table | [[Old Name\\|cell]] |
|---|---|

[ref]: notes/Old%20Name.md
//- notes/near.md
[near](Old%20Name.md) and [[./Old Name]]
//- other.md
Nothing to do with it.
",
        );
        let arguments = json!({"id": "notes/old name.md", "title": "New Name", "update_links": true});
        let answer = harness.call("update_node", arguments);
        assert_eq!(answer["id"], "notes/new name.md", "{answer}");
        assert_eq!(answer["updated_links"], json!(["index.md", "notes/near.md", "notes/new name.md"]));
        let index = "\
Plain [[New Name]], labelled [[New Name|the plan]], part [[New Name#Part|here]], block [[notes/New Name#^b1]].
Embedded ![[New Name]], in a path [[notes/New Name]], with an ending [[New Name.md]].
Markdown [one](notes/New%20Name.md#part \"Title\"), [two](<notes/New Name.md>), [three][ref].
Not a link: `[[Old Name]]`, and [[Older Name]].

| table | [[New Name\\|cell]] |
|---|---|

[ref]: notes/New%20Name.md
";
        let text = harness.vault.text("index.md").unwrap();
        assert_eq!(&text[text.find("Plain").unwrap()..], index);
        assert_eq!(harness.vault.text("notes/near.md").unwrap(), "[near](New%20Name.md) and [[./New Name]]\n");
        assert!(harness.vault.text("notes/New Name.md").unwrap().ends_with("Itself: [[New Name]] and [[#Part]].\n"));
        assert_eq!(harness.vault.text("other.md").unwrap(), "Nothing to do with it.\n");
        let neighbours = harness.call("get_neighbors", json!({"id": "notes/new name.md", "direction": "in"}));
        assert_eq!(neighbours.as_array().unwrap().len(), 2, "{neighbours}");
    }

    #[test]
    fn number_of_rewritten_notes_is_reported_if_the_list_is_cut() {
        let name = "n".repeat(180);
        let linking: String = (0..150).map(|number| format!("//- {name}{number}.md\n[[a]]\n")).collect();
        let harness = Harness::new(&format!("//- a.md\n{linking}"));
        let answer = harness.call("update_node", json!({"id": "a.md", "title": "B", "update_links": true}));
        assert!(answer["updated_links"].as_array().is_some_and(|listed| listed.len() < 150), "{answer}");
        assert_eq!(answer["updated_links_total"], 150);
    }

    #[test]
    fn links_by_title_alias_and_frontmatter_are_rewritten() {
        let harness = Harness::new(
            "\
//- deep/bar.md
---
title: Foo
aliases: [Nick]
---
//- a.md
---
depends_on: [\"[[Foo]]\", \"[[deep/bar]]\"]
---
By title [[Foo]], by alias [[Nick]], by file [[bar]].
",
        );
        let arguments = json!({"id": "deep/bar.md", "title": "Baz", "update_links": true});
        assert_eq!(harness.call("update_node", arguments)["id"], "deep/baz.md");
        let expected = "---\ndepends_on: [\"[[Baz]]\", \"[[deep/Baz]]\"]\n---\n\
            By title [[Baz]], by alias [[Nick]], by file [[Baz]].\n";
        assert_eq!(harness.vault.text("a.md").unwrap(), expected);
        assert_eq!(harness.call("get_neighbors", json!({"id": "deep/baz.md"}))[0]["id"], "a.md");
    }

    #[test]
    fn a_link_that_would_mean_another_note_is_written_with_its_path() {
        let harness = Harness::new("//- x/old.md\n//- y/taken.md\n//- y/a.md\n[[old]] [[taken]]\n");
        harness.call("update_node", json!({"id": "x/old.md", "title": "Taken", "update_links": true}));
        assert_eq!(harness.vault.text("y/a.md").unwrap(), "[[x/Taken]] [[taken]]\n");
    }

    #[test]
    fn an_outside_edit_is_never_overwritten() {
        let harness = Harness::new(NOTE);
        harness.call("get_node", json!({"id": "notes/plan.md"}));
        harness.vault.put("notes/Plan.md", "edited elsewhere\n");
        let update = || json!({"id": "notes/plan.md", "content": "mine\n"});
        let (code, message) = harness.fails("update_node", update());
        assert_eq!(code, "PROVIDER_ERROR");
        assert_eq!(
            message,
            "notes/Plan.md was changed elsewhere since you last read it; nothing was written. \
             Read it again, then repeat the change"
        );
        assert_eq!(harness.vault.text("notes/Plan.md").unwrap(), "edited elsewhere\n");

        // A glimpse in a list is not reading.
        harness.vault.put("a.md", "[[Plan]]");
        harness.call("get_node", json!({"id": "a.md", "depth": 1}));
        assert_eq!(harness.fails("update_node", update()).0, "PROVIDER_ERROR");

        harness.call("get_node", json!({"id": "notes/plan.md"}));
        assert_eq!(harness.call("update_node", update())["content"], "mine\n");
        assert_eq!(harness.call("update_node", update())["content"], "mine\n", "its own writes it knows");
    }

    #[test]
    fn a_partly_read_text_is_not_overwritten() {
        let harness = Harness::new(&format!("//- long.md\n{}the end\n", "word ".repeat(3000)));
        let read = || harness.call("get_node", json!({"id": "long.md"}));
        let rewrite = || json!({"id": "long.md", "content": "mine\n"});
        read();
        let (code, message) = harness.fails("update_node", rewrite());
        assert_eq!(code, "PROVIDER_ERROR");
        assert_eq!(
            message,
            "only a part of long.md was shown to you, and `content` would replace all of it; nothing was written. \
             Read the rest with `offset`, as `truncated` says, then repeat the change"
        );
        // What it does not replace it need not have seen.
        assert_eq!(harness.call("update_node", json!({"id": "long.md", "tags": ["t"]}))["tags"], json!(["t"]));
        assert_eq!(harness.fails("update_node", rewrite()).0, "PROVIDER_ERROR", "its answer was cut as well");

        harness.call("get_document", json!({"path": "long.md"}));
        read();
        harness.call("update_node", json!({"id": "long.md", "title": "Long"}));
        assert_eq!(
            harness.call("update_node", rewrite())["content"],
            "mine\n",
            "nothing is forgotten of what was seen"
        );
        let long = json!({"id": "long.md", "content": "more ".repeat(3000)});
        harness.call("update_node", long.clone());
        harness.call("update_node", long);
        assert!(harness.vault.text("Long.md").unwrap().ends_with("more more "), "what it wrote it knows");
    }

    #[test]
    fn a_partly_read_new_version_is_not_overwritten() {
        let harness = Harness::new("//- a.md\nshort\n");
        harness.call("get_document", json!({"path": "a.md"}));
        harness.vault.put("a.md", format!("{}edited elsewhere\n", "word ".repeat(3000)));
        harness.call("get_node", json!({"id": "a.md"}));
        assert_eq!(harness.fails("update_node", json!({"id": "a.md", "content": "mine\n"})).0, "PROVIDER_ERROR");
        assert!(harness.vault.text("a.md").unwrap().ends_with("edited elsewhere\n"));
        assert_eq!(harness.call("delete_node", json!({"id": "a.md"})), json!({"deleted": true}));
    }

    #[test]
    fn without_reading_the_indexed_version_counts() {
        let harness = Harness::new(NOTE);
        let answer = harness.call("update_node", json!({"id": "notes/plan.md", "content": "never read, and known\n"}));
        assert_eq!(answer["content"], "never read, and known\n");

        let stranger = Session::default();
        harness.vault.put("notes/Plan.md", "edited elsewhere\n");
        let arguments = json!({"id": "notes/plan.md", "content": "blind\n"});
        let reply = harness.called_by(&stranger, "update_node", arguments).reply;
        assert!(matches!(&reply, Reply::Failure(text) if text.contains("PROVIDER_ERROR")), "{reply:?}");
        assert_eq!(harness.vault.text("notes/Plan.md").unwrap(), "edited elsewhere\n");
    }

    #[test]
    fn an_edited_linking_note_stops_the_rename() {
        let harness = Harness::new("//- a.md\n//- b.md\n[[a]]\n");
        harness.vault.put("b.md", "[[a]] edited\n");
        let (code, message) = harness.fails("update_node", json!({"id": "a.md", "title": "New", "update_links": true}));
        assert_eq!(code, "PROVIDER_ERROR", "{message}");
        assert_eq!(harness.vault.paths(), ["a.md", "b.md"]);
        assert_eq!(harness.vault.text("b.md").unwrap(), "[[a]] edited\n");
    }

    #[test]
    fn an_update_keeps_the_case_of_the_file_name() {
        let harness = Harness::new("//- Mixed/CASE Name.md\nold\n");
        harness.call("update_node", json!({"id": "mixed/case name.md", "content": "new\n"}));
        assert_eq!(harness.vault.paths(), ["Mixed/CASE Name.md"]);
    }

    #[test]
    fn frontmatter_that_cannot_be_read_is_not_edited() {
        let harness = Harness::new("//- a.md\n---\ntags: [unclosed\n---\ntext\n");
        let (code, message) = harness.fails("update_node", json!({"id": "a.md", "tags": ["x"]}));
        assert_eq!(code, "PROVIDER_ERROR");
        assert!(message.starts_with("cannot edit the frontmatter of a.md: "), "{message}");
    }
}
