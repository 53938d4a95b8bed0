//! Why a command failed, in words for the person who typed it, and the exit code that goes with it.

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
            Self::PipeClosed => write!(f, "nobody reads the answer any more"),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        // The whole chain on one line: what was being done, then why it could not be.
        Self::failed(format!("{error:#}"))
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        // The reason is kept from clients, and told to the person at the keyboard.
        Self::failed(format!("{error}: {}", error.source))
    }
}

impl From<MemoryFailure> for Failure {
    fn from(failure: MemoryFailure) -> Self {
        Self::failed(format!("{failure}: {}", failure.source))
    }
}
