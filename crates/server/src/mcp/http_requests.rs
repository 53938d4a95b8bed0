//! Middleware between the HTTP checks and the library: the scope of the token, the owner of the session, free request ids, and
//! errors for bodies that are not messages.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use quipu_tools::Access;
use rmcp::model::RequestId;
use serde::Deserialize;

use super::MAX_BODY_BYTES;
use super::http_body::until_sent;
use super::http_ids::{IdInUse, IdsInUse};
use super::http_refusal::{brief, faults, refuse};
use super::http_sessions::{HEADER, OwnedSessions};
use super::message::MessageRefusal;
use crate::service::{Caller, RequestPermit, Service, ServiceError};
use crate::tokens::TokenScope;

/// In the extensions of a response: a tool that the token's scope does not allow. `http/request_guard.rs` turns it into a challenge.
#[derive(Clone)]
pub(crate) struct InsufficientScope {
    pub(crate) tool: &'static str,
    pub(crate) needed: TokenScope,
}

/// The state of the checks.
pub(super) struct HttpRequests {
    pub(super) service: Arc<Service>,
    pub(super) sessions: OwnedSessions,
    pub(super) ids: IdsInUse,
}

/// As much of a message as the checks need.
#[derive(Deserialize)]
struct MessageHead {
    id: Option<RequestId>,
    method: String,
    params: Option<ParamsHead>,
}

#[derive(Deserialize)]
struct ParamsHead {
    name: Option<String>,
}

/// Middleware right before the library.
pub(super) async fn handle(State(requests): State<Arc<HttpRequests>>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let Some(caller) = parts.extensions.get::<Caller>().cloned() else {
        return StatusCode::FORBIDDEN.into_response();
    };
    // Already read by `http/request_guard.rs`; not copied here.
    let Ok(bytes) = axum::body::to_bytes(body, MAX_BODY_BYTES).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let is_checked = parts.headers.contains_key(HEADER) || !caller.may(Access::Erase);
    let head = if is_checked { serde_json::from_slice::<MessageHead>(&bytes).ok() } else { None };
    if let Err(refusal) = requests.find_tool(&caller, head.as_ref(), parts.extensions.get::<RequestPermit>()) {
        let mut response = StatusCode::FORBIDDEN.into_response();
        response.extensions_mut().insert(refusal);
        return response;
    }
    if !requests.sessions.open_header(&mut parts.headers, &caller.id) {
        // As for a session that has ended: the client opens another.
        return (StatusCode::NOT_FOUND, "Not Found: Session not found").into_response();
    }
    let id = match requests.take_id(&parts.headers, head) {
        Ok(id) => id,
        Err(id) => return refuse(vec![MessageRefusal::id_in_use(&id)]),
    };
    if let Some(id) = &id {
        parts.extensions.insert(id.clone());
    }
    let (method, is_json) = (parts.method.clone(), is_json(&parts.headers));
    let response = next.run(Request::from_parts(parts, Body::from(bytes.clone()))).await;
    let response = requests.finish(response, &method, &caller, is_json, &bytes).await;
    until_sent(response, id)
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("application/json"))
}

impl HttpRequests {
    /// Looks up the tool of a call, for the permit of the request. The error is a tool that the caller's scope does not allow:
    /// the service rejects the call too, but HTTP clients expect a status.
    fn find_tool(
        &self,
        caller: &Caller,
        head: Option<&MessageHead>,
        permit: Option<&RequestPermit>,
    ) -> Result<(), InsufficientScope> {
        let params = head.filter(|head| head.method == "tools/call").and_then(|head| head.params.as_ref());
        let Some(name) = params.and_then(|params| params.name.as_deref()) else { return Ok(()) };
        let found = self.service.find(name);
        if let Err(ServiceError::OutOfScope { tool, needed }) = self.service.authorize(caller, &found) {
            return Err(InsufficientScope { tool, needed });
        }
        if let Some(permit) = permit {
            permit.set_tool(found);
        }
        Ok(())
    }

    /// Reserves the id of a request in a session; the error is an id that is still in use.
    fn take_id(&self, headers: &HeaderMap, head: Option<MessageHead>) -> Result<Option<IdInUse>, RequestId> {
        let (Some(session), Some(id)) = (headers.get(HEADER), head.and_then(|head| head.id)) else { return Ok(None) };
        self.ids.take(session, &id).map(Some).ok_or(id)
    }

    /// Corrects the library's response: the status of a closed session, the id of a new one, and errors.
    async fn finish(
        &self,
        mut response: Response,
        method: &Method,
        caller: &Caller,
        is_json: bool,
        body: &Bytes,
    ) -> Response {
        if *method == Method::POST {
            if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE && is_json {
                return refuse(faults(body));
            }
            if response.status().is_client_error() {
                response = brief(response).await;
            }
        }
        if *method == Method::DELETE && response.status() == StatusCode::ACCEPTED {
            // It is done, not only accepted: some clients treat any other status as a failure.
            *response.status_mut() = StatusCode::NO_CONTENT;
        }
        let opened = response.headers().get(HEADER).and_then(|id| id.to_str().ok()).map(str::to_owned);
        if let Some(id) = opened {
            self.sessions.open(&id, &caller.id).await;
            let tagged = HeaderValue::from_str(&self.sessions.tagged(&id, &caller.id));
            response.headers_mut().insert(HEADER, tagged.expect("an id and a tag are plain text"));
        }
        response
    }
}
