//! Why a provider gave no usable response.

use std::fmt;
use std::time::Duration;

use quipu_core::ports::{EmbedError, TextModelError};

/// Why there is no usable response.
#[derive(Debug, Clone)]
pub(super) struct RemoteError {
    /// Whether a later retry may succeed.
    pub(super) is_transient: bool,
    /// Safe to log.
    pub(super) message: String,
    /// The server's own words. They are not logged: a server may repeat the text that it was sent.
    pub(super) details: String,
}

impl RemoteError {
    pub(super) fn unavailable(message: String) -> Self {
        Self { is_transient: true, message, details: String::new() }
    }

    pub(super) fn unusable(message: String) -> Self {
        Self { is_transient: false, message, details: String::new() }
    }

    pub(super) fn with_details(self, details: String) -> Self {
        Self { details, ..self }
    }
}

impl fmt::Display for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.message, self.details)
    }
}

impl From<RemoteError> for EmbedError {
    fn from(error: RemoteError) -> Self {
        if error.is_transient { Self::Unavailable(error.to_string()) } else { Self::Unusable(error.to_string()) }
    }
}

impl From<RemoteError> for TextModelError {
    fn from(error: RemoteError) -> Self {
        if error.is_transient { Self::Unavailable(error.to_string()) } else { Self::Unusable(error.to_string()) }
    }
}

/// Why a call failed.
pub(super) enum CallError {
    /// A retry at once does not help. The server may have said when to retry.
    Broken { error: RemoteError, pause: Option<Duration> },
    /// The server refuses these texts; it may accept others.
    Rejected(RemoteError),
}

impl CallError {
    pub(super) fn unusable(message: String) -> Self {
        Self::Broken { error: RemoteError::unusable(message), pause: None }
    }
}
