//! Progress on stderr: on a terminal a bar after a second, elsewhere one line after three seconds and one at the end.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;
use quipu_core::index::Progress;

use super::output::{Line, Output};

const BAR_AFTER: Duration = Duration::from_secs(1);
const LINE_AFTER: Duration = Duration::from_secs(3);

/// Shows the progress of one pass.
pub(crate) struct Meter<'a> {
    /// `None` in a server, which shows nothing.
    output: Option<&'a Output>,
    doing: &'static str,
    counted: &'static str,
    started: Instant,
    shown: Mutex<ShownProgress>,
}

enum ShownProgress {
    Nothing,
    Line,
    Bar(ProgressBar),
}

impl<'a> Meter<'a> {
    /// Starts counting; shows nothing yet.
    pub(crate) fn start(doing: &'static str, counted: &'static str, output: Option<&'a Output>) -> Self {
        Self { output, doing, counted, started: Instant::now(), shown: Mutex::new(ShownProgress::Nothing) }
    }

    /// Shows the progress. Called from any thread.
    pub(crate) fn update(&self, progress: Progress) {
        let Some(output) = self.output else { return };
        let Progress { done, total } = progress;
        let (elapsed, on_terminal) = (self.started.elapsed(), output.is_terminal());
        let mut shown = self.shown.lock();
        match &*shown {
            ShownProgress::Bar(bar) => {
                bar.set_length(total as u64);
                bar.set_position(done as u64);
            }
            ShownProgress::Nothing if on_terminal && elapsed > BAR_AFTER => {
                *shown = ShownProgress::Bar(self.bar(done, total));
            }
            ShownProgress::Nothing if !on_terminal && elapsed > LINE_AFTER => {
                output.aside(&Line::new().plain(format!("{}: {done} of {total} {}", self.doing, self.counted)));
                *shown = ShownProgress::Line;
            }
            ShownProgress::Nothing | ShownProgress::Line => {}
        }
    }

    fn bar(&self, done: usize, total: usize) -> ProgressBar {
        let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{prefix} {wide_bar} {human_pos} of {human_len} {msg}, {eta} left");
        bar.set_style(style.expect("the template is constant and well formed"));
        bar.set_prefix(self.doing);
        bar.set_message(self.counted);
        bar.set_position(done as u64);
        bar
    }

    /// Clears the bar, or prints the final line. Returns how long the pass took.
    pub(crate) fn finish(self) -> Duration {
        let elapsed = self.started.elapsed();
        match (self.shown.into_inner(), self.output) {
            (ShownProgress::Bar(bar), _) => bar.finish_and_clear(),
            (ShownProgress::Line, Some(output)) => {
                output.aside(&Line::new().plain(format!("{}: done in {}", self.doing, seconds(elapsed))));
            }
            (ShownProgress::Line, None) | (ShownProgress::Nothing, _) => {}
        }
        elapsed
    }
}

/// Runs `work`, and if it takes long shows `what` on stderr: on a terminal after a second, elsewhere after three.
pub(crate) fn waiting<T>(what: impl FnOnce() -> String + Send, output: &Output, work: impl FnOnce() -> T) -> T {
    let on_terminal = output.is_terminal();
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let patience = if on_terminal { BAR_AFTER } else { LINE_AFTER };
            if is_done.recv_timeout(patience) != Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                return;
            }
            let what = what();
            if on_terminal {
                let spinner = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
                spinner.set_message(what);
                spinner
                    .set_style(ProgressStyle::with_template("{spinner} {msg}, {elapsed}").expect("it is well formed"));
                spinner.enable_steady_tick(Duration::from_millis(100));
                let _ = is_done.recv();
                spinner.finish_and_clear();
            } else {
                output.aside(&Line::new().plain(what));
            }
        });
        let answer = work();
        drop(done);
        answer
    })
}

/// A duration for people: `12 ms`, `3.4 s`.
pub(crate) fn seconds(duration: Duration) -> String {
    match duration.as_millis() {
        millis @ 0..1000 => format!("{millis} ms"),
        _ => format!("{:.1} s", duration.as_secs_f64()),
    }
}
