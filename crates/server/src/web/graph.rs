//! `GET /api/graph`: the whole graph with a position for every node.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use quipu_tools::{ToolError, WholeGraph};
use serde::Serialize;

use super::answers::{Refusal, json_bytes};
use super::{Explorer, caller_of};

/// The graph as the page takes it.
#[derive(Serialize)]
struct Picture<'g> {
    version: &'g str,
    #[serde(flatten)]
    graph: &'g WholeGraph,
    /// Rounded: a page shows no part of a unit, and whole numbers are half the bytes.
    x: Vec<i32>,
    y: Vec<i32>,
    community: &'g [u32],
}

/// The version and the picture as JSON.
type Drawn = Result<(String, serde_json::Result<Vec<u8>>), ToolError>;

pub(super) async fn graph(State(explorer): State<Arc<Explorer>>, request: Request) -> Result<Response, Refusal> {
    let (caller, lease) = caller_of(&request)?;
    let known = request.headers().get(header::IF_NONE_MATCH).cloned();
    let draw = |explorer: &Explorer| -> Drawn {
        let graph = explorer.service.vault().whole_graph()?;
        let layout = explorer.layouts.of_graph(&graph);
        let version = version_of(&graph);
        let rounded =
            |of: fn(&quipu_layout::Point) -> f32| layout.positions.iter().map(|p| of(p).round() as i32).collect();
        let picture = Picture {
            version: &version,
            graph: &graph,
            x: rounded(|point| point.x),
            y: rounded(|point| point.y),
            community: &layout.communities,
        };
        Ok((format!("\"{version}\""), serde_json::to_vec(&picture)))
    };
    let weigh = |drawn: &Drawn| drawn.as_ref().map_or(0, |(_, bytes)| bytes.as_ref().map_or(0, Vec::len));
    let drawn = explorer.work(&caller, lease, draw, weigh);
    let (etag, bytes) = drawn.await??;
    let bytes = bytes.map_err(|error| error.to_string())?;
    let mut response = if known.is_some_and(|known| known.as_bytes() == etag.as_bytes()) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        json_bytes(bytes)
    };
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        response.headers_mut().insert(header::ETAG, etag);
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    }
    Ok(response)
}

/// Changes with whatever the picture shows.
fn version_of(graph: &WholeGraph) -> String {
    let mut hasher = blake3::Hasher::new();
    // Written into the hash as it is made: the text itself is not kept.
    match serde_json::to_writer(&mut hasher, graph) {
        Ok(()) => hasher.finalize().to_hex()[..16].to_owned(),
        Err(_) => String::new(),
    }
}
