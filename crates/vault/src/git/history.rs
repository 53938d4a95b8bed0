//! The commits from HEAD backwards with the paths that each one changed. Read only as far as needed: git waits in its pipe,
//! and the next call continues.

use std::collections::BTreeMap;
use std::io::Read;
use std::ops::Bound;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::program::{Git, GitError, kill};

const CHUNK: usize = 64 << 10;

/// The history of a million commits is shorter.
const MAX_BYTES: usize = 1 << 30;

/// Commits and changed paths that are kept: less than a gigabyte.
const MAX_ENTRIES: usize = 4_000_000;

/// Git ends at once after its output, unless it hangs.
const PATIENCE_AT_THE_END: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(2);

/// `enough` is called again after 1/8 more commits.
const GROWTH: usize = 8;

/// Every commit, newest first, with the paths it changed. A merge has only its own changes, and exact renames are detected.
const LOG: [&str; 10] = [
    "log",
    "-z",
    // No `diff.orderFile`, which may be endless.
    "-O/dev/null",
    "--format=%x01%H %ct %P",
    "--name-status",
    "--find-renames=100%",
    "--no-ext-diff",
    "--no-textconv",
    "-c",
    "--ignore-submodules=none",
];

/// The history read so far.
pub(crate) struct GitHistory {
    commits: Vec<Commit>,
    /// By path, newest commit first.
    touched: BTreeMap<String, Vec<PathChange>>,
    parser: Parser,
    bytes: usize,
    /// `None` if no more can be read.
    running: Option<Running>,
    /// What [`GitHistory::advance`] returns then.
    ended: Advance,
}

struct Running {
    child: Arc<Mutex<Child>>,
    pieces: Receiver<Piece>,
}

enum Piece {
    Output(Vec<u8>),
    /// Git ended, and whether it read the whole history.
    End(bool),
}

/// One commit.
#[derive(Debug)]
pub(crate) struct Commit {
    pub(crate) id: String,
    /// The commit time, in nanoseconds since 1970.
    pub(crate) at_ns: i64,
    /// Whether it has no parents, or none in a shallow clone.
    pub(crate) is_first: bool,
}

/// A commit that changed a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathChange {
    /// Its index in the history: 0 is HEAD.
    pub(crate) commit: usize,
    /// The old path of an exact rename.
    pub(crate) renamed_from: Option<String>,
}

/// Why [`GitHistory::advance`] ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Advance {
    /// `enough` returned true.
    Enough,
    /// The whole history is read.
    End,
    /// The deadline passed.
    TooSlow,
    /// The history is larger than what is kept in memory.
    TooLong,
    /// Git failed before the end of the history.
    Failed,
}

impl GitHistory {
    /// Starts at a commit.
    pub(super) fn begin(git: &Git, head: &str) -> Result<Self, GitError> {
        let mut arguments = LOG.to_vec();
        arguments.extend([head, "--"]);
        let mut child = git.spawn(&arguments, Stdio::null())?;
        let mut stdout = child.stdout.take().expect("stdout is a pipe");
        // Drained, since a full or closed pipe would stop git; its exit status reports errors.
        if let Some(mut stderr) = child.stderr.take() {
            std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        }
        // A short queue, so that git does not run far ahead.
        let (sender, pieces) = sync_channel(4);
        let child = Arc::new(Mutex::new(child));
        let ended = child.clone();
        std::thread::spawn(move || {
            loop {
                let mut chunk = vec![0; CHUNK];
                let length = stdout.read(&mut chunk).unwrap_or(0);
                if length == 0 {
                    // Reaps the process now: the next call may come late or never.
                    let _ = sender.send(Piece::End(has_succeeded(&ended)));
                    return;
                }
                chunk.truncate(length);
                if sender.send(Piece::Output(chunk)).is_err() {
                    return;
                }
            }
        });
        Ok(Self::with(Parser::default(), Vec::new(), BTreeMap::new(), Some(Running { child, pieces })))
    }

    fn with(
        parser: Parser,
        commits: Vec<Commit>,
        touched: BTreeMap<String, Vec<PathChange>>,
        running: Option<Running>,
    ) -> Self {
        Self { commits, touched, parser, bytes: 0, running, ended: Advance::End }
    }

    /// Whether git failed, so that a new process may read further.
    pub(super) fn has_failed(&self) -> bool {
        self.ended == Advance::Failed
    }

    /// Reads on until `enough`, which may scan all commits and is therefore called only after a share of new ones.
    pub(crate) fn advance(&mut self, deadline: Instant, enough: impl Fn(&Self) -> bool) -> Advance {
        let mut asked_at = None;
        loop {
            let is_due = asked_at.is_none_or(|before| self.commits.len() > before + before / GROWTH);
            if is_due || self.running.is_none() {
                if enough(self) {
                    return Advance::Enough;
                }
                asked_at = Some(self.commits.len());
            }
            let Some(running) = &self.running else { return self.ended };
            if Instant::now() >= deadline {
                return Advance::TooSlow;
            }
            match running.pieces.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(Piece::Output(chunk)) => self.take(&chunk),
                Ok(Piece::End(true)) => self.stop(Advance::End),
                Ok(Piece::End(false)) | Err(RecvTimeoutError::Disconnected) => {
                    tracing::warn!("git log ended before the end of the history");
                    self.stop(Advance::Failed);
                }
                Err(RecvTimeoutError::Timeout) => return Advance::TooSlow,
            }
        }
    }

    fn take(&mut self, chunk: &[u8]) {
        self.bytes += chunk.len();
        let Self { parser, commits, touched, .. } = self;
        parser.take(chunk, commits, touched);
        if self.bytes > MAX_BYTES || self.commits.len() + self.parser.touches > MAX_ENTRIES {
            self.stop(Advance::TooLong);
        }
    }

    /// The commit that last changed a path's content, and the path's name in it.
    pub(crate) fn last_change(&self, path: &str) -> Option<(usize, String)> {
        let (mut name, mut from) = (path, 0);
        loop {
            let touches = self.touches(name);
            // By halves: a path may have been renamed many times, away and back.
            let touch = touches.get(touches.partition_point(|touch| touch.commit < from))?;
            match &touch.renamed_from {
                Some(before) => (name, from) = (before, touch.commit + 1),
                None => return Some((touch.commit, name.to_owned())),
            }
        }
    }

    /// The commits that changed a path, newest first.
    pub(crate) fn touches(&self, path: &str) -> &[PathChange] {
        self.touched.get(path).map_or(&[], Vec::as_slice)
    }

    /// Every changed path with this prefix, in order.
    pub(crate) fn paths_from<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a str> {
        let from = self.touched.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
        from.map(|(path, _)| path.as_str()).take_while(move |path| path.starts_with(prefix))
    }

    pub(crate) fn commit(&self, place: usize) -> &Commit {
        &self.commits[place]
    }

    fn stop(&mut self, ended: Advance) {
        self.ended = ended;
        if let Some(running) = self.running.take() {
            kill(&mut running.child.lock());
        }
    }
}

impl Drop for GitHistory {
    fn drop(&mut self) {
        self.stop(Advance::End);
    }
}

/// Whether a process that has closed its output ends without a failure.
fn has_succeeded(child: &Mutex<Child>) -> bool {
    let deadline = Instant::now() + PATIENCE_AT_THE_END;
    loop {
        match child.lock().try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if Instant::now() < deadline => {}
            _ => break,
        }
        std::thread::sleep(PAUSE);
    }
    kill(&mut child.lock());
    false
}

/// Parses git's output: NUL-terminated words; the first word of each commit starts with a control character.
#[derive(Default)]
struct Parser {
    /// The start of an incomplete word.
    rest: Vec<u8>,
    state: ParserState,
    /// How many changes of paths were read.
    touches: usize,
}

/// The kind of the next word.
#[derive(Default)]
enum ParserState {
    /// A commit, or the status of a path.
    #[default]
    Head,
    /// The changed path.
    Path,
    /// The old path of a rename.
    Before,
    /// The new path of a rename.
    After(String),
}

impl Parser {
    fn take(&mut self, chunk: &[u8], commits: &mut Vec<Commit>, touched: &mut BTreeMap<String, Vec<PathChange>>) {
        let mut words = chunk.split(|byte| *byte == 0).peekable();
        while let Some(word) = words.next() {
            self.rest.extend_from_slice(word);
            if words.peek().is_none() {
                // It is empty, or continues in the next chunk.
                return;
            }
            let word = String::from_utf8_lossy(&std::mem::take(&mut self.rest)).into_owned();
            self.take_word(word, commits, touched);
        }
    }

    fn take_word(&mut self, word: String, commits: &mut Vec<Commit>, touched: &mut BTreeMap<String, Vec<PathChange>>) {
        let count = &mut self.touches;
        let mut touch = |path: String, renamed_from: Option<String>| {
            let Some(commit) = commits.len().checked_sub(1) else { return };
            *count += 1;
            touched.entry(path).or_default().push(PathChange { commit, renamed_from });
        };
        self.state = match std::mem::take(&mut self.state) {
            ParserState::Head => match word.trim_start_matches('\n') {
                "" => ParserState::Head,
                status if status.starts_with('\u{1}') => {
                    commits.extend(Commit::read(&status[1..]));
                    ParserState::Head
                }
                // A merge has one letter for each parent and one path.
                status if status.starts_with(['R', 'C']) && status[1..].bytes().all(|byte| byte.is_ascii_digit()) => {
                    ParserState::Before
                }
                _ => ParserState::Path,
            },
            ParserState::Path => {
                touch(word, None);
                ParserState::Head
            }
            ParserState::Before => ParserState::After(word),
            ParserState::After(before) => {
                touch(before.clone(), None);
                touch(word, Some(before));
                ParserState::Head
            }
        };
    }
}

impl Commit {
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let id = words.next()?.to_owned();
        let seconds: i64 = words.next()?.parse().ok()?;
        let is_first = words.next().is_none_or(str::is_empty);
        Some(Self { id, at_ns: seconds.saturating_mul(1_000_000_000), is_first })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A merge with its own change, a change, a rename, and the first commit.
    const OUTPUT: &str = "\u{1}c4 40 c3 cx\0\0MM\0s.ts\0\u{1}c3 30 c2\0\nM\0d/b.md\0\u{1}c2 20 c1\0\nR100\0a\nb.md\0d/b.md\0\
                        \u{1}c1 10 \0\nA\0a\nb.md\0A\0s.ts\0";

    #[test]
    fn output_is_parsed_wherever_a_chunk_ends() {
        for size in 1..OUTPUT.len() {
            let (mut parser, mut commits, mut touched) = (Parser::default(), Vec::new(), BTreeMap::new());
            for chunk in OUTPUT.as_bytes().chunks(size) {
                parser.take(chunk, &mut commits, &mut touched);
            }
            let times: Vec<_> = commits.iter().map(|commit| (commit.at_ns / 1_000_000_000, commit.is_first)).collect();
            assert_eq!(times, [(40, false), (30, false), (20, false), (10, true)]);
            let touch = |commit, from: Option<&str>| PathChange { commit, renamed_from: from.map(str::to_owned) };
            assert_eq!(touched["s.ts"], [touch(0, None), touch(3, None)]);
            assert_eq!(touched["d/b.md"], [touch(1, None), touch(2, Some("a\nb.md"))]);
            assert_eq!(touched["a\nb.md"], [touch(2, None), touch(3, None)]);
        }
    }

    #[test]
    fn an_exact_rename_is_not_a_change() {
        let (mut parser, mut commits, mut touched) = (Parser::default(), Vec::new(), BTreeMap::new());
        parser.take(OUTPUT.replace("M\0d/b.md\0", "M\0x\0").as_bytes(), &mut commits, &mut touched);
        let history = GitHistory::with(parser, commits, touched, None);
        assert_eq!(history.last_change("d/b.md"), Some((3, "a\nb.md".to_owned())));
        assert_eq!(history.last_change("nowhere"), None);
    }
    #[test]
    fn path_that_was_renamed_to_and_fro_is_followed_in_linear_time() {
        const RENAMES: usize = 200_000;
        let mut history = GitHistory::with(Parser::default(), Vec::new(), BTreeMap::new(), None);
        for at in 0..RENAMES {
            let (from, to) = if at % 2 == 0 { ("a", "b") } else { ("b", "a") };
            history.take(format!("\u{1}c {at} p\0\0\nR100\0{from}\0{to}\0").as_bytes());
        }
        history.take(b"\x01c 0 \0\0\nA\0b\0A\0a\0");
        let started = Instant::now();
        assert_eq!(history.last_change("b"), Some((RENAMES, "b".to_owned())));
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    }

    #[test]
    fn history_with_more_entries_or_bytes_than_are_kept_ends_with_an_error() {
        let advance = |history: &mut GitHistory| history.advance(Instant::now() + Duration::from_secs(60), |_| false);
        let new = || GitHistory::with(Parser::default(), Vec::new(), BTreeMap::new(), None);
        let mut history = new();
        history.take(OUTPUT.as_bytes());
        assert_eq!(advance(&mut history), Advance::End);
        history.parser.touches = MAX_ENTRIES;
        history.take(b"");
        assert_eq!(advance(&mut history), Advance::TooLong);
        let mut history = new();
        history.bytes = MAX_BYTES - 10;
        history.take(b"one endless word");
        assert_eq!(advance(&mut history), Advance::TooLong);
    }
}
