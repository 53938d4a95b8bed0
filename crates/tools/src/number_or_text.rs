//! An argument that is an integer or a string, such as the id of an entity or of a note.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

#[derive(Clone, Deserialize, Serialize)]
#[serde(untagged)]
pub(crate) enum NumberOrText {
    Number(i64),
    Text(String),
}

impl JsonSchema for NumberOrText {
    fn schema_name() -> Cow<'static, str> {
        "NumberOrText".into()
    }

    fn inline_schema() -> bool {
        true
    }

    // The derived schema is three times as long.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["integer", "string"] })
    }
}
