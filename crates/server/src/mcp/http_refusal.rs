//! Errors for HTTP bodies that are not messages. The library answers "unsupported media type" in plain text; this returns the
//! JSON-RPC error of the stdio transport with status 400.

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use quipu_tools::echoed;
use rmcp::model::{ErrorCode, ErrorData};
use serde_json::Value;

use super::message::{self, Incoming, MessageRefusal};

/// Maximum length of an error that repeats part of the request.
const MAX_REFUSAL_BYTES: usize = 1000;

/// An error of the library, shortened: it repeats the request.
pub(super) async fn brief(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = axum::body::to_bytes(body, usize::MAX).await else {
        return parts.status.into_response();
    };
    if bytes.len() <= MAX_REFUSAL_BYTES {
        return Response::from_parts(parts, Body::from(bytes));
    }
    parts.headers.remove(header::CONTENT_LENGTH);
    let text = match serde_json::from_slice::<Value>(&bytes) {
        Ok(mut refusal) => {
            if let Some(Value::String(message)) = refusal.pointer_mut("/error/message") {
                *message = echoed(message);
            }
            refusal.to_string()
        }
        Err(_) => echoed(&String::from_utf8_lossy(&bytes)),
    };
    Response::from_parts(parts, Body::from(text))
}

/// The errors in a body that the library could not parse.
pub(super) fn faults(body: &[u8]) -> Vec<MessageRefusal> {
    match message::read(body, false) {
        Incoming::Refused(refusals) => refusals,
        // On stdio a blank line is ignored; an HTTP request needs a response.
        _ if body.trim_ascii().is_empty() => {
            let error = ErrorData::new(ErrorCode::PARSE_ERROR, "the body is empty: send a message in JSON", None);
            vec![MessageRefusal { id: None, error }]
        }
        _ => vec![MessageRefusal::invalid_request(None, "the request body is not a JSON-RPC message")],
    }
}

pub(super) fn refuse(refusals: Vec<MessageRefusal>) -> Response {
    let mut messages: Vec<Value> = refusals.into_iter().map(MessageRefusal::into_json).collect();
    let answer = if messages.len() == 1 { messages.remove(0) } else { Value::Array(messages) };
    (StatusCode::BAD_REQUEST, [(header::CONTENT_TYPE, "application/json")], answer.to_string()).into_response()
}
