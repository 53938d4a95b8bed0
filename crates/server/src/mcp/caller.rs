//! Who asks over HTTP, as far as the front door has found out: what it may do, and how much of the server it may take.

use std::sync::Arc;

use axum::http::request::Parts;
use parking_lot::Mutex;
use quipu_tools::Access;
use rmcp::model::Extensions;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::unsent::Unsent;
use crate::tokens::Scope;

/// More of what a client calls itself is not kept: it stands in memory's log with every change.
const MAX_CLIENT_CHARS: usize = 200;

/// A request that takes no more takes it of its client's share alone: however much some send, others are heard. It is room
/// for a thousand notes to be told of.
pub(crate) const SMALL_REQUEST_BYTES: usize = 256 * 1024;

/// Whoever a request comes from. Put into each request by the front door; requests without one are nobody's and may
/// do nothing.
#[derive(Clone)]
pub(crate) struct Caller {
    /// Who it is, as long as the server runs: two that differ here share nothing.
    pub(crate) id: Arc<str>,
    /// What its token is called, or whom an identity provider says it is of; none where none is needed.
    pub(crate) token: Option<Arc<str>>,
    /// What it may do.
    pub(crate) scope: Scope,
    /// Its share of the workers: many calls of one client hold up no other.
    pub(crate) turns: Arc<Semaphore>,
    /// Its share of the answers that wait to be read.
    pub(crate) unsent: Arc<Unsent>,
    /// What this request of its takes.
    pub(crate) request: Arc<RequestRoom>,
    /// To be called when the response to this request is a stream without an end.
    pub(crate) begin_stream: BeginStream,
}

/// Tells the front door that a response has no end, so that it is counted among its client's streams.
pub(crate) type BeginStream = Arc<dyn Fn() + Send + Sync>;

/// The memory that a request takes as long as it is read, parsed and worked on. Its answer is counted elsewhere, and may take
/// much longer: who does not read it must not keep others from asking.
#[derive(Default)]
pub(crate) struct RequestRoom {
    bytes: usize,
    held: Mutex<Vec<OwnedSemaphorePermit>>,
}

impl RequestRoom {
    pub(crate) fn new(bytes: usize, held: Vec<OwnedSemaphorePermit>) -> Self {
        Self { bytes, held: Mutex::new(held) }
    }

    /// Gives it back, if it was not yet.
    pub(crate) fn handled(&self) {
        self.held.lock().clear();
    }

    /// Whether it takes nothing from other clients, and so may last as long as a stream does.
    pub(super) fn is_small(&self) -> bool {
        self.bytes <= SMALL_REQUEST_BYTES
    }
}

impl Caller {
    /// Of the request a call came with, if it came over HTTP.
    pub(super) fn of(extensions: &Extensions) -> Option<&Self> {
        extensions.get::<Parts>()?.extensions.get::<Self>()
    }

    pub(super) fn may(&self, access: Access) -> bool {
        self.scope.allows(access)
    }

    /// A client's name for what is remembered of it and for the log: two tokens never share one. Only what the client
    /// chose is cut, and what stands behind its last ` (` is the token's, whatever the client or the token is called.
    pub(super) fn name(&self, client: &str) -> String {
        let client: String = client.chars().take(MAX_CLIENT_CHARS).collect();
        let Some(token) = &self.token else { return client };
        let token = token.replace('\\', "\\\\").replace('(', "\\(");
        format!("{client} ({token})").trim_start().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(token: Option<&str>) -> Caller {
        Caller {
            id: "somebody".into(),
            token: token.map(Into::into),
            scope: Scope::Read,
            turns: Arc::new(Semaphore::new(1)),
            unsent: Unsent::new(1),
            request: Arc::default(),
            begin_stream: Arc::new(|| {}),
        }
    }

    #[test]
    fn a_client_is_called_by_its_own_word_and_its_token() {
        assert_eq!(caller(None).name("cursor"), "cursor");
        assert_eq!(caller(Some("laptop")).name("cursor"), "cursor (laptop)");
        assert_eq!(caller(Some("laptop")).name(""), "(laptop)");
        let longest = caller(Some("laptop")).name(&"x".repeat(10_000));
        assert_eq!(longest, format!("{} (laptop)", "x".repeat(MAX_CLIENT_CHARS)));
        let session = quipu_core::Session::named(&caller(Some(&"(".repeat(263))).name(&longest));
        assert!(session.client().ends_with("(\\()"), "nothing of a token's name is cut: {}", session.client());
    }

    #[test]
    fn no_token_can_be_called_what_another_and_its_client_are() {
        let ours = caller(Some("ada")).name("x (eve)");
        assert_eq!(ours, "x (eve) (ada)");
        assert_ne!(caller(Some("eve) (ada")).name("x"), ours);
        assert_ne!(caller(Some("a\\(b")).name("x"), caller(Some("a(b")).name("x"));
    }
}
