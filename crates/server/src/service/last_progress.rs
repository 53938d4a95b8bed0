//! The index progress, for callers that must not wait for it.
//!
//! A process that does not own the vault must ask the owner, which may be stopped or being replaced. One thread asks for all
//! callers, and a caller that gets no answer soon uses the last known progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::IndexProgress;

/// How long to wait for an answer, which usually takes well under a millisecond.
const PATIENCE: Duration = Duration::from_millis(500);

#[derive(Default)]
pub(super) struct LastProgress(Arc<LastProgressState>);

struct LastProgressState {
    known: Mutex<IndexProgress>,
    is_asking: AtomicBool,
}

impl Default for LastProgressState {
    fn default() -> Self {
        Self { known: Mutex::new(IndexProgress { files: 0, is_over: false }), is_asking: AtomicBool::new(false) }
    }
}

/// That it is being asked.
struct ProgressQuery(Arc<LastProgressState>);

impl Drop for ProgressQuery {
    fn drop(&mut self) {
        self.0.is_asking.store(false, Ordering::SeqCst);
    }
}

impl LastProgress {
    /// The current progress, or the last known one if asking takes too long or is already in progress.
    pub(super) async fn or(&self, ask: impl FnOnce() -> IndexProgress + Send + 'static) -> IndexProgress {
        if !self.0.is_asking.swap(true, Ordering::SeqCst) {
            let asking = ProgressQuery(self.0.clone());
            let asked = tokio::task::spawn_blocking(move || {
                let progress = ask();
                *asking.0.known.lock() = progress;
            });
            // Late or never: use the last known progress.
            drop(tokio::time::timeout(PATIENCE, asked).await);
        }
        *self.0.known.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[tokio::test]
    async fn stuck_progress_is_answered_with_the_last_known() {
        let read = IndexProgress { files: 7, is_over: true };
        let last = LastProgress::default();
        assert_eq!(last.or(move || read).await, read);
        let started = Instant::now();
        for _ in 0..50 {
            let stuck = || {
                std::thread::sleep(10 * PATIENCE);
                IndexProgress { files: 8, is_over: true }
            };
            assert_eq!(last.or(stuck).await, read);
        }
        assert!(started.elapsed() < 5 * PATIENCE, "one waits, the others make do");
    }
}
