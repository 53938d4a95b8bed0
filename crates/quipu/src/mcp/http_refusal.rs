//! What a client over HTTP is told of a body that is no message. The library calls it an unsupported media type, in plain
//! text; here it is what JSON-RPC says of it, as on standard input, with the status of a bad request.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use super::MAX_BODY_BYTES;
use super::message::{self, Incoming, Refusal};

/// Middleware right before the library.
pub(super) async fn say(request: Request, next: Next) -> Response {
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    // It was read whole at the front door, and is not copied here.
    let Ok(bytes) = axum::body::to_bytes(body, MAX_BODY_BYTES).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_json = kind.is_some_and(|kind| kind.starts_with("application/json"));
    let response = next.run(Request::from_parts(parts, Body::from(bytes.clone()))).await;
    if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE && is_json { refused(&bytes) } else { response }
}

fn refused(body: &[u8]) -> Response {
    let refusals = match message::read(body, false) {
        Incoming::Refused(refusals) => refusals,
        _ => vec![Refusal::invalid_request(None, "the body is no message of the protocol")],
    };
    let mut messages: Vec<Value> = refusals.into_iter().map(Refusal::into_json).collect();
    let answer = if messages.len() == 1 { messages.remove(0) } else { Value::Array(messages) };
    (StatusCode::BAD_REQUEST, [(header::CONTENT_TYPE, "application/json")], answer.to_string()).into_response()
}
