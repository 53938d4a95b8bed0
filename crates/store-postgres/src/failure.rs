//! Errors of the database: which of them are temporary, and the message for a client.

use std::error::Error;
use std::time::Duration;

use jiff::Timestamp;
use quipu_core::ports::MemoryFailure;
use tokio_postgres::error::SqlState;

use crate::connection::chain;
use crate::row::BadRow;

/// Why the database did not do what it was asked. The texts name no address and no SQL.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// It could not be reached for longer than a call waits.
    #[error("the database {}{}", away(*since, *waited), doubt(*in_doubt))]
    Unreachable {
        /// Since when, if it was not only other transactions that were in the way.
        since: Option<Timestamp>,
        /// How long the call waited.
        waited: Duration,
        /// Whether the connection was lost while a change was committed.
        in_doubt: bool,
        /// The last attempt's error.
        source: Box<dyn Error + Send + Sync>,
    },
    /// None could be opened in time.
    #[error("no connection to the database: {0}; retry")]
    Pool(String),
    /// Other calls use all connections of this kind.
    #[error("no connection to the database became free; retry")]
    Busy,
    /// A connection gave no answer.
    #[error("the database did not answer; retry")]
    NoAnswer,
    /// It refused a statement.
    #[error("the database returned an error")]
    Sql(#[from] tokio_postgres::Error),
    /// A row that this program did not write.
    #[error(transparent)]
    Row(#[from] BadRow),
}

impl DatabaseError {
    /// Whether the database could not be reached, as opposed to another transaction in the way.
    pub(crate) fn is_outage(&self) -> bool {
        let Self::Sql(error) = self else { return matches!(self, Self::Pool(_) | Self::NoAnswer) };
        let in_the_way = |state: &SqlState| {
            ["40", "55"].contains(&&state.code()[..2]) || *state == SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT
        };
        self.is_transient() && !error.code().is_some_and(in_the_way)
    }

    /// Whether an attempt ended without the database's answer. After a commit was sent, that is no failure yet.
    pub(crate) fn is_unanswered(&self) -> bool {
        matches!(self, Self::Sql(error) if error.code().is_none())
    }

    /// Whether the same call may succeed in a moment: the connection was lost, the server is starting, or another transaction was
    /// in the way.
    pub(crate) fn is_transient(&self) -> bool {
        let error = match self {
            Self::Sql(error) => error,
            Self::Pool(_) | Self::NoAnswer | Self::Busy => return true,
            Self::Unreachable { .. } | Self::Row(_) => return false,
        };
        let Some(state) = error.code() else {
            return !is_refused_by_tls(error) && (error.is_closed() || is_io(error));
        };
        let class = &state.code()[..2];
        // Connection exceptions, lack of resources (too many connections), and a server that stops or is a standby.
        ["08", "53", "57"].contains(&class) && *state != SqlState::DISK_FULL && *state != SqlState::QUERY_CANCELED
            || [
                SqlState::T_R_SERIALIZATION_FAILURE,
                SqlState::T_R_DEADLOCK_DETECTED,
                SqlState::READ_ONLY_SQL_TRANSACTION,
                SqlState::LOCK_NOT_AVAILABLE,
                // This process was suspended in a transaction, which the database has ended.
                SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
            ]
            .contains(state)
    }

    /// The error with its causes, for an administrator. It may name tables and roles, never a password.
    pub fn explained(&self) -> String {
        let known = match self {
            Self::Sql(error) => error.code().and_then(cause),
            _ => None,
        };
        known.map_or_else(|| chain(self), |known| format!("{known}: {}", chain(self)))
    }

    pub(crate) fn into_failure(self, action: &'static str) -> MemoryFailure {
        MemoryFailure { action, advice: self.advice(), source: self.into() }
    }

    /// The message for clients. The log has the details.
    pub(crate) fn reason(&self) -> String {
        self.advice().unwrap_or_else(|| {
            tracing::error!("{}", chain(self));
            format!("{self}; the server's log has the details")
        })
    }

    /// What a client can understand and wait for, or have fixed.
    fn advice(&self) -> Option<String> {
        match self {
            Self::Unreachable { in_doubt: true, .. } => Some(self.to_string()),
            Self::Unreachable { .. } => Some(format!("{self}; retry")),
            Self::Sql(error) => error.code().and_then(cause).map(|cause| format!("{cause}; retry once that is fixed")),
            Self::Row(_) | Self::Pool(_) | Self::NoAnswer | Self::Busy => None,
        }
    }
}

fn away(since: Option<Timestamp>, waited: Duration) -> String {
    match since {
        Some(since) => format!("has been unreachable since {since:.0}"),
        None => format!("was busy with other transactions for {} s", waited.as_secs()),
    }
}

fn doubt(in_doubt: bool) -> &'static str {
    if in_doubt { ", and whether the change was stored is not known: read before you repeat it" } else { "" }
}

/// A cause that an administrator can fix.
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

fn is_io(error: &tokio_postgres::Error) -> bool {
    causes(error).any(<dyn Error + 'static>::is::<std::io::Error>)
}

/// Whether the certificate or the handshake is wrong, which does not pass by itself.
fn is_refused_by_tls(error: &tokio_postgres::Error) -> bool {
    let mut errors = causes(error).filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    errors
        .any(|error| error.get_ref().is_some_and(|inner| inner.downcast_ref::<tokio_rustls::rustls::Error>().is_some()))
}

fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'e (dyn Error + 'static)| (*error).source())
}
