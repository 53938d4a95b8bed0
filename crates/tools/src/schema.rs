//! JSON Schemas from the types of a tool, made as small as they can be: a model pays for every byte of them.
//!
//! Everything is inlined; names and formats that only a code generator would read are dropped; a property that may be
//! left out is never said to be null as well.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// The schema of a tool's arguments. Closed: an argument it does not name is refused.
pub(crate) fn input_schema<T: JsonSchema>() -> Value {
    let mut schema = generate::<T>(SchemaSettings::draft2020_12().for_deserialize());
    if let Value::Object(root) = &mut schema {
        root.remove("description");
        root.entry("properties").or_insert_with(|| Map::new().into());
        root.insert("additionalProperties".into(), false.into());
    }
    schema
}

/// The schema of a tool's answers.
pub(crate) fn output_schema<T: JsonSchema>() -> Value {
    generate::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn generate<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings.with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    tidy(&mut schema);
    schema
}

fn tidy(schema: &mut Value) {
    let Value::Object(schema) = schema else { return };
    for noise in ["$schema", "title", "format"] {
        schema.remove(noise);
    }
    let required: Vec<String> = strings(schema.get("required")).map(str::to_owned).collect();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for (name, property) in properties {
            tidy(property);
            if !required.contains(name) {
                forbid_null(property);
            }
        }
    }
    for inner in ["items", "additionalProperties"] {
        schema.get_mut(inner).into_iter().for_each(tidy);
    }
    for choices in ["anyOf", "oneOf", "allOf"] {
        schema.get_mut(choices).and_then(Value::as_array_mut).into_iter().flatten().for_each(tidy);
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

/// The texts of a list, none when there is no list.
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
        /// Its name.
        title: String,
        #[serde(default = "five")]
        #[schemars(range(min = 1, max = 9))]
        limit: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        way: Option<Way>,
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
                "title": {"type": "string", "description": "Its name."},
                "limit": {"type": "integer", "minimum": 1, "maximum": 9, "default": 5},
                "way": {"type": "string", "enum": ["in", "out"]},
                "found": {"type": "string"}
            },
            "required": ["title"],
            "additionalProperties": false
        });
        assert_eq!(input_schema::<Sample>(), expected);
    }

    #[test]
    fn an_answer_may_be_null_where_it_is_always_there() {
        let schema = output_schema::<Sample>();
        assert_eq!(schema["properties"]["way"], json!({"type": "string", "enum": ["in", "out"]}));
        assert_eq!(schema["properties"]["found"], json!({"type": ["string", "null"]}));
        assert_eq!(output_schema::<Option<Sample>>()["type"], json!(["object", "null"]));
    }
}
