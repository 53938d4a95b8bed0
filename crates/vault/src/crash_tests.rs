//! Writes that fail or crash at each of their fail points lose nothing and are never applied in part.
#![expect(clippy::disallowed_methods, reason = "tests play the user, who edits files directly")]

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::rc::Rc;

use quipu_core::RequestKey;
use quipu_core::model::{ContentHash, VaultPath};
use quipu_core::ports::{FileChange, NoteHistory, VaultFiles, WriteError, WriteFilter, WriteOrigin};

use crate::failpoint::fault::with_hook;
use crate::{FolderVault, VaultOptions};

mod copies;
mod editors;
mod failed_undo;
mod put_back;
mod steps;
mod unreadable;

const BEFORE: [(&str, &str); 5] =
    [("a.md", "old a"), ("b.md", "old b"), ("c.md", "old c"), ("d/e.md", "untouched"), ("d/p.png", "a picture")];

const REQUEST: RequestKey = RequestKey(7);

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    /// The operation fails.
    Error,
    /// The process ends.
    Crash,
}

thread_local! {
    static LAST_FIRED: Cell<bool> = const { Cell::new(false) };
}

/// `Err(None)` is a crash.
fn run(vault: &FolderVault, changes: &[FileChange], fault: Fault, n: usize) -> Result<(), Option<WriteError>> {
    let fired = Rc::new(Cell::new(false));
    let result = with_hook(nth(n, fault, &fired), || vault.apply_for(changes, &WriteOrigin::retried(REQUEST)));
    LAST_FIRED.set(fired.get());
    match result {
        Ok(outcome) => outcome.map(drop).map_err(Some),
        Err(_) => Err(None),
    }
}

fn nth(n: usize, fault: Fault, fired: &Rc<Cell<bool>>) -> impl FnMut(&'static str) -> io::Result<()> + use<> {
    let (mut count, fired) = (0, Rc::clone(fired));
    move |_| {
        count += 1;
        if count != n {
            return Ok(());
        }
        fired.set(true);
        match fault {
            Fault::Error => Err(io::Error::other("injected")),
            Fault::Crash => std::panic::resume_unwind(Box::new("crash")),
        }
    }
}

/// Checks that the files are all as before or all as after, that no temporary file is left, and that the trash has every
/// displaced version.
fn check_all_or_nothing(root: &Path, changes: &[FileChange], is_done: Option<bool>) {
    let mut after = files(&BEFORE);
    let mut displaced = Vec::new();
    for change in changes {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        match change {
            FileChange::Create { path, bytes } => drop(after.insert(path.to_string(), text(bytes))),
            FileChange::Replace { path, bytes, .. } => displaced.extend(after.insert(path.to_string(), text(bytes))),
            FileChange::Move { from, to, bytes, .. } => {
                displaced.extend(after.remove(from.as_str()));
                after.insert(to.to_string(), text(bytes));
            }
            FileChange::Rename { from, to } => {
                let text = after.remove(from.as_str()).unwrap();
                after.insert(to.to_string(), text);
            }
            FileChange::Delete { path, .. } => displaced.extend(after.remove(path.as_str())),
        }
    }
    let new: Vec<&String> = after.values().filter(|text| text.starts_with("new")).collect();
    let found = tree(root);
    let found_done = found == after;
    assert!(found_done || found == files(&BEFORE), "neither before nor after: {found:?}");
    if let Some(is_done) = is_done {
        assert_eq!(found_done, is_done);
    }
    let vault = open(root);
    let mut kept = vault.trashed().unwrap();
    kept.sort_by(|a, b| a.path.cmp(&b.path));
    let kept: Vec<String> = kept
        .iter()
        .map(|kept| std::fs::read_to_string(root.join(".quipu/trash").join(&kept.version)).unwrap())
        .collect();
    // A version that was visible before it was undone may be in the trash too.
    let (undone, kept): (Vec<String>, Vec<String>) = kept.into_iter().partition(|text| new.contains(&text));
    assert!(undone.len() <= 2 * new.len(), "{undone:?}");
    assert_eq!(kept, if found_done { displaced } else { Vec::new() });
    check_history(&vault, changes, found_done);
}

/// Checks that a write that took place has exactly one entry, whose kept versions are the old texts, and an undone one none.
fn check_history(vault: &FolderVault, changes: &[FileChange], is_done: bool) {
    let writes = vault.writes(&WriteFilter::default()).unwrap();
    assert_eq!(writes.len(), usize::from(is_done), "{writes:?}");
    for file in writes.iter().flat_map(|write| &write.files) {
        let old = file.kept.as_ref().map(|kept| ContentHash::of(&vault.kept_bytes(kept).unwrap().unwrap()));
        assert_eq!(old, file.before.map(|before| before.hash), "{file:?}");
    }
    assert!(writes.iter().all(|write| write.files.len() == changes.len() && write.number.0 == 1), "{writes:?}");
    assert_eq!(vault.history_damage(), 0);
}

/// Every file and every empty folder except `.quipu`. Temporary files are included.
fn tree(root: &Path) -> BTreeMap<String, String> {
    let found = RefCell::new(BTreeMap::new());
    collect(root, root, &found);
    found.into_inner()
}

fn collect(root: &Path, folder: &Path, found: &RefCell<BTreeMap<String, String>>) {
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        count += 1;
        if path.is_file() {
            found.borrow_mut().insert(name, std::fs::read_to_string(&path).unwrap());
        } else if name != ".quipu" {
            collect(root, &path, found);
        }
    }
    if count == 0 {
        found.borrow_mut().insert(format!("{}/", folder.display()), String::new());
    }
}

fn folder() -> tempfile::TempDir {
    // A memory disk, if there is one, makes the thousands of syncs fast.
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

fn home() -> tempfile::TempDir {
    let home = folder();
    for (path, text) in BEFORE {
        let path = home.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    home
}

fn files(list: &[(&str, &str)]) -> BTreeMap<String, String> {
    list.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

fn open(root: &Path) -> FolderVault {
    FolderVault::open(root, VaultOptions::default()).unwrap()
}

fn kept_texts(root: &Path) -> Vec<String> {
    let read = |version: &str| std::fs::read_to_string(root.join(".quipu/trash").join(version)).unwrap();
    open(root).trashed().unwrap().iter().map(|kept| read(&kept.version)).collect()
}

fn is_leftover(root: &Path) -> Option<String> {
    tree(root).into_keys().find(|name| name.contains("quipu-tmp"))
}

fn every_change() -> Vec<FileChange> {
    vec![
        create("n/deep/n.md", "new n"),
        replace("a.md", "old a", "new a"),
        move_to("b.md", "m/b.md", "old b", "new b"),
        delete("c.md", "old c"),
        FileChange::Rename { from: path("d/p.png"), to: path("n/deep/q.png") },
    ]
}

fn path(text: &str) -> VaultPath {
    VaultPath::parse(text).unwrap()
}

fn hash(text: &str) -> ContentHash {
    ContentHash::of(text.as_bytes())
}

fn create(at: &str, text: &str) -> FileChange {
    FileChange::Create { path: path(at), bytes: text.into() }
}

fn replace(at: &str, expected: &str, text: &str) -> FileChange {
    FileChange::Replace { path: path(at), expected: hash(expected), bytes: text.into() }
}

fn move_to(from: &str, to: &str, expected: &str, text: &str) -> FileChange {
    FileChange::Move { from: path(from), to: path(to), expected: hash(expected), bytes: text.into() }
}

fn delete(at: &str, expected: &str) -> FileChange {
    FileChange::Delete { path: path(at), expected: hash(expected) }
}
