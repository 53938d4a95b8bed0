//! Telling damage from a disk that says no. Tantivy trusts its files, so reading a damaged one may end in an error, in a
//! panic, or in nonsense: a panic is taken as damage here, and an error asks the files themselves.

use std::any::Any;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tantivy::TantivyError;
use tantivy::directory::error::OpenReadError;

/// Why the text index could not be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TextError {
    /// Its files are not as they were written; starting empty helps.
    #[error("{0}")]
    Damaged(String),
    /// Starting empty does not help; trying again may.
    #[error(transparent)]
    Failed(#[from] TantivyError),
}

/// Runs a piece of tantivy, in which a panic is damage.
pub(super) fn guarded<T>(work: impl FnOnce() -> tantivy::Result<T>) -> Result<T, TextError> {
    // What a panic leaves half done belongs to tantivy, and all of tantivy is replaced after damage.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(outcome) => outcome.map_err(TextError::Failed),
        Err(panic) => Err(TextError::Damaged(format!("reading it ended in a panic: {}", panic_text(&*panic)))),
    }
}

/// Whether an error comes from a disk that would not take a new index either.
pub(super) fn is_refusal(error: &TantivyError) -> bool {
    let io = match error {
        TantivyError::IoError(error) => error,
        TantivyError::OpenReadError(OpenReadError::IoError { io_error, .. }) => io_error,
        _ => return false,
    };
    matches!(io.kind(), ErrorKind::PermissionDenied | ErrorKind::StorageFull | ErrorKind::ReadOnlyFilesystem)
}

/// Whether an error says that a file is not there.
pub(super) fn is_absence(error: &TantivyError) -> bool {
    match error {
        TantivyError::OpenReadError(OpenReadError::FileDoesNotExist(_)) => true,
        TantivyError::IoError(error) => error.kind() == ErrorKind::NotFound,
        _ => false,
    }
}

impl TextError {
    /// Takes every error as damage that is no refusal: right where nothing is written yet.
    pub(super) fn or_damage(self) -> Self {
        match self {
            Self::Failed(error) if !is_refusal(&error) => Self::Damaged(error.to_string()),
            other => other,
        }
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("not a text")
}
