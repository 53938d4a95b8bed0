//! Full, read-only, other and unmounted disks, simulated by small memory disks. The tests are skipped with a message if
//! mounting is not allowed.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::home::{Home, create, delete, listed, move_to, path, replace, tree};
use quipu_core::ports::{VaultError, VaultFiles, WriteError};
use quipu_vault::{FolderVault, VaultOptions};

struct Disk(PathBuf);

impl Disk {
    fn mount(at: &Path) -> Option<Self> {
        std::fs::create_dir_all(at).unwrap();
        if !run("mount", &["-t", "tmpfs", "-o", "size=1m", "tmpfs"], at) {
            quipu_testkit::skip("mounting is not allowed here");
            return None;
        }
        Some(Self(at.to_owned()))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        run("umount", &["-l"], &self.0);
    }
}

fn run(program: &str, arguments: &[&str], at: &Path) -> bool {
    Command::new(program).args(arguments).arg(at).output().is_ok_and(|output| output.status.success())
}

fn open(at: &Path) -> FolderVault {
    FolderVault::open(at, VaultOptions::default()).unwrap()
}

fn kind_of(error: WriteError) -> ErrorKind {
    match error {
        WriteError::Write { path, source } => {
            assert!(!path.starts_with('/') && !source.to_string().contains("/tmp"), "{path}: {source}");
            source.kind()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn full_disk_changes_nothing() {
    let home = Home::new(&[]);
    let Some(disk) = Disk::mount(&home.at("disk")) else { return };
    let vault = open(&disk.0);
    vault.apply(&[create("a.md", "old a"), create("b.md", "old b")]).unwrap();
    let before = tree(&disk.0);
    let big = "x".repeat(700_000);
    let changes =
        [create("n/one.md", &big), replace("a.md", "old a", "new a"), move_to("b.md", "c/c.md", "old b", &big)];
    assert_eq!(kind_of(vault.apply(&changes).unwrap_err()), ErrorKind::StorageFull);
    assert_eq!(tree(&disk.0), before);
    assert!(vault.trashed().unwrap().is_empty());
    vault.apply(&[replace("a.md", "old a", "new a")]).unwrap();
}

#[test]
fn read_only_disk_can_be_read_and_writes_report_the_cause() {
    let home = Home::new(&[]);
    let Some(disk) = Disk::mount(&home.at("disk")) else { return };
    std::fs::write(disk.0.join("a.md"), "a").unwrap();
    assert!(run("mount", &["-o", "remount,ro"], &disk.0));
    let vault = open(&disk.0);
    assert_eq!(listed(&vault), ["a.md"]);
    assert_eq!(vault.read(&path("a.md")).unwrap().unwrap().bytes, b"a");
    assert_eq!(kind_of(vault.apply(&[replace("a.md", "a", "b")]).unwrap_err()), ErrorKind::ReadOnlyFilesystem);
}

#[test]
fn writes_in_a_folder_on_another_disk_keep_old_versions() {
    let home = Home::new(&[]);
    let Some(disk) = Disk::mount(&home.at("other")) else { return };
    std::fs::write(disk.0.join("a.md"), "1").unwrap();
    std::fs::write(disk.0.join("b.md"), "b").unwrap();
    let vault = home.open();
    vault.apply(&[replace("other/a.md", "1", "2"), move_to("other/b.md", "b.md", "b", "b2")]).unwrap();
    vault.apply(&[delete("other/a.md", "2")]).unwrap();
    assert_eq!(listed(&vault), ["b.md"]);
    let kept = vault.trashed().unwrap();
    assert_eq!(kept.len(), 3);
    vault.restore(&kept[0]).unwrap();
    assert_eq!(home.text("other/a.md").as_deref(), Some("2"));
    assert_eq!(std::fs::read_dir(&disk.0).unwrap().count(), 1);
}

#[test]
fn unmounted_vault_is_an_error_and_not_empty() {
    let home = Home::new(&[]);
    let Some(disk) = Disk::mount(&home.at("disk")) else { return };
    std::fs::write(disk.0.join("a.md"), "a").unwrap();
    let vault = open(&disk.0);
    drop(disk);
    let VaultError::Read { source, .. } = vault.list().unwrap_err() else { panic!("not from a file") };
    assert_eq!(source.kind(), ErrorKind::NotFound);
    assert!(vault.apply(&[create("b.md", "b")]).is_err());
    assert_eq!(std::fs::read_dir(home.at("disk")).unwrap().count(), 0);
}
