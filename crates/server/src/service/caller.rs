//! Who makes a request: what the caller may do, and how much of the server it may use.

use std::sync::Arc;

use quipu_tools::Access;
use tokio::sync::Semaphore;

use super::capacity::MAX_RESPONSE_BYTES_PER_CLIENT;
use super::response_budget::ResponseBudget;
use crate::tokens::TokenScope;

/// Longer client names are cut: memory's log keeps the name with every change.
const MAX_CLIENT_CHARS: usize = 200;

/// The caller of a request, created by the transport; a request without one is rejected.
#[derive(Clone)]
pub(crate) struct Caller {
    /// Identifies the caller while the server runs: two that differ here share nothing.
    pub(crate) id: Arc<str>,
    /// The name of its token, or the subject that an identity provider gives; `None` if no token was needed.
    pub(crate) token: Option<Arc<str>>,
    /// The scope of the caller's token.
    pub(crate) scope: TokenScope,
    /// Its share of the workers; `None` without a limit.
    pub(crate) workers: Option<Arc<Semaphore>>,
    /// Its share of the response bytes.
    pub(crate) budget: Arc<ResponseBudget>,
    /// To be called when the response to this request is a stream without an end.
    pub(crate) begin_stream: BeginStream,
}

/// Tells the HTTP layer that a response is an endless stream, so that it counts among its client's streams.
pub(crate) type BeginStream = Arc<dyn Fn() + Send + Sync>;

impl Caller {
    /// The client on this process's stdio. It started the process, so it may do everything and shares no limits.
    pub(crate) fn of_stream() -> Self {
        Self {
            id: "stream".into(),
            token: None,
            scope: TokenScope::Admin,
            workers: None,
            budget: ResponseBudget::new(MAX_RESPONSE_BYTES_PER_CLIENT),
            begin_stream: Arc::new(|| {}),
        }
    }

    pub(crate) fn may(&self, access: Access) -> bool {
        self.scope.allows(access)
    }

    /// The client's name for its session and the log, unique per token. Only the client's own part is cut; what follows the
    /// last ` (` is the token's name.
    pub(crate) fn name(&self, client: &str) -> String {
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
        Caller { token: token.map(Into::into), ..Caller::of_stream() }
    }

    #[test]
    fn caller_name_has_client_name_and_token() {
        assert_eq!(caller(None).name("cursor"), "cursor");
        assert_eq!(caller(Some("laptop")).name("cursor"), "cursor (laptop)");
        assert_eq!(caller(Some("laptop")).name(""), "(laptop)");
        let longest = caller(Some("laptop")).name(&"x".repeat(10_000));
        assert_eq!(longest, format!("{} (laptop)", "x".repeat(MAX_CLIENT_CHARS)));
        let session = quipu_core::Session::named(&caller(Some(&"(".repeat(263))).name(&longest));
        assert!(session.client().ends_with("(\\()"), "nothing of a token's name is cut: {}", session.client());
    }

    #[test]
    fn names_of_two_tokens_and_their_clients_never_collide() {
        let ours = caller(Some("ada")).name("x (eve)");
        assert_eq!(ours, "x (eve) (ada)");
        assert_ne!(caller(Some("eve) (ada")).name("x"), ours);
        assert_ne!(caller(Some("a\\(b")).name("x"), caller(Some("a(b")).name("x"));
    }
}
