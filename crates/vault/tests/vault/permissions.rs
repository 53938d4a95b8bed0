//! Owner, group, mode and ACL of written files, also of another account's notes.

use std::ffi::CStr;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use quipu_core::ports::VaultFiles;
use quipu_vault::{FolderVault, VaultOptions};
use rustix::fs::XattrFlags;

use crate::home::{Home, delete, move_to, replace};

const ACL: &CStr = c"system.posix_acl_access";
const NO_ID: u32 = u32::MAX;

/// Another account's files, the account that writes, and groups.
const OTHER_USER: u32 = 64_001;
const WRITER: u32 = 64_002;
const SHARED: u32 = 64_003;
const FOLDERS_GROUP: u32 = 64_004;
const FOREIGN_GROUP: u32 = 64_005;

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> String {
    format!("{:o}", std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777)
}

/// Owner, group and mode.
fn access(path: &Path) -> (u32, u32, String) {
    let metadata = std::fs::symlink_metadata(path).unwrap();
    (metadata.uid(), metadata.gid(), mode(path))
}

/// An ACL as the kernel takes it: tag, bits and id of every entry.
fn acl(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let entry = |(tag, bits, id): &(u16, u16, u32)| {
        [&tag.to_le_bytes()[..], &bits.to_le_bytes()[..], &id.to_le_bytes()[..]].concat()
    };
    2u32.to_le_bytes().into_iter().chain(entries.iter().flat_map(entry)).collect()
}

fn attribute(path: &Path, name: &CStr) -> Option<Vec<u8>> {
    let mut value = vec![0; 4096];
    let length = rustix::fs::getxattr(path, name, &mut value[..]).ok()?;
    value.truncate(length);
    Some(value)
}

fn set_attribute(path: &Path, name: &CStr, value: &[u8]) -> bool {
    let set = rustix::fs::setxattr(path, name, value, XattrFlags::empty());
    if let Err(error) = set {
        quipu_testkit::skip(&format!("this file system refuses {name:?}: {error}"));
    }
    set.is_ok()
}

fn below(folder: PathBuf) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let inner = entries.flat_map(|path| if path.is_dir() { below(path) } else { vec![path] });
    std::iter::once(folder).chain(inner).collect()
}

#[test]
fn set_uid_bits_are_dropped_in_notes_and_in_the_trash() {
    let home = Home::new(&[("a.md", "old"), ("b.md", "old"), ("c.md", "old")]);
    let vault = home.open();
    for name in ["a.md", "b.md", "c.md"] {
        set_mode(&home.at(name), 0o6755);
    }
    let changes = [replace("a.md", "old", "new"), move_to("b.md", "d/b.md", "old", "new"), delete("c.md", "old")];
    vault.apply(&changes).unwrap();
    assert_eq!((mode(&home.at("a.md")), mode(&home.at("d/b.md"))), ("755".to_owned(), "755".to_owned()));
    let (folders, kept): (Vec<_>, Vec<_>) = below(home.at(".quipu/trash")).into_iter().partition(|path| path.is_dir());
    assert_eq!(kept.len(), 5, "three replaced versions and the copies of two new ones");
    assert!(kept.iter().all(|path| mode(path) == "755"), "{kept:?}");
    assert!(folders.iter().all(|path| mode(path) == "700"), "{folders:?}");
}

#[test]
fn restored_private_note_is_private() {
    let home = Home::new(&[("a.md", "old")]);
    let vault = home.open();
    set_mode(&home.at("a.md"), 0o600);
    vault.apply(&[delete("a.md", "old")]).unwrap();
    vault.restore(&vault.trashed().unwrap()[0]).unwrap();
    assert_eq!((home.text("a.md").as_deref(), mode(&home.at("a.md"))), (Some("old"), "600".to_owned()));
}

#[test]
fn updates_keep_the_acl_and_other_attributes() {
    let home = Home::new(&[("a.md", "old"), ("b.md", "old")]);
    // Rights for a user by name and none for the group: the mode alone would give the group what the mask allows.
    let entries = acl(&[(1, 6, NO_ID), (2, 6, OTHER_USER), (4, 0, NO_ID), (16, 6, NO_ID), (32, 0, NO_ID)]);
    for name in ["a.md", "b.md"] {
        if !set_attribute(&home.at(name), ACL, &entries) || !set_attribute(&home.at(name), c"user.color", b"blue") {
            return;
        }
    }
    let vault = home.open();
    vault.apply(&[replace("a.md", "old", "new"), move_to("b.md", "d/b.md", "old", "new")]).unwrap();
    for name in ["a.md", "d/b.md"] {
        assert_eq!(home.text(name).as_deref(), Some("new"));
        assert_eq!(attribute(&home.at(name), ACL).as_ref(), Some(&entries), "{name}");
        assert_eq!(attribute(&home.at(name), c"user.color").as_deref(), Some(&b"blue"[..]), "{name}");
    }
}

#[test]
fn default_acl_of_the_folder_does_not_apply_to_an_updated_note() {
    let home = Home::new(&[("a.md", "old")]);
    set_mode(&home.at("a.md"), 0o640);
    let entries = acl(&[(1, 7, NO_ID), (2, 7, OTHER_USER), (4, 7, NO_ID), (16, 7, NO_ID), (32, 7, NO_ID)]);
    if !set_attribute(home.folder.path(), c"system.posix_acl_default", &entries) {
        return;
    }
    home.open().apply(&[replace("a.md", "old", "new")]).unwrap();
    assert_eq!((mode(&home.at("a.md")), attribute(&home.at("a.md"), ACL)), ("640".to_owned(), None));
}

#[test]
fn file_capabilities_are_not_copied() {
    let home = Home::new(&[("a.md", "old")]);
    // CAP_NET_RAW, permitted and effective.
    let mut capability = 0x0200_0001u32.to_le_bytes().to_vec();
    capability.extend([0x00, 0x20, 0, 0].into_iter().chain([0; 12]));
    if set_attribute(&home.at("a.md"), c"security.capability", &capability) {
        home.open().apply(&[replace("a.md", "old", "new")]).unwrap();
        assert_eq!(attribute(&home.at("a.md"), c"security.capability"), None);
    }
}

const VAULT: &str = "QUIPU_TEST_SHARED_VAULT";

/// Runs as the second account.
#[test]
fn update_and_delete_in_child_process() {
    let Some(root) = std::env::var_os(VAULT) else { return };
    let vault = FolderVault::open(root.as_ref(), VaultOptions::default()).unwrap();
    vault.apply(&[replace("a.md", "old", "new"), delete("b.md", "old")]).unwrap();
}

/// A vault that everyone may write, with two notes of another account's. The writer, who is in the group `SHARED`, updates
/// one and deletes the other. New files there are not in that group. `None` if the test cannot switch accounts.
fn updated_by_another_account(prepare: impl Fn(&Path)) -> Option<Home> {
    if !rustix::process::geteuid().is_root() {
        quipu_testkit::skip("only root can run a program as another user");
        return None;
    }
    let home = Home::new(&[("a.md", "old"), ("b.md", "old")]);
    chown(home.folder.path(), None, Some(FOLDERS_GROUP)).unwrap();
    set_mode(home.folder.path(), 0o2777);
    for name in ["a.md", "b.md"] {
        chown(home.at(name), Some(OTHER_USER), Some(SHARED)).unwrap();
        prepare(&home.at(name));
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "permissions::update_and_delete_in_child_process", "--nocapture"])
        .env(VAULT, home.folder.path())
        .uid(WRITER)
        .gid(SHARED)
        .current_dir(home.folder.path())
        .stdout(Stdio::null())
        .spawn();
    match child {
        Ok(mut child) => {
            assert!(child.wait().unwrap().success());
            assert_eq!(home.text("a.md").as_deref(), Some("new"));
            Some(home)
        }
        Err(error) => {
            quipu_testkit::skip(&format!("another user cannot run this test: {error}"));
            None
        }
    }
}

#[test]
fn set_uid_note_of_another_account_does_not_become_set_uid_to_the_writer() {
    let Some(home) = updated_by_another_account(|note| set_mode(note, 0o6777)) else { return };
    assert_eq!(access(&home.at("a.md")), (WRITER, SHARED, "777".to_owned()));
    for path in below(home.at(".quipu/trash")) {
        // A folder may have the set-gid bit of the one around it.
        let expected = if path.is_dir() { "2700" } else { "777" };
        assert_eq!(mode(&path), expected, "{path:?}");
    }
}

#[test]
fn group_is_kept_if_the_owner_cannot_be() {
    let Some(home) = updated_by_another_account(|note| set_mode(note, 0o660)) else { return };
    assert_eq!(access(&home.at("a.md")), (WRITER, SHARED, "660".to_owned()));
}

#[test]
fn new_group_gets_the_rights_of_others_if_the_group_cannot_be_kept() {
    let foreign = |note: &Path| {
        chown(note, None, Some(FOREIGN_GROUP)).unwrap();
        set_mode(note, 0o664);
    };
    let Some(home) = updated_by_another_account(foreign) else { return };
    assert_eq!(access(&home.at("a.md")), (WRITER, FOLDERS_GROUP, "644".to_owned()));
}
