//! Telling damage from errors of the disk. Tantivy trusts its files, so reading a damaged one may return an error, panic, or
//! return nonsense. A panic counts as damage; after an error the files are checked.

use std::any::Any;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tantivy::TantivyError;
use tantivy::directory::error::OpenReadError;

/// Why the text index could not be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TextError {
    /// Its files are not as they were written; an empty index helps.
    #[error("{0}")]
    Damaged(String),
    /// An empty index does not help; a retry may.
    #[error(transparent)]
    Failed(#[from] TantivyError),
}

/// Runs code of tantivy; a panic counts as damage.
pub(super) fn guarded<T>(work: impl FnOnce() -> tantivy::Result<T>) -> Result<T, TextError> {
    // A panic leaves only tantivy's state inconsistent, and all of that is replaced after damage.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(outcome) => outcome.map_err(TextError::Failed),
        Err(panic) => Err(TextError::Damaged(format!("reading it panicked: {}", panic_text(&*panic)))),
    }
}

/// Whether an error comes from a disk that would refuse a new index too.
pub(super) fn is_refusal(error: &TantivyError) -> bool {
    let io = match error {
        TantivyError::IoError(error) => error,
        TantivyError::OpenReadError(OpenReadError::IoError { io_error, .. }) => io_error,
        _ => return false,
    };
    matches!(io.kind(), ErrorKind::PermissionDenied | ErrorKind::StorageFull | ErrorKind::ReadOnlyFilesystem)
}

/// Whether an error says that a file is missing.
pub(super) fn is_absence(error: &TantivyError) -> bool {
    match error {
        TantivyError::OpenReadError(OpenReadError::FileDoesNotExist(_)) => true,
        TantivyError::IoError(error) => error.kind() == ErrorKind::NotFound,
        _ => false,
    }
}

impl TextError {
    /// Treats every error as damage unless the disk refused: right while nothing is written yet.
    pub(super) fn or_damage(self) -> Self {
        match self {
            Self::Failed(error) if !is_refusal(&error) => Self::Damaged(finding(&error)),
            other => other,
        }
    }
}

/// What an error says about a file, as the end of a sentence.
fn finding(error: &TantivyError) -> String {
    match error {
        TantivyError::OpenReadError(OpenReadError::IoError { io_error, filepath }) => {
            format!("{} is damaged: {io_error}", filepath.display())
        }
        TantivyError::OpenReadError(OpenReadError::FileDoesNotExist(file)) => format!("{} is missing", file.display()),
        error => error.to_string(),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
