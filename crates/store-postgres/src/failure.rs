//! Errors of the database: which of them pass by themselves, and what a client is told.

use std::error::Error;
use std::time::Duration;

use quipu_core::ports::MemoryFailure;
use tokio_postgres::error::SqlState;

use crate::row::BadRow;

/// Why the database did not do what it was asked. The texts name no address and no SQL.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// It could not be reached for longer than a call waits.
    #[error("the database has been unreachable for {} s{}", waited.as_secs(), doubt(*in_doubt))]
    Unreachable {
        /// How long the call waited.
        waited: Duration,
        /// Whether the connection was lost while a change was committed.
        in_doubt: bool,
        /// The last attempt's error.
        source: Box<dyn Error + Send + Sync>,
    },
    /// No connection became free, or none could be opened in time.
    #[error("no connection to the database: {0}")]
    Pool(String),
    /// A connection gave no answer.
    #[error("the database did not answer")]
    NoAnswer,
    /// It refused a statement.
    #[error("the database returned an error")]
    Sql(#[from] tokio_postgres::Error),
    /// A row that this program did not write.
    #[error(transparent)]
    Row(#[from] BadRow),
}

impl DatabaseError {
    /// Whether the same call may succeed in a moment: the connection was lost, the server is starting, or another transaction was
    /// in the way.
    pub(crate) fn is_transient(&self) -> bool {
        let error = match self {
            Self::Sql(error) => error,
            Self::Pool(_) | Self::NoAnswer => return true,
            Self::Unreachable { .. } | Self::Row(_) => return false,
        };
        let Some(state) = error.code() else { return error.is_closed() || is_io(error) };
        let class = &state.code()[..2];
        // Connection exceptions, lack of resources (too many connections), and a server that stops or is a standby.
        ["08", "53", "57"].contains(&class) && *state != SqlState::DISK_FULL && *state != SqlState::QUERY_CANCELED
            || [
                SqlState::T_R_SERIALIZATION_FAILURE,
                SqlState::T_R_DEADLOCK_DETECTED,
                SqlState::READ_ONLY_SQL_TRANSACTION,
                SqlState::LOCK_NOT_AVAILABLE,
            ]
            .contains(state)
    }

    pub(crate) fn into_failure(self, action: &'static str) -> MemoryFailure {
        let advice = match &self {
            Self::Unreachable { .. } => Some(self.to_string()),
            Self::Sql(error) => error.code().and_then(cause).map(|cause| format!("{cause}; retry once that is fixed")),
            Self::Row(_) | Self::Pool(_) | Self::NoAnswer => None,
        };
        MemoryFailure { action, advice, source: self.into() }
    }
}

fn doubt(in_doubt: bool) -> &'static str {
    if in_doubt { ", and whether the change was stored is not known: read before you repeat it" } else { "" }
}

/// What an administrator can fix.
fn cause(state: &SqlState) -> Option<&'static str> {
    match state.code() {
        "53100" => Some("the database's disk is full"),
        "57014" => Some("the database took longer than it may"),
        "42501" => Some("the database's user lacks a permission"),
        "42P01" | "42703" => Some("the database's schema is out of date"),
        "25006" => Some("the database is read-only"),
        _ => None,
    }
}

fn is_io<'e>(error: &'e (dyn Error + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |error: &&'e (dyn Error + 'static)| (*error).source());
    causes.any(<dyn Error + 'static>::is::<std::io::Error>)
}
