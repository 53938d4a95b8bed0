//! Checks a call's arguments against the tool's input schema, so that each limit is written once.
//!
//! Numbers may come as strings and integers as `5.0`, because models write both; null counts as absent. There is no other
//! conversion and no clamping: an error names the argument, the given value and what is allowed.

use serde_json::{Map, Number, Value};

use crate::nearest::nearest;
use crate::schema::strings;
use crate::tool::ToolInfo;
use crate::tool_error::ToolError;
use crate::truncate::truncate;

/// Characters of a given value that an error shows.
const SHOWN_CHARS: usize = 60;

/// Why arguments do not match.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Mismatch {
    /// A required argument is missing; `unknown` is about an unknown argument, which may have been meant for it.
    Missing { message: String, unknown: Option<String> },
    /// Anything else.
    Wrong(String),
}

/// A call's arguments as the tool's schema describes them.
pub(crate) fn check_arguments(tool: &ToolInfo, arguments: Value) -> Result<Value, ToolError> {
    check(&tool.input_schema, arguments).map_err(|mismatch| match mismatch {
        Mismatch::Missing { message, unknown } => {
            let message = tool.missing_argument.map_or(message, str::to_owned);
            ToolError::invalid([message].into_iter().chain(unknown).collect::<Vec<_>>().join("; "))
        }
        Mismatch::Wrong(message) => ToolError::invalid(message),
    })
}

/// Numbers become numbers; null arguments are dropped.
fn check(schema: &Map<String, Value>, arguments: Value) -> Result<Value, Mismatch> {
    match arguments {
        Value::Null => check_object(schema, Map::new(), ""),
        Value::Object(given) => check_object(schema, given, ""),
        other => Err(Mismatch::Wrong(format!("the arguments are {}; they must be an object", shown(&other)))),
    }
}

fn check_object(schema: &Map<String, Value>, mut given: Map<String, Value>, place: &str) -> Result<Value, Mismatch> {
    given.retain(|_, value| !value.is_null());
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Ok(given.into()) };
    let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    if let Some(name) = strings(schema.get("required")).find(|name| !given.contains_key(*name)) {
        let allowed = properties.get(name).map(allowed).unwrap_or_default();
        let name = inside(place, name);
        let unknown = given.keys().find(|name| is_closed && !properties.contains_key(*name));
        let unknown = unknown.map(|name| unknown_argument(name, place, properties));
        return Err(Mismatch::Missing { message: format!("`{name}` is missing; it must be {allowed}"), unknown });
    }
    let mut checked = Map::new();
    for (name, value) in given {
        let value = match properties.get(&name) {
            Some(property) => check_value(property, value, &inside(place, &name))?,
            None if is_closed => return Err(Mismatch::Wrong(unknown_argument(&name, place, properties))),
            None => value,
        };
        checked.insert(name, value);
    }
    Ok(checked.into())
}

fn check_value(schema: &Value, given: Value, place: &str) -> Result<Value, Mismatch> {
    let mismatch = |given: &str| Err(Mismatch::Wrong(format!("`{place}` {given}; it must be {}", allowed(schema))));
    let value = coerced(schema, given);
    if !has_type(schema, &value) {
        return mismatch(&format!("is {}", shown(&value)));
    }
    if schema.get("enum").and_then(Value::as_array).is_some_and(|choices| !choices.contains(&value)) {
        return mismatch(&format!("is {}", shown(&value)));
    }
    match value {
        Value::Number(ref number) => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            let is_below = limit(schema, "minimum").is_some_and(|minimum| number < minimum);
            let is_above = limit(schema, "maximum").is_some_and(|maximum| number > maximum);
            if is_below || is_above { mismatch(&format!("is {}", shown(&value))) } else { Ok(value) }
        }
        Value::String(ref text) => {
            let length = text.chars().count();
            if fits_length(schema, "minLength", "maxLength", length) {
                Ok(value)
            } else {
                mismatch(&if length == 0 { "is empty".into() } else { format!("has {length} characters") })
            }
        }
        Value::Array(items) => {
            if !fits_length(schema, "minItems", "maxItems", items.len()) {
                return mismatch(&format!("has {} items", items.len()));
            }
            let Some(item) = schema.get("items") else { return Ok(items.into()) };
            let checked: Result<Vec<Value>, Mismatch> = items
                .into_iter()
                .enumerate()
                .map(|(number, value)| check_value(item, value, &format!("{place}[{number}]")))
                .collect();
            Ok(checked?.into())
        }
        Value::Object(given) => match schema.as_object() {
            Some(schema) => check_object(schema, given, place),
            None => Ok(given.into()),
        },
        other => Ok(other),
    }
}

/// A numeric string as a number and a whole float as an integer, where the schema wants such and no string.
fn coerced(schema: &Value, given: Value) -> Value {
    let wants = |kind: &str| types(schema).any(|wanted| wanted == kind);
    let number = match &given {
        Value::String(text) if !wants("string") => {
            let text = text.trim();
            text.parse::<i64>().map(Number::from).ok().or_else(|| Number::from_f64(text.parse().ok()?))
        }
        Value::Number(number) => Some(number.clone()),
        _ => None,
    };
    match number {
        Some(number) if wants("integer") => whole(&number).map_or(given, Value::Number),
        Some(number) if wants("number") => Value::Number(number),
        _ => given,
    }
}

/// A number as an integer, if it has no fraction.
fn whole(number: &Number) -> Option<Number> {
    // Beyond 2^53 a float no longer says which whole number was meant.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if !number.is_f64() {
        return Some(number.clone());
    }
    let float = number.as_f64()?;
    #[expect(clippy::cast_possible_truncation, reason = "the guard leaves only whole numbers that i64 holds exactly")]
    let exact = (float.fract() == 0.0 && float.abs() < EXACT).then_some(float as i64);
    exact.map(Number::from)
}

fn types(schema: &Value) -> impl Iterator<Item = &str> {
    let kind = schema.get("type");
    kind.and_then(Value::as_str).into_iter().chain(strings(kind))
}

fn has_type(schema: &Value, value: &Value) -> bool {
    schema.get("type").is_none()
        || types(schema).any(|kind| match kind {
            "string" => value.is_string(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            _ => false,
        })
}

fn fits_length(schema: &Value, minimum: &str, maximum: &str, length: usize) -> bool {
    let length = length as f64;
    limit(schema, minimum).is_none_or(|minimum| length >= minimum)
        && limit(schema, maximum).is_none_or(|maximum| length <= maximum)
}

fn limit(schema: &Value, keyword: &str) -> Option<f64> {
    schema.get(keyword).and_then(Value::as_f64)
}

/// What a schema allows, to stand behind "it must be".
pub(crate) fn allowed(schema: &Value) -> String {
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        let choices: Vec<String> = choices.iter().map(Value::to_string).collect();
        return format!("one of {}", choices.join(", "));
    }
    let numbers = |noun: &str| match span(schema, "minimum", "maximum") {
        Some(TimeSpan::Between(span)) => format!("{noun} from {span}"),
        Some(TimeSpan::Open(span)) => format!("{noun} of {span}"),
        None => noun.to_owned(),
    };
    let lengths = |noun: &str, span: Option<TimeSpan>, unit: &str| match span {
        Some(TimeSpan::Between(span) | TimeSpan::Open(span)) => format!("{noun} of {span} {unit}"),
        None => noun.to_owned(),
    };
    let kinds: Vec<String> = types(schema)
        .map(|kind| match kind {
            "string" if is_only_not_empty(schema) => "a string that is not empty".to_owned(),
            "string" => lengths("a string", span(schema, "minLength", "maxLength"), "characters"),
            "integer" => numbers("a whole number"),
            "number" => numbers("a number"),
            "boolean" => "true or false".to_owned(),
            "array" => {
                let items = schema.get("items").map_or("values", plural);
                match span(schema, "minItems", "maxItems") {
                    None => format!("a list of {items}"),
                    some => lengths("a list", some, items),
                }
            }
            other => format!("an {other}"),
        })
        .collect();
    if kinds.is_empty() { "any value".to_owned() } else { kinds.join(" or ") }
}

fn is_only_not_empty(schema: &Value) -> bool {
    limit(schema, "minLength") == Some(1.0) && limit(schema, "maxLength").is_none()
}

fn plural(items: &Value) -> &'static str {
    match types(items).next() {
        Some("string") => "strings",
        Some("integer") => "whole numbers",
        Some("number") => "numbers",
        Some("object") => "objects",
        _ => "values",
    }
}

/// A range in words.
enum TimeSpan {
    Between(String),
    Open(String),
}

fn span(schema: &Value, minimum: &str, maximum: &str) -> Option<TimeSpan> {
    match (schema.get(minimum), schema.get(maximum)) {
        (Some(low), Some(high)) => Some(TimeSpan::Between(format!("{low} to {high}"))),
        (Some(low), None) => Some(TimeSpan::Open(format!("at least {low}"))),
        (None, Some(high)) => Some(TimeSpan::Open(format!("at most {high}"))),
        (None, None) => None,
    }
}

fn unknown_argument(name: &str, place: &str, properties: &Map<String, Value>) -> String {
    let known: Vec<&str> = properties.keys().map(String::as_str).collect();
    let hint = nearest(name, known.iter().copied()).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    let takes = match known.as_slice() {
        [] => "there are none".to_owned(),
        known => format!("allowed: `{}`", known.join("`, `")),
    };
    let name = truncate(&inside(place, name), SHOWN_CHARS);
    format!("`{name}` is not an argument of this tool{hint} ({takes})")
}

fn inside(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        other => truncate(&other.to_string(), SHOWN_CHARS),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Map<String, Value> {
        let schema = json!({
            "type": "object",
            "properties": {
                "id": {"type": "string", "minLength": 1, "maxLength": 20},
                "limit": {"type": "integer", "minimum": 1, "maximum": 50},
                "offset": {"type": "integer", "minimum": 0},
                "threshold": {"type": "number", "minimum": 0, "maximum": 1},
                "mode": {"type": "string", "enum": ["any", "all"]},
                "deep": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3},
                "sizes": {"type": "array", "items": {"type": "integer"}},
                "to": {"type": ["integer", "string"]},
                "steps": {"type": "array", "items": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}, "count": {"type": "integer", "maximum": 9}},
                    "required": ["name"],
                    "additionalProperties": false
                }}
            },
            "required": ["id"],
            "additionalProperties": false
        });
        schema.as_object().cloned().unwrap_or_default()
    }

    fn fitted(mut arguments: Value) -> Result<Value, String> {
        if let Some(given) = arguments.as_object_mut() {
            given.entry("id").or_insert("a".into());
        }
        let mut value = check(&schema(), arguments).map_err(|mismatch| match mismatch {
            Mismatch::Missing { message, .. } | Mismatch::Wrong(message) => message,
        })?;
        value.as_object_mut().unwrap().shift_remove("id");
        Ok(value)
    }

    #[test]
    fn numbers_may_come_as_strings_and_whole_numbers_as_floats() {
        for (given, taken) in [
            (json!({"limit": "5"}), json!({"limit": 5})),
            (json!({"limit": " 50 "}), json!({"limit": 50})),
            (json!({"limit": 5.0}), json!({"limit": 5})),
            (json!({"limit": "5.0"}), json!({"limit": 5})),
            (json!({"offset": "1e3"}), json!({"offset": 1000})),
            (json!({"threshold": "0.5"}), json!({"threshold": 0.5})),
            (json!({"threshold": 1}), json!({"threshold": 1})),
            (json!({"sizes": ["1", 2.0]}), json!({"sizes": [1, 2]})),
            (json!({"to": "7"}), json!({"to": "7"})),
            (json!({"to": 7.0}), json!({"to": 7})),
            (json!({"steps": [{"name": "a", "count": "3"}]}), json!({"steps": [{"name": "a", "count": 3}]})),
        ] {
            assert_eq!(fitted(given.clone()), Ok(taken), "{given}");
        }
    }

    #[test]
    fn null_is_absent() {
        assert_eq!(fitted(json!({"limit": null, "tags": null})), Ok(json!({})));
        let missing = check(&schema(), json!({"id": null}));
        assert!(matches!(missing, Err(Mismatch::Missing { message, .. }) if message.starts_with("`id` is missing")));
        assert!(matches!(check(&schema(), Value::Null), Err(Mismatch::Missing { unknown: None, .. })));
        // Usually a typo: the error names both, so that the next call is right.
        let typo = check(&schema(), json!({"idd": "a.md"}));
        assert!(
            matches!(&typo, Err(Mismatch::Missing { unknown: Some(unknown), .. })
                if unknown.starts_with("`idd` is not an argument of this tool; did you mean `id`?")),
            "{typo:?}"
        );
    }

    #[test]
    fn errors_name_the_argument_and_what_is_allowed() {
        let long = "x".repeat(200);
        for (given, message) in [
            (json!({"limit": 0}), "`limit` is 0; it must be a whole number from 1 to 50"),
            (json!({"limit": 51}), "`limit` is 51; it must be a whole number from 1 to 50"),
            (json!({"limit": "51"}), "`limit` is 51; it must be a whole number from 1 to 50"),
            (json!({"limit": 2.5}), "`limit` is 2.5; it must be a whole number from 1 to 50"),
            (json!({"limit": "many"}), "`limit` is \"many\"; it must be a whole number from 1 to 50"),
            (json!({"limit": "NaN"}), "`limit` is \"NaN\"; it must be a whole number from 1 to 50"),
            (json!({"limit": "inf"}), "`limit` is \"inf\"; it must be a whole number from 1 to 50"),
            (json!({"limit": ""}), "`limit` is \"\"; it must be a whole number from 1 to 50"),
            (json!({"limit": true}), "`limit` is true; it must be a whole number from 1 to 50"),
            (json!({"limit": [5]}), "`limit` is a list; it must be a whole number from 1 to 50"),
            (json!({"offset": -1}), "`offset` is -1; it must be a whole number of at least 0"),
            (json!({"offset": 1e30}), "`offset` is 1e+30; it must be a whole number of at least 0"),
            (json!({"threshold": 1.01}), "`threshold` is 1.01; it must be a number from 0 to 1"),
            (json!({"mode": "some"}), "`mode` is \"some\"; it must be one of \"any\", \"all\""),
            (json!({"deep": "true"}), "`deep` is \"true\"; it must be true or false"),
            (json!({"id": 5}), "`id` is 5; it must be a string of 1 to 20 characters"),
            (json!({"id": ""}), "`id` is empty; it must be a string of 1 to 20 characters"),
            (json!({"id": long}), "`id` has 200 characters; it must be a string of 1 to 20 characters"),
            (json!({"tags": []}), "`tags` has 0 items; it must be a list of 1 to 3 strings"),
            (json!({"tags": "a"}), "`tags` is \"a\"; it must be a list of 1 to 3 strings"),
            (json!({"tags": ["a", 5]}), "`tags[1]` is 5; it must be a string"),
            (json!({"tags": [null]}), "`tags[0]` is null; it must be a string"),
            (json!({"sizes": {}}), "`sizes` is an object; it must be a list of whole numbers"),
            (json!({"to": true}), "`to` is true; it must be a whole number or a string"),
            (json!({"steps": [{}]}), "`steps[0].name` is missing; it must be a string"),
            (
                json!({"steps": [{"name": "a", "count": 10}]}),
                "`steps[0].count` is 10; it must be a whole number of at most 9",
            ),
            (
                json!({"steps": [{"name": "a", "cuont": 1}]}),
                "`steps[0].cuont` is not an argument of this tool; did you mean `count`? (allowed: `name`, `count`)",
            ),
            (json!([1]), "the arguments are a list; they must be an object"),
            (json!("id"), "the arguments are \"id\"; they must be an object"),
        ] {
            assert_eq!(fitted(given.clone()), Err(message.to_owned()), "{given}");
        }
    }
}
