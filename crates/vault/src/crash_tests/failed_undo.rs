//! A write that fails and whose undo fails or is killed too: its caller got an error, so it is never completed.

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use quipu_core::ports::{FileChange, VaultFiles, WriteError, WriteOrigin};

use super::{BEFORE, REQUEST, check_all_or_nothing, every_change, files, home, move_to, nth, open, tree};
use super::{Fault, copies::copy, folder};
use crate::failpoint::fault::{set_lacking, with_hook};

/// Steps at which some or all operations took place.
const LATE: [&str; 4] = ["sync", "compare", "commit", "sync the commit"];

/// The fault in the undo.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Undo {
    /// Every step of this name fails.
    Refused(&'static str),
    /// The process ends at the n-th step of the undo.
    KilledAt(usize),
}

/// Applies the changes with a failure at the last step called `failing`, then with a fault in the undo. Returns whether the
/// second fault occurred, and `None` if the process ended.
fn fail_twice(
    vault: &crate::FolderVault,
    changes: &[FileChange],
    failing: &'static str,
    undo: Undo,
) -> (bool, Option<Result<(), WriteError>>) {
    let total = count(changes, failing);
    let fired = Rc::new(Cell::new(false));
    let told = Rc::clone(&fired);
    let (mut seen, mut failed, mut killing) = (0, false, None);
    let hook = move |step: &'static str| {
        if !failed {
            seen += usize::from(step == failing);
            if step != failing || seen < total {
                return Ok(());
            }
            failed = true;
            if let Undo::KilledAt(n) = undo {
                killing = Some(nth(n, Fault::Crash, &told));
            }
            return Err(io::Error::other("injected"));
        }
        match undo {
            Undo::Refused(refused) if step == refused => {
                told.set(true);
                Err(io::Error::other("refused"))
            }
            Undo::Refused(_) => Ok(()),
            Undo::KilledAt(_) => killing.as_mut().unwrap()(step),
        }
    };
    let outcome = with_hook(hook, || vault.apply_for(changes, &WriteOrigin::retried(REQUEST)));
    (fired.get(), outcome.ok().map(|outcome| outcome.map(drop)))
}

/// How many steps of this name the changes take when nothing fails.
fn count(changes: &[FileChange], name: &'static str) -> usize {
    let home = home();
    let count = Rc::new(Cell::new(0));
    let counted = Rc::clone(&count);
    let hook = move |step: &'static str| {
        counted.set(counted.get() + usize::from(step == name));
        Ok(())
    };
    with_hook(hook, || open(home.path()).apply(changes)).unwrap().unwrap();
    count.get()
}

fn sets() -> Vec<Vec<FileChange>> {
    let mut sets = vec![every_change(), vec![move_to("a.md", "A.md", "old a", "new a")]];
    sets.extend(every_change().into_iter().map(|change| vec![change]));
    sets
}

#[test]
fn write_whose_undo_fails_too_is_undone_by_the_next_writer() {
    for lacking in [&[][..], &["exchange", "no-replace", "link"]] {
        set_lacking(lacking);
        for changes in sets() {
            for failing in LATE {
                for refused in ["undo", "remove the journal"] {
                    if count(&changes, failing) == 0 {
                        continue;
                    }
                    let home = home();
                    let vault = open(home.path());
                    let (fired, outcome) = fail_twice(&vault, &changes, failing, Undo::Refused(refused));
                    assert!(fired, "{failing}, {refused}: {changes:?}");
                    let error = outcome.expect("no crash").unwrap_err().to_string();
                    assert!(error.contains("injected") && error.contains("undoing the write failed too"), "{error}");
                    assert!(error.contains("the next write undoes it first"), "{error}");
                    // The same process and one that opens the vault both undo it first.
                    assert_eq!(vault.applied_request(REQUEST).unwrap(), None, "{failing}: {changes:?}");
                    drop(vault);
                    drop(open(home.path()));
                    check_all_or_nothing(home.path(), &changes, Some(false));
                    assert_eq!(open(home.path()).applied_request(REQUEST).unwrap(), None, "{failing}: {changes:?}");
                    assert!(!home.path().join(".quipu/journal.json").exists(), "{failing}: {changes:?}");
                    open(home.path()).apply(&changes).unwrap();
                    check_all_or_nothing(home.path(), &changes, Some(true));
                }
            }
        }
    }
    set_lacking(&[]);
}

#[test]
fn undo_that_is_killed_after_the_mark_leaves_a_failed_write_undone() {
    for changes in sets() {
        for failing in LATE {
            if count(&changes, failing) == 0 {
                continue;
            }
            // The first step sets the mark. A kill before it is a kill during a write without a response.
            for n in 2.. {
                let home = home();
                let vault = open(home.path());
                let (fired, outcome) = fail_twice(&vault, &changes, failing, Undo::KilledAt(n));
                assert_eq!(outcome.is_none(), fired);
                drop(vault);
                drop(open(home.path()));
                check_all_or_nothing(home.path(), &changes, Some(false));
                if !fired {
                    break;
                }
            }
        }
    }
}

#[test]
fn copy_of_a_vault_with_a_failed_write_undoes_it_too() {
    if !super::copies::is_machine_known() {
        return;
    }
    for changes in sets() {
        let (home, copied) = (home(), folder());
        let vault = open(home.path());
        let (_, outcome) = fail_twice(&vault, &changes, "commit", Undo::Refused("undo"));
        outcome.expect("no crash").unwrap_err();
        copy(home.path(), copied.path());
        assert_eq!(open(copied.path()).list().unwrap().warnings, [], "{changes:?}");
        check_all_or_nothing(copied.path(), &changes, Some(false));
    }
}

#[test]
fn failed_write_that_cannot_be_marked_is_reported_and_never_partial() {
    for failing in ["commit", "sync the commit"] {
        let home = home();
        let vault = open(home.path());
        let mut is_failed = false;
        let hook = move |step: &'static str| {
            is_failed |= step == failing;
            if is_failed && [failing, "mark", "undo"].contains(&step) {
                return Err(io::Error::other("injected"));
            }
            Ok(())
        };
        let error = with_hook(hook, || vault.apply(&every_change())).unwrap().unwrap_err().to_string();
        assert!(error.contains("the next write undoes or completes it"), "{error}");
        drop(vault);
        drop(open(home.path()));
        check_all_or_nothing(home.path(), &every_change(), None);
        assert_ne!(tree(home.path()), files(&BEFORE), "{failing}: all operations took place");
    }
}
