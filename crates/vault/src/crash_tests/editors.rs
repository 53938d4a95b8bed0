//! Other programs that save, replace or add files in the middle of a write.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::rc::Rc;

use quipu_core::ports::{VaultFiles, WriteError};

use super::{BEFORE, create, delete, files, home, is_leftover, kept_texts, move_to, open, replace, tree};
use crate::step::fault::with_steps;

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

fn save_in_place(file: &Path) {
    std::fs::write(file, "edited").unwrap();
}

fn save_by_rename(file: &Path) {
    let temporary = file.with_extension("md~");
    std::fs::write(&temporary, "edited").unwrap();
    std::fs::rename(&temporary, file).unwrap();
}
