//! Why a command failed, in words for the person who typed it, and the exit code that goes with it.

use quipu_core::index::IndexError;
use quipu_core::ports::{MemoryFailure, StoreError};

/// A command's failure.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What happened, to what, and what to do.
    Told { code: Code, message: String, hint: Option<String> },
    /// Nobody reads what is printed any more.
    PipeClosed,
}

/// The exit codes of a failure, as `--help` gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// The command ran and failed.
    Failed,
    /// The command line or the configuration is wrong; nothing was done.
    Usage,
}

impl Code {
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::Usage => 2,
        }
    }
}

impl Failure {
    /// The command ran and failed.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::Told { code: Code::Failed, message: message.into(), hint: None }
    }

    /// The command line or the configuration is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Told { code: Code::Usage, message: message.into(), hint: None }
    }

    /// Says first what was being done.
    pub(crate) fn about(self, doing: &str) -> Self {
        match self {
            Self::Told { code, message, hint } => Self::Told { code, message: format!("{doing}: {message}"), hint },
            Self::PipeClosed => Self::PipeClosed,
        }
    }

    /// Adds what to do about it.
    pub(crate) fn hint(self, text: impl Into<String>) -> Self {
        match self {
            Self::Told { code, message, .. } => Self::Told { code, message, hint: Some(text.into()) },
            Self::PipeClosed => Self::PipeClosed,
        }
    }
}

/// What happened and what to do, on one line.
impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Told { message, hint: Some(hint), .. } => write!(f, "{message}; {hint}"),
            Self::Told { message, hint: None, .. } => write!(f, "{message}"),
            Self::PipeClosed => write!(f, "the reader of the output has closed it"),
        }
    }
}

impl std::error::Error for Failure {}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        // One that passed through the server comes back as it was; of any other the whole chain on one line: what was being
        // done, then why it could not be.
        error.downcast().unwrap_or_else(|error| Self::failed(format!("{error:#}")))
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        // The reason is kept from clients, and told to the person at the keyboard.
        let reason = error.source.to_string();
        Self::failed(format!("{error}: {reason}")).hint(advice_on_index(&reason))
    }
}

impl From<IndexError> for Failure {
    fn from(error: IndexError) -> Self {
        match error {
            IndexError::Store(error) => error.into(),
            IndexError::Vault(error) => {
                Self::failed(error.to_string()).hint("make the folder and its files readable, then run this again")
            }
        }
    }
}

/// What to do when the index could not be read or written, by what the disk or the database said.
pub(crate) fn advice_on_index(reason: &str) -> &'static str {
    let reason = reason.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| reason.contains(word));
    if says(&["no space left", "disk is full", "quota exceeded"]) {
        "make room on the disk, then run this again; no note was touched"
    } else if says(&["permission denied", "read-only", "readonly"]) {
        "make .quipu/ in the vault writable, then run this again; no note was touched"
    } else if says(&["not a directory", "not a file", "file exists", "is a link"]) {
        "move what lies in the place of .quipu/ or its index aside, then run this again; no note was touched"
    } else {
        "`quipu index --rebuild` rebuilds the index; no note was touched"
    }
}

impl From<MemoryFailure> for Failure {
    fn from(failure: MemoryFailure) -> Self {
        // Where the store has words of its own for the cause, the database's add nothing.
        match failure.advice.as_deref().map(|advice| advice.split_once("; ").unwrap_or((advice, ""))) {
            Some((cause, "")) => Self::failed(format!("{failure}: {cause}")),
            Some((cause, next)) => Self::failed(format!("{failure}: {cause}")).hint(next),
            None => Self::failed(format!("{failure}: {}", failure.source)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_fails_in_our_words_where_there_are_some() {
        let failed = |advice: Option<&str>| {
            let failure = MemoryFailure::new("change", "database is locked");
            Failure::from(MemoryFailure { advice: advice.map(str::to_owned), ..failure }).to_string()
        };
        let locked = "another program keeps its file locked; retry once that is fixed";
        assert_eq!(failed(Some(locked)), format!("cannot change the memory: {locked}"));
        assert_eq!(failed(None), "cannot change the memory: database is locked");
    }
}
