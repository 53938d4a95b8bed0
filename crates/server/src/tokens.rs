//! Bearer tokens for HTTP clients: what a token allows, and which tokens a server accepts.

mod token_file;
mod vault_tokens;

use jiff::Timestamp;
use quipu_tools::Access;
use serde::{Deserialize, Serialize};

pub use token_file::{Token, TokenFile};
pub(crate) use vault_tokens::VaultTokens;

/// The prefix of identities from an identity provider. No token's name may have it, so the two are never confused.
pub(crate) const OF_PROVIDER: &str = "subject ";

/// What a client may do. Each scope includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenScope {
    /// Use the read-only tools, and read resources.
    Read,
    /// Use every tool that keeps what it replaces.
    Write,
    /// Also read `/metrics`.
    Admin,
}

impl TokenScope {
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Admin];

    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }

    pub(crate) fn allows(self, access: Access) -> bool {
        match access {
            Access::Read => true,
            Access::Write | Access::Destroy => self >= Self::Write,
            Access::Erase => self >= Self::Admin,
        }
    }

    /// The least scope that allows this access.
    pub(crate) fn needed_for(access: Access) -> Self {
        Self::ALL.into_iter().find(|scope| scope.allows(access)).unwrap_or(Self::Admin)
    }

    /// Why a client of a lower scope may not use a tool.
    pub(crate) fn refusal(self, tool: &str) -> String {
        match self {
            Self::Read | Self::Write => format!("{tool} writes; this token has only the scope `read`"),
            Self::Admin => format!("{tool} requires a token with the scope `admin`"),
        }
    }
}

/// Why a token is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    #[error("unknown token; create one with `quipu token new`")]
    Unknown,
    #[error("the token has expired")]
    Expired,
    #[error("the entry of this token was changed after it was created; create a new one with `quipu token new`")]
    Changed,
    /// It could not be checked, with the cause.
    #[error("cannot check the token: {0}; retry in a moment")]
    Unchecked(String),
}

/// A graph of a database. Its name may later be another graph's, its id never.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphRef {
    pub id: i64,
    pub name: String,
}

/// The rights of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Identifies the token without revealing it.
    pub id: String,
    pub name: String,
    pub scope: TokenScope,
    /// The graphs that the token is for; `None` for whatever the server has.
    pub graphs: Option<Vec<GraphRef>>,
}

/// Decides which tokens a server accepts.
pub trait TokenSource: Send + Sync {
    /// Fails if no client could connect.
    fn ensure_some(&self) -> anyhow::Result<()>;

    /// The rights of a token at this moment. May wait for a network.
    fn check(&self, presented: &str, now: Timestamp) -> Result<Grant, Denied>;

    /// Like [`TokenSource::check`], but never waits: says instead why the check may have to wait for a network.
    fn check_at_once(&self, presented: &str, now: Timestamp) -> Result<Result<Grant, Denied>, NeedsLookup>;
}

/// What a token has to be looked up for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NeedsLookup {
    /// It was valid a while ago.
    Renewal,
    /// It is unknown, so it may be a guess.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_scope_does_not_allow_writes() {
        let may = |scope: TokenScope| {
            [Access::Read, Access::Write, Access::Destroy, Access::Erase].map(|access| scope.allows(access))
        };
        assert_eq!(may(TokenScope::Read), [true, false, false, false]);
        assert_eq!(may(TokenScope::Write), [true, true, true, false]);
        assert_eq!(may(TokenScope::Admin), [true, true, true, true]);
    }
}
