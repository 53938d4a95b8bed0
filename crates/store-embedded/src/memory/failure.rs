//! The error texts of memory for clients: causes that a user can fix, without paths or SQL.

use std::error::Error;

use quipu_core::ports::MemoryFailure;
use rusqlite::{ErrorCode, ffi};

pub(super) fn failed(action: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> MemoryFailure {
    let source = source.into();
    let advice = match code(&*source) {
        // The text of `file_guard`.
        Some((failure, words)) if failure.extended_code == ffi::SQLITE_READONLY_DBMOVED => words.cloned(),
        _ => reason(&*source).map(|reason| format!("{reason}; retry once that is fixed")),
    };
    MemoryFailure { action, advice, source }
}

/// The cause, without file names.
pub(super) fn reason(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(error) = error.downcast_ref::<std::io::Error>() {
        return Some(error.kind().to_string());
    }
    let reason = match code(error)?.0.code {
        ErrorCode::DiskFull => "the disk is full",
        ErrorCode::ReadOnly => "its file is read-only",
        ErrorCode::PermissionDenied => "permission denied",
        ErrorCode::CannotOpen => "its file cannot be opened",
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => "its file is damaged",
        ErrorCode::DatabaseBusy => "another program keeps its file locked",
        ErrorCode::DatabaseLocked => "another call is still changing it",
        ErrorCode::TooBig => "it has a text that is longer than any that Quipu writes",
        ErrorCode::OperationInterrupted => "it took longer than ten minutes",
        _ => return None,
    };
    Some(reason.to_owned())
}

/// Whether another program kept the file locked for longer than a write waits.
pub(super) fn is_locked(error: &(dyn Error + 'static)) -> bool {
    code(error).is_some_and(|(failure, _)| matches!(failure.code, ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// The error of the database inside other errors.
fn code<'e>(error: &'e (dyn Error + 'static)) -> Option<(&'e ffi::Error, Option<&'e String>)> {
    let mut chain = std::iter::successors(Some(error), |error: &&'e (dyn Error + 'static)| (*error).source());
    match chain.find_map(|error| error.downcast_ref())? {
        rusqlite::Error::SqliteFailure(failure, words) => Some((failure, words.as_ref())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cause_is_found_inside_wrapping_errors() {
        #[derive(Debug, thiserror::Error)]
        #[error("while doing something")]
        struct Wrapped(#[source] rusqlite::Error);
        let full = || rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_FULL), None);
        let told = Some("the disk is full; retry once that is fixed".to_owned());
        assert_eq!(failed("change", full()).advice, told);
        assert_eq!(failed("change", Wrapped(full())).advice, told);
    }

    #[test]
    fn unexpected_errors_give_clients_no_advice() {
        let misuse = rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_MISUSE), Some("in SELECT".to_owned()));
        assert_eq!(failed("read", misuse).advice, None);
        assert_eq!(failed("read", "no error of the database").advice, None);
    }
}
