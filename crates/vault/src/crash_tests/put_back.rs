//! Another account that can rename files in `.quipu`, as in a folder that is shared with a group: it keeps the journal of a
//! write and puts it back, or replaces old versions in the trash.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use quipu_core::ports::VaultFiles;

use super::{every_change, files, home, open, tree};
use super::{folder, kept_texts};
use crate::failpoint::fault::{set_lacking, with_hook};

const NAMES: [&str; 3] = ["journal.json", "journal.done.json", "journal.undo.json"];

fn crash_at(wanted: &'static str) -> impl FnMut(&'static str) -> std::io::Result<()> {
    move |step| if step == wanted { std::panic::resume_unwind(Box::new("crash")) } else { Ok(()) }
}

#[test]
fn journal_of_an_acknowledged_write_that_is_put_back_undoes_nothing() {
    for step in ["create", "replace", "delete", "commit", "sync the commit", "remove displaced"] {
        for name in NAMES {
            let (home, stolen) = (home(), folder());
            let (journal, kept) = (home.path().join(".quipu/journal.json"), stolen.path().join("kept"));
            let (from, to) = (journal.clone(), kept.clone());
            let steal = move |at: &str| match at == step && !to.exists() {
                true => std::fs::hard_link(&from, &to),
                false => Ok(()),
            };
            with_hook(steal, || open(home.path()).apply(&every_change())).unwrap().unwrap();
            let (applied, trashed) = (tree(home.path()), kept_texts(home.path()));
            std::fs::rename(&kept, journal.with_file_name(name)).unwrap();
            let vault = open(home.path());
            assert_eq!(vault.list().unwrap().warnings, [], "{step}: {name}");
            assert_eq!((tree(home.path()), kept_texts(home.path())), (applied, trashed), "{step}: {name}");
        }
    }
}

#[test]
fn journal_of_an_undone_write_that_is_put_back_is_not_applied_again() {
    for is_undone_by_recovery in [false, true] {
        let (home, stolen) = (home(), folder());
        let (journal, kept) = (home.path().join(".quipu/journal.json"), stolen.path().join("kept"));
        let (from, to) = (journal.clone(), kept.clone());
        let steal_and_fail = move |at: &str| match at {
            "delete" if is_undone_by_recovery => std::panic::resume_unwind(Box::new("crash")),
            "delete" => std::fs::hard_link(&from, &to).and(Err(std::io::Error::other("injected"))),
            _ => Ok(()),
        };
        let outcome = with_hook(steal_and_fail, || open(home.path()).apply(&every_change()));
        assert!(!matches!(outcome, Ok(Ok(_))));
        if is_undone_by_recovery {
            std::fs::hard_link(&journal, &kept).unwrap();
            drop(open(home.path()));
        }
        assert_eq!(tree(home.path()), files(&super::BEFORE));
        // The user writes the same again. The journal would undo that, file by file.
        for change in every_change() {
            open(home.path()).apply(&[change]).unwrap();
        }
        let applied = tree(home.path());
        std::fs::rename(&kept, &journal).unwrap();
        drop(open(home.path()));
        assert_eq!(tree(home.path()), applied);
    }
}

/// The only version in the trash of the note `a.md`.
fn trashed_a(root: &Path) -> PathBuf {
    let kept = open_read_only(root).trashed().unwrap();
    let version = &kept.iter().find(|kept| kept.path.as_str() == "a.md").unwrap().version;
    root.join(".quipu/trash").join(version)
}

fn open_read_only(root: &Path) -> crate::FolderVault {
    crate::FolderVault::open(root, crate::VaultOptions { read_only: true, ..Default::default() }).unwrap()
}

#[test]
fn undo_takes_only_the_replaced_version_from_the_trash_and_copies_it() {
    for is_replaced in [false, true] {
        let home = home();
        set_lacking(&["exchange"]);
        with_hook(crash_at("delete"), || open(home.path()).apply(&every_change())).unwrap_err();
        let trashed = trashed_a(home.path());
        if is_replaced {
            std::fs::remove_file(&trashed).unwrap();
            std::fs::write(&trashed, "of another account").unwrap();
        }
        let inode = trashed.metadata().unwrap().ino();
        let before = tree(home.path());
        let warnings = open(home.path()).list().unwrap().warnings;
        set_lacking(&[]);
        assert_ne!(home.path().join("a.md").metadata().unwrap().ino(), inode);
        if is_replaced {
            assert_eq!(tree(home.path()), before);
            let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
            assert!(warning.path.contains("journal.refused") && warning.message.contains("old versions"), "{warning}");
        } else {
            assert_eq!((tree(home.path()), warnings), (files(&super::BEFORE), Vec::new()));
        }
    }
}

#[test]
fn failing_undo_of_a_running_write_does_not_take_a_replaced_version() {
    let home = home();
    set_lacking(&["exchange"]);
    let root = home.path().to_owned();
    let replace_and_fail = move |at: &str| match at {
        "delete" => std::fs::write(trashed_a(&root), "of another account").and(Err(std::io::Error::other("injected"))),
        _ => Ok(()),
    };
    let error = with_hook(replace_and_fail, || open(home.path()).apply(&every_change())).unwrap().unwrap_err();
    set_lacking(&[]);
    assert!(error.to_string().contains("is not the version that the write replaced"), "{error}");
    assert_eq!(tree(home.path())["a.md"], "new a");
}
