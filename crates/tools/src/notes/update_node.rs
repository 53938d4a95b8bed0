//! A note with new text, tags or title. Never over an edit that this client has not seen.

use quipu_core::notes::{NoteUpdate, Unread};
use quipu_core::quoted;
use schemars::JsonSchema;
use serde::Deserialize;

use super::node::Node;
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Id of the note.
    id: String,
    /// New title; the file is renamed to it in its folder, so the id changes.
    #[schemars(length(min = 1))]
    title: Option<String>,
    #[schemars(
        description = "New text, replacing all of the old; the frontmatter stays, unless the text brings its own, \
        which then replaces it. Read a long note to its end before you rewrite it."
    )]
    content: Option<String>,
    /// New tags, replacing those in the frontmatter.
    #[schemars(length(max = 1000), inner(length(min = 1)))]
    tags: Option<Vec<String>>,
    /// With a title: rewrite the links of other notes too. Otherwise a note that others link to is not renamed.
    #[serde(default)]
    update_links: bool,
}

pub(crate) struct UpdateNode;

impl Tool for UpdateNode {
    type Params = Params;
    type Output = Node;

    const NAME: &'static str = "update_node";
    const DESCRIPTION: &'static str = "Change a note's title, text or tags (at least one) and return it. If it \
        changed since you read it, nothing is written. What is replaced is kept and can be restored.";
    const ACCESS: Access = Access::Destroy;
    const IDEMPOTENT: bool = false;

    fn call(call: &Call<'_>, params: Params) -> Result<Node, ToolError> {
        let update = NoteUpdate {
            id: &params.id,
            title: params.title.as_deref(),
            content: params.content.as_deref(),
            tags: params.tags.as_deref(),
            update_links: params.update_links,
        };
        let updated = call.knowledge.update_note(call.session, call.request, &update)?;
        if let Some(Unread { path, chars }) = updated.unread {
            let path = quoted(path.as_str());
            call.warn(format!(
                "{path}: {chars} characters that you had not read were replaced; `quipu restore {path}` brings them back"
            ));
        }
        let renamed = quoted(updated.note.note().path.as_str());
        for link in &updated.dangling {
            let link = quoted(link.as_str());
            call.warn(format!(
                "{link}: this symbolic link led to the renamed file and now leads nowhere; point it to {renamed} or remove it"
            ));
        }
        Ok(Node::single(call, &updated.note))
    }
}

#[cfg(test)]
mod tests {
    use quipu_core::Session;
    use serde_json::json;

    use crate::Reply;
    use crate::testing::Desk;

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
    fn text_and_tags_change_and_all_else_keeps_every_byte() {
        let desk = Desk::new(NOTE);
        let arguments = json!({"id": "notes/plan.md", "content": "New text.\n", "tags": ["new", "#two"]});
        let expected = json!({
            "id": "notes/plan.md",
            "title": "Plan",
            "content": "New text.\n",
            "tags": ["new", "two"],
            "links": [],
            "properties": {"status": "draft"}
        });
        assert_eq!(desk.call("update_node", arguments), expected);
        assert_eq!(desk.call("get_node", json!({"id": "notes/plan.md"})), expected);
        let text = desk.vault.text("notes/Plan.md").unwrap();
        assert!(text.starts_with("---\n# Kept as it is.\nstatus:   draft\ntags: [new, two]"), "{text}");
        assert!(text.ends_with("\n---\n\nNew text.\n"), "{text}");
    }

    #[test]
    fn a_title_renames_the_file_in_its_folder() {
        let desk = Desk::new(NOTE);
        let answer = desk.call("update_node", json!({"id": "notes/plan.md", "title": "Grand Plan"}));
        assert_eq!((&answer["id"], &answer["title"]), (&json!("notes/grand plan.md"), &json!("Grand Plan")));
        assert_eq!(desk.vault.paths(), ["notes/Grand Plan.md"]);
        assert_eq!(desk.call("get_node", json!({"id": "notes/plan.md"})), json!(null));
        assert!(desk.vault.text("notes/Grand Plan.md").unwrap().contains("\ntitle: Grand Plan\n"));
    }

    #[test]
    fn at_least_one_change() {
        let desk = Desk::new(NOTE);
        for arguments in
            [json!({"id": "notes/plan.md"}), json!({"id": "notes/plan.md", "title": null, "update_links": true})]
        {
            let expected = ("INVALID_PARAMS".into(), "give at least one of `title`, `content` and `tags`".into());
            assert_eq!(desk.fails("update_node", arguments), expected);
        }
        let missing = desk.fails("update_node", json!({"id": "Notes/Other.md", "tags": []}));
        assert_eq!(missing, ("NODE_NOT_FOUND".into(), "no note has the id notes/other.md".into()));
    }

    #[test]
    fn a_title_that_cannot_be_a_file_name_is_refused() {
        let desk = Desk::new("//- a.md\n//- Taken.md\n");
        for title in ["", "  ", "x/y", "x\\y", "..", "x\ny", ".hidden"] {
            let (code, message) = desk.fails("update_node", json!({"id": "a.md", "title": title}));
            assert_eq!(code, "INVALID_PARAMS", "{title:?}: {message}");
        }
        let (code, message) = desk.fails("update_node", json!({"id": "a.md", "title": "taken"}));
        assert_eq!((code.as_str(), &message[..8]), ("NODE_EXISTS", "Taken.md"));
        assert_eq!(desk.vault.paths(), ["Taken.md", "a.md"]);
    }

    #[test]
    fn a_note_that_others_link_to_is_not_renamed() {
        let desk = Desk::new("//- a.md\n//- b.md\n[[a]]\n//- c.md\n[x](a.md)\n");
        let (code, message) = desk.fails("update_node", json!({"id": "a.md", "title": "New"}));
        assert_eq!(code, "LINK_INTEGRITY");
        assert_eq!(
            message,
            "cannot rename a.md: 2 note(s) link to it; pass `update_links: true` to rewrite their links too"
        );
        assert_eq!(desk.call("update_node", json!({"id": "a.md", "content": "x", "tags": ["t"]}))["content"], "x");
        // The same name in other capitals breaks no link.
        assert_eq!(desk.call("update_node", json!({"id": "a.md", "title": "A"}))["id"], "a.md");
        assert_eq!(desk.vault.paths(), ["A.md", "b.md", "c.md"]);
    }

    #[test]
    fn links_follow_when_asked() {
        let desk = Desk::new(
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
        let answer = desk.call("update_node", arguments);
        assert_eq!(answer["id"], "notes/new name.md", "{answer}");
        let index = "\
Plain [[New Name]], labelled [[New Name|the plan]], part [[New Name#Part|here]], block [[notes/New Name#^b1]].
Embedded ![[New Name]], in a path [[notes/New Name]], with an ending [[New Name.md]].
Markdown [one](notes/New%20Name.md#part \"Title\"), [two](<notes/New Name.md>), [three][ref].
Not a link: `[[Old Name]]`, and [[Older Name]].

| table | [[New Name\\|cell]] |
|---|---|

[ref]: notes/New%20Name.md
";
        let text = desk.vault.text("index.md").unwrap();
        assert_eq!(&text[text.find("Plain").unwrap()..], index);
        assert_eq!(desk.vault.text("notes/near.md").unwrap(), "[near](New%20Name.md) and [[./New Name]]\n");
        assert!(desk.vault.text("notes/New Name.md").unwrap().ends_with("Itself: [[New Name]] and [[#Part]].\n"));
        assert_eq!(desk.vault.text("other.md").unwrap(), "Nothing to do with it.\n");
        let neighbours = desk.call("get_neighbors", json!({"id": "notes/new name.md", "direction": "in"}));
        assert_eq!(neighbours.as_array().unwrap().len(), 2, "{neighbours}");
    }

    #[test]
    fn links_by_title_alias_and_frontmatter_follow_too() {
        let desk = Desk::new(
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
        assert_eq!(desk.call("update_node", arguments)["id"], "deep/baz.md");
        let expected = "---\ndepends_on: [\"[[Baz]]\", \"[[deep/Baz]]\"]\n---\n\
            By title [[Baz]], by alias [[Nick]], by file [[Baz]].\n";
        assert_eq!(desk.vault.text("a.md").unwrap(), expected);
        assert_eq!(desk.call("get_neighbors", json!({"id": "deep/baz.md"}))[0]["id"], "a.md");
    }

    #[test]
    fn a_link_that_would_mean_another_note_is_written_with_its_path() {
        let desk = Desk::new("//- x/old.md\n//- y/taken.md\n//- y/a.md\n[[old]] [[taken]]\n");
        desk.call("update_node", json!({"id": "x/old.md", "title": "Taken", "update_links": true}));
        assert_eq!(desk.vault.text("y/a.md").unwrap(), "[[x/Taken]] [[taken]]\n");
    }

    #[test]
    fn an_edit_made_elsewhere_is_never_written_over() {
        let desk = Desk::new(NOTE);
        desk.call("get_node", json!({"id": "notes/plan.md"}));
        desk.vault.put("notes/Plan.md", "edited elsewhere\n");
        let update = || json!({"id": "notes/plan.md", "content": "mine\n"});
        let (code, message) = desk.fails("update_node", update());
        assert_eq!(code, "PROVIDER_ERROR");
        assert_eq!(
            message,
            "notes/Plan.md was changed elsewhere since you last read it; nothing was written. \
             Read it again, then repeat the change"
        );
        assert_eq!(desk.vault.text("notes/Plan.md").unwrap(), "edited elsewhere\n");

        // A glimpse in a list is not reading.
        desk.vault.put("a.md", "[[Plan]]");
        desk.call("get_node", json!({"id": "a.md", "depth": 1}));
        assert_eq!(desk.fails("update_node", update()).0, "PROVIDER_ERROR");

        desk.call("get_node", json!({"id": "notes/plan.md"}));
        assert_eq!(desk.call("update_node", update())["content"], "mine\n");
        assert_eq!(desk.call("update_node", update())["content"], "mine\n", "its own writes it knows");
    }

    #[test]
    fn a_text_that_was_shown_cut_is_not_written_over_before_it_is_read_whole() {
        let desk = Desk::new(&format!("//- long.md\n{}the end\n", "word ".repeat(3000)));
        let read = || desk.call("get_node", json!({"id": "long.md"}));
        let rewrite = || json!({"id": "long.md", "content": "mine\n"});
        read();
        let (code, message) = desk.fails("update_node", rewrite());
        assert_eq!(code, "PROVIDER_ERROR");
        assert_eq!(
            message,
            "only a part of long.md was shown to you, and `content` would replace all of it; nothing was written. \
             Read the rest with `offset`, as `truncated` says, then repeat the change"
        );
        // What it does not replace it need not have seen.
        assert_eq!(desk.call("update_node", json!({"id": "long.md", "tags": ["t"]}))["tags"], json!(["t"]));
        assert_eq!(desk.fails("update_node", rewrite()).0, "PROVIDER_ERROR", "its answer was cut as well");

        desk.call("get_document", json!({"path": "long.md"}));
        read();
        desk.call("update_node", json!({"id": "long.md", "title": "Long"}));
        assert_eq!(desk.call("update_node", rewrite())["content"], "mine\n", "nothing is forgotten of what was seen");
        let long = json!({"id": "long.md", "content": "more ".repeat(3000)});
        desk.call("update_node", long.clone());
        desk.call("update_node", long);
        assert!(desk.vault.text("Long.md").unwrap().ends_with("more more "), "what it wrote it knows");
    }

    #[test]
    fn of_a_new_version_that_was_shown_cut_nothing_is_lost() {
        let desk = Desk::new("//- a.md\nshort\n");
        desk.call("get_document", json!({"path": "a.md"}));
        desk.vault.put("a.md", format!("{}edited elsewhere\n", "word ".repeat(3000)));
        desk.call("get_node", json!({"id": "a.md"}));
        assert_eq!(desk.fails("update_node", json!({"id": "a.md", "content": "mine\n"})).0, "PROVIDER_ERROR");
        assert!(desk.vault.text("a.md").unwrap().ends_with("edited elsewhere\n"));
        assert_eq!(desk.call("delete_node", json!({"id": "a.md"})), json!({"deleted": true}));
    }

    #[test]
    fn a_client_that_read_nothing_is_held_to_what_the_server_knows() {
        let desk = Desk::new(NOTE);
        let answer = desk.call("update_node", json!({"id": "notes/plan.md", "content": "never read, and known\n"}));
        assert_eq!(answer["content"], "never read, and known\n");

        let stranger = Session::default();
        desk.vault.put("notes/Plan.md", "edited elsewhere\n");
        let arguments = json!({"id": "notes/plan.md", "content": "blind\n"});
        let reply = desk.called_by(&stranger, "update_node", arguments).reply;
        assert!(matches!(&reply, Reply::Failure(text) if text.contains("PROVIDER_ERROR")), "{reply:?}");
        assert_eq!(desk.vault.text("notes/Plan.md").unwrap(), "edited elsewhere\n");
    }

    #[test]
    fn a_note_that_links_to_it_and_was_edited_meanwhile_stops_the_rename() {
        let desk = Desk::new("//- a.md\n//- b.md\n[[a]]\n");
        desk.vault.put("b.md", "[[a]] edited\n");
        let (code, message) = desk.fails("update_node", json!({"id": "a.md", "title": "New", "update_links": true}));
        assert_eq!(code, "PROVIDER_ERROR", "{message}");
        assert_eq!(desk.vault.paths(), ["a.md", "b.md"]);
        assert_eq!(desk.vault.text("b.md").unwrap(), "[[a]] edited\n");
    }

    #[test]
    fn a_file_keeps_its_true_name() {
        let desk = Desk::new("//- Mixed/CASE Name.md\nold\n");
        desk.call("update_node", json!({"id": "mixed/case name.md", "content": "new\n"}));
        assert_eq!(desk.vault.paths(), ["Mixed/CASE Name.md"]);
    }

    #[test]
    fn frontmatter_that_cannot_be_read_is_not_edited() {
        let desk = Desk::new("//- a.md\n---\ntags: [unclosed\n---\ntext\n");
        let (code, message) = desk.fails("update_node", json!({"id": "a.md", "tags": ["x"]}));
        assert_eq!(code, "PROVIDER_ERROR");
        assert!(message.starts_with("cannot edit the frontmatter of a.md: "), "{message}");
    }
}
