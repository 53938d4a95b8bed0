//! Checks of values against JSON schemas.

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::{Map, Value};

/// The name of the schema for the compiler, which asks for an address.
const NAME: &str = "schema.json";

/// Whether this is a JSON schema.
///
/// # Errors
/// What is wrong with it.
pub fn compiles(schema: &Map<String, Value>) -> Result<(), String> {
    compiled(schema).map(drop)
}

/// Whether the value is as the schema says.
///
/// # Errors
/// Every difference, or what is wrong with the schema.
pub fn check(schema: &Map<String, Value>, value: &Value) -> Result<(), String> {
    let (schemas, schema) = compiled(schema)?;
    schemas.validate(value, schema).map_err(|error| format!("{error:#}"))
}

fn compiled(schema: &Map<String, Value>) -> Result<(Schemas, SchemaIndex), String> {
    let mut compiler = Compiler::new();
    compiler.add_resource(NAME, Value::Object(schema.clone())).map_err(|error| error.to_string())?;
    let mut schemas = Schemas::new();
    let schema = compiler.compile(NAME, &mut schemas).map_err(|error| format!("{error:#}"))?;
    Ok((schemas, schema))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tells_a_wrong_value_and_a_wrong_schema() {
        let schema =
            json!({"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}});
        let schema = schema.as_object().expect("an object");
        assert_eq!(check(schema, &json!({"n": 1})), Ok(()));
        let error = check(schema, &json!({"n": "one"})).expect_err("no integer");
        assert!(error.contains("/n"), "{error}");

        let wrong = json!({"type": "number of things"});
        assert!(compiles(wrong.as_object().expect("an object")).is_err());
    }
}
