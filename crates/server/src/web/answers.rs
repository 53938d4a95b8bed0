//! Calls of tools, and the shape of every answer to the page.
//!
//! A tool that fails is an answer with an `error`, at status 200: it is content for the page, while a browser reports other
//! statuses to its console as broken requests.

use std::future::pending;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Request as HttpRequest, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use quipu_tools::{Reply, ToolError, ToolResponse};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Explorer, caller_of};
use crate::service::{Caller, Request, RequestPermit, ServiceError};
use crate::tokens::TokenScope;

/// The path of a call. By name: on a server of graphs the path has further parts, those of the router that found the graph.
#[derive(Deserialize)]
pub(super) struct CallPath {
    tool: String,
}

/// `POST /api/call/{tool}`: the arguments are the body.
pub(super) async fn call(
    State(explorer): State<Arc<Explorer>>,
    Path(CallPath { tool }): Path<CallPath>,
    request: HttpRequest,
) -> Result<Response, WebRefusal> {
    let (caller, permit) = caller_of(&request)?;
    let arguments = json_body(request).await?;
    let (session, tool) = (explorer.session(&caller), explorer.service.find_in_all_toolsets(&tool));
    let request = Request { session, tool, arguments, key: None, permit, caller };
    match explorer.service.call(request, pending(), shaped, Vec::len).await {
        Ok(answer) => Ok(json_bytes(answer)),
        Err(ServiceError::OutOfScope { tool, needed }) => {
            let message = match needed {
                TokenScope::Admin => needed.refusal(tool),
                _ => format!("{tool} writes, and this page may only read; `quipu open --write` opens one that may"),
            };
            json_answer(&error_of("FORBIDDEN", &message))
        }
        Err(_) => Err(WebRefusal::inside()),
    }
}

/// The body of a request. `http/request_guard.rs` has read it and limited its size.
pub(super) async fn json_body<T: DeserializeOwned>(request: HttpRequest) -> Result<T, WebRefusal> {
    let body = request.into_body().collect().await;
    let body = body.map_err(|_| WebRefusal::wrong("the request body is incomplete".to_owned()))?;
    serde_json::from_slice(&body.to_bytes())
        .map_err(|error| WebRefusal::wrong(format!("the request body is not the JSON that was expected: {error}")))
}

impl Explorer {
    /// Does something on a worker, within the caller's share of them. The answer is made there too.
    pub(super) async fn work<T: Send + 'static>(
        self: &Arc<Self>,
        caller: &Caller,
        permit: RequestPermit,
        work: impl FnOnce(&Self) -> T + Send + 'static,
        weigh: fn(&T) -> usize,
    ) -> Result<T, WebRefusal> {
        let explorer = self.clone();
        let done = self.service.run(caller, permit, pending(), move |_| work(&explorer), weigh).await;
        done.map_err(|_| WebRefusal::inside())
    }
}

/// Why a request has no answer.
pub(super) struct WebRefusal {
    status: StatusCode,
    message: String,
}

impl WebRefusal {
    pub(super) fn no_token() -> Self {
        let message = "missing token; run `quipu open`, or send `Authorization: Bearer TOKEN`".to_owned();
        Self { status: StatusCode::UNAUTHORIZED, message }
    }

    pub(super) fn wrong(message: String) -> Self {
        Self { status: StatusCode::BAD_REQUEST, message }
    }

    fn inside() -> Self {
        Self::from("the call failed inside the server; its log says why".to_owned())
    }
}

impl From<String> for WebRefusal {
    fn from(message: String) -> Self {
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, message }
    }
}

impl From<ToolError> for WebRefusal {
    fn from(error: ToolError) -> Self {
        Self::from(error.message)
    }
}

impl IntoResponse for WebRefusal {
    fn into_response(self) -> Response {
        let Self { status, message } = self;
        let mut response = json_bytes(json!({ "error": { "message": message } }).to_string().into_bytes());
        *response.status_mut() = status;
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"quipu\""));
        }
        response
    }
}

fn shaped(response: ToolResponse) -> Vec<u8> {
    let ToolResponse { reply, warnings } = response;
    let value = match reply {
        Reply::Answer(answer) => json!({ "answer": answer, "warnings": warnings }),
        Reply::Protocol { code, message } => error_of(&code.to_string(), &message),
        Reply::Failure(text) => match serde_json::from_str::<Value>(&text) {
            Ok(failure) if failure.get("error").is_some() => failure,
            _ => error_of("", text.trim_start_matches("Error: ")),
        },
    };
    value.to_string().into_bytes()
}

pub(super) fn error_of(code: &str, message: &str) -> Value {
    json!({ "error": { "code": code, "message": message } })
}

/// An answer that no cache keeps: it is of this moment, and for one person.
pub(super) fn json_answer(value: &impl Serialize) -> Result<Response, WebRefusal> {
    let bytes = serde_json::to_vec(value).map_err(|error| WebRefusal::from(error.to_string()))?;
    Ok(json_bytes(bytes))
}

pub(super) fn json_bytes(bytes: Vec<u8>) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (headers, Body::from(bytes)).into_response()
}
