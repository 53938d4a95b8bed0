//! A circuit breaker: after a failure calls fail at once for a while, then one call tests the provider. So a provider that is
//! down causes no delays, and one that is back is used again.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use quipu_core::ports::EmbedError;

use super::http::CallError;
use crate::Timeouts;

/// The longest `Retry-After` that is honoured.
const MAX_PAUSE: Duration = Duration::from_secs(60);

pub(super) struct CircuitBreaker {
    timeouts: Timeouts,
    /// The last failure, until a call succeeds.
    open: Mutex<Option<OpenCircuit>>,
}

struct OpenCircuit {
    error: EmbedError,
    until: Instant,
}

impl CircuitBreaker {
    pub(super) fn new(timeouts: Timeouts) -> Self {
        Self { timeouts, open: Mutex::new(None) }
    }

    /// Makes the call, or fails as the last one did.
    pub(super) fn guard<T>(&self, call: impl FnOnce() -> Result<T, CallError>) -> Result<T, EmbedError> {
        self.enter()?;
        let (error, pause) = match call() {
            Ok(outcome) => {
                *self.open.lock() = None;
                return Ok(outcome);
            }
            // The server works, but refuses these texts.
            Err(CallError::Rejected(message)) => {
                *self.open.lock() = None;
                return Err(EmbedError::Unusable(message));
            }
            Err(CallError::Broken { error, pause }) => (error, pause.unwrap_or_default()),
        };
        let pause = pause.clamp(self.timeouts.pause, MAX_PAUSE.max(self.timeouts.pause));
        tracing::warn!(%error, seconds = pause.as_secs_f32(), "the embedding provider failed; no calls for a while");
        *self.open.lock() = Some(OpenCircuit { error: error.clone(), until: Instant::now() + pause });
        Err(error)
    }

    fn enter(&self) -> Result<(), EmbedError> {
        let mut open = self.open.lock();
        if let Some(open) = open.as_mut() {
            let now = Instant::now();
            if now < open.until {
                return Err(open.error.clone());
            }
            // This call tests the provider. Others fail until it is done, or for as long as it may take.
            open.until = now + self.timeouts.passages;
        }
        Ok(())
    }
}
