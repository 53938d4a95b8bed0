//! A vault that is copied or restored from a backup during a write: its inodes are not those in the journal.

use std::path::Path;

use quipu_core::ports::VaultFiles;

use super::{Fault, check_all_or_nothing, every_change, folder, home, is_leftover, open, run, tree};
use crate::failpoint::fault::{set_lacking, with_hook};

/// Copies files one by one, as `cp -r` does: two names of one file become two files.
pub(super) fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).unwrap();
        }
    }
}

pub(super) fn is_machine_known() -> bool {
    let is_known = std::fs::read_to_string("/etc/machine-id").is_ok_and(|id| id.trim().len() == 32);
    if !is_known {
        quipu_testkit::skip("this machine has no /etc/machine-id");
    }
    is_known
}

#[test]
fn copy_made_at_any_step_of_a_write_is_recovered_by_content() {
    if !is_machine_known() {
        return;
    }
    for lacking in [&[][..], &["no-replace"], &["exchange", "no-replace", "link"]] {
        let mut sets = vec![every_change()];
        sets.extend(every_change().into_iter().map(|change| vec![change]));
        for changes in sets {
            for step in 1.. {
                let (original, copied) = (home(), folder());
                set_lacking(lacking);
                let outcome = run(&open(original.path()), &changes, Fault::Crash, step);
                copy(original.path(), copied.path());
                let vault = open(copied.path());
                assert_eq!(vault.list().unwrap().warnings, [], "step {step} of {changes:?}");
                check_all_or_nothing(copied.path(), &changes, None);
                if outcome.is_ok() {
                    break;
                }
            }
        }
    }
    set_lacking(&[]);
}

#[test]
fn restored_old_journal_does_not_undo_later_writes() {
    for edited in ["none", "a.md"] {
        let home = home();
        let vault = open(home.path());
        let own = home.path().join(".quipu");
        let (folder, backup) = (own.clone(), folder());
        let saved = backup.path().to_owned();
        let save = move |step: &str| {
            if step == "replace" {
                std::fs::copy(folder.join("journal.json"), saved.join("journal.json"))?;
            }
            Ok(())
        };
        with_hook(save, || vault.apply(&every_change())).unwrap().unwrap();
        if edited != "none" {
            std::fs::write(home.path().join(edited), "edited").unwrap();
            // The folder is restored too, so it has another inode.
            std::fs::create_dir(home.path().join("back")).unwrap();
            std::fs::rename(own.join("trash"), home.path().join("back/trash")).unwrap();
            std::fs::remove_dir_all(&own).unwrap();
            std::fs::rename(home.path().join("back"), &own).unwrap();
        }
        std::fs::copy(backup.path().join("journal.json"), own.join("journal.json")).unwrap();
        let before = tree(home.path());
        drop(open(home.path()));
        assert_eq!(tree(home.path()), before, "{edited}");
    }
}

#[test]
fn copy_without_the_old_versions_stays_unchanged() {
    if !is_machine_known() {
        return;
    }
    let original = home();
    let vault = open(original.path());
    let crash = |step: &str| if step == "commit" { std::panic::resume_unwind(Box::new("crash")) } else { Ok(()) };
    with_hook(crash, || vault.apply(&every_change())).unwrap_err();
    // All operations took place but are not committed, and the copy has no trash.
    let copied = folder();
    copy(original.path(), copied.path());
    std::fs::remove_dir_all(copied.path().join(".quipu/trash")).unwrap();
    while let Some(temporary) = is_leftover(copied.path()) {
        std::fs::remove_file(copied.path().join(temporary)).unwrap();
    }
    let before = tree(copied.path());
    assert_eq!(before["m/b.md"], "new b");
    let vault = open(copied.path());
    assert_eq!(tree(copied.path()), before, "an undo would lose a moved note");
    let warnings = vault.list().unwrap().warnings;
    assert!(matches!(warnings.as_slice(), [warning] if warning.path.contains("journal.refused")), "{warnings:?}");
}

#[test]
fn refused_journal_changes_nothing_not_even_temporary_files() {
    if !is_machine_known() {
        return;
    }
    let original = home();
    let vault = open(original.path());
    // The first note has both names, as on file systems where a rename takes two steps.
    set_lacking(&["no-replace"]);
    let crash = |step: &str| match step {
        "remove the first name" => std::panic::resume_unwind(Box::new("crash")),
        _ => Ok(()),
    };
    with_hook(crash, || vault.apply(&every_change())).unwrap_err();
    set_lacking(&[]);
    let copied = folder();
    copy(original.path(), copied.path());
    // The state of the last change is unknown now.
    std::fs::write(copied.path().join("c.md"), "edited in the copy").unwrap();
    let before = tree(copied.path());
    assert!(is_leftover(copied.path()).is_some(), "{before:?}");
    // Only listed: a write would remove temporary files that no journal names.
    let warnings = open(copied.path()).list().unwrap().warnings;
    assert_eq!(tree(copied.path()), before);
    assert!(matches!(warnings.as_slice(), [warning] if warning.path.contains("journal.refused")), "{warnings:?}");
}

#[test]
fn committed_write_in_a_copy_stays_applied_after_later_edits() {
    if !is_machine_known() {
        return;
    }
    let original = home();
    let vault = open(original.path());
    // Committed, but the cleanup failed.
    let fail_cleanup =
        |step: &str| if step == "remove displaced" { Err(std::io::Error::other("injected")) } else { Ok(()) };
    with_hook(fail_cleanup, || vault.apply(&every_change())).unwrap().unwrap();
    let copied = folder();
    copy(original.path(), copied.path());
    assert!(copied.path().join(".quipu/journal.json").exists());
    std::fs::write(copied.path().join("a.md"), "edited in the copy").unwrap();
    let vault = open(copied.path());
    assert_eq!(vault.list().unwrap().warnings, []);
    assert_eq!(is_leftover(copied.path()), None);
    let found = tree(copied.path());
    assert_eq!((found["a.md"].as_str(), found["m/b.md"].as_str()), ("edited in the copy", "new b"));
}
