//! `query_nodes`: notes by their metadata, sorted, with chosen fields, or grouped with counts.

use quipu_core::index::Snapshot;
use quipu_core::model::{NoteKey, Value as Property};
use quipu_core::query::{Condition, Field, FieldValue, NoteQuery, Operator, SortKey};
use quipu_core::quoted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::answer_size::{Wanted, fitting, json_chars, page};
use crate::nearest::nearest;
use crate::not_found::node_not_found;
use crate::notes::json;
use crate::time::iso_utc;
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;
use crate::truncate::{LISTED, cut_name, echoed, truncate};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Conditions; a note must meet all. Fields: id, title, tags, created, modified, chars, links_out, links_in, broken_links,
    /// tasks_open, tasks_done, doc_type, folder, aliases, properties (names), property.NAME[.KEY], links_to, linked_from (a
    /// note).
    #[serde(default, rename = "where")]
    #[schemars(length(max = 50))]
    all: Vec<ConditionParams>,
    /// Like `where`; a note must meet one.
    #[serde(default)]
    #[schemars(length(max = 50))]
    any: Vec<Map<String, Value>>,
    /// Notes without it come last.
    #[serde(default)]
    #[schemars(length(max = 5))]
    sort: Vec<SortParams>,
    /// Fields beside id and title.
    #[serde(default)]
    #[schemars(length(max = 50))]
    fields: Vec<String>,
    /// Count notes by this field's values instead.
    group_by: Option<String>,
    /// Maximum results.
    #[schemars(range(min = 1, max = 1000), extend("default" = DEFAULT_LIMIT))]
    limit: Option<usize>,
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

const DEFAULT_LIMIT: usize = 50;

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

/// Characters of the name of a field: it is repeated in errors and in each note of an answer.
const MAX_NAME: usize = 200;

/// Characters of one value in an answer.
const MAX_VALUE: usize = 1_000;

impl Tool for QueryNodes {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "query_nodes";
    const DESCRIPTION: &'static str = "Find notes by metadata, not text: properties, tags, dates, links, \
        tasks. Orphans: links_in eq 0 and links_out eq 0. Changed this week: modified within \"7d\". Tags with \
        counts: group_by \"tags\".";
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
            let end = params.offset.saturating_add(params.limit());
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
        let shown = groups.into_iter().skip(params.offset).take(params.limit());
        let shown = shown.map(|group| GroupOutput {
            value: group.value.map_or(Value::Null, |value| fitted(json(&value), &mut false)),
            count: group.count,
        });
        let groups = Some(page(call, &params.wanted(), shown.collect(), total, "groups"));
        Ok(Output { total, nodes: None, groups })
    }
}

impl Params {
    fn query(&self, snapshot: &Snapshot, now_ns: i64) -> Result<NoteQuery, ToolError> {
        let known = Fields { snapshot, in_condition: true };
        let mut query = NoteQuery::default();
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

    fn limit(&self) -> usize {
        self.limit.unwrap_or(DEFAULT_LIMIT)
    }

    fn wanted(&self) -> Wanted {
        Wanted { offset: self.offset, limit: self.limit }
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
    /// A field by name. A client that mistypes it or omits `property.` gets the probable name in the error.
    fn get(&self, name: &str, place: &str) -> Result<Field, ToolError> {
        let length = name.chars().count();
        if length > MAX_NAME {
            return Err(ToolError::invalid(format!(
                "`{place}` has {length} characters; the name of a field has at most {MAX_NAME}"
            )));
        }
        let is_allowed = |field: &Field| self.in_condition || field.has_values();
        let parsed = Field::parse(name);
        if let Some(field) = parsed.clone().filter(is_allowed) {
            return Ok(field);
        }
        let mut known: Vec<String> = Field::NAMED.iter().filter(|field| is_allowed(field)).map(Field::name).collect();
        let allowed = known.join(", ");
        // A property that no note has is unlike a field with another initial: `status` is not `tags`.
        known.retain(|field| field.chars().next() == name.chars().next());
        known.extend(property_names(self.snapshot));
        let meant = nearest(name, known.iter().map(String::as_str)).filter(|_| parsed.is_none());
        let prefix = if meant.is_some_and(|meant| Field::parse(meant).is_none()) { "property." } else { "" };
        let meant = meant.map(|meant| format!("did you mean {prefix}{meant}? ")).unwrap_or_default();
        // The error for a client that leaves out `property.` says where to put it.
        let is_key =
            parsed.is_none() && !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_-".contains(c));
        let property = if is_key { format!("property.{name} for a property") } else { "property.NAME".to_owned() };
        let name = quoted(&echoed(name));
        let why = if parsed.is_some() { "which is only for conditions" } else { "which is not a field" };
        Err(ToolError::invalid(format!("`{place}` is {name}, {why}; {meant}(allowed: {allowed}, {property})")))
    }
}

/// The names of properties in the vault, most used first.
fn property_names(snapshot: &Snapshot) -> impl Iterator<Item = String> {
    let all: Vec<NoteKey> = snapshot.files().collect();
    let groups = snapshot.groups(&all, &Field::Properties);
    groups.into_iter().filter_map(|group| group.value?.to_plain_text())
}

/// A property or a note that does not exist finds nothing, and is probably mistyped; an id may match several notes.
fn warn_of_unknown_names(call: &Call<'_>, snapshot: &Snapshot, query: &NoteQuery) {
    let conditions = || query.all.iter().chain(&query.any);
    let named = conditions().flat_map(|condition| condition.notes().iter());
    // Each costs a search for near names, and room in the answer.
    let unknown: Vec<_> = named.clone().filter(|name| snapshot.called(name).is_empty()).collect();
    let shared = named.map(|name| (name, snapshot.lookup(name))).filter(|(_, notes)| notes.len() > 1);
    for (name, notes) in shared.take(MAX_UNKNOWN) {
        let name = quoted(&echoed(name));
        call.warn(format!("{name} matches {} notes that differ in case; this answer is for all of them", notes.len()));
    }
    for name in unknown.iter().take(MAX_UNKNOWN) {
        call.warn(node_not_found(snapshot, &echoed(name)));
    }
    if let Some(more) = unknown.len().checked_sub(MAX_UNKNOWN).filter(|more| *more > 0) {
        call.warn(format!("{more} more names in the conditions are not notes"));
    }
    for condition in conditions() {
        let Field::Property(name) = condition.field() else { continue };
        if !snapshot.has_property(condition.field()) {
            let names: Vec<String> = property_names(snapshot).collect();
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
    node.insert("title".to_owned(), cut_name(&note.title).into());
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
#[path = "query_nodes_test.rs"]
mod tests;
