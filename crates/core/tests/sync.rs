//! A folder and a graph that are synchronised while both change: random histories, kills and races lose nothing.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;
use quipu_core::RequestKey;
use quipu_core::model::{ContentHash, FileStat, VaultPath};
use quipu_core::ports::{
    FileChange, FileContent, Listing, LoggedFile, LoggedWrite, NamePeriod, NoteHistory, TrashedFile, VaultError,
    VaultFiles, WriteError, WriteFilter, WriteNumber, WriteOrigin,
};
use quipu_core::sync::{Base, BaseChange, BaseLog, Side, SyncDirection, SyncError, SyncOptions, SyncReport, SyncRun};
use quipu_testkit::generate::Random;
use quipu_testkit::{FixedClock, MemVault};

const NEVER: usize = usize::MAX;

/// The edits of people on both sides.
struct People {
    /// Texts that were neither replaced nor deleted.
    alive: BTreeSet<String>,
    /// Texts that were renamed. One that returns to its old path, where the other side has another note by then, is replaced
    /// there as an old version would be; the trash has it.
    renamed: BTreeSet<String>,
    written: usize,
    random: Random,
}

impl Default for People {
    fn default() -> Self {
        Self { alive: BTreeSet::new(), renamed: BTreeSet::new(), written: 0, random: Random(0) }
    }
}

impl People {
    /// Creates, edits, deletes or renames a note on a side, as another program would.
    fn act(&mut self, files: &MemVault) {
        const PATHS: [&str; 6] = ["a.md", "b.md", "c.md", "dir/a.md", "dir/b.md", "dir/deep/c.md"];
        let path = PATHS[self.random.below(PATHS.len())];
        let free = PATHS.iter().find(|other| files.text(other).is_none());
        match (files.text(path), free, self.random.below(4)) {
            (Some(old), _, 0) => {
                self.alive.remove(&old);
                files.remove(path);
            }
            (Some(old), Some(free), 1) => {
                files.remove(path);
                files.put(free, &old);
                self.renamed.insert(old);
            }
            (old, ..) => {
                old.map(|old| self.alive.remove(&old));
                self.written += 1;
                let text = format!("text {}", self.written);
                files.put(path, &text);
                self.alive.insert(text);
            }
        }
    }
}

/// A side that people change between a comparison and a write, and at which the process is killed.
struct Busy<'a> {
    files: &'a MemVault,
    people: &'a Mutex<People>,
    is_raced: bool,
    /// Writes until the kill; the last one is made and not acknowledged.
    left: &'a AtomicUsize,
}

fn killed() -> io::Error {
    io::Error::other("killed")
}

impl VaultFiles for Busy<'_> {
    fn list(&self) -> Result<Listing, VaultError> {
        self.files.list()
    }
    fn list_below(&self, path: &VaultPath) -> Result<Listing, VaultError> {
        self.files.list_below(path)
    }
    fn read(&self, path: &VaultPath) -> Result<Option<FileContent>, VaultError> {
        self.files.read(path)
    }
    fn find_any_case(&self, path: &VaultPath) -> Result<Vec<VaultPath>, VaultError> {
        self.files.find_any_case(path)
    }
    fn apply_for(&self, changes: &[FileChange], origin: &WriteOrigin<'_>) -> Result<Vec<Option<FileStat>>, WriteError> {
        let mut people = self.people.lock();
        if self.is_raced && people.random.below(3) == 0 {
            people.act(self.files);
        }
        let dead = || WriteError::Write { path: String::new(), source: killed() };
        let left = self.left.load(Relaxed);
        if left == 0 {
            return Err(dead());
        }
        if left != NEVER {
            self.left.store(left - 1, Relaxed);
        }
        let applied = self.files.apply_for(changes, origin)?;
        if left == 1 { Err(dead()) } else { Ok(applied) }
    }
    fn applied_request(&self, request: RequestKey) -> Result<Option<VaultPath>, VaultError> {
        self.files.applied_request(request)
    }
    fn trashed(&self) -> Result<Vec<TrashedFile>, VaultError> {
        self.files.trashed()
    }
    fn restore(&self, kept: &TrashedFile) -> Result<FileStat, WriteError> {
        self.files.restore(kept)
    }
}

impl NoteHistory for Busy<'_> {
    fn writes(&self, filter: &WriteFilter) -> Result<Vec<LoggedWrite>, VaultError> {
        self.files.writes(filter)
    }
    fn kept_bytes(&self, kept: &str) -> Result<Option<Vec<u8>>, VaultError> {
        self.files.kept_bytes(kept)
    }
    fn record_outside(&self, files: &[LoggedFile]) -> Result<(), WriteError> {
        self.files.record_outside(files)
    }
    fn forget(&self, names: &[NamePeriod], unfinished: WriteNumber) -> Result<usize, WriteError> {
        self.files.forget(names, unfinished)
    }
    fn forget_write(&self, number: WriteNumber) -> Result<(), WriteError> {
        self.files.forget_write(number)
    }
}

/// A base in a text; a kill leaves the last lines incomplete.
struct Log<'a> {
    base: Base,
    text: String,
    left: &'a AtomicUsize,
    /// Bytes that are written of those lines.
    torn: usize,
}

impl<'a> Log<'a> {
    fn open(text: &str, left: &'a AtomicUsize, torn: usize) -> Self {
        let (base, _) = Base::parse(text);
        Self { text: base.to_text(), base, left, torn }
    }
}

impl BaseLog for Log<'_> {
    fn base(&self) -> &Base {
        &self.base
    }

    fn record(&mut self, changes: &[BaseChange]) -> io::Result<()> {
        let lines = Base::lines(changes);
        if self.left.load(Relaxed) == 0 {
            self.text += &lines[..self.torn.min(lines.len())];
            return Err(killed());
        }
        self.base.apply(changes);
        self.text += &lines;
        Ok(())
    }
}

fn options(direction: SyncDirection) -> SyncOptions {
    SyncOptions {
        direction,
        force: false,
        dry_run: false,
        allow_deletes: true,
        label: "2026-11-18 ada".to_owned(),
        writes_graph_as: "quipu (ada)".to_owned(),
        writes_folder_as: "graph team".to_owned(),
    }
}

fn mem() -> MemVault {
    MemVault::new(Arc::new(FixedClock::default()))
}

fn texts(files: &MemVault) -> BTreeMap<String, String> {
    files.paths().into_iter().map(|path| (path.clone(), files.text(&path).unwrap())).collect()
}

/// Runs until there is nothing to do.
fn settle(folder: &MemVault, graph: &MemVault, log: &mut dyn BaseLog) {
    for _ in 0..4 {
        let report = SyncRun { folder, graph, options: options(SyncDirection::Mirror) }.all(log).unwrap();
        assert_eq!(report.skipped, []);
        if report.steps.is_empty() {
            return;
        }
    }
    panic!("folder and graph do not converge");
}

fn in_trash(files: &MemVault, text: &str) -> bool {
    let trashed = files.trashed().unwrap();
    trashed.iter().any(|kept| files.kept_bytes(&kept.version).unwrap().unwrap() == text.as_bytes())
}

#[test]
fn random_histories_converge_and_lose_nothing() {
    let seeds = std::env::var("QUIPU_TEST_STEPS").ok().and_then(|steps| steps.parse().ok()).unwrap_or(300);
    for seed in 0..seeds {
        let (folder, graph) = (mem(), mem());
        let people = Mutex::new(People { random: Random(seed), ..People::default() });
        let below = |end: usize| people.lock().random.below(end);
        let (left, mut text) = (AtomicUsize::new(NEVER), String::new());
        for _ in 0..25 {
            for _ in 0..below(5) {
                let side = if below(2) == 0 { &folder } else { &graph };
                people.lock().act(side);
            }
            left.store(if below(3) == 0 { below(4) } else { NEVER }, Relaxed);
            let is_raced = below(2) == 0;
            let busy = |files| Busy { files, people: &people, is_raced, left: &left };
            let (here, there) = (busy(&folder), busy(&graph));
            let direction = [SyncDirection::Push, SyncDirection::Pull, SyncDirection::Mirror][below(3)];
            let mut log = Log::open(&text, &left, below(200));
            match (SyncRun { folder: &here, graph: &there, options: options(direction) }).all(&mut log) {
                Ok(_) | Err(SyncError::Write(_) | SyncError::Record(_)) => text = log.text,
                Err(error) => panic!("seed {seed}: {error}"),
            }
        }
        left.store(NEVER, Relaxed);
        settle(&folder, &graph, &mut Log::open(&text, &left, 0));
        let current = texts(&folder);
        assert_eq!(current, texts(&graph), "seed {seed}");
        let kept: BTreeSet<&String> = current.values().collect();
        let people = people.lock();
        for text in people.alive.iter().filter(|text| !kept.contains(text)) {
            let is_in_trash = || in_trash(&folder, text) || in_trash(&graph, text);
            assert!(people.renamed.contains(text) && is_in_trash(), "seed {seed} lost {text:?}: {current:?}");
        }
    }
}

/// A folder and a graph in sync.
struct Pair {
    folder: MemVault,
    graph: MemVault,
    log: Log<'static>,
}

static UNKILLED: AtomicUsize = AtomicUsize::new(NEVER);

impl Pair {
    fn of(fixture: &str) -> Self {
        let folder = MemVault::from_fixture(Arc::new(FixedClock::default()), fixture);
        let mut pair = Self { folder, graph: mem(), log: Log::open("", &UNKILLED, 0) };
        pair.run(SyncDirection::Push);
        pair
    }

    fn run_with(&mut self, options: SyncOptions) -> Result<SyncReport, SyncError> {
        SyncRun { folder: &self.folder, graph: &self.graph, options }.all(&mut self.log)
    }

    fn run(&mut self, direction: SyncDirection) -> SyncReport {
        self.run_with(options(direction)).unwrap()
    }
}

#[test]
fn push_refuses_a_conflict_and_pull_keeps_both_versions() {
    let mut pair = Pair::of("//- plan.md\nold\n//- other.md\nx\n");
    pair.folder.put("plan.md", "mine");
    pair.graph.put("plan.md", "theirs");
    pair.folder.put("other.md", "y");
    let pushed = pair.run(SyncDirection::Push);
    assert_eq!((pushed.conflicts.len(), pushed.counts(Side::Graph).changed), (1, 1), "the rest is pushed");
    assert_eq!(pair.graph.text("plan.md").unwrap(), "theirs");
    let pulled = pair.run(SyncDirection::Pull);
    let copy = "plan (conflict 2026-11-18 ada).md";
    assert_eq!(pulled.conflicts[0].copy.as_ref().unwrap().as_str(), copy);
    assert_eq!(pair.folder.text("plan.md").unwrap(), "theirs");
    assert_eq!(pair.folder.text(copy).unwrap(), "mine");
    assert_eq!(pair.graph.text(copy), None, "a pull does not write to the graph");
    assert!(pair.run(SyncDirection::Push).is_clean());
    assert_eq!(texts(&pair.folder), texts(&pair.graph));
}

#[test]
fn force_replaces_the_other_version_and_history_has_it() {
    let mut pair = Pair::of("//- plan.md\nold\n");
    pair.folder.put("plan.md", "mine");
    pair.graph.put("plan.md", "theirs");
    let pushed = pair.run_with(SyncOptions { force: true, ..options(SyncDirection::Push) }).unwrap();
    assert!(pushed.is_clean());
    assert_eq!(pair.graph.text("plan.md").unwrap(), "mine");
    let kept = pair.graph.trashed().unwrap();
    assert_eq!(pair.graph.kept_bytes(&kept[0].version).unwrap().unwrap(), b"theirs");
    let write = &pair.graph.writes(&WriteFilter::default()).unwrap()[0];
    assert_eq!(write.by, "quipu (ada)");
}

#[test]
fn renamed_note_keeps_its_history_in_the_graph() {
    let mut pair = Pair::of("//- old.md\ntext\n");
    pair.folder.remove("old.md");
    pair.folder.put("new.md", "text\n");
    assert_eq!(pair.run(SyncDirection::Push).counts(Side::Graph).moved, 1);
    let write = &pair.graph.writes(&WriteFilter::default()).unwrap()[0];
    assert_eq!(write.files[0].from.as_ref().unwrap().as_str(), "old.md");
    pair.folder.remove("new.md");
    pair.folder.put("NEW.md", "text\n");
    assert_eq!(pair.run(SyncDirection::Push).counts(Side::Graph).moved, 1, "a change of case only");
    assert_eq!(pair.graph.paths(), ["NEW.md"]);
}

#[test]
fn first_run_deletes_nothing_and_equal_notes_are_in_sync() {
    let (folder, graph) = (mem(), mem());
    for (files, path, text) in [(&folder, "a.md", "same"), (&graph, "a.md", "same"), (&folder, "b.md", "1")] {
        files.put(path, text);
    }
    graph.put("c.md", "2");
    graph.put("b.md", "3");
    let mut log = Log::open("", &UNKILLED, 0);
    let report =
        SyncRun { folder: &folder, graph: &graph, options: options(SyncDirection::Mirror) }.all(&mut log).unwrap();
    assert_eq!((report.counts(Side::Folder).deleted, report.counts(Side::Graph).deleted), (0, 0));
    assert_eq!(report.conflicts.len(), 1);
    assert_eq!(texts(&folder), texts(&graph));
    assert_eq!(folder.paths().len(), 4, "both versions of b.md");
}

#[test]
fn most_notes_are_deleted_only_when_allowed() {
    let fixture: String = (0..20).map(|number| format!("//- n{number}.md\n{number}\n")).collect();
    let mut pair = Pair::of(&fixture);
    (0..12).for_each(|number| pair.folder.remove(&format!("n{number}.md")));
    let refused = pair.run_with(SyncOptions { allow_deletes: false, ..options(SyncDirection::Push) }).unwrap_err();
    assert_eq!(refused.to_string(), "cannot delete 12 of 20 notes in the graph: that is more than half");
    assert_eq!(pair.graph.paths().len(), 20);
    assert_eq!(pair.run(SyncDirection::Push).counts(Side::Graph).deleted, 12);
}

#[test]
fn unreadable_and_excluded_notes_are_not_deleted() {
    let mut pair = Pair::of("//- dir/a.md\n1\n//- b.md\n2\n");
    pair.folder.refuse_reading("dir");
    let report = pair.run(SyncDirection::Push);
    assert_eq!(report.skipped[0].path.as_str(), "dir/a.md");
    pair.folder.allow_reading();
    // A folder of this name makes the path exist without being a note, as an ignore rule does.
    pair.folder.remove("b.md");
    pair.folder.put("b.md/picture.png", "3");
    let report = pair.run(SyncDirection::Push);
    assert_eq!((report.excluded.len(), report.is_clean()), (1, true));
    assert_eq!(pair.graph.paths(), ["b.md", "dir/a.md"]);
}

#[test]
fn names_that_differ_only_in_case_are_reported_and_kept() {
    let mut pair = Pair::of("//- Note.md\nupper\n");
    pair.folder.put("note.md", "lower");
    let report = pair.run(SyncDirection::Mirror);
    assert_eq!(report.skipped[0].reason, "its name differs only in case from Note.md");
    assert_eq!(pair.folder.paths(), ["Note.md", "note.md"]);
    assert_eq!(pair.graph.paths(), ["Note.md"]);
}

#[test]
fn dry_run_changes_nothing_and_lists_the_steps() {
    let mut pair = Pair::of("//- a.md\n1\n//- b.md\n2\n");
    pair.folder.put("a.md", "mine");
    pair.graph.put("a.md", "theirs");
    pair.folder.remove("b.md");
    let before = (texts(&pair.folder), texts(&pair.graph), pair.log.text.clone());
    let report = pair.run_with(SyncOptions { dry_run: true, ..options(SyncDirection::Mirror) }).unwrap();
    assert_eq!((report.steps.len(), report.conflicts.len()), (2, 1));
    assert_eq!((texts(&pair.folder), texts(&pair.graph), pair.log.text.clone()), before);
}

#[test]
fn run_that_was_killed_after_keeping_a_copy_makes_no_second_one() {
    let mut pair = Pair::of("//- a.md\n1\n");
    pair.folder.put("a.md", "mine");
    pair.graph.put("a.md", "theirs");
    pair.folder.put("a (conflict 2026-11-18 ada).md", "mine");
    let report = pair.run(SyncDirection::Mirror);
    assert_eq!(report.conflicts.len(), 1);
    assert_eq!(pair.folder.paths(), ["a (conflict 2026-11-18 ada).md", "a.md"]);
    assert_eq!(pair.log.base.len(), 2);
    assert_eq!(pair.folder.bytes("a.md").map(|bytes| ContentHash::of(&bytes)), Some(ContentHash::of(b"theirs")));
}
