//! A write that fails, or is killed, at every one of its steps, and an undoing that does.

use std::cell::Cell;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::rc::Rc;

use quipu_core::ports::{FileChange, VaultFiles, WriteError};

use super::{
    BEFORE, Fault, LAST_FIRED, REQUEST, check_all_or_nothing, files, four_changes, home, move_to, nth, open, run, tree,
};
use crate::step::fault::{set_lacking, with_steps};
use crate::{FolderVault, VaultOptions};

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
