//! `POST /api/image`: an image that a note shows. By POST, so that no address or log has the names of files.
//!
//! The page draws it in an `img` element, where the scripts of an SVG do not run. The headers keep it harmless as a document too.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use quipu_core::model::VaultPath;
use quipu_core::ports::Image;
use quipu_tools::ToolError;
use serde::Deserialize;

use super::answers::{WebRefusal, error_of, json_answer, json_body};
use super::{Explorer, caller_of};

const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; sandbox";

#[derive(Deserialize)]
struct ImageRequest {
    /// The path of the note.
    note: String,
    /// The image as the note names it.
    target: String,
}

pub(super) async fn image(State(explorer): State<Arc<Explorer>>, request: Request) -> Result<Response, WebRefusal> {
    let (caller, permit) = caller_of(&request)?;
    let ImageRequest { note, target } = json_body(request).await?;
    let note =
        VaultPath::parse(&note).map_err(|error| WebRefusal::wrong(format!("invalid path of a note: {error}")))?;
    let read = move |explorer: &Explorer| explorer.service.vault().image(&note, &target);
    let weigh = |read: &Result<Option<Image>, ToolError>| match read {
        Ok(Some(image)) => image.bytes.len(),
        _ => 0,
    };
    let Some(Image { media_type, bytes }) = explorer.work(&caller, permit, read, weigh).await?? else {
        return json_answer(&error_of("NOT_FOUND", "the vault has no such image"));
    };
    let headers = [
        (header::CONTENT_TYPE, media_type),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CONTENT_DISPOSITION, "attachment"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, [("cross-origin-resource-policy", "same-origin")], Body::from(bytes)).into_response())
}
