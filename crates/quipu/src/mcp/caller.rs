//! Who asks over HTTP, as far as the front door has found out: what it may do, and how much of the server it may take.

use std::sync::Arc;

use axum::http::request::Parts;
use quipu_tools::Access;
use rmcp::model::Extensions;
use tokio::sync::Semaphore;

use super::unsent::Unsent;
use crate::tokens::Scope;

/// More of what a client calls itself is not kept: it stands in memory's log with every change.
const MAX_CLIENT_CHARS: usize = 200;

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
