//! `quipu query`: notes by their metadata, as the tool `query_nodes` finds them.

use clap::Args;
use quipu_core::query::{Field, Operator};
use quipu_tools::Toolset;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::ask_tool::ask;
use super::command_vault::CommandVault;
use super::output::{Line, Output};
use super::{Failure, Outcome};
use crate::compose::OpenMode;

/// Find notes by properties, tags, dates, links and tasks.
///
/// Without a condition, lists all notes. A note must meet all conditions, or with --any one of them.
#[derive(Debug, Args, Serialize, Deserialize)]
#[command(after_help = "\
Examples:
  quipu query 'status = draft' --sort -modified         drafts, last changed first
  quipu query 'tags ~ work' 'modified within 7d'        tagged work or work/…, changed this week
  quipu query 'links_in = 0' 'links_out = 0'            orphans
  quipu query 'broken_links > 0' --fields broken_links  notes with broken links
  quipu query 'due < 2026-12-01' 'tasks_open > 0'       by a date in the frontmatter
  quipu query 'links_to = station/power.md'             notes that link to a note
  quipu query --group-by tags                           all tags with counts

Fields:
  id title folder aliases tags created modified chars doc_type properties
  links_out links_in broken_links links_to linked_from tasks_open tasks_done
  any other name is a property of the frontmatter; if a property has one of these names, write
  property.NAME; a dot leads into a map: meta.status

Operators:
  = != < <= > >=      compare dates and numbers by value, text in any case, lists by any item
  ~                   contains; for tags, nested tags too
  ^=                  starts with
  in a,b              one of several values
  within 7d           in the last 30m, 24h, 7d, 2w or 1y; +7d for the next days
  exists, missing     has a value or none

JSON is the answer of the tool query_nodes:
  {total, nodes[{id, title, …}]} or {total, groups[{value, count}]}

The exit code is 1 when nothing is found.")]
pub(crate) struct Query {
    /// Conditions, each in quotes: FIELD OPERATOR VALUE.
    #[arg(value_name = "CONDITION")]
    conditions: Vec<String>,
    /// Require one of the conditions instead of all.
    #[arg(long)]
    any: bool,
    /// Sort by these fields, separated by commas; - before a field reverses it.
    #[arg(long, value_name = "FIELDS", value_delimiter = ',', allow_hyphen_values = true)]
    sort: Vec<String>,
    /// Show these fields, separated by commas.
    #[arg(long, value_name = "FIELDS", value_delimiter = ',')]
    fields: Vec<String>,
    /// Count notes by the values of this field.
    #[arg(long, value_name = "FIELD", conflicts_with_all = ["sort", "fields"])]
    group_by: Option<String>,
    /// Show at most this many results.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Skip this many results.
    #[arg(long, default_value_t = 0)]
    offset: usize,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize, Deserialize)]
pub(super) struct QueryAnswer {
    /// The answer of the tool.
    answer: Value,
    without_notes: Option<String>,
}

impl Query {
    pub(super) fn answer(&self, vault: &CommandVault<'_>) -> Result<QueryAnswer, Failure> {
        let arguments = self.arguments()?;
        let ready = vault.open_indexed(OpenMode::Existing)?;
        let registry = ready.open.registry(Some(&[Toolset::Work]));
        let answer = ask(&registry, ("query_nodes", "query"), arguments, vault)
            .map_err(|error| error.hint("`quipu query --help` lists fields and operators"))?;
        Ok(QueryAnswer { answer, without_notes: ready.without_notes() })
    }

    pub(super) fn print(&self, answer: &QueryAnswer, output: &mut Output) -> Result<Outcome, Failure> {
        let QueryAnswer { answer, without_notes } = answer;
        let found = answer.get("nodes").or_else(|| answer.get("groups")).and_then(Value::as_array);
        let is_empty = found.is_none_or(Vec::is_empty);
        if self.json {
            output.json(answer)?;
        } else {
            found.into_iter().flatten().try_for_each(|item| output.line(&line(item)))?;
        }
        if let Some(text) = without_notes {
            output.aside(&Line::new().plain(text.clone()));
        } else if is_empty && !self.json {
            output.aside(&Line::new().plain("nothing found"));
        }
        Ok(if is_empty { Outcome::Negative } else { Outcome::Fine })
    }

    fn arguments(&self) -> Result<Value, Failure> {
        let conditions = self.conditions.iter().map(|text| condition(text)).collect::<Result<Vec<_>, _>>()?;
        let sort = |name: &String| match name.strip_prefix('-') {
            Some(name) => json!({ "field": field(name), "order": "desc" }),
            None => json!({ "field": field(name) }),
        };
        let mut arguments = json!({
            "sort": self.sort.iter().map(sort).collect::<Vec<_>>(),
            "fields": self.fields.iter().map(|name| field(name)).collect::<Vec<_>>(),
            "limit": self.limit,
            "offset": self.offset,
        });
        arguments[if self.any { "any" } else { "where" }] = conditions.into();
        if let Some(name) = &self.group_by {
            arguments["group_by"] = field(name).into();
        }
        Ok(arguments)
    }
}

/// The field of a name as typed: a name that is no field is a property.
fn field(name: &str) -> String {
    let name = name.trim();
    if Field::parse(name).is_some() { name.to_owned() } else { format!("property.{name}") }
}

const OPERATOR_SIGNS: [char; 6] = ['=', '<', '>', '~', '^', '!'];

/// A condition such as `status = draft`, `modified within 7d` or `due exists`.
fn condition(text: &str) -> Result<Value, Failure> {
    const SYMBOLS: [(&str, &str); 8] = [
        ("!=", "ne"),
        ("<=", "le"),
        (">=", "ge"),
        ("^=", "starts_with"),
        ("=", "eq"),
        ("<", "lt"),
        (">", "gt"),
        ("~", "contains"),
    ];
    let names = Operator::ALL.into_iter().map(Operator::name);
    let operators = SYMBOLS.into_iter().map(|(symbol, _)| symbol).chain(names).collect::<Vec<_>>().join(" ");
    let unclear = || {
        let message = format!(
            "cannot read the condition `{text}`: it must be FIELD OPERATOR VALUE; use one of the operators {operators}"
        );
        Failure::usage(message).hint("for instance: quipu query 'status = draft' 'modified within 7d'")
    };
    if let Some(word) = joining_word(text) {
        let or = if is_or(word) { ", and --any for one of them" } else { "" };
        let message = format!("cannot read the condition `{text}`: unknown operator {word:?}; use one of {operators}");
        return Err(Failure::usage(message)
            .hint(format!("write each condition in its own quotes{or}: quipu query 'status = draft' 'tags ~ work'")));
    }
    let (name, rest) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
    let (word, value) = rest.trim().split_once(char::is_whitespace).unwrap_or((rest.trim(), ""));
    if let Some(operator) = Operator::ALL.into_iter().find(|operator| operator.name() == word) {
        return Ok(with_value(name, operator.name(), value.trim()));
    }
    let place = |(symbol, operator): (&'static str, &'static str)| Some((text.find(symbol)?, symbol, operator));
    // The first in the text; of two at one place the longer, which comes first in the list.
    let (at, symbol, operator) =
        SYMBOLS.into_iter().filter_map(place).min_by_key(|(at, ..)| *at).ok_or_else(unclear)?;
    let (name, value) = (&text[..at], &text[at + symbol.len()..]);
    // `~~` and `==` are not operators.
    let is_part_of_another = name.ends_with(OPERATOR_SIGNS) || value.starts_with(OPERATOR_SIGNS);
    let (name, value) = (name.trim(), value.trim());
    if name.is_empty() || value.is_empty() || is_part_of_another {
        return Err(unclear());
    }
    Ok(with_value(name, operator, value))
}

/// The word by which a text joins two conditions. `title = salt and pepper` is one condition.
fn joining_word(text: &str) -> Option<&str> {
    let is_joining = |word: &&str| is_or(word) || ["and", "&&"].contains(&word.to_lowercase().as_str());
    text.split_whitespace().filter(is_joining).find(|word| {
        let start = word.as_ptr() as usize - text.as_ptr() as usize;
        let (before, after) = (text[..start].trim(), text[start + word.len()..].trim());
        let is_field = |text: &str| text.split_whitespace().next().is_some_and(|name| Field::parse(name).is_some());
        let has_sign = after.split_whitespace().nth(1).is_some_and(|sign| sign.starts_with(OPERATOR_SIGNS));
        before.is_empty() || after.is_empty() || (has_sign || is_field(after)) && condition(after).is_ok()
    })
}

fn is_or(word: &str) -> bool {
    ["or", "||"].contains(&word.to_lowercase().as_str())
}

fn with_value(name: &str, operator: &str, value: &str) -> Value {
    let mut condition = json!({ "field": field(name), "op": operator });
    if operator == "in" {
        condition["value"] = value.split(',').map(str::trim).collect();
    } else if !value.is_empty() {
        condition["value"] = value.into();
    }
    condition
}

/// A note with its fields, or a group with its count.
fn line(item: &Value) -> Line {
    let empty = Map::new();
    let item = item.as_object().unwrap_or(&empty);
    if let (Some(count), Some(value)) = (item.get("count"), item.get("value")) {
        let value = if value.is_null() { "(none)".to_owned() } else { plain(value) };
        return Line::new().dim(format!("{count:>6}  ")).plain(value);
    }
    let shown = |name: &str| item.get(name).map(plain).unwrap_or_default();
    let mut line = Line::new().bold(shown("title")).dim(format!("  {}", shown("id")));
    for (name, value) in item.iter().filter(|(name, _)| !["id", "title"].contains(&name.as_str())) {
        line = line.plain(format!("  {}: {}", name.trim_start_matches("property."), plain(value)));
    }
    line
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "–".to_owned(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_as_people_write_them() {
        for (text, field, op, value) in [
            ("status = draft", "property.status", "eq", json!("draft")),
            ("status=draft", "property.status", "eq", json!("draft")),
            ("title != A = B", "title", "ne", json!("A = B")),
            ("chars>=10", "chars", "ge", json!("10")),
            ("id ^= projects/", "id", "starts_with", json!("projects/")),
            ("tags ~ work", "tags", "contains", json!("work")),
            ("modified within 7d", "modified", "within", json!("7d")),
            ("status in draft, done", "property.status", "in", json!(["draft", "done"])),
            ("title = =x", "title", "eq", json!("=x")),
            ("title = Salt and pepper", "title", "eq", json!("Salt and pepper")),
            ("title = dogs and cats in hats", "title", "eq", json!("dogs and cats in hats")),
            ("property.title eq X", "property.title", "eq", json!("X")),
        ] {
            assert_eq!(condition(text).ok(), Some(json!({ "field": field, "op": op, "value": value })), "{text}");
        }
        assert_eq!(condition("due exists").ok(), Some(json!({ "field": "property.due", "op": "exists" })));
        let joined =
            ["and", "status = draft and tags ~ work", "chars > 1 OR modified within 7d", "a = 1 && b = 2", "a = 1 and"];
        for text in joined {
            let refused = condition(text).unwrap_err();
            let shown = format!("{refused:?}");
            assert!(shown.contains("unknown operator") && shown.contains("starts_with in exists"), "{text}: {shown}");
            assert!(shown.contains("in its own quotes"), "{text}: {shown}");
        }
        for text in ["", "status", "status draft", "= draft", "status =", "foo ~~ 3", "foo == 3", "foo =! 3"] {
            let shown = format!("{:?}", condition(text).unwrap_err());
            assert!(shown.contains("use one of the operators != <="), "{text}: {shown}");
        }
    }
}
