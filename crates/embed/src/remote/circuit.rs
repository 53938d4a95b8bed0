//! A circuit breaker: after a failure calls fail at once for a while, then one call tests the provider. So a provider that is
//! down causes no delays, and one that is back is used again.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::error::{CallError, RemoteError};
use crate::Purpose;

/// The longest `Retry-After` that is honoured.
const MAX_PAUSE: Duration = Duration::from_secs(60);

pub(super) struct CircuitBreaker {
    purpose: Purpose,
    /// How long calls fail after a failure.
    pause: Duration,
    /// How long a call may take.
    longest: Duration,
    /// The last failure, until a call succeeds.
    open: Mutex<Option<OpenCircuit>>,
}

struct OpenCircuit {
    error: RemoteError,
    until: Instant,
}

impl CircuitBreaker {
    pub(super) fn new(purpose: Purpose, pause: Duration, longest: Duration) -> Self {
        Self { purpose, pause, longest, open: Mutex::new(None) }
    }

    /// Makes the call, or fails as the last one did.
    pub(super) fn guard<T>(&self, call: impl FnOnce() -> Result<T, CallError>) -> Result<T, RemoteError> {
        self.enter()?;
        let (error, pause) = match call() {
            Ok(outcome) => {
                *self.open.lock() = None;
                return Ok(outcome);
            }
            // The server works, but refuses these texts.
            Err(CallError::Rejected(error)) => {
                *self.open.lock() = None;
                return Err(error);
            }
            Err(CallError::Broken { error, pause }) => (error, pause.unwrap_or_default()),
        };
        let pause = pause.clamp(self.pause, MAX_PAUSE.max(self.pause));
        let (provider, seconds) = (self.purpose.provider(), pause.as_secs_f32());
        tracing::warn!(error = %error.message, seconds, "the {provider} failed; no calls for a while");
        *self.open.lock() = Some(OpenCircuit { error: error.clone(), until: Instant::now() + pause });
        Err(error)
    }

    fn enter(&self) -> Result<(), RemoteError> {
        let mut open = self.open.lock();
        if let Some(open) = open.as_mut() {
            let now = Instant::now();
            if now < open.until {
                return Err(open.error.clone());
            }
            // This call tests the provider. Others fail until it is done, or for as long as it may take.
            open.until = now + self.longest;
        }
        Ok(())
    }
}
