//! `edit_node`: changes parts of a note, all of them or none.

use quipu_core::model::Value;
use quipu_core::notes::{Edit, NoteEdits, Position};
use quipu_core::quoted;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::shown_diff;
use crate::hints::warn_of_mentions;
use crate::not_found::write_error;
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Note id.
    id: String,
    /// Fields by op: append, prepend {text}; insert {heading, position, text}; replace_section {heading, text},
    /// delete_section {heading}, with subsections; replace {old, new, count = 1}, exact text that occurs count times;
    /// set_property {key, value}; remove_property {key}; add_tags, remove_tags {tags}; set_task {text, done}.
    #[schemars(length(min = 1, max = 50))]
    edits: Vec<EditFields>,
    /// Fail unless the note has this version.
    expected_version: Option<String>,
    /// Only return the diff.
    #[serde(default)]
    dry_run: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EditFields {
    op: Op,
    /// Heading text, or a path "A > B".
    heading: Option<String>,
    /// start: below the heading line; end: before the first subsection; after: behind all subsections.
    position: Option<Place>,
    text: Option<String>,
    #[schemars(length(min = 1))]
    old: Option<String>,
    new: Option<String>,
    #[schemars(range(min = 1))]
    count: Option<usize>,
    #[schemars(length(min = 1))]
    key: Option<String>,
    #[serde(default)]
    #[schemars(schema_with = "any_value")]
    value: Option<serde_json::Value>,
    #[schemars(length(min = 1, max = 1000), inner(length(min = 1)))]
    tags: Option<Vec<String>>,
    done: Option<bool>,
}

#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Op {
    Append,
    Prepend,
    Insert,
    ReplaceSection,
    DeleteSection,
    Replace,
    SetProperty,
    RemoveProperty,
    AddTags,
    RemoveTags,
    SetTask,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Place {
    Before,
    After,
    Start,
    End,
}

/// The argument check treats null as absent, so null is not a value.
fn any_value(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "number", "boolean", "array", "object"]})
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    id: String,
    version: String,
    changed: bool,
    diff: String,
}

pub(crate) struct EditNode;

impl Tool for EditNode {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "edit_node";
    const DESCRIPTION: &'static str =
        "Edit parts of a note, in order, all or none; returns a diff. For a new title use update_node.";
    const ACCESS: Access = Access::Destroy;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let edits: Result<Vec<Edit>, ToolError> =
            params.edits.into_iter().enumerate().map(|(index, fields)| fields.edit(index)).collect();
        let edits = NoteEdits {
            id: &params.id,
            edits: &edits?,
            expected_version: params.expected_version.as_deref(),
            dry_run: params.dry_run,
        };
        let edited = call.knowledge.edit_note(call.session, call.request, &edits);
        let edited = edited.map_err(|error| write_error(call, &params.id, error))?;
        let path = quoted(edited.path.as_str());
        for warning in edited.warnings {
            call.warn(format!("{path}: {warning}"));
        }
        if edited.diff.is_none() {
            call.warn(format!("{path}: an earlier attempt of this call made the edits; their diff is no longer known"));
        }
        if !params.dry_run {
            let lines = |sign: char| -> String {
                let lines = edited.diff.iter().flat_map(|diff| diff.lines()).filter_map(|line| line.strip_prefix(sign));
                lines.collect::<Vec<_>>().join("\n")
            };
            warn_of_mentions(call, &edited.path, &lines('+'), &lines('-'));
        }
        let changed = edited.diff.as_ref().is_none_or(|diff| !diff.is_empty());
        let diff = edited.diff.unwrap_or_default();
        Ok(Output {
            id: edited.id.to_string(),
            version: edited.version.to_string(),
            changed,
            diff: shown_diff(call, &diff, (edited.before, edited.version)),
        })
    }
}

impl EditFields {
    /// The edit, if it has exactly the fields of its op.
    fn edit(mut self, index: usize) -> Result<Edit, ToolError> {
        let op = self.op;
        let need =
            |name: &str| ToolError::invalid(format!("`edits[{index}].{name}` is missing; {} needs it", name_of(op)));
        let text = |field: &mut Option<String>, name| field.take().ok_or_else(|| need(name));
        let edit = match op {
            Op::Append => Edit::Append { text: text(&mut self.text, "text")? },
            Op::Prepend => Edit::Prepend { text: text(&mut self.text, "text")? },
            Op::Insert => Edit::Insert {
                heading: text(&mut self.heading, "heading")?,
                position: self.position.take().ok_or_else(|| need("position"))?.into(),
                text: text(&mut self.text, "text")?,
            },
            Op::ReplaceSection => Edit::ReplaceSection {
                heading: text(&mut self.heading, "heading")?,
                text: text(&mut self.text, "text")?,
            },
            Op::DeleteSection => Edit::DeleteSection { heading: text(&mut self.heading, "heading")? },
            Op::Replace => Edit::Replace {
                old: text(&mut self.old, "old")?,
                new: text(&mut self.new, "new")?,
                count: self.count.take().unwrap_or(1),
            },
            Op::SetProperty => Edit::SetProperty {
                key: text(&mut self.key, "key")?,
                value: value(self.value.take().ok_or_else(|| no_value(index))?),
            },
            Op::RemoveProperty => Edit::RemoveProperty { key: text(&mut self.key, "key")? },
            Op::AddTags => Edit::AddTags { tags: self.tags.take().ok_or_else(|| need("tags"))? },
            Op::RemoveTags => Edit::RemoveTags { tags: self.tags.take().ok_or_else(|| need("tags"))? },
            Op::SetTask => Edit::SetTask {
                text: text(&mut self.text, "text")?,
                done: self.done.take().ok_or_else(|| need("done"))?,
            },
        };
        match self.unused() {
            Some(name) => {
                Err(ToolError::invalid(format!("`edits[{index}].{name}` has no meaning for {}", name_of(op))))
            }
            None => Ok(edit),
        }
    }

    /// A field that is left over.
    fn unused(&self) -> Option<&'static str> {
        let left = [
            ("heading", self.heading.is_some()),
            ("position", self.position.is_some()),
            ("text", self.text.is_some()),
            ("old", self.old.is_some()),
            ("new", self.new.is_some()),
            ("count", self.count.is_some()),
            ("key", self.key.is_some()),
            ("value", self.value.is_some()),
            ("tags", self.tags.is_some()),
            ("done", self.done.is_some()),
        ];
        left.into_iter().find(|(_, is_left)| *is_left).map(|(name, _)| name)
    }
}

fn no_value(index: usize) -> ToolError {
    ToolError::invalid(format!(
        "`edits[{index}].value` is missing or null; set_property needs a value, and remove_property removes a property"
    ))
}

impl From<Place> for Position {
    fn from(place: Place) -> Self {
        match place {
            Place::Before => Self::Before,
            Place::After => Self::After,
            Place::Start => Self::Start,
            Place::End => Self::End,
        }
    }
}

/// The op as clients write it.
fn name_of(op: Op) -> String {
    serde_json::to_value(op).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

fn value(json: serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(flag) => Value::Bool(flag),
        serde_json::Value::Number(number) => {
            number.as_i64().map(Value::Int).or_else(|| number.as_f64().map(Value::Float)).unwrap_or(Value::Null)
        }
        serde_json::Value::String(text) => Value::Text(text),
        serde_json::Value::Array(items) => Value::List(items.into_iter().map(value).collect()),
        serde_json::Value::Object(entries) => {
            Value::Map(entries.into_iter().map(|(name, json)| (name, value(json))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use quipu_core::Session;
    use serde_json::{Value, json};

    use crate::Reply;
    use crate::testing::Harness;

    const NOTE: &str = "//- Daily.md\n---\nstatus: draft # c\ntags: [a]\n---\n# Day\n\nIntro.\n\n## Log\n- one\n\n## Todo\n- [ ] call Ada\n- [x] done\n";

    fn edited(harness: &Harness, edits: &Value) -> String {
        let answer = harness.call("edit_node", json!({"id": "daily.md", "edits": edits}));
        assert_eq!(answer["changed"], true, "{answer}");
        harness.vault.text("Daily.md").unwrap()
    }

    #[test]
    fn edits_are_applied_in_order_with_one_diff() {
        let harness = Harness::new(NOTE);
        let before = harness.call("get_node", json!({"id": "daily.md"}));
        let edits = json!([
            {"op": "insert", "heading": "Log", "position": "end", "text": "- two"},
            {"op": "replace", "old": "- two", "new": "- two, later"},
            {"op": "set_task", "text": "call ada", "done": true},
            {"op": "set_property", "key": "status", "value": "done"},
            {"op": "add_tags", "tags": ["#b", "A"]},
        ]);
        let dry = harness.call("edit_node", json!({"id": "daily.md", "edits": edits, "dry_run": true}));
        assert_eq!(harness.vault.text("Daily.md").unwrap(), NOTE.replace("//- Daily.md\n", ""));
        assert_eq!(dry["version"], before["version"]);
        let answer =
            harness.call("edit_node", json!({"id": "daily.md", "edits": edits, "expected_version": before["version"]}));
        let diff = "@@ -1,4 +1,4 @@\n ---\n-status: draft # c\n-tags: [a]\n+status: done # c\n+tags: [a, b]\n ---\n\
            @@ -10,5 +10,6 @@\n - one\n+- two, later\n \n ## Todo\n-- [ ] call Ada\n+- [x] call Ada\n - [x] done\n";
        let version = harness.call("get_node", json!({"id": "daily.md"}))["version"].clone();
        assert_eq!(answer, json!({"id": "daily.md", "version": version, "changed": true, "diff": diff}));
        assert_eq!(dry["diff"], diff);
        assert_ne!(version, before["version"]);
    }

    #[test]
    fn a_failing_edit_changes_nothing_and_lists_candidates() {
        let harness =
            Harness::new("//- a.md\n# A\nx x\n## N\nfirst\n# B\n## N\nsecond\n```\n## N\n```\n- [ ] t1\n- [ ] t2\n");
        let fails = |edit: Value| {
            let edits = json!([{"op": "append", "text": "no"}, edit]);
            let (code, message) = harness.fails("edit_node", json!({"id": "a.md", "edits": edits}));
            assert_eq!(code, "INVALID_PARAMS", "{message}");
            message
        };
        assert_eq!(
            fails(json!({"op": "delete_section", "heading": "n"})),
            "cannot apply edit 2 (delete_section): 2 headings are \"n\": line 3 \"A > N\", line 6 \"B > N\"; give the \
             path of headings above it, as \"A > B\", or its line, as \"N (line 3)\", or use replace. Nothing was written"
        );
        assert_eq!(
            fails(json!({"op": "delete_section", "heading": "M"})),
            "cannot apply edit 2 (delete_section): no heading is \"M\"; the note has line 1 \"A\", line 3 \"A > N\", \
             line 5 \"B\", line 6 \"B > N\". Nothing was written"
        );
        let message = fails(json!({"op": "replace", "old": "x", "new": "y"}));
        assert!(
            message.contains("occurs 2 times, and `count` is 1: line 2 \"x x\", line 2 \"x x\"; give more"),
            "{message}"
        );
        let message = fails(json!({"op": "replace", "old": "secnd", "new": "y"}));
        assert!(message.contains("does not occur below the frontmatter; similar: line 7 \"second\""), "{message}");
        let message = fails(json!({"op": "set_task", "text": "t", "done": true}));
        assert!(message.contains("2 tasks match \"t\": line 11 \"[ ] t1\", line 12 \"[ ] t2\""), "{message}");
        assert_eq!(
            fails(json!({"op": "insert", "text": "x", "heading": "A"})),
            "`edits[1].position` is missing; insert needs it"
        );
        let message = fails(json!({"op": "set_property", "key": "status", "value": null}));
        assert!(message.ends_with("set_property needs a value, and remove_property removes a property"), "{message}");
        assert_eq!(fails(json!({"op": "append", "text": "x", "key": "A"})), "`edits[1].key` has no meaning for append");
        assert!(harness.vault.text("a.md").unwrap().ends_with("- [ ] t2\n"));
        let answer = harness.call("edit_node", json!({"id": "a.md", "edits": [
            {"op": "delete_section", "heading": "B > N"}, {"op": "replace_section", "heading": "## n", "text": "new"},
        ]}));
        assert_eq!(answer["changed"], true);
        assert_eq!(harness.vault.text("a.md").unwrap(), "# A\nx x\n## N\nnew\n# B\n");
    }

    #[test]
    fn headings_that_differ_in_case_or_level_are_distinguished() {
        let harness = Harness::new("//- a.md\n## Bookmarks\none\n### bookmarks\ntwo\n");
        let edits = |heading: &str| json!({"id": "a.md", "edits": [{"op": "delete_section", "heading": heading}]});
        let (_, message) = harness.fails("edit_node", edits("BOOKMARKS"));
        let advice = "give the path of headings above it, as \"A > B\", its level, as \"## Bookmarks\", or its line, \
            as \"Bookmarks (line 1)\"";
        assert!(message.ends_with(&format!("{advice}, or use replace. Nothing was written")), "{message}");
        let (_, message) = harness.fails("get_node", json!({"id": "a.md", "section": "BOOKMARKS"}));
        assert!(message.ends_with(advice), "a read offers no edits: {message}");
        let read = harness.call("get_node", json!({"id": "a.md", "section": "Bookmarks"}));
        assert!(read["content"].as_str().unwrap().contains("one"), "{read}");
        harness.call("edit_node", edits("bookmarks"));
        assert_eq!(harness.vault.text("a.md").unwrap(), "## Bookmarks\none\n");
    }

    #[test]
    fn a_tag_with_a_space_is_pointed_out() {
        let harness = Harness::new(NOTE);
        let edits = json!([{"op": "add_tags", "tags": ["in valid"]}]);
        let called = harness.called("edit_node", json!({"id": "daily.md", "edits": edits}));
        let warning =
            "\"Daily.md\": the tag \"in valid\" has white space, which many editors do not allow; \"in-valid\" works";
        assert!(called.warnings.iter().any(|told| told == warning), "{called:?}");
    }

    #[test]
    fn another_version_is_refused() {
        let harness = Harness::new(NOTE);
        let append = |version: &Value, session: &Session| {
            let edits = json!([{"op": "append", "text": "x"}]);
            let arguments = json!({"id": "daily.md", "edits": edits, "expected_version": version});
            harness.called_by(session, "edit_node", arguments).reply
        };
        let first = harness.call("get_node", json!({"id": "daily.md"}))["version"].clone();
        let Reply::Answer(second) = append(&first, &harness.session) else { panic!() };
        let Reply::Failure(failure) = append(&first, &harness.session) else { panic!() };
        let expected = format!(
            "Daily.md is not the version {} that you expected: it is version {} now; nothing was written. Read it again, \
             then repeat the change with the version you read",
            first.as_str().unwrap(),
            second["version"].as_str().unwrap()
        );
        let failure: Value = serde_json::from_str(&failure).unwrap();
        assert_eq!(failure, json!({"error": {"code": "PROVIDER_ERROR", "message": expected}}));
        // Another client may pass the version on; the first one wrote it itself.
        assert!(matches!(append(&second["version"], &Session::default()), Reply::Answer(_)));
        let (code, message) =
            harness.fails("edit_node", json!({"id": "daily.md", "edits": [{"op": "append", "text": "y"}]}));
        assert_eq!(code, "PROVIDER_ERROR");
        assert!(message.contains("changed elsewhere"), "{message}");
    }

    #[test]
    fn an_edit_that_changes_nothing_writes_nothing() {
        let harness = Harness::new(NOTE);
        let edits = json!([{"op": "set_task", "text": "done", "done": true}, {"op": "add_tags", "tags": ["a"]}]);
        let answer = harness.call("edit_node", json!({"id": "daily.md", "edits": edits}));
        assert_eq!((&answer["changed"], &answer["diff"]), (&json!(false), &json!("")));
        assert!(harness.knowledge.trashed().unwrap().is_empty());
        let called = harness.called(
            "edit_node",
            json!({"id": "daily.md", "edits": [
                {"op": "remove_property", "key": "state"}, {"op": "remove_tags", "tags": ["z"]},
            ]}),
        );
        assert_eq!(
            called.warnings,
            ["\"Daily.md\": there is no property \"state\" to remove; the properties are: \"status\""]
        );
    }

    #[test]
    fn properties_take_any_value() {
        let harness = Harness::new(NOTE);
        let text = edited(
            &harness,
            &json!([
                {"op": "set_property", "key": "due", "value": "2026-11-16"},
                {"op": "set_property", "key": "a b: c", "value": {"deep": [1, "two", true]}},
                {"op": "set_property", "key": "authors", "value": ["Ada", "B: C"]},
                {"op": "set_property", "key": "rank", "value": 2.5},
                {"op": "set_property", "key": "status", "value": "3"},
                {"op": "remove_property", "key": "tags"},
            ]),
        );
        let front = "---\nstatus: \"3\" # c\ndue: 2026-11-16\n\"a b: c\": {deep: [1, two, true]}\nauthors:\n  - Ada\n  - \"B: C\"\nrank: 2.5\n---\n# Day\n";
        assert!(text.starts_with(front), "{text}");
        let properties = harness.call("get_node", json!({"id": "daily.md"}))["properties"].clone();
        let expected = json!({"status": "3", "due": "2026-11-16", "a b: c": {"deep": [1, "two", true]}, "authors": ["Ada", "B: C"], "rank": 2.5});
        assert_eq!(properties, expected);
    }

    #[test]
    fn removed_tags_that_the_text_has_are_named() {
        let harness = Harness::new("//- a.md\n---\ntags: [X, z]\n---\none #x\n\ntwo #x/y #X\n");
        let called =
            harness.called("edit_node", json!({"id": "a.md", "edits": [{"op": "remove_tags", "tags": ["x"]}]}));
        let warning = "\"a.md\": the text still has #x in line 4, #X in line 6; only the frontmatter was changed; remove these with replace";
        assert_eq!(called.warnings, [warning]);
        assert!(harness.vault.text("a.md").unwrap().starts_with("---\ntags: [z]\n---\n"));
    }

    #[test]
    fn missing_and_ambiguous_ids_are_refused() {
        let harness = Harness::new("//- TWIN.md\na\n//- Twin.md\nb\n");
        let edits = json!([{"op": "append", "text": "x"}]);
        assert_eq!(harness.fails("edit_node", json!({"id": "none.md", "edits": edits})).0, "NODE_NOT_FOUND");
        let (_, message) = harness.fails("edit_node", json!({"id": "twim.md", "edits": edits}));
        assert_eq!(message, "no note has the id twim.md; near names: \"Twin.md\", \"TWIN.md\"");
        assert_eq!(harness.fails("edit_node", json!({"id": "twin.md", "edits": edits})).0, "INVALID_PARAMS");
        assert_eq!(harness.call("edit_node", json!({"id": "Twin.md", "edits": edits}))["id"], "Twin.md");
        assert_eq!(harness.vault.text("Twin.md").unwrap(), "b\nx\n");
    }
}
