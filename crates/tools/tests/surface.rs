//! What clients see of each tool: one snapshot file per tool, so that a review shows every change.

use quipu_testkit::schema;
use quipu_tools::{ToolInfo, every_tool, reference};
use serde_json::{Map, Value, json};

#[test]
fn every_tool_matches_its_snapshot() {
    for tool in every_tool() {
        let shown = json!({
            "name": tool.name,
            "toolset": tool.toolset.name(),
            "description": tool.description,
            "access": format!("{:?}", tool.access),
            "idempotent": tool.idempotent,
            "answersObject": tool.answers_object,
            "inputSchema": *tool.input_schema,
            "outputSchema": *tool.output_schema,
        });
        insta::assert_json_snapshot!(tool.name, shown);
    }
}

#[test]
fn of_the_memory_tools_only_three_need_notes() {
    let (remembering, others): (Vec<&ToolInfo>, Vec<&ToolInfo>) =
        every_tool().iter().partition(|tool| tool.toolset.is_about_memory());
    let showing = remembering.iter().filter(|tool| tool.needs_index).map(|tool| tool.name);
    assert_eq!(showing.collect::<Vec<_>>(), ["get_entity", "undo_change", "redact"]);
    assert!(others.iter().all(|tool| tool.needs_index));
}

#[test]
fn the_list_without_output_schemas_is_short() {
    // Clients put it into the model's context.
    let listed = |tool: &ToolInfo| {
        json!({"name": tool.name, "description": tool.description, "inputSchema": *tool.input_schema}).to_string().len()
    };
    let sizes: Vec<(usize, &str)> = every_tool().iter().map(|tool| (listed(tool), tool.name)).collect();
    let total: usize = sizes.iter().map(|(size, _)| size).sum();
    assert!(total <= 640 * sizes.len(), "{total} bytes: {sizes:?}");
}

#[test]
fn input_schemas_use_only_keywords_that_are_checked() {
    // The keywords that `arguments.rs` checks.
    const CHECKED: [&str; 12] = [
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "enum",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
    ];
    fn walk(tool: &str, schema: &Value) {
        for (keyword, value) in schema.as_object().expect("a schema is an object") {
            assert!(
                CHECKED.contains(&keyword.as_str()) || ["description", "default"].contains(&keyword.as_str()),
                "{tool}: {keyword}"
            );
            match keyword.as_str() {
                "properties" => value.as_object().into_iter().flatten().for_each(|(_, inner)| walk(tool, inner)),
                "items" => walk(tool, value),
                _ => {}
            }
        }
    }
    for tool in every_tool() {
        walk(tool.name, &Value::Object(Map::clone(&tool.input_schema)));
        for (name, property) in tool.input_schema["properties"].as_object().expect("every tool lists its arguments") {
            assert!(property["description"].is_string(), "{}: {name} has no description", tool.name);
        }
        for checked in [&tool.input_schema, &tool.output_schema].map(|schema| schema::compiles(schema)) {
            checked.unwrap_or_else(|error| panic!("{}: {error}", tool.name));
        }
        assert!(tool.description.len() <= 300, "{}: {} bytes", tool.name, tool.description.len());
    }
}

#[test]
fn the_reference_page_names_everything() {
    let page = reference();
    for tool in every_tool() {
        let heading = format!("\n### `{}`\n\n{}\n", tool.name, tool.description);
        let (_, part) = page.split_once(&heading).unwrap_or_else(|| panic!("{} is not on the page", tool.name));
        let part = part.split("\n### ").next().unwrap_or(part);
        for name in tool.input_schema["properties"].as_object().expect("checked above").keys() {
            assert_eq!(part.matches(&format!("\n| `{name}` | ")).count(), 1, "{}: {name}", tool.name);
        }
    }
    let limit = "| `limit` | default `20` | a whole number from 1 to 50 | Maximum notes, and maximum entities. |";
    assert!(page.contains(limit), "{page}");
}
