//! The tool reference as Markdown, made from what clients are told: the page cannot drift from the program.

use std::fmt::Write;

use serde_json::Value;

use crate::arguments::allowed;
use crate::registry::Registry;
use crate::schema::strings;
use crate::tool::{Access, ToolInfo, Toolset};

/// Every tool of a registry with its arguments.
pub fn reference(registry: &Registry) -> String {
    let mut page =
        String::from("# Tools\n\nThis page is generated from the tools themselves; edit their files instead.\n");
    for toolset in Toolset::ALL {
        let tools: Vec<&ToolInfo> = registry.tools().filter(|tool| tool.toolset == toolset).collect();
        if !tools.is_empty() {
            write_line(&mut page, format_args!("\n## {}", toolset.name()));
        }
        for tool in tools {
            describe(&mut page, tool);
        }
    }
    page
}

fn describe(page: &mut String, tool: &ToolInfo) {
    let access = match tool.access {
        Access::Read => "Reads.",
        Access::Write => "Writes; what is there stays as it is.",
        Access::Destroy => "Writes; may replace or remove what is there.",
    };
    let again = match (tool.access, tool.idempotent) {
        (Access::Read, _) => "",
        (_, true) => " Calling it again does no more.",
        (_, false) => " Calling it again is another change.",
    };
    write_line(page, format_args!("\n### `{}`\n\n{}\n\n{access}{again}", tool.name, tool.description));
    let Some(properties) = tool.input_schema["properties"].as_object().filter(|map| !map.is_empty()) else {
        write_line(page, format_args!("\nTakes no arguments."));
        return;
    };
    write_line(page, format_args!("\n| argument | | allowed | what it is |\n|---|---|---|---|"));
    let required: Vec<&str> = strings(tool.input_schema.get("required")).collect();
    for (name, property) in properties {
        let need = match property.get("default") {
            _ if required.contains(&name.as_str()) => "required".to_owned(),
            Some(default) => format!("default `{default}`"),
            None => "optional".to_owned(),
        };
        let what = property.get("description").and_then(Value::as_str).unwrap_or_default();
        write_line(page, format_args!("| `{name}` | {need} | {} | {} |", in_cell(&allowed(property)), in_cell(what)));
    }
}

fn in_cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn write_line(page: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(page, "{line}").expect("a string takes every write");
}
