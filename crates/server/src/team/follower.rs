//! The thread that keeps a server's index level with the change feed, and how calls wait for it.
//!
//! A call takes a ticket, and is answered when a read of the feed that began after that has been applied. Any number of calls
//! share one read.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use quipu_core::Knowledge;
use quipu_core::index::FileBatch;
use quipu_core::ports::NoteFeed;

use crate::service::UNREACHABLE;

/// How often the feed is read when neither a call nor a notification of the database asks for it. Notifications may be lost.
const BUSY_INTERVAL: Duration = Duration::from_secs(1);
const IDLE_INTERVAL: Duration = Duration::from_secs(5);

/// How long after a change or a call a graph counts as busy.
const BUSY: Duration = Duration::from_secs(10);

/// How long a call waits for the changes before it.
const PATIENCE: Duration = Duration::from_secs(2);

/// An index that lags behind the feed for longer than this is no help to a client: other servers may do better.
const BEHIND: Duration = Duration::from_secs(60);

/// Between two attempts while the feed cannot be read.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Follows one graph. Dropping this ends the thread.
pub(super) struct Follower {
    knowledge: Arc<Knowledge>,
    state: Arc<FollowerState>,
}

struct FollowerState {
    progress: Mutex<FollowProgress>,
    /// Wakes the thread.
    wanted: Condvar,
    /// Wakes calls.
    moved: Condvar,
}

struct FollowProgress {
    /// Tickets given to calls, and the last that was answered.
    asked: u64,
    answered: u64,
    /// Whether the feed says that there is something new.
    is_woken: bool,
    /// The last change in the index; `None` until every note was read once.
    position: Option<i64>,
    failing_since: Option<Instant>,
    /// When the index was last level with the feed.
    level_at: Instant,
    /// When something last happened.
    active: Instant,
    is_stopped: bool,
}

/// How far the index of a server is.
pub(super) struct FeedPosition {
    /// The number of the last change in it.
    pub(super) number: i64,
    /// Whether the feed cannot be read now.
    pub(super) is_failing: bool,
    /// How long ago it was last level with the feed.
    pub(super) age: Duration,
}

/// Why an answer may be older than what other servers have acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lag {
    /// The database has not answered for this long.
    Unreachable(Duration),
    /// The notes are being read for the first time.
    Loading,
    /// The index did not catch up in time.
    Slow,
}

impl fmt::Display for Lag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this answer may be out of date: ")?;
        match self {
            Self::Unreachable(time) => write!(f, "the database has been unreachable for {} s", time.as_secs()),
            Self::Loading => write!(f, "this server is still reading the notes"),
            Self::Slow => write!(f, "this server has not yet applied the latest changes by other servers"),
        }
    }
}

impl Follower {
    /// Reads every note once, then follows the feed.
    pub(super) fn start(knowledge: Arc<Knowledge>, feed: Arc<dyn NoteFeed>) -> std::io::Result<Self> {
        let state = FollowerState {
            progress: Mutex::new(FollowProgress::new()),
            wanted: Condvar::new(),
            moved: Condvar::new(),
        };
        let state = Arc::new(state);
        let woken = Arc::downgrade(&state);
        feed.on_change(Box::new(move || {
            if let Some(state) = woken.upgrade() {
                state.progress.lock().is_woken = true;
                state.wanted.notify_one();
            }
        }));
        let work = FollowerThread { knowledge: knowledge.clone(), feed, state: state.clone() };
        std::thread::Builder::new().name("follower".into()).spawn(move || work.run())?;
        Ok(Self { knowledge, state })
    }

    /// Waits until the index has every change that was committed before this call, or says why it may lack some. Until every
    /// note was read once, calls do not wait here: their answers say so.
    pub(super) fn catch_up(&self) -> Option<Lag> {
        let until = Instant::now() + PATIENCE;
        let mut progress = self.state.progress.lock();
        progress.active = Instant::now();
        if progress.position.is_none() && !self.knowledge.wait_ready(Duration::ZERO) {
            return progress.outage().or(Some(Lag::Loading));
        }
        progress.asked += 1;
        let ticket = progress.asked;
        self.state.wanted.notify_one();
        while progress.answered < ticket && !progress.is_stopped {
            // Once the database has been away for longer than a call waits, waiting helps no more.
            if progress.failing_since.is_some_and(|since| since.elapsed() > PATIENCE) {
                return progress.outage();
            }
            if self.state.moved.wait_until(&mut progress, until).timed_out() && progress.answered < ticket {
                return progress.outage().or(Some(Lag::Slow));
            }
        }
        None
    }

    /// Why a balancer should send clients to other servers, in a word.
    pub(super) fn unready_reason(&self) -> Option<&'static str> {
        self.state.progress.lock().unready_reason(Instant::now())
    }

    /// Whether every note was read once.
    pub(super) fn is_loaded(&self) -> bool {
        self.state.progress.lock().position.is_some()
    }

    /// How far the index is.
    pub(super) fn position(&self) -> FeedPosition {
        let progress = self.state.progress.lock();
        FeedPosition {
            number: progress.position.unwrap_or_default(),
            is_failing: progress.failing_since.is_some(),
            age: progress.level_at.elapsed(),
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.state.progress.lock().is_stopped = true;
        self.state.wanted.notify_all();
        self.state.moved.notify_all();
    }
}

impl FollowProgress {
    fn new() -> Self {
        Self {
            asked: 0,
            answered: 0,
            is_woken: false,
            position: None,
            failing_since: None,
            level_at: Instant::now(),
            active: Instant::now(),
            is_stopped: false,
        }
    }

    fn unready_reason(&self, now: Instant) -> Option<&'static str> {
        if self.failing_since.is_some() {
            return Some(UNREACHABLE);
        }
        // The first read of the notes has a word of its own.
        (self.position.is_some() && now.duration_since(self.level_at) > BEHIND).then_some("behind")
    }

    fn outage(&self) -> Option<Lag> {
        self.failing_since.map(|since| Lag::Unreachable(since.elapsed()))
    }
}

struct FollowerThread {
    knowledge: Arc<Knowledge>,
    feed: Arc<dyn NoteFeed>,
    state: Arc<FollowerState>,
}

/// Why a step is to be tried again; for the log.
type FollowError = String;

impl FollowerThread {
    fn run(self) {
        let mut pause = FIRST_PAUSE;
        while let Some(ticket) = self.next_ticket() {
            match self.step() {
                Ok(changed) => {
                    pause = FIRST_PAUSE;
                    let mut progress = self.state.progress.lock();
                    if progress.failing_since.take().is_some() {
                        tracing::info!("the database answers again");
                    }
                    progress.answered = ticket;
                    progress.level_at = Instant::now();
                    if changed {
                        progress.active = Instant::now();
                    }
                }
                Err(failure) => {
                    self.failed(&failure, pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
            self.state.moved.notify_all();
        }
    }

    /// Waits until there may be something to do; returns the last ticket given by then. `None` when the server stops.
    fn next_ticket(&self) -> Option<u64> {
        let mut progress = self.state.progress.lock();
        if progress.position.is_some() {
            let interval = if progress.active.elapsed() < BUSY { BUSY_INTERVAL } else { IDLE_INTERVAL };
            let until = Instant::now() + interval;
            while !progress.is_stopped && !progress.is_woken && progress.asked == progress.answered {
                if self.state.wanted.wait_until(&mut progress, until).timed_out() {
                    break;
                }
            }
        }
        progress.is_woken = false;
        (!progress.is_stopped).then_some(progress.asked)
    }

    fn failed(&self, failure: &str, pause: Duration) {
        let mut progress = self.state.progress.lock();
        if progress.failing_since.is_none() {
            tracing::warn!("{failure}; retrying");
            progress.failing_since = Some(Instant::now());
        }
        self.state.moved.notify_all();
        let until = Instant::now() + pause;
        while !progress.is_stopped && !self.state.wanted.wait_until(&mut progress, until).timed_out() {}
    }

    /// Applies what is new; returns whether there was anything.
    fn step(&self) -> Result<bool, FollowError> {
        let position = self.state.progress.lock().position;
        let Some(position) = position else { return self.load().map(|()| true) };
        let changes = self.feed.changes_since(position).map_err(|error| error.to_string())?;
        if changes.head == position {
            return Ok(false);
        }
        self.apply(&FileBatch::Files(changes.paths))?;
        self.state.progress.lock().position = Some(changes.head);
        Ok(true)
    }

    /// Reads every note. The position is read first, so that a change meanwhile is read again and not missed.
    fn load(&self) -> Result<(), FollowError> {
        let started = Instant::now();
        let head = self.feed.head().map_err(|error| error.to_string())?;
        let report = self.knowledge.start_in_steps().map_err(|error| error.to_string())?;
        is_complete(report.unreadable)?;
        let mut progress = self.state.progress.lock();
        (progress.position, progress.level_at) = (Some(head), Instant::now());
        drop(progress);
        self.knowledge.prepare_for_changes();
        tracing::info!(notes = self.knowledge.snapshot().files().len(), took = ?started.elapsed(), "read the graph");
        Ok(())
    }

    fn apply(&self, batch: &FileBatch) -> Result<(), FollowError> {
        let report = self.knowledge.apply(batch, &|_| {}).map_err(|error| error.to_string())?;
        is_complete(report.unreadable)
    }
}

/// Notes that could not be read are read again.
fn is_complete(unreadable: usize) -> Result<(), FollowError> {
    if unreadable == 0 { Ok(()) } else { Err(format!("cannot read {unreadable} notes of the database")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_that_falls_behind_for_long_says_so() {
        let mut progress = FollowProgress::new();
        let later = progress.level_at + BEHIND + Duration::from_secs(1);
        assert_eq!(progress.unready_reason(later), None, "the notes are read for the first time");
        progress.position = Some(7);
        assert_eq!(
            (progress.unready_reason(progress.level_at + BEHIND), progress.unready_reason(later)),
            (None, Some("behind"))
        );
        progress.failing_since = Some(later);
        assert_eq!(progress.unready_reason(later), Some(UNREACHABLE));
    }
}
