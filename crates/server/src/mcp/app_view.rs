//! The view inside a chat (extension `io.modelcontextprotocol/ui`, MCP Apps): a page that hosts show beside the answers of some tools.
//! It is listed for every client, since lists may not differ between connections; other hosts ignore it.

use quipu_tools::ToolInfo;
use rmcp::model::{MetaObject, ReadResourceResult, ResourceContents};
use serde_json::{Value, json};

pub(super) const URI: &str = "ui://quipu/view.html";
const MIME_TYPE: &str = "text/html;profile=mcp-app";

/// One file, built from `web/src/chat`.
const PAGE: &str = include_str!("../../../../web/dist/chat.html");

/// What a tool with a view says of it in the list of tools.
pub(super) fn meta_of(tool: &ToolInfo) -> Option<MetaObject> {
    tool.has_view.then(|| meta(json!({ "ui": { "resourceUri": URI } })))
}

/// The page. It declares no origin to connect to, so hosts let it load nothing.
pub(super) fn read() -> ReadResourceResult {
    let page = ResourceContents::text(PAGE, URI).with_mime_type(MIME_TYPE);
    ReadResourceResult::new(vec![page.with_meta(meta(json!({ "ui": { "prefersBorder": true } })))])
}

fn meta(value: Value) -> MetaObject {
    let Value::Object(object) = value else { unreachable!("both callers build an object") };
    MetaObject(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_view_is_small_and_names_no_other_host() {
        assert!(PAGE.len() <= 150_000, "{} bytes", PAGE.len());
        let named = PAGE.replace("http://www.w3.org/2000/svg", "");
        assert!(!named.contains("http://") && !named.contains("https://"));
    }
}
