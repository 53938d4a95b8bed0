//! `GET /api/graph`: the whole graph with a position for every node.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::{GzDecoder, GzEncoder};
use parking_lot::Mutex;
use quipu_tools::{ToolError, ToolErrorKind, WholeGraph};
use serde::Serialize;

use super::answers::{WebRefusal, json_bytes};
use super::layouts::Arranged;
use super::{Explorer, caller_of};

/// How long an answer waits for the layout: those of small graphs are there by then. A larger graph is answered with a draft, and an
/// event tells when the layout is there.
const LAYOUT_WAIT: Duration = Duration::from_millis(300);

/// The graph as the page takes it.
#[derive(Serialize)]
struct Picture<'g> {
    version: &'g str,
    /// Whether the positions are those of the layout, or of its draft.
    settled: bool,
    #[serde(flatten)]
    graph: &'g WholeGraph,
    /// Rounded: a page shows no part of a unit, and whole numbers are half the bytes.
    x: Vec<i32>,
    y: Vec<i32>,
    community: &'g [u32],
}

/// A graph in JSON, compressed. Positions and ids repeat, so it is several times smaller.
#[derive(Clone)]
struct Compressed {
    etag: String,
    gzip: Arc<[u8]>,
}

/// The last graph that was sent: compressing a large one again for each tab would cost more than everything else.
#[derive(Default)]
pub(super) struct LastGraph(Mutex<Option<Compressed>>);

/// The answer to one request.
struct PictureBody {
    etag: String,
    /// As JSON, compressed or not; `None` where the client has it.
    body: Option<Vec<u8>>,
}

pub(super) async fn graph(State(explorer): State<Arc<Explorer>>, request: Request) -> Result<Response, WebRefusal> {
    let (caller, permit) = caller_of(&request)?;
    let header = |headers: &HeaderMap, name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let known = header(request.headers(), header::IF_NONE_MATCH);
    let takes_gzip = header(request.headers(), header::ACCEPT_ENCODING).is_some_and(|list| list.contains("gzip"));
    let answer = move |explorer: &Explorer| {
        let Compressed { etag, gzip } = compressed(explorer)?;
        let body = match (known.as_ref() == Some(&etag), takes_gzip) {
            (true, _) => None,
            (false, true) => Some(gzip.to_vec()),
            (false, false) => Some(uncompressed(&gzip)?),
        };
        Ok(PictureBody { etag, body })
    };
    let weigh = |answer: &Result<PictureBody, ToolError>| {
        answer.as_ref().ok().and_then(|answer| answer.body.as_ref()).map_or(0, Vec::len)
    };
    let PictureBody { etag, body } = explorer.work(&caller, permit, answer, weigh).await??;
    let has_body = body.is_some();
    let mut response = body.map_or_else(|| StatusCode::NOT_MODIFIED.into_response(), json_bytes);
    if has_body && takes_gzip {
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    let headers = response.headers_mut();
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        headers.insert(header::ETAG, etag);
    }
    Ok(response)
}

/// Starts to lay the graph out, so that the first visit need not wait for it.
pub(super) fn prepare(explorer: &Explorer) {
    let graph = explorer.service.vault().whole_graph().map(Arc::new);
    let started = graph.and_then(|graph| explorer.layouts.start(&graph).map_err(|error| broken(&error)));
    if let Err(error) = started {
        tracing::debug!(message = error.message, "the graph is not laid out ahead");
    }
}

fn compressed(explorer: &Explorer) -> Result<Compressed, ToolError> {
    let graph = Arc::new(explorer.service.vault().whole_graph()?);
    let arranged = explorer.layouts.of_graph(&graph, LAYOUT_WAIT).map_err(|error| broken(&error))?;
    let Arranged { layout, settled } = arranged;
    let version = version_of(&graph) + if settled { "" } else { "-draft" };
    let etag = format!("\"{version}\"");
    // Held while it is made: a second tab waits for it instead of making it too.
    let mut last = explorer.last_graph.0.lock();
    if let Some(known) = last.as_ref().filter(|known| known.etag == etag) {
        return Ok(known.clone());
    }
    let rounded = |of: fn(&quipu_layout::Point) -> f32| layout.positions.iter().map(|p| of(p).round() as i32).collect();
    let picture = Picture {
        version: &version,
        settled,
        graph: &graph,
        x: rounded(|point| point.x),
        y: rounded(|point| point.y),
        community: &layout.communities,
    };
    let gzip = compress(&picture).map_err(|error| broken(&error))?;
    Ok(last.insert(Compressed { etag, gzip: gzip.into() }).clone())
}

fn compress(picture: &Picture<'_>) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    serde_json::to_writer(&mut encoder, picture)?;
    encoder.finish()
}

fn uncompressed(gzip: &[u8]) -> Result<Vec<u8>, ToolError> {
    let mut decoder = GzDecoder::new(Vec::new());
    decoder.write_all(gzip).and_then(|()| decoder.finish()).map_err(|error| broken(&error))
}

fn broken(error: &std::io::Error) -> ToolError {
    ToolError::new(ToolErrorKind::Provider, error.to_string())
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
