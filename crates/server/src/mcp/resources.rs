//! Notes as MCP resources. The registry decides which there are and their URIs; this module has MCP's format.

use quipu_core::Session;
use quipu_tools::{Completion, Registry, echoed};
use rmcp::model::{
    CompleteRequestParams, CompleteResult, CompletionInfo, ErrorData, ListResourcesResult, MetaObject,
    ReadResourceResult, Reference, Resource, ResourceContents, ResourceTemplate,
};

use super::answer::warned;
use super::{app_view, prompts};
use crate::service::VaultService;

/// A small vault fits on one page, and a page of long titles stays small.
const PAGE_SIZE: usize = 200;

/// The one argument of the one template.
const ARGUMENT: &str = "id";

pub(super) fn list(vault: &dyn VaultService, cursor: Option<&str>) -> Result<ListResourcesResult, ErrorData> {
    let page = vault.resources(cursor, PAGE_SIZE);
    let page = page.map_err(|fault| ErrorData::invalid_params(fault.message, None))?;
    let resources = page.resources.into_iter().map(|note| {
        Resource::new(note.uri, note.name)
            .with_title(note.title)
            .with_mime_type(Registry::RESOURCE_MIME_TYPE)
            .with_size(note.size)
    });
    let listed = ListResourcesResult::with_all_items(resources.collect());
    Ok(ListResourcesResult { next_cursor: page.next_cursor, meta: meta_of(page.lag), ..listed })
}

pub(super) fn template() -> ResourceTemplate {
    ResourceTemplate::new(Registry::RESOURCE_TEMPLATE, "note")
        .with_title("A note")
        .with_description("The whole file of one Markdown note, by its id: the path from the vault's root, lowercased.")
        .with_mime_type(Registry::RESOURCE_MIME_TYPE)
}

pub(super) fn read(vault: &dyn VaultService, session: &Session, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    if uri == app_view::URI {
        return Ok(app_view::read());
    }
    let found = vault.read_resource(session, uri).map_err(|fault| {
        tracing::error!(?fault, uri, "cannot read a resource");
        ErrorData::internal_error(format!("{} cannot be read", echoed(uri)), None)
    })?;
    let Some(note) = found else {
        let uri = echoed(uri);
        let data = serde_json::json!({ "uri": uri });
        return Err(ErrorData::resource_not_found(format!("there is no resource {uri}"), Some(data)));
    };
    // With the requested URI, not the listed one: clients compare the two.
    let contents = ResourceContents::text(note.text, uri).with_mime_type(Registry::RESOURCE_MIME_TYPE);
    let mut result = ReadResourceResult::new(vec![contents]);
    result.meta = meta_of(note.lag);
    Ok(result)
}

/// Lists and texts have no place for a warning but their metadata.
fn meta_of(lag: Option<String>) -> Option<MetaObject> {
    lag.map(|lag| warned(vec![lag]))
}

/// Approximate size of a note when sent.
pub(super) fn weight(read: &Result<ReadResourceResult, ErrorData>) -> usize {
    let Ok(read) = read else { return 0 };
    let texts = read.contents.iter().map(|contents| match contents {
        ResourceContents::TextResourceContents { text, .. } => text.len(),
        _ => 0,
    });
    texts.sum()
}

pub(super) fn complete(vault: &dyn VaultService, request: &CompleteRequestParams) -> Result<CompleteResult, ErrorData> {
    match &request.r#ref {
        Reference::Resource(template) if template.uri == Registry::RESOURCE_TEMPLATE => {}
        Reference::Resource(template) => {
            return Err(ErrorData::invalid_params(
                format!("there is no resource template {}", echoed(&template.uri)),
                None,
            ));
        }
        Reference::Prompt(prompt) => {
            let argument = &request.argument;
            return prompts::complete(vault, &prompt.name, &argument.name, &argument.value);
        }
        _ => return Err(ErrorData::invalid_params("only resource templates and prompts have completions", None)),
    }
    if request.argument.name != ARGUMENT {
        let name = echoed(&request.argument.name);
        let message = format!("the template's only argument is `{ARGUMENT}`, not `{name}`");
        return Err(ErrorData::invalid_params(message, None));
    }
    completed(vault.complete_note_id(&request.argument.value, CompletionInfo::MAX_VALUES))
}

/// Suggested values as a result.
pub(super) fn completed(found: Completion) -> Result<CompleteResult, ErrorData> {
    let has_more = found.total > found.values.len();
    let info = CompletionInfo::with_pagination(found.values, u32::try_from(found.total).ok(), has_more);
    let mut result = CompleteResult::new(info.map_err(|error| ErrorData::internal_error(error, None))?);
    result.meta = meta_of(found.lag);
    Ok(result)
}
