//! Who asks over HTTP, as far as the front door has found out: what it may do, and how much of the server it may take.

use std::sync::Arc;

use axum::http::request::Parts;
use quipu_tools::Access;
use rmcp::model::Extensions;
use tokio::sync::Semaphore;

use super::unsent::Unsent;
use crate::tokens::Scope;

/// Whoever a request comes from. Put into each request by the front door; requests without one are nobody's and may
/// do nothing.
#[derive(Clone)]
pub(crate) struct Caller {
    /// Who it is, as long as the server runs: two that differ here share nothing.
    pub(crate) id: Arc<str>,
    /// What its token is called; none where none is needed.
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

    /// A client's name for what is remembered of it and for the log: two tokens never share one.
    pub(super) fn name(&self, client: &str) -> String {
        match &self.token {
            Some(token) => format!("{client} ({token})"),
            None => client.to_owned(),
        }
    }
}
