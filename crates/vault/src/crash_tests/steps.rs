//! A write, and an undo, that fail or are killed at each of their steps.

use std::cell::Cell;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::rc::Rc;

use quipu_core::ports::{FileChange, VaultFiles, WriteError};

use super::{
    BEFORE, Fault, LAST_FIRED, REQUEST, check_all_or_nothing, every_change, files, home, move_to, nth, open, run, tree,
};
use crate::failpoint::fault::{set_lacking, with_hook};
use crate::{FolderVault, VaultOptions};

#[test]
fn write_of_several_files_that_fails_at_any_step_is_undone() {
    for_every_step(every_change, Fault::Error);
}

#[test]
fn write_of_several_files_killed_at_any_step_is_recovered_at_the_next_opening() {
    for_every_step(every_change, Fault::Crash);
}

#[test]
fn write_of_one_file_that_fails_or_is_killed_at_any_step_is_atomic() {
    for change in every_change() {
        for fault in [Fault::Error, Fault::Crash] {
            for_every_step(|| vec![change.clone()], fault);
        }
    }
    let case_change = || vec![move_to("a.md", "A.md", "old a", "new a")];
    for_every_step(case_change, Fault::Error);
    for_every_step(case_change, Fault::Crash);
}

#[test]
fn writes_are_atomic_on_file_systems_with_fewer_features() {
    let lacking: [&'static [&'static str]; 4] =
        [&["exchange"], &["no-replace"], &["link"], &["exchange", "no-replace", "link"]];
    for features in lacking {
        set_lacking(features);
        for fault in [Fault::Error, Fault::Crash] {
            for_every_step(every_change, fault);
        }
        for change in every_change() {
            for_every_step(|| vec![change.clone()], Fault::Crash);
        }
    }
    set_lacking(&[]);
}

#[test]
fn killed_undo_is_repeated() {
    for first in 1.. {
        let mut is_first_reached = false;
        for second in 1.. {
            let home = home();
            let vault = open(home.path());
            is_first_reached = run(&vault, &every_change(), Fault::Crash, first).is_err_and(|crash| crash.is_none());
            drop(vault);
            let fired = Rc::new(Cell::new(false));
            let reopened = with_hook(nth(second, Fault::Crash, &fired), || open(home.path()));
            drop(reopened);
            drop(open(home.path()));
            check_all_or_nothing(home.path(), &every_change(), None);
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
fn journal_of_a_newer_format_is_kept_and_reported() {
    let home = home();
    std::fs::create_dir(home.path().join(".quipu")).unwrap();
    let inode = |path: &Path| std::fs::metadata(path).unwrap().ino();
    let (root, own) = (inode(home.path()), inode(&home.path().join(".quipu")));
    let journal = format!(r#"{{"format":5,"home":{{"root":{root},"own":{own}}},"effects":[]}}"#);
    let file = home.path().join(".quipu/journal.json");
    std::fs::write(&file, journal).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    let error = FolderVault::open(home.path(), VaultOptions::default()).unwrap_err();
    assert!(error.to_string().contains("newer Quipu"), "{error}");
    let options = VaultOptions { read_only: true, ..VaultOptions::default() };
    assert_eq!(FolderVault::open(home.path(), options).unwrap().list().unwrap().files.len(), 4);
}

/// Runs the changes with a fault at the first step, then at the second, until there is no such step.
fn for_every_step(changes: impl Fn() -> Vec<FileChange>, fault: Fault) {
    for n in 1.. {
        assert!(n < 500, "never succeeds");
        let home = home();
        let vault = open(home.path());
        let result = run(&vault, &changes(), fault, n);
        match &result {
            // Fewer than n steps, or the cleanup failed, which the next writer repeats.
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
        // A retry gets the right answer.
        let known = open(home.path()).applied_request(REQUEST).unwrap();
        assert_eq!(known.is_some(), tree(home.path()) != files(&BEFORE), "{:?}", changes());
        // The vault is usable: the same changes succeed now, unless they are applied already.
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
