//! A command's failure: its message, hint and exit code.

use quipu_core::index::IndexError;
use quipu_core::ports::{MemoryFailure, StoreError};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Failure {
    Message {
        code: Code,
        message: String,
        hint: Option<String>,
    },
    /// The reader closed the pipe.
    PipeClosed,
}

/// The exit codes of a failure, as `--help` gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Code {
    /// The command ran and failed.
    Failed,
    /// The command line or the configuration is invalid; nothing was changed.
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
        Self::Message { code: Code::Failed, message: message.into(), hint: None }
    }

    /// The command line or the configuration is invalid.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Message { code: Code::Usage, message: message.into(), hint: None }
    }

    /// Puts what the command was doing before the message.
    pub(crate) fn about(self, doing: &str) -> Self {
        match self {
            Self::Message { code, message, hint } => {
                Self::Message { code, message: format!("{doing}: {message}"), hint }
            }
            Self::PipeClosed => Self::PipeClosed,
        }
    }

    /// Sets the next step.
    pub(crate) fn hint(self, text: impl Into<String>) -> Self {
        match self {
            Self::Message { code, message, .. } => Self::Message { code, message, hint: Some(text.into()) },
            Self::PipeClosed => Self::PipeClosed,
        }
    }
}

/// Message and hint on one line.
impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Message { message, hint: Some(hint), .. } => write!(f, "{message}; {hint}"),
            Self::Message { message, hint: None, .. } => write!(f, "{message}"),
            Self::PipeClosed => write!(f, "cannot write the output: the reader closed the pipe"),
        }
    }
}

impl std::error::Error for Failure {}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        // A failure that passed through the server keeps its code and hint; other errors show their whole chain.
        error.downcast().unwrap_or_else(|error| Self::failed(format!("{error:#}")))
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        // Clients do not see the source, which may name paths; the terminal does.
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

/// What to do when the index cannot be read or written, by the message of the system or the database.
pub(crate) fn advice_on_index(reason: &str) -> &'static str {
    let reason = reason.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| reason.contains(word));
    if says(&["no space left", "disk is full", "quota exceeded"]) {
        "make room on the disk, then run this again; no note was changed"
    } else if says(&["permission denied", "read-only", "readonly"]) {
        "make .quipu/ in the vault writable, then run this again; no note was changed"
    } else if says(&["not a directory", "not a file", "file exists", "is a link"]) {
        "move the file or link at .quipu/ or .quipu/index away, then run this again; no note was changed"
    } else {
        "`quipu index --rebuild` rebuilds the index; no note was changed"
    }
}

impl From<MemoryFailure> for Failure {
    fn from(failure: MemoryFailure) -> Self {
        // If the store explains the cause, the database's message adds nothing.
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
    fn memory_failure_prefers_the_advice_of_the_store() {
        let failed = |advice: Option<&str>| {
            let failure = MemoryFailure::new("change", "database is locked");
            Failure::from(MemoryFailure { advice: advice.map(str::to_owned), ..failure }).to_string()
        };
        let locked = "another program keeps its file locked; retry once that is fixed";
        assert_eq!(failed(Some(locked)), format!("cannot change the memory: {locked}"));
        assert_eq!(failed(None), "cannot change the memory: database is locked");
    }
}
