//! `query_nodes`: notes by their metadata, sorted, with chosen fields, or grouped with counts.

use quipu_core::index::Snapshot;
use quipu_core::model::{NoteKey, Value as Property};
use quipu_core::query::{Condition, Field, FieldValue, Operator, Query, SortKey};
use quipu_core::quoted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::answer_size::{Wanted, fitting, json_chars, page};
use crate::missing::missing_node;
use crate::nearest::nearest;
use crate::notes::json;
use crate::time::iso_utc;
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;
use crate::truncate::{LISTED, echoed, truncate};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Conditions that all hold. Fields: id, title, tags, created, modified, chars, links_out, links_in, broken_links,
    /// tasks_open, tasks_done, doc_type, folder, aliases, properties (names), property.NAME, links_to, linked_from (a note).
    #[serde(default, rename = "where")]
    #[schemars(length(max = 50))]
    all: Vec<ConditionParams>,
    /// Conditions like `where`, of which one holds.
    #[serde(default)]
    #[schemars(length(max = 50))]
    any: Vec<Map<String, Value>>,
    /// Notes without the field come last.
    #[serde(default)]
    #[schemars(length(max = 5))]
    sort: Vec<SortParams>,
    /// Fields to show beside id and title.
    #[serde(default)]
    #[schemars(length(max = 50))]
    fields: Vec<String>,
    /// Count notes by this field's values instead: "tags".
    group_by: Option<String>,
    #[serde(default = "default_limit")]
    /// Maximum results.
    #[schemars(range(min = 1, max = 1000))]
    limit: usize,
    /// Results to skip.
    #[serde(default)]
    offset: usize,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ConditionParams {
    field: String,
    op: Op,
    /// A list for `in`; "7d" for `within`.
    #[schemars(extend("type" = ["string", "number", "boolean", "array"]))]
    value: Option<Value>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Op {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Contains,
    StartsWith,
    In,
    Exists,
    Missing,
    Within,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SortParams {
    field: String,
    #[serde(default)]
    order: Order,
}

#[derive(Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Order {
    #[default]
    Asc,
    Desc,
}

fn default_limit() -> usize {
    50
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    /// All matches, not only those listed.
    total: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<Vec<Map<String, Value>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    groups: Option<Vec<GroupOutput>>,
}

#[derive(Serialize, JsonSchema)]
struct GroupOutput {
    /// Null: notes without the field.
    value: Value,
    count: usize,
}

pub(crate) struct QueryNodes;

/// Unknown notes that are named in warnings.
const MAX_UNKNOWN: usize = 5;

/// Characters of one value in an answer.
const MAX_VALUE: usize = 1_000;

impl Tool for QueryNodes {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "query_nodes";
    const DESCRIPTION: &'static str = "Find notes by metadata, not text: frontmatter properties, tags, dates, links, tasks. \
        Orphans: links_in eq 0 and links_out eq 0. Changed this week: modified within \"7d\". All tags with counts: group_by \
        \"tags\".";
    const ACCESS: Access = Access::Read;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let snapshot = call.knowledge.snapshot();
        let query = params.query(&snapshot, call.knowledge.now_ns())?;
        warn_of_unknown_names(call, &snapshot, &query);
        let found = snapshot.query(&query);
        let valued = Fields { snapshot: &snapshot, in_condition: false };
        let Some(group_by) = &params.group_by else {
            let (fields, sort) = (params.fields(&valued)?, params.sort_keys(&valued)?);
            let total = found.len();
            let end = params.offset.saturating_add(params.limit);
            let keys = snapshot.sorted(found, &sort, end);
            let mut is_cut = false;
            let listed = keys.iter().skip(params.offset);
            let nodes: Vec<_> = listed.map(|key| node(&snapshot, *key, &fields, &mut is_cut)).collect();
            if is_cut {
                call.warn(format!("values over {MAX_VALUE} characters are cut; read the note for all of them"));
            }
            let nodes = Some(page(call, &params.wanted(), nodes, total, "notes"));
            return Ok(Output { total, nodes, groups: None });
        };
        if !params.sort.is_empty() || !params.fields.is_empty() {
            return Err(ToolError::invalid("`group_by` answers counts, most first; leave out `sort` and `fields`"));
        }
        let groups = snapshot.groups(&found, &valued.get(group_by, "group_by")?);
        let total = groups.len();
        let shown = groups.into_iter().skip(params.offset).take(params.limit);
        let shown = shown.map(|group| GroupOutput {
            value: group.value.map_or(Value::Null, |value| fitted(json(&value), &mut false)),
            count: group.count,
        });
        let groups = Some(page(call, &params.wanted(), shown.collect(), total, "groups"));
        Ok(Output { total, nodes: None, groups })
    }
}

impl Params {
    fn query(&self, snapshot: &Snapshot, now_ns: i64) -> Result<Query, ToolError> {
        let known = Fields { snapshot, in_condition: true };
        let mut query = Query::default();
        for (number, given) in self.all.iter().enumerate() {
            query.all.push(given.condition(&known, &format!("where[{number}]"), now_ns)?);
        }
        for (number, given) in self.any.iter().enumerate() {
            let place = format!("any[{number}]");
            let given = ConditionParams::deserialize(Value::Object(given.clone()))
                .map_err(|error| ToolError::invalid(format!("`{place}` is not a condition: {error}")))?;
            query.any.push(given.condition(&known, &place, now_ns)?);
        }
        Ok(query)
    }

    fn fields(&self, known: &Fields<'_>) -> Result<Vec<(String, Field)>, ToolError> {
        let named =
            |(number, name): (usize, &String)| Ok((name.clone(), known.get(name, &format!("fields[{number}]"))?));
        self.fields.iter().enumerate().map(named).collect()
    }

    fn sort_keys(&self, known: &Fields<'_>) -> Result<Vec<SortKey>, ToolError> {
        let key = |(number, given): (usize, &SortParams)| {
            let field = known.get(&given.field, &format!("sort[{number}].field"))?;
            Ok(SortKey { field, descending: given.order == Order::Desc })
        };
        self.sort.iter().enumerate().map(key).collect()
    }

    /// The answer is kept short even if a limit was given: fields may be long.
    fn wanted(&self) -> Wanted {
        Wanted { offset: self.offset, limit: None }
    }
}

impl ConditionParams {
    fn condition(&self, known: &Fields<'_>, place: &str, now_ns: i64) -> Result<Condition, ToolError> {
        let field = known.get(&self.field, &format!("{place}.field"))?;
        let value = self.value.as_ref().map(property);
        Condition::new(field, self.op.into(), value.as_ref(), now_ns)
            .map_err(|error| ToolError::invalid(format!("`{place}`: {error}")))
    }
}

impl From<Op> for Operator {
    fn from(op: Op) -> Self {
        match op {
            Op::Eq => Self::Eq,
            Op::Ne => Self::Ne,
            Op::Lt => Self::Lt,
            Op::Le => Self::Le,
            Op::Gt => Self::Gt,
            Op::Ge => Self::Ge,
            Op::Contains => Self::Contains,
            Op::StartsWith => Self::StartsWith,
            Op::In => Self::In,
            Op::Exists => Self::Exists,
            Op::Missing => Self::Missing,
            Op::Within => Self::Within,
        }
    }
}

/// The fields of a vault by name.
struct Fields<'s> {
    snapshot: &'s Snapshot,
    /// Whether fields without values count.
    in_condition: bool,
}

impl Fields<'_> {
    /// A field by name. A client that mistypes it or leaves out `property.` is told what it probably meant.
    fn get(&self, name: &str, place: &str) -> Result<Field, ToolError> {
        let is_allowed = |field: &Field| self.in_condition || field.has_values();
        let parsed = Field::parse(name);
        if let Some(field) = parsed.clone().filter(is_allowed) {
            return Ok(field);
        }
        let mut known: Vec<String> = Field::NAMED.iter().filter(|field| is_allowed(field)).map(Field::name).collect();
        let allowed = known.join(", ");
        known.extend(property_names(self.snapshot));
        let meant = nearest(name, known.iter().map(String::as_str)).filter(|_| parsed.is_none());
        let prefix = if meant.is_some_and(|meant| Field::parse(meant).is_none()) { "property." } else { "" };
        let meant = meant.map(|meant| format!("did you mean {prefix}{meant}? ")).unwrap_or_default();
        let name = quoted(&echoed(name));
        let why = if parsed.is_some() { "which is only for conditions" } else { "which is not a field" };
        Err(ToolError::invalid(format!("`{place}` is {name}, {why}; {meant}(allowed: {allowed}, property.NAME)")))
    }
}

/// The names of properties in the vault, most used first.
fn property_names(snapshot: &Snapshot) -> impl Iterator<Item = String> {
    let all: Vec<NoteKey> = snapshot.files().collect();
    let groups = snapshot.groups(&all, &Field::Properties);
    groups.into_iter().filter_map(|group| group.value?.to_plain_text())
}

/// A property or a note that does not exist finds nothing, and is probably mistyped.
fn warn_of_unknown_names(call: &Call<'_>, snapshot: &Snapshot, query: &Query) {
    let conditions = || query.all.iter().chain(&query.any);
    let named = conditions().flat_map(|condition| condition.notes().iter());
    // Each costs a search for near names, and room in the answer.
    let unknown: Vec<_> = named.filter(|name| snapshot.called(name).is_empty()).collect();
    for name in unknown.iter().take(MAX_UNKNOWN) {
        call.warn(missing_node(snapshot, &echoed(name)));
    }
    if let Some(more) = unknown.len().checked_sub(MAX_UNKNOWN).filter(|more| *more > 0) {
        call.warn(format!("{more} more names in the conditions are no notes"));
    }
    for condition in conditions() {
        let Field::Property(name) = condition.field() else { continue };
        let names: Vec<String> = property_names(snapshot).collect();
        if !names.iter().any(|known| Field::parse(&format!("property.{known}")).as_ref() == Some(condition.field())) {
            let near = nearest(name, names.iter().map(String::as_str));
            let near = near.map(|near| format!("; did you mean property.{near}?")).unwrap_or_default();
            call.warn(format!("no note has the property {}{near}", quoted(&echoed(name))));
        }
    }
}

fn node(snapshot: &Snapshot, key: NoteKey, fields: &[(String, Field)], is_cut: &mut bool) -> Map<String, Value> {
    let note = snapshot.note(key);
    let mut node = Map::new();
    node.insert("id".to_owned(), note.id.to_string().into());
    node.insert("title".to_owned(), truncate(&note.title, LISTED).into());
    for (name, field) in fields {
        let value = match field.value(snapshot, key) {
            FieldValue::Time(at) => iso_utc(at).into(),
            FieldValue::Plain(value) => fitted(json(&value), is_cut),
        };
        node.insert(name.clone(), value);
    }
    node
}

/// A value cut to [`MAX_VALUE`].
fn fitted(value: Value, is_cut: &mut bool) -> Value {
    if json_chars(&value) <= MAX_VALUE {
        return value;
    }
    *is_cut = true;
    match value {
        Value::String(text) => truncate(&text, LISTED).into(),
        Value::Array(mut items) => {
            items.truncate(fitting(&items, MAX_VALUE));
            items.into_iter().map(|item| fitted(item, is_cut)).collect()
        }
        _ => Value::Null,
    }
}

/// A given value as one of a note.
fn property(value: &Value) -> Property {
    match value {
        Value::Null => Property::Null,
        Value::Bool(flag) => Property::Bool(*flag),
        Value::Number(number) => {
            number.as_i64().map_or_else(|| Property::Float(number.as_f64().unwrap_or(f64::NAN)), Property::Int)
        }
        Value::String(text) => Property::Text(text.clone()),
        Value::Array(items) => Property::List(items.iter().map(property).collect()),
        Value::Object(_) => Property::Map(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::Harness;

    const NOTES: &str = "\
//- projects/alpha.md
---
status: Draft
priority: 3
due: 2025-02-03
tags: [work/client, urgent]
authors: [Ada, Grace Hopper]
---
- [ ] write
- [x] plan
See [[beta]] and [[nowhere]].
//- projects/beta.md
---
status: done
priority: 10
due: 2025-03-01T09:30
tags: [work]
---
Back to [[alpha]].
//- 2025-01-28.md
---
status:
---
A day.
//- lonely.md
---
priority: high
workshop: true
created: 2020-05-06
---
%% - [ ] hidden %%
```
- [ ] code
```
";

    fn ids(arguments: serde_json::Value) -> Vec<String> {
        let answer = Harness::new(NOTES).call("query_nodes", arguments);
        let nodes = answer["nodes"].as_array().unwrap_or_else(|| panic!("{answer}"));
        nodes.iter().map(|node| node["id"].as_str().unwrap().to_owned()).collect()
    }

    #[expect(clippy::needless_pass_by_value, reason = "a test writes `json!` at the call")]
    fn found(field: &str, op: &str, value: serde_json::Value) -> Vec<String> {
        ids(json!({"where": [{"field": field, "op": op, "value": value}]}))
    }

    const ALPHA: &str = "projects/alpha.md";
    const BETA: &str = "projects/beta.md";
    const DAY: &str = "2025-01-28.md";
    const LONELY: &str = "lonely.md";

    #[test]
    fn text_is_compared_without_case_and_lists_by_any_item() {
        assert_eq!(found("property.status", "eq", json!("draft")), [ALPHA]);
        assert_eq!(found("property.STATUS", "in", json!(["DRAFT", "done"])), [ALPHA, BETA]);
        assert_eq!(found("property.authors", "eq", json!("ada")), [ALPHA]);
        assert_eq!(found("property.authors", "contains", json!("hop")), [ALPHA]);
        assert_eq!(found("title", "starts_with", json!("al")), [ALPHA]);
        assert_eq!(found("id", "starts_with", json!("Projects/")), [ALPHA, BETA]);
        assert_eq!(found("folder", "eq", json!("projects")), [ALPHA, BETA]);
        assert_eq!(found("property.workshop", "eq", json!(true)), [LONELY]);
        assert_eq!(found("properties", "eq", json!("priority")), [LONELY, ALPHA, BETA]);
    }

    #[test]
    fn numbers_compare_as_numbers_and_not_with_text() {
        assert_eq!(found("property.priority", "gt", json!(3)), [BETA]);
        assert_eq!(found("property.priority", "ge", json!("3")), [ALPHA, BETA]);
        assert_eq!(found("property.priority", "eq", json!("10")), [BETA]);
        assert_eq!(found("property.priority", "lt", json!("i")), [LONELY], "texts compare with texts");
    }

    #[test]
    fn dates_compare_with_the_precision_given() {
        assert_eq!(found("property.due", "le", json!("2025-02-03")), [ALPHA]);
        assert_eq!(found("property.due", "eq", json!("2025-03-01")), [BETA], "a day has its times");
        assert_eq!(found("property.due", "gt", json!("2025-03-01")), [""; 0]);
        assert_eq!(found("property.due", "ge", json!("2025-03-01T09:30")), [BETA]);
        assert_eq!(found("property.due", "eq", json!("2025-02")), [ALPHA]);
        assert_eq!(found("created", "eq", json!("2025-01-28")), [DAY], "from the name of a daily note");
        assert_eq!(found("created", "lt", json!("2021-01-01")), [LONELY]);
    }

    #[test]
    fn within_counts_from_now() {
        // The clock of tests stands in January 2025, a few seconds after the files were written.
        let harness = Harness::new(NOTES);
        let now = harness.call("query_nodes", json!({"fields": ["modified"], "limit": 1}));
        assert!(now["nodes"][0]["modified"].as_str().unwrap().starts_with("2025-01-29"), "{now}");
        assert_eq!(found("modified", "within", json!("1h")).len(), 4);
        assert_eq!(found("created", "within", json!("2d")), [DAY]);
        assert_eq!(found("property.due", "within", json!("+7d")), [ALPHA]);
        assert_eq!(found("property.due", "within", json!("+6w")), [ALPHA, BETA]);
        assert_eq!(found("property.due", "within", json!("4w")), [""; 0]);
    }

    #[test]
    fn tags_contain_nested_tags() {
        assert_eq!(found("tags", "contains", json!("#Work")), [ALPHA, BETA]);
        assert_eq!(found("tags", "eq", json!("work")), [BETA]);
        assert_eq!(found("tags", "contains", json!("wor")), [""; 0]);
        assert_eq!(found("tags", "starts_with", json!("wor")), [ALPHA, BETA]);
        let untagged = json!({"where": [{"field": "tags", "op": "missing"}]});
        assert_eq!(ids(untagged), [DAY, LONELY]);
    }

    #[test]
    fn blank_values_are_missing_and_differ_from_all() {
        assert_eq!(ids(json!({"where": [{"field": "property.status", "op": "exists"}]})), [ALPHA, BETA]);
        assert_eq!(ids(json!({"where": [{"field": "property.status", "op": "missing"}]})), [DAY, LONELY]);
        assert_eq!(found("property.status", "ne", json!("draft")), [DAY, LONELY, BETA]);
    }

    #[test]
    fn links_and_tasks_are_counted() {
        let orphans = json!({"where": [{"field": "links_in", "op": "eq", "value": 0}, {"field": "links_out", "op": "eq", "value": "0"}]});
        assert_eq!(ids(orphans), [DAY, LONELY]);
        assert_eq!(found("broken_links", "gt", json!(0)), [ALPHA]);
        assert_eq!(found("links_to", "eq", json!("Alpha")), [BETA], "by title");
        assert_eq!(found("links_to", "eq", json!("nowhere")), [ALPHA], "a broken link");
        assert_eq!(found("linked_from", "in", json!([ALPHA, BETA])), [ALPHA, BETA]);
        assert_eq!(found("links_to", "ne", json!("alpha")), [DAY, LONELY, ALPHA]);
        assert_eq!(found("tasks_open", "ge", json!(1)), [ALPHA]);
        assert_eq!(found("chars", "lt", json!(10)), [DAY]);
        let counts =
            json!({"where": [{"field": "id", "op": "eq", "value": ALPHA}], "fields": ["tasks_open", "tasks_done"]});
        let node = json!({"id": ALPHA, "title": "Alpha", "tasks_open": 1, "tasks_done": 1});
        assert_eq!(Harness::new(NOTES).call("query_nodes", counts), json!({"total": 1, "nodes": [node]}));
    }

    #[test]
    fn any_needs_one_and_sort_puts_missing_last() {
        let either = json!({
            "where": [{"field": "folder", "op": "eq", "value": "projects"}],
            "any": [{"field": "property.priority", "op": "gt", "value": 5}, {"field": "tags", "op": "eq", "value": "none"}]
        });
        assert_eq!(ids(either), [BETA]);
        let sort = |order| json!({"sort": [{"field": "property.priority", "order": order}]});
        assert_eq!(ids(sort("asc")), [ALPHA, BETA, LONELY, DAY]);
        assert_eq!(ids(sort("desc")), [LONELY, BETA, ALPHA, DAY]);
        let page = json!({"sort": [{"field": "property.due", "order": "desc"}], "limit": 1, "offset": 1});
        assert_eq!(ids(page), [ALPHA]);
        let two = json!({"sort": [{"field": "folder", "order": "desc"}, {"field": "title", "order": "desc"}]});
        assert_eq!(ids(two), [BETA, ALPHA, LONELY, DAY]);
    }

    #[test]
    fn groups_have_counts() {
        let harness = Harness::new(NOTES);
        let group = |value, count| json!({"value": value, "count": count});
        let tags =
            [group(json!("urgent"), 1), group(json!("work"), 1), group(json!("work/client"), 1), group(json!(null), 2)];
        assert_eq!(harness.call("query_nodes", json!({"group_by": "tags"})), json!({"total": 4, "groups": tags}));
        let status =
            json!({"group_by": "property.status", "where": [{"field": "folder", "op": "eq", "value": "projects"}]});
        let groups = [group(json!("done"), 1), group(json!("Draft"), 1)];
        assert_eq!(harness.call("query_nodes", status), json!({"total": 2, "groups": groups}));
        let days = harness.call("query_nodes", json!({"group_by": "modified"}));
        assert_eq!(days, json!({"total": 1, "groups": [group(json!("2025-01-29"), 4)]}));
        let first = harness.called("query_nodes", json!({"group_by": "tags", "limit": 1}));
        assert_eq!(first.warnings[0], "1 of 4 groups are listed; continue with `offset` 1");
    }

    #[test]
    fn errors_name_what_is_allowed() {
        let harness = Harness::new(NOTES);
        let fails = |arguments, expected: &str| {
            let (code, message) = harness.fails("query_nodes", arguments);
            assert_eq!(code, "INVALID_PARAMS");
            assert!(message.starts_with(expected), "{message}");
        };
        let unknown = "`where[0].field` is";
        for (field, op, value, expected) in [
            ("statsu", "eq", json!(1), "\"statsu\", which is not a field; did you mean property.status? (allowed: id,"),
            ("status", "eq", json!(1), "\"status\", which is not a field; did you mean property.status? (allowed: id,"),
            ("modifed", "eq", json!(1), "\"modifed\", which is not a field; did you mean modified? (allowed: id,"),
        ] {
            let arguments = json!({"where": [{"field": field, "op": op, "value": value}]});
            fails(arguments, &format!("{unknown} {expected}"));
        }
        for (field, op, value, expected) in [
            (
                "chars",
                "contains",
                json!(1),
                "`contains` does not apply to `chars`; allowed: eq, ne, lt, le, gt, ge, in, exists",
            ),
            ("chars", "gt", json!("many"), "`chars` is compared with a number"),
            ("modified", "gt", json!("yesterday"), "`modified` is compared with an ISO date or time"),
            ("modified", "within", json!("a week"), "`within` needs a length of time"),
            ("tags", "in", json!("a"), "`in` needs a list of values"),
            ("tags", "eq", json!(["a"]), "`tags` is compared with one text, number, true or false; use `in`"),
            ("tags", "exists", json!("a"), "`exists` takes no value"),
            ("tags", "eq", json!(null), "`eq` needs a value"),
        ] {
            let arguments = json!({"where": [{"field": field, "op": op, "value": value}]});
            fails(arguments, &format!("`where[0]`: {expected}"));
        }
        for (arguments, expected) in [
            (
                json!({"where": [{"field": "id", "op": "like"}]}),
                "`where[0].op` is \"like\"; it must be one of \"eq\", \"ne\",",
            ),
            (json!({"any": [{"field": "tags"}]}), "`any[0]` is not a condition: missing field `op`"),
            (
                json!({"sort": [{"field": "links_to"}]}),
                "`sort[0].field` is \"links_to\", which is only for conditions; (allowed",
            ),
            (json!({"fields": ["x"]}), "`fields[0]` is \"x\", which is not a field; (allowed"),
            (json!({"group_by": "tags", "fields": ["id"]}), "`group_by` answers counts"),
            (json!({"limit": 1001}), "`limit` is 1001; it must be a whole number from 1 to 1000"),
        ] {
            fails(arguments, expected);
        }
    }

    #[test]
    fn names_that_nothing_has_are_pointed_out() {
        let harness = Harness::new(NOTES);
        let warned = |field: &str, value: &str| {
            let arguments = json!({"where": [{"field": field, "op": "eq", "value": value}]});
            harness.called("query_nodes", arguments).warnings.into_iter().next().unwrap_or_default()
        };
        assert!(warned("title", "x").contains("broken link"), "told once, by the first answer");
        assert_eq!(warned("property.statu", "x"), "no note has the property \"statu\"; did you mean property.status?");
        assert_eq!(
            warned("links_to", "alhpa.md"),
            "no note has the id \"alhpa.md\"; near names: \"projects/alpha.md\""
        );
        assert_eq!(warned("property.status", "x"), "");
    }

    #[test]
    fn a_long_answer_is_cut_and_says_how_to_go_on() {
        let notes: String =
            (0..300).map(|n| format!("//- n{n:03}.md\n---\nabout: {}\n---\n", "x".repeat(400))).collect();
        let harness = Harness::new(&notes);
        let called = harness.called("query_nodes", json!({"fields": ["property.about"], "limit": 300}));
        let crate::Reply::Answer(answer) = called.reply else { panic!("{called:?}") };
        let listed = answer["nodes"].as_array().unwrap().len();
        assert!(answer.to_string().len() <= 40_000 && listed > 50 && answer["total"] == 300, "{listed}");
        assert_eq!(called.warnings, [format!("{listed} of 300 notes are listed; continue with `offset` {listed}")]);
    }

    #[test]
    fn a_write_is_seen_by_the_next_query() {
        let harness = Harness::new(NOTES);
        let query = |field: &str, op: &str, value| {
            let answer = harness.call("query_nodes", json!({"where": [{"field": field, "op": op, "value": value}]}));
            answer["total"].as_u64().unwrap()
        };
        let asked =
            [("property.status", "eq", json!("draft")), ("links_in", "ge", json!(1)), ("broken_links", "gt", json!(0))];
        let all = || asked.clone().map(|(field, op, value)| query(field, op, value));
        assert_eq!(all(), [1, 2, 1]);
        harness.call("create_node", json!({"id": "nowhere.md", "content": "[[lonely]] [[gone]]"}));
        assert_eq!(all(), [1, 4, 1], "it repairs one link and brings another broken one");
        harness.call("get_node", json!({"id": "lonely.md"}));
        harness.call("update_node", json!({"id": "lonely.md", "content": "---\nstatus: draft\n---\n"}));
        harness.call("delete_node", json!({"id": "nowhere.md"}));
        harness.vault.put("lonely.md", "---\nstatus: draft\n---\n");
        harness.knowledge.apply(&quipu_core::index::FileBatch::AllRehashed, &|_| {}).unwrap();
        assert_eq!(all()[0], 2);
    }

    #[test]
    fn many_unknown_notes_are_counted() {
        let harness = Harness::new("//- a.md\n");
        let names: Vec<String> = (0..500).map(|number| format!("nowhere {number}")).collect();
        let where_ = json!([{"field": "links_to", "op": "in", "value": names}]);
        let warnings = harness.called("query_nodes", json!({ "where": where_ })).warnings;
        assert_eq!((warnings.len(), warnings[5].as_str()), (6, "495 more names in the conditions are no notes"));
    }
}
