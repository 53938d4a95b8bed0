//! After a failure, calls fail at once for a while; then one is let through to see. So a provider that is down costs nothing,
//! and one that is back is found without anybody's doing.

use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use quipu_core::ports::EmbedError;

use super::http::Failure;
use crate::Patience;

/// However long a server asks to be left alone.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

pub(super) struct Circuit {
    patience: Patience,
    /// What went wrong, while it does.
    broken: Mutex<Option<Broken>>,
}

struct Broken {
    error: EmbedError,
    until: Instant,
}

impl Circuit {
    pub(super) fn new(patience: Patience) -> Self {
        Self { patience, broken: Mutex::new(None) }
    }

    /// Makes the call, or fails as the last one did.
    pub(super) fn guard<T>(&self, call: impl FnOnce() -> Result<T, Failure>) -> Result<T, EmbedError> {
        self.enter()?;
        let (error, pause) = match call() {
            Ok(outcome) => {
                *self.broken() = None;
                return Ok(outcome);
            }
            // The server is well, it is these texts that it will not take.
            Err(Failure::Rejected(message)) => {
                *self.broken() = None;
                return Err(EmbedError::Unusable(message));
            }
            Err(Failure::Broken { error, pause }) => (error, pause.unwrap_or_default()),
        };
        let pause = pause.clamp(self.patience.pause, LONGEST_PAUSE.max(self.patience.pause));
        tracing::warn!(%error, seconds = pause.as_secs_f32(), "no vectors for a while");
        *self.broken() = Some(Broken { error: error.clone(), until: Instant::now() + pause });
        Err(error)
    }

    fn enter(&self) -> Result<(), EmbedError> {
        let mut broken = self.broken();
        if let Some(broken) = broken.as_mut() {
            let now = Instant::now();
            if now < broken.until {
                return Err(broken.error.clone());
            }
            // This call is the one that is let through. Others wait for its outcome, for as long as it may take at most.
            broken.until = now + self.patience.passages;
        }
        Ok(())
    }

    fn broken(&self) -> MutexGuard<'_, Option<Broken>> {
        // Nothing is ever half written there.
        self.broken.lock()
    }
}
