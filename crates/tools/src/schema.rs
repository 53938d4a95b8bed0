//! JSON Schemas generated from a tool's types, and made small: every byte of `tools/list` costs the client context.
//!
//! Subschemas are inlined, and `title` and `format`, which only code generators read, are removed. A property that may be
//! absent is never declared nullable as well.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// The keywords whose values are schemas or lists of schemas.
const NESTED: [&str; 5] = ["items", "additionalProperties", "anyOf", "oneOf", "allOf"];

/// The schema of a tool's arguments. Closed: unknown arguments are refused.
pub(crate) fn input_schema<T: JsonSchema>() -> Map<String, Value> {
    let mut schema = generate::<T>(SchemaSettings::draft2020_12().for_deserialize());
    schema.remove("description");
    schema.entry("properties").or_insert_with(|| Map::new().into());
    schema.insert("additionalProperties".into(), false.into());
    schema
}

/// The schema of a tool's answers: fields and their types, and nothing that the answer itself shows.
pub(crate) fn output_schema<T: JsonSchema>() -> Map<String, Value> {
    let mut schema = Value::Object(generate::<T>(SchemaSettings::draft2020_12().for_serialize()));
    keep_types(&mut schema);
    object(schema)
}

fn generate<T: JsonSchema>(settings: SchemaSettings) -> Map<String, Value> {
    let settings = settings.with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    tidy(&mut schema);
    object(schema)
}

/// A schema that is only `true` or `false` says nothing about a tool.
fn object(schema: Value) -> Map<String, Value> {
    if let Value::Object(object) = schema { object } else { Map::new() }
}

fn tidy(schema: &mut Value) {
    let Value::Object(object) = schema else { return };
    for noise in ["$schema", "title", "format"] {
        object.remove(noise);
    }
    if object.get("additionalProperties") == Some(&Value::Bool(true)) {
        object.remove("additionalProperties");
    }
    if let Some(Value::String(text)) = object.get_mut("description") {
        *text = text.replace('\n', " ");
    }
    let required: Vec<String> = strings(object.get("required")).map(str::to_owned).collect();
    for (name, property) in object.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        if !required.contains(name) {
            forbid_null(property);
        }
    }
    for_each_subschema(object, tidy);
}

fn keep_types(schema: &mut Value) {
    let Value::Object(object) = schema else { return };
    for keyword in ["description", "default", "minimum", "maximum", "required"] {
        object.remove(keyword);
    }
    if object.contains_key("enum") {
        object.remove("type");
    }
    for_each_subschema(object, keep_types);
}

fn for_each_subschema(schema: &mut Map<String, Value>, edit: fn(&mut Value)) {
    schema
        .get_mut("properties")
        .and_then(Value::as_object_mut)
        .into_iter()
        .flatten()
        .for_each(|(_, inner)| edit(inner));
    for keyword in NESTED {
        match schema.get_mut(keyword) {
            Some(Value::Array(schemas)) => schemas.iter_mut().for_each(edit),
            Some(inner) => edit(inner),
            None => {}
        }
    }
}

fn forbid_null(schema: &mut Value) {
    let Value::Object(schema) = schema else { return };
    if schema.get("default") == Some(&Value::Null) {
        schema.remove("default");
    }
    if let Some(Value::Array(choices)) = schema.get_mut("enum") {
        choices.retain(|choice| !choice.is_null());
    }
    if let Some(kind) = schema.get_mut("type")
        && let Value::Array(kinds) = kind
    {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_slice() {
            *kind = only.clone();
        }
    }
}

/// The strings of a list; none if there is no list.
pub(crate) fn strings(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};
    use serde_json::json;

    use super::*;

    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Way {
        In,
        Out,
    }

    /// Not for the wire.
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Sample {
        /// The name of the note.
        title: String,
        #[serde(default = "five")]
        #[schemars(range(min = 1, max = 9))]
        limit: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        way: Option<Way>,
        #[serde(default)]
        strict: bool,
        found: Option<String>,
    }

    fn five() -> u32 {
        5
    }

    #[test]
    fn arguments_are_closed_and_never_null() {
        let expected = json!({
            "type": "object",
            "properties": {
                "title": {"type": "string", "description": "The name of the note."},
                "limit": {"type": "integer", "minimum": 1, "maximum": 9, "default": 5},
                "way": {"type": "string", "enum": ["in", "out"]},
                "strict": {"type": "boolean", "default": false},
                "found": {"type": "string"}
            },
            "required": ["title"],
            "additionalProperties": false
        });
        assert_eq!(Value::Object(input_schema::<Sample>()), expected);
    }

    #[test]
    fn answers_declare_fields_and_types_and_nothing_else() {
        let fields = json!({
            "title": {"type": "string"},
            "limit": {"type": "integer"},
            "way": {"enum": ["in", "out"]},
            "strict": {"type": "boolean"},
            "found": {"type": ["string", "null"]}
        });
        let object = json!({"type": "object", "properties": fields});
        assert_eq!(Value::Object(output_schema::<Sample>()), object);
        assert_eq!(Value::Object(output_schema::<Vec<Sample>>()), json!({"type": "array", "items": object}));
        assert_eq!(output_schema::<Option<Sample>>()["type"], json!(["object", "null"]));
    }
}
