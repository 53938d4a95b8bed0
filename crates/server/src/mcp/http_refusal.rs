//! What a client over HTTP is told of a body that is no message, or one whose id is in use. The library calls the first an
//! unsupported media type, in plain text, and never answers the second; here it is what JSON-RPC says of it, as on
//! standard input, with the status of a bad request.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use quipu_tools::echoed;
use rmcp::model::{ErrorCode, ErrorData, RequestId};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::MAX_BODY_BYTES;
use super::http_answer::until_sent;
use super::http_ids::IdsInUse;
use super::http_sessions::HEADER;
use super::message::{self, Incoming, Refusal};

/// A longer refusal repeats more than is needed to know it again.
const MAX_REFUSAL_BYTES: usize = 1000;

/// As much of a message as says whether it is a request, and which.
#[derive(Deserialize)]
struct Glance {
    id: RequestId,
    #[serde(rename = "method")]
    _method: IgnoredAny,
}

/// Middleware right before the library.
pub(super) async fn say(State(ids): State<IdsInUse>, request: Request, next: Next) -> Response {
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    // It was read whole at the front door, and is not copied here.
    let Ok(bytes) = axum::body::to_bytes(body, MAX_BODY_BYTES).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_json = kind.is_some_and(|kind| kind.starts_with("application/json"));
    let mut in_use = None;
    if let Some(session) = parts.headers.get(HEADER)
        && let Ok(Glance { id, .. }) = serde_json::from_slice(&bytes)
    {
        in_use = ids.take(session, &id);
        match &in_use {
            Some(in_use) => drop(parts.extensions.insert(in_use.clone())),
            None => return answer(vec![Refusal::id_in_use(&id)]),
        }
    }
    let response = next.run(Request::from_parts(parts, Body::from(bytes.clone()))).await;
    if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE && is_json {
        return answer(faults(&bytes));
    }
    let response = if response.status().is_client_error() { brief(response).await } else { response };
    until_sent(response, in_use)
}

/// A refusal of the library, which repeats what it refuses, cut where that is long.
async fn brief(response: Response) -> Response {
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

/// What is wrong with a body that the library could not read.
fn faults(body: &[u8]) -> Vec<Refusal> {
    match message::read(body, false) {
        Incoming::Refused(refusals) => refusals,
        // A blank line is passed over; a request has to be answered.
        _ if body.trim_ascii().is_empty() => {
            let error = ErrorData::new(ErrorCode::PARSE_ERROR, "the body is empty: send a message in JSON", None);
            vec![Refusal { id: None, error }]
        }
        _ => vec![Refusal::invalid_request(None, "the request body is not a JSON-RPC message")],
    }
}

fn answer(refusals: Vec<Refusal>) -> Response {
    let mut messages: Vec<Value> = refusals.into_iter().map(Refusal::into_json).collect();
    let answer = if messages.len() == 1 { messages.remove(0) } else { Value::Array(messages) };
    (StatusCode::BAD_REQUEST, [(header::CONTENT_TYPE, "application/json")], answer.to_string()).into_response()
}
