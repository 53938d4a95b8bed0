//! A write that fails, or is killed, at every one of its steps: nothing lost, nothing half there.
#![expect(clippy::disallowed_methods, reason = "tests play the user, who edits files directly")]

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use quipu_core::RequestKey;
use quipu_core::model::{ContentHash, VaultPath};
use quipu_core::ports::{FileChange, VaultFiles, WriteError};

use crate::step::fault::{set_lacking, with_steps};
use crate::{FolderVault, VaultOptions, WatchEvent, WatchOptions, watch};

mod copies;

const BEFORE: [(&str, &str); 4] = [("a.md", "old a"), ("b.md", "old b"), ("c.md", "old c"), ("d/e.md", "untouched")];

const REQUEST: RequestKey = RequestKey(7);

#[test]
fn several_changes_that_fail_at_any_step_are_undone() {
    for_every_step(four_changes, Fault::Error);
}

#[test]
fn several_changes_that_are_killed_at_any_step_are_undone_at_the_next_opening() {
    for_every_step(four_changes, Fault::Crash);
}

#[test]
fn one_change_that_fails_or_is_killed_at_any_step_is_done_or_not_done() {
    for change in four_changes() {
        for fault in [Fault::Error, Fault::Crash] {
            for_every_step(|| vec![change.clone()], fault);
        }
    }
    let case_change = || vec![move_to("a.md", "A.md", "old a", "new a")];
    for_every_step(case_change, Fault::Error);
    for_every_step(case_change, Fault::Crash);
}

#[test]
fn file_systems_that_can_do_less_lose_nothing_either() {
    let lacking: [&'static [&'static str]; 4] =
        [&["exchange"], &["no-replace"], &["link"], &["exchange", "no-replace", "link"]];
    for abilities in lacking {
        set_lacking(abilities);
        for fault in [Fault::Error, Fault::Crash] {
            for_every_step(four_changes, fault);
        }
        for change in four_changes() {
            for_every_step(|| vec![change.clone()], Fault::Crash);
        }
    }
    set_lacking(&[]);
}

#[test]
fn a_vault_with_more_folders_than_watches_is_polled_and_a_person_is_told() {
    let home = home();
    let vault = Arc::new(open(home.path()));
    let (sender, events) = std::sync::mpsc::channel();
    let options = WatchOptions { poll_every: Duration::from_millis(20), ..WatchOptions::default() };
    let full = |step: &str| match step {
        "watch" => Err(io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error())),
        _ => Ok(()),
    };
    let watcher = with_steps(full, || watch(&vault, options, move |event| drop(sender.send(event)))).unwrap();
    std::fs::write(home.path().join("a.md"), "edited by hand").unwrap();
    let patience = Duration::from_secs(20);
    match events.recv_timeout(patience).unwrap() {
        WatchEvent::Warning(text) => assert!(text.contains("max_user_watches"), "{text}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(events.recv_timeout(patience).unwrap(), WatchEvent::Changed(vec![path("a.md")]));
    drop(watcher);
}

#[test]
fn a_gitignore_that_cannot_be_read_has_no_say_and_is_told() {
    let home = home();
    std::fs::write(home.path().join(".gitignore"), "a.md\n").unwrap();
    std::fs::write(home.path().join("d/.gitignore"), "e.md\n").unwrap();
    let vault = open(home.path());
    let unreadable = |step: &str| match step {
        "read rules" => Err(io::ErrorKind::PermissionDenied.into()),
        _ => Ok(()),
    };
    let (listing, below) =
        with_steps(unreadable, || (vault.list().unwrap(), open(home.path()).list_below(&path("d")).unwrap())).unwrap();
    assert!(listing.files.iter().any(|file| file.path.as_str() == "a.md"));
    assert!(listing.warnings.iter().any(|warning| warning.path == ".gitignore"), "{:?}", listing.warnings);
    assert_eq!(below.files.len(), 1);
    assert_eq!(below.warnings.iter().map(|warning| warning.path.as_str()).collect::<Vec<_>>(), ["d/.gitignore"]);
    let exhausted = |step: &str| match step {
        "read rules" => Err(io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error())),
        _ => Ok(()),
    };
    // Another fault than the file's: what it hides must not appear.
    with_steps(exhausted, || open(home.path()).list().unwrap_err()).unwrap();
}

#[test]
fn a_folder_that_cannot_be_read_is_told_from_an_empty_one() {
    let home = home();
    let vault = open(home.path());
    let locked = |step: &str| match step {
        "read a folder" => Err(io::ErrorKind::PermissionDenied.into()),
        _ => Ok(()),
    };
    // Steps are this thread's own, so the walk has to stay on it.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().unwrap();
    let listing = with_steps(locked, || pool.install(|| vault.list_below(&path("d")).unwrap())).unwrap();
    assert!(listing.files.is_empty() && listing.is_unread(&path("d/e.md")) && !listing.is_unread(&path("de.md")));
    assert!(listing.warnings[0].to_string().starts_with("\"d\": the folder cannot be read"), "{:?}", listing.warnings);
    assert!(!vault.list_below(&path("d")).unwrap().is_unread(&path("d/e.md")));
}

#[test]
fn an_undoing_that_is_itself_killed_is_taken_up_again() {
    for first in 1.. {
        let mut is_first_reached = false;
        for second in 1.. {
            let home = home();
            let vault = open(home.path());
            is_first_reached = run(&vault, &four_changes(), Fault::Crash, first).is_err_and(|crash| crash.is_none());
            drop(vault);
            let fired = Rc::new(Cell::new(false));
            let reopened = with_steps(nth(second, Fault::Crash, &fired), || open(home.path()));
            drop(reopened);
            drop(open(home.path()));
            check_all_or_nothing(home.path(), &four_changes(), None);
            if !fired.get() {
                break;
            }
        }
        if !is_first_reached {
            return;
        }
    }
}

#[test]
fn an_editor_that_saves_while_we_write_wins_and_loses_nothing() {
    // The steps at which the version was already checked but is not yet replaced.
    for at in ["write", "keep", "sync", "swap", "take"] {
        for save in [save_in_place as fn(&Path), save_by_rename] {
            for changes in [
                vec![replace("a.md", "old a", "new a")],
                vec![delete("a.md", "old a")],
                vec![move_to("a.md", "z/z.md", "old a", "new a")],
                vec![replace("b.md", "old b", "new b"), replace("a.md", "old a", "new a")],
            ] {
                let home = home();
                let vault = open(home.path());
                let file = home.path().join("a.md");
                let is_saved = Rc::new(Cell::new(false));
                let told = Rc::clone(&is_saved);
                let hook = move |step: &str| {
                    // The last chance counts, so save at each of them.
                    if step == at {
                        save(&file);
                        told.set(true);
                    }
                    Ok(())
                };
                let result = with_steps(hook, || vault.apply(&changes)).unwrap();
                if is_saved.get() {
                    match result {
                        Err(WriteError::Changed { path }) => assert_eq!(path.as_str(), "a.md"),
                        other => panic!("{at}: {other:?}"),
                    }
                    let mut expected = files(&BEFORE);
                    expected.insert("a.md".to_owned(), "edited".to_owned());
                    assert_eq!(tree(home.path()), expected, "{at}: {changes:?}");
                }
            }
        }
    }
}

#[test]
fn an_editor_that_saves_over_a_write_about_to_be_undone_keeps_its_version_and_ours_leaves_no_trace() {
    let home = home();
    let vault = open(home.path());
    let file = home.path().join("a.md");
    // The first change is in place when the second fails.
    let hook = move |step: &str| match step {
        "take" => {
            save_by_rename(&file);
            Err(io::Error::other("injected"))
        }
        _ => Ok(()),
    };
    let changes = [replace("a.md", "old a", "new a"), delete("c.md", "old c")];
    with_steps(hook, || vault.apply(&changes)).unwrap().unwrap_err();
    let mut expected = files(&BEFORE);
    expected.insert("a.md".to_owned(), "edited".to_owned());
    assert_eq!(tree(home.path()), expected);
    let kept = vault.kept().unwrap();
    assert_eq!(kept.iter().map(|kept| kept.path.as_str()).collect::<Vec<_>>(), ["a.md"], "the old version is kept");
}

#[test]
fn an_editor_that_meets_our_version_before_it_is_taken_back_loses_nothing() {
    // At each of these steps our version is to be seen, or was a moment ago, though it is refused.
    for at in ["compare", "undo", "keep", "swap back"] {
        for meet in [append_to_ours as fn(&Path) -> Option<File>, hold_ours, rename_over_ours] {
            let home = home();
            let vault = open(home.path());
            let file = home.path().join("a.md");
            let mut is_first = true;
            let is_met = Rc::new(Cell::new(false));
            let met = Rc::clone(&is_met);
            let handle = Rc::new(RefCell::new(None));
            let kept_open = Rc::clone(&handle);
            let hook = move |step: &str| {
                if step == "swap" && std::mem::take(&mut is_first) {
                    save_by_rename(&file);
                    return Ok(());
                }
                let is_ours = std::fs::read_to_string(&file).is_ok_and(|text| text == "new a");
                if step == at && is_ours && !met.replace(true) {
                    *kept_open.borrow_mut() = meet(&file);
                }
                Ok(())
            };
            let result = with_steps(hook, || vault.apply(&[replace("a.md", "old a", "new a")])).unwrap();
            assert!(matches!(result, Err(WriteError::Changed { .. })), "{at}: {result:?}");
            assert!(is_met.get(), "{at} never came while ours was there");
            let is_held = handle.borrow().is_some();
            if let Some(mut open) = handle.take() {
                open.write_all(b" and more").unwrap();
            }
            let mut everything = tree(home.path()).into_values().collect::<Vec<_>>();
            everything.extend(kept_texts(home.path()));
            let has = |text: &str| everything.iter().any(|found| found.contains(text));
            assert!(has("edited") && has("old a"), "{at}: {everything:?}");
            assert!(!is_held || has(" and more"), "{at}: {everything:?}");
            assert_eq!(is_leftover(home.path()), None, "{at}");
        }
    }
}

#[test]
fn a_crash_between_an_edit_that_slipped_in_and_a_second_one_loses_neither() {
    let home = home();
    let vault = open(home.path());
    let file = home.path().join("a.md");
    let hook = move |step: &str| {
        match step {
            "swap" => save_by_rename(&file),
            "compare" => {
                std::fs::write(&file, "edited again").unwrap();
                std::panic::resume_unwind(Box::new("crash"));
            }
            _ => {}
        }
        Ok(())
    };
    with_steps(hook, || vault.apply(&[replace("a.md", "old a", "new a")])).unwrap_err();
    drop(vault);
    drop(open(home.path()));
    assert_eq!(tree(home.path())["a.md"], "edited again");
    assert_eq!(is_leftover(home.path()), None);
    let kept = kept_texts(home.path());
    assert!(kept.contains(&"old a".to_owned()) && kept.contains(&"edited".to_owned()), "{kept:?}");
}

#[test]
fn a_file_that_appears_at_the_new_path_meanwhile_stays() {
    let home = home();
    let vault = open(home.path());
    let file = home.path().join("n.md");
    let hook = move |step: &str| {
        if step == "put" {
            std::fs::write(&file, "theirs")?;
        }
        Ok(())
    };
    let changes = [replace("a.md", "old a", "new a"), create("n.md", "ours")];
    let result = with_steps(hook, || vault.apply(&changes)).unwrap();
    assert!(matches!(result, Err(WriteError::Exists { existing }) if existing.as_str() == "n.md"));
    let mut expected = files(&BEFORE);
    expected.insert("n.md".to_owned(), "theirs".to_owned());
    assert_eq!(tree(home.path()), expected);
}

#[test]
fn a_folder_swapped_for_a_link_meanwhile_leads_nothing_out() {
    for at in ["write", "keep", "swap"] {
        let home = home();
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("e.md"), "untouched").unwrap();
        let vault = open(home.path());
        let (folder, away) = (home.path().join("d"), home.path().join("away"));
        let target = outside.path().to_owned();
        let hook = move |step: &str| {
            if step == at && !away.exists() {
                std::fs::rename(&folder, &away)?;
                std::os::unix::fs::symlink(&target, &folder)?;
            }
            Ok(())
        };
        let _ = with_steps(hook, || vault.apply(&[replace("d/e.md", "untouched", "new")])).unwrap();
        let outside_now: Vec<_> = std::fs::read_dir(outside.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(outside_now, ["e.md"], "{at}");
        assert_eq!(std::fs::read(outside.path().join("e.md")).unwrap(), b"untouched", "{at}");
    }
}

#[test]
fn a_journal_of_a_newer_quipu_is_left_alone_and_told() {
    let home = home();
    std::fs::create_dir(home.path().join(".quipu")).unwrap();
    let inode = |path: &Path| std::fs::metadata(path).unwrap().ino();
    let (root, own) = (inode(home.path()), inode(&home.path().join(".quipu")));
    let journal = format!(r#"{{"format":3,"home":{{"root":{root},"own":{own}}},"deeds":[]}}"#);
    let file = home.path().join(".quipu/journal.json");
    std::fs::write(&file, journal).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    let error = FolderVault::open(home.path(), VaultOptions::default()).unwrap_err();
    assert!(error.to_string().contains("newer Quipu"), "{error}");
    let options = VaultOptions { read_only: true, ..VaultOptions::default() };
    assert_eq!(FolderVault::open(home.path(), options).unwrap().list().unwrap().files.len(), 4);
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    /// The step fails.
    Error,
    /// The program ends there.
    Crash,
}

/// Runs the changes with a fault at the first step, then at the second, until they get through.
fn for_every_step(changes: impl Fn() -> Vec<FileChange>, fault: Fault) {
    for n in 1.. {
        assert!(n < 500, "never gets through");
        let home = home();
        let vault = open(home.path());
        let result = run(&vault, &changes(), fault, n);
        match &result {
            // Reached the end before the n-th step, or failed to tidy up, which is no failure: the next one does.
            Ok(()) => {
                drop(open(home.path()));
                check_all_or_nothing(home.path(), &changes(), Some(true));
            }
            Err(Some(WriteError::Write { path, source })) => {
                assert_eq!(source.to_string(), "injected");
                assert!(!path.starts_with('/'), "{path}");
                check_all_or_nothing(home.path(), &changes(), Some(false));
            }
            Err(Some(other)) => panic!("{other:?}"),
            Err(None) => {
                drop(vault);
                drop(open(home.path()));
                check_all_or_nothing(home.path(), &changes(), None);
            }
        }
        // Whoever asks again is told the truth.
        let known = open(home.path()).carried_out(REQUEST).unwrap();
        assert_eq!(known.is_some(), tree(home.path()) != files(&BEFORE), "{:?}", changes());
        // And the vault is as good as new: the same changes go through now, unless they did already.
        let vault = open(home.path());
        vault.list().unwrap();
        if tree(home.path()) == files(&BEFORE) {
            vault.apply(&changes()).unwrap();
        }
        check_all_or_nothing(home.path(), &changes(), Some(true));
        if result.is_ok() && !LAST_FIRED.get() {
            return;
        }
    }
}

thread_local! {
    static LAST_FIRED: Cell<bool> = const { Cell::new(false) };
}

/// `Err(None)` is a crash.
fn run(vault: &FolderVault, changes: &[FileChange], fault: Fault, n: usize) -> Result<(), Option<WriteError>> {
    let fired = Rc::new(Cell::new(false));
    let result = with_steps(nth(n, fault, &fired), || vault.apply_for(changes, Some(REQUEST)));
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

/// The files are all as before or all as after, nothing of ours lies about, and every version can be had.
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
    let mut kept = vault.kept().unwrap();
    kept.sort_by(|a, b| a.path.cmp(&b.path));
    let kept: Vec<String> = kept
        .iter()
        .map(|kept| std::fs::read_to_string(root.join(".quipu/trash").join(&kept.version)).unwrap())
        .collect();
    // What was to be seen before it was undone may be kept as well.
    let (undone, kept): (Vec<String>, Vec<String>) = kept.into_iter().partition(|text| new.contains(&text));
    assert!(undone.len() <= 2 * new.len(), "{undone:?}");
    assert_eq!(kept, if found_done { displaced } else { Vec::new() });
}

/// Every file and every empty folder but our own. A leftover of ours is a file too, and would be seen.
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
    // Thousands of syncs: a memory disk, where there is one, makes them quick and changes nothing else.
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

/// Opens it for appending, as a log or an editor does, and keeps it open.
fn append_to_ours(file: &Path) -> Option<File> {
    let mut open = std::fs::OpenOptions::new().append(true).open(file).unwrap();
    open.write_all(b", appended").unwrap();
    Some(open)
}

/// Opens it and adds to it only when all is over.
fn hold_ours(file: &Path) -> Option<File> {
    Some(std::fs::OpenOptions::new().append(true).open(file).unwrap())
}

fn rename_over_ours(file: &Path) -> Option<File> {
    save_by_rename(file);
    None
}

fn kept_texts(root: &Path) -> Vec<String> {
    let read = |version: &str| std::fs::read_to_string(root.join(".quipu/trash").join(version)).unwrap();
    open(root).kept().unwrap().iter().map(|kept| read(&kept.version)).collect()
}

fn is_leftover(root: &Path) -> Option<String> {
    tree(root).into_keys().find(|name| name.contains("quipu-tmp"))
}

fn save_in_place(file: &Path) {
    std::fs::write(file, "edited").unwrap();
}

fn save_by_rename(file: &Path) {
    let temporary = file.with_extension("md~");
    std::fs::write(&temporary, "edited").unwrap();
    std::fs::rename(&temporary, file).unwrap();
}

fn four_changes() -> Vec<FileChange> {
    vec![
        create("n/deep/n.md", "new n"),
        replace("a.md", "old a", "new a"),
        move_to("b.md", "m/b.md", "old b", "new b"),
        delete("c.md", "old c"),
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
