//! Two processes that write one vault: the test binary starts itself as the second one.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::home::{Home, path};
use quipu_core::ports::{FileChange, VaultFiles, WriteError};
use quipu_vault::{FolderVault, VaultOptions};

const VAULT: &str = "QUIPU_TEST_VAULT";
const ROUNDS: u32 = 40;

/// Counts up in one note and moves a second one, so that the journal is used too.
#[test]
fn count_up_in_child_process() {
    let Some(root) = std::env::var_os(VAULT) else { return };
    let vault = FolderVault::open(root.as_ref(), VaultOptions::default()).unwrap();
    let mut done = 0;
    while done < ROUNDS {
        let Some(counter) = vault.read(&path("counter.md")).unwrap() else { continue };
        let count: u32 = String::from_utf8(counter.bytes).unwrap().parse().unwrap();
        let (here, there) = if count.is_multiple_of(2) { ("even.md", "odd.md") } else { ("odd.md", "even.md") };
        let Some(marker) = vault.read(&path(here)).unwrap() else { continue };
        let changes = [
            FileChange::Replace {
                path: path("counter.md"),
                expected: counter.hash,
                bytes: (count + 1).to_string().into_bytes(),
            },
            FileChange::Move { from: path(here), to: path(there), expected: marker.hash, bytes: marker.bytes },
        ];
        match vault.apply(&changes) {
            Ok(_) => done += 1,
            Err(WriteError::Changed { .. } | WriteError::Missing { .. } | WriteError::Exists { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn no_update_of_two_processes_is_lost() {
    count_up_together(3, |_| {});
}

#[test]
fn no_update_is_lost_or_half_applied_when_the_lock_file_is_removed() {
    count_up_together(4, |home| drop(std::fs::remove_file(home.at(".quipu/write.lock"))));
}

/// Lets several processes count up in one vault, and repeats an action until they are done.
fn count_up_together(processes: u32, meanwhile: impl Fn(&Home)) {
    let home = Home::new(&[("counter.md", "0"), ("even.md", "marker")]);
    let spawn = |_| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "processes::count_up_in_child_process", "--nocapture"])
            .env(VAULT, home.folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut children: Vec<Child> = (0..processes).map(spawn).collect();
    while !children.is_empty() {
        meanwhile(&home);
        std::thread::sleep(Duration::from_millis(1));
        children.retain_mut(|child| match child.try_wait().unwrap() {
            Some(status) => {
                assert!(status.success());
                false
            }
            None => true,
        });
    }
    assert_eq!(home.text("counter.md"), Some((processes * ROUNDS).to_string()));
    assert_eq!(home.text("even.md").as_deref(), Some("marker"));
    assert_eq!(home.tree().len(), 2, "nothing of ours lies about");
    let kept = home.open().trashed().unwrap();
    let replaced = kept.iter().filter(|kept| kept.path.as_str() == "counter.md").count();
    assert_eq!(replaced as u32, processes * ROUNDS, "every version but the last is kept");
}

#[test]
fn threads_of_one_process_exclude_each_other() {
    let home = Home::new(&[("counter.md", "0")]);
    let vault = home.open();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut done = 0;
                while done < 10 {
                    let counter = vault.read(&path("counter.md")).unwrap().unwrap();
                    let count: u32 = String::from_utf8(counter.bytes).unwrap().parse().unwrap();
                    let bytes = (count + 1).to_string().into_bytes();
                    let change = FileChange::Replace { path: path("counter.md"), expected: counter.hash, bytes };
                    match vault.apply(&[change]) {
                        Ok(_) => done += 1,
                        Err(WriteError::Changed { .. }) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
            });
        }
    });
    assert_eq!(home.text("counter.md").as_deref(), Some("40"));
}

const DEEP: &str = "QUIPU_TEST_DEEP";

#[test]
fn list_deep_vault_in_child_process() {
    let Some(root) = std::env::var_os(DEEP) else { return };
    let vault = FolderVault::open(root.as_ref(), VaultOptions::default()).unwrap();
    let listing = vault.list().unwrap();
    assert_eq!(listing.warnings, []);
    assert_eq!(listing.files.len(), 301);
}

#[test]
fn vault_deeper_than_the_open_file_limit_is_listed() {
    let home = Home::new(&[]);
    for depth in 0..=300 {
        home.save(&format!("{}n.md", "d/".repeat(depth)), "");
    }
    let command = "ulimit -n 128 && exec \"$0\" --exact processes::list_deep_vault_in_child_process --nocapture";
    let program = std::env::current_exe().unwrap();
    let status = Command::new("sh").args(["-c", command]).arg(program).env(DEEP, home.folder.path()).status();
    assert!(status.unwrap().success());
}
