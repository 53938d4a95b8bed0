//! A tool and its reply in MCP's format. The protocol generations differ: before 2026-07-28 structured output is an object
//! or absent, and a tool whose answer may be something else must not declare an output schema.

use quipu_tools::{Access, Reply, ToolInfo, ToolResponse};
use rmcp::model::{CallToolResult, ContentBlock, ErrorCode, ErrorData, JsonObject, MetaObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use super::app_view;

/// Where a client that reads no text finds the warnings.
const WARNINGS_KEY: &str = "quipu/warnings";

/// A tool as listed for clients of the new (`modern`) or an older generation.
pub(super) fn describe(info: &ToolInfo, modern: bool) -> Tool {
    let annotations = ToolAnnotations::from_raw(
        None,
        Some(info.access == Access::Read),
        Some(matches!(info.access, Access::Destroy | Access::Erase)),
        Some(info.idempotent),
        Some(false),
    );
    let tool = Tool::new(info.name, info.description.clone(), info.input_schema.clone()).with_annotations(annotations);
    let tool = match app_view::meta_of(info) {
        Some(meta) => tool.with_meta(meta),
        None => tool,
    };
    if modern || info.answers_object { tool.with_raw_output_schema(info.output_schema.clone()) } else { tool }
}

/// The MCP result of a call: the answer in one text block, warnings in a second.
pub(super) fn result(called: ToolResponse, modern: bool) -> Result<CallToolResult, ErrorData> {
    let ToolResponse { reply, warnings } = called;
    let mut result = match reply {
        Reply::Answer(value) => {
            let mut result = CallToolResult::success(vec![ContentBlock::text(value.to_string())]);
            result.structured_content = structured(value, modern);
            result
        }
        Reply::Failure(text) => CallToolResult::error(vec![ContentBlock::text(text)]),
        Reply::Protocol { code, message } => return Err(ErrorData::new(ErrorCode(code), message, None)),
    };
    if !warnings.is_empty() {
        result.content.push(ContentBlock::text(json!({ "_warnings": &warnings }).to_string()));
        result.meta = Some(warned(warnings));
    }
    Ok(result)
}

/// The metadata of a result with warnings.
pub(super) fn warned(warnings: Vec<String>) -> MetaObject {
    MetaObject(JsonObject::from_iter([(WARNINGS_KEY.to_owned(), warnings.into())]))
}

/// Approximate size of a result when sent: its text, and the same again as structured content.
pub(super) fn weight(result: &Result<CallToolResult, ErrorData>) -> usize {
    let Ok(result) = result else { return 0 };
    let text: usize = result.content.iter().filter_map(ContentBlock::as_text).map(|block| block.text.len()).sum();
    if result.structured_content.is_some() { text * 2 } else { text }
}

/// In the new generation also when it is null: every tool has an output schema there, and clients report a missing value as
/// an error.
fn structured(value: Value, modern: bool) -> Option<Value> {
    (modern || value.is_object()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(reply: Reply, warnings: &[&str], modern: bool) -> Value {
        let called = ToolResponse { reply, warnings: warnings.iter().map(|&warning| warning.to_owned()).collect() };
        serde_json::to_value(result(called, modern).unwrap()).unwrap()
    }

    #[test]
    fn objects_are_text_and_structured_in_every_protocol_version() {
        for modern in [false, true] {
            let wire = wire(Reply::Answer(json!({"b": 1, "a": [2]})), &[], modern);
            assert_eq!(wire["content"], json!([{"type": "text", "text": r#"{"b":1,"a":[2]}"#}]));
            assert_eq!(wire["structuredContent"], json!({"b": 1, "a": [2]}));
            assert_eq!(wire["isError"], json!(false));
            assert!(wire.get("_meta").is_none());
        }
    }

    #[test]
    fn other_values_are_structured_only_since_2026_07_28() {
        for value in [json!([1]), Value::Null] {
            let (older, newer) =
                (wire(Reply::Answer(value.clone()), &[], false), wire(Reply::Answer(value.clone()), &[], true));
            assert!(older.get("structuredContent").is_none());
            assert_eq!(newer.get("structuredContent"), Some(&value));
            assert_eq!(older["content"][0]["text"], value.to_string());
        }
    }

    #[test]
    fn warnings_are_a_separate_block_and_leave_the_answer_unchanged() {
        let wire = wire(Reply::Answer(json!({"a": 1})), &["a.md: broken link"], false);
        assert_eq!(wire["content"][0]["text"], r#"{"a":1}"#);
        assert_eq!(wire["content"][1]["text"], r#"{"_warnings":["a.md: broken link"]}"#);
        assert_eq!(wire["_meta"], json!({"quipu/warnings": ["a.md: broken link"]}));
        assert_eq!(wire["structuredContent"], json!({"a": 1}));
    }

    #[test]
    fn tool_errors_are_results_and_protocol_errors_are_not() {
        let failed = wire(Reply::Failure("Error: no".into()), &[], true);
        assert_eq!(failed["isError"], json!(true));
        assert_eq!(failed["content"], json!([{"type": "text", "text": "Error: no"}]));
        let reply = Reply::Protocol { code: -32602, message: "no such page".into() };
        let error = result(ToolResponse { reply, warnings: vec![] }, true).unwrap_err();
        assert_eq!((error.code.0, &*error.message), (-32602, "no such page"));
    }
}
