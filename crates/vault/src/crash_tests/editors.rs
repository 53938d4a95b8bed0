//! Other programs that save, replace or add files during a write.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::rc::Rc;

use quipu_core::model::ContentHash;
use quipu_core::ports::{LoggedFile, LoggedVersion, NoteAction, NoteHistory, VaultFiles, WriteError, WriteFilter};

use super::{
    BEFORE, Fault, create, delete, files, home, is_leftover, kept_texts, move_to, nth, open, path, replace, tree,
};
use crate::failpoint::fault::with_hook;

#[test]
fn concurrent_save_of_an_editor_wins() {
    // The steps between the check of the version and its replacement.
    for at in ["write", "trash", "sync", "replace", "delete"] {
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
                    // A step may occur several times; the last one counts.
                    if step == at {
                        save(&file);
                        told.set(true);
                    }
                    Ok(())
                };
                let result = with_hook(hook, || vault.apply(&changes)).unwrap();
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
fn editor_save_over_a_write_that_is_undone_stays() {
    let home = home();
    let vault = open(home.path());
    let file = home.path().join("a.md");
    // The first change is in place when the second fails.
    let hook = move |step: &str| match step {
        "delete" => {
            save_by_rename(&file);
            Err(io::Error::other("injected"))
        }
        _ => Ok(()),
    };
    let changes = [replace("a.md", "old a", "new a"), delete("c.md", "old c")];
    with_hook(hook, || vault.apply(&changes)).unwrap().unwrap_err();
    let mut expected = files(&BEFORE);
    expected.insert("a.md".to_owned(), "edited".to_owned());
    assert_eq!(tree(home.path()), expected);
    let kept = vault.trashed().unwrap();
    assert_eq!(kept.iter().map(|kept| kept.path.as_str()).collect::<Vec<_>>(), ["a.md"], "the old version is kept");
}

#[test]
fn editor_that_opened_a_version_that_is_undone_loses_nothing() {
    // At each of these steps the new version of the refused write is or was visible.
    for at in ["compare", "undo", "trash", "exchange back"] {
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
                if step == "replace" && std::mem::take(&mut is_first) {
                    save_by_rename(&file);
                    return Ok(());
                }
                let is_ours = std::fs::read_to_string(&file).is_ok_and(|text| text == "new a");
                if step == at && is_ours && !met.replace(true) {
                    *kept_open.borrow_mut() = meet(&file);
                }
                Ok(())
            };
            let result = with_hook(hook, || vault.apply(&[replace("a.md", "old a", "new a")])).unwrap();
            assert!(matches!(result, Err(WriteError::Changed { .. })), "{at}: {result:?}");
            assert!(is_met.get(), "{at} never came while the new version was visible");
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
fn crash_between_two_concurrent_edits_loses_neither() {
    let home = home();
    let vault = open(home.path());
    let file = home.path().join("a.md");
    let hook = move |step: &str| {
        match step {
            "replace" => save_by_rename(&file),
            "compare" => {
                std::fs::write(&file, "edited again").unwrap();
                std::panic::resume_unwind(Box::new("crash"));
            }
            _ => {}
        }
        Ok(())
    };
    with_hook(hook, || vault.apply(&[replace("a.md", "old a", "new a")])).unwrap_err();
    drop(vault);
    drop(open(home.path()));
    assert_eq!(tree(home.path())["a.md"], "edited again");
    assert_eq!(is_leftover(home.path()), None);
    let kept = kept_texts(home.path());
    assert!(kept.contains(&"old a".to_owned()) && kept.contains(&"edited".to_owned()), "{kept:?}");
}

#[test]
fn file_created_concurrently_at_the_new_path_stays() {
    let home = home();
    let vault = open(home.path());
    let file = home.path().join("n.md");
    let hook = move |step: &str| {
        if step == "create" {
            std::fs::write(&file, "theirs")?;
        }
        Ok(())
    };
    let changes = [replace("a.md", "old a", "new a"), create("n.md", "ours")];
    let result = with_hook(hook, || vault.apply(&changes)).unwrap();
    assert!(matches!(result, Err(WriteError::Exists { existing }) if existing.as_str() == "n.md"));
    let mut expected = files(&BEFORE);
    expected.insert("n.md".to_owned(), "theirs".to_owned());
    assert_eq!(tree(home.path()), expected);
}

#[test]
fn folder_replaced_by_a_link_during_a_write_redirects_nothing() {
    for at in ["write", "trash", "replace"] {
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
        let _ = with_hook(hook, || vault.apply(&[replace("d/e.md", "untouched", "new")])).unwrap();
        let outside_now: Vec<_> = std::fs::read_dir(outside.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(outside_now, ["e.md"], "{at}");
        assert_eq!(std::fs::read(outside.path().join("e.md")).unwrap(), b"untouched", "{at}");
    }
}

/// Opens it for appending, as a log or an editor does, and keeps it open.
fn append_to_ours(file: &Path) -> Option<File> {
    let mut open = std::fs::OpenOptions::new().append(true).open(file).unwrap();
    open.write_all(b", appended").unwrap();
    Some(open)
}

/// Opens it; the test appends after the write.
fn hold_ours(file: &Path) -> Option<File> {
    Some(std::fs::OpenOptions::new().append(true).open(file).unwrap())
}

fn rename_over_ours(file: &Path) -> Option<File> {
    save_by_rename(file);
    None
}

fn save_in_place(file: &Path) {
    std::fs::write(file, "edited").unwrap();
}

fn save_by_rename(file: &Path) {
    let temporary = file.with_extension("md~");
    std::fs::write(&temporary, "edited").unwrap();
    std::fs::rename(&temporary, file).unwrap();
}

/// A kept text is the one that its entry names, and an outside change is recorded once.
#[test]
fn outside_change_recorded_with_a_fault_at_any_step_keeps_no_wrong_text() {
    for fault in [Fault::Error, Fault::Crash] {
        for n in 1.. {
            let home = home();
            let vault = open(home.path());
            vault.apply(&[replace("a.md", "old a", "new a")]).unwrap();
            std::fs::write(home.path().join("a.md"), "typed").unwrap();
            let version = |text: &str| Some(LoggedVersion::of(text.as_bytes(), 0));
            let (before, after) = (version("new a"), version("typed"));
            let file =
                LoggedFile { action: NoteAction::Edit, path: path("a.md"), from: None, before, after, kept: None };
            let fired = Rc::new(Cell::new(false));
            let outcome = with_hook(nth(n, fault, &fired), || vault.record_outside(std::slice::from_ref(&file)));
            assert_eq!(outcome.is_err(), fired.get() && fault == Fault::Crash);
            drop(vault);
            let vault = open(home.path());
            vault.record_outside(&[file]).unwrap();
            let writes = vault.writes(&WriteFilter::default()).unwrap();
            assert_eq!(writes.len(), 2, "{writes:?}");
            for file in writes.iter().flat_map(|write| &write.files) {
                let kept = file.kept.as_ref().map(|kept| vault.kept_bytes(kept).unwrap().unwrap());
                assert!(kept.is_none_or(|bytes| Some(ContentHash::of(&bytes)) == file.before.map(|it| it.hash)));
            }
            if !fired.get() {
                assert!(writes[0].files[0].kept.is_some(), "{writes:?}");
                break;
            }
        }
    }
}
