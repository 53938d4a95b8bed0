//! Pruning of the trash.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use quipu_core::ports::{Clock, SystemClock, VaultFiles};
use quipu_vault::{FolderVault, VaultOptions};

use crate::home::{Home, delete, replace};

const DAY_NS: i64 = 24 * 60 * 60 * 1_000_000_000;
const OLD: &str = ".quipu/trash/20200131T093000.123456789Z-000-replaced/notes/a.md";

fn ninety_days_ago() -> i64 {
    SystemClock.now_ns() - 90 * DAY_NS
}

#[test]
fn pruning_deletes_only_old_versions() {
    let home = Home::new(&[
        ("notes/a.md", "second"),
        ("b.md", "B"),
        (OLD, "first"),
        (".quipu/trash/20200131T093000.123456789Z-000-deleted/c.md", "C"),
        (".quipu/trash/not-one-of-ours/old.md", "mine"),
    ]);
    let vault = home.open();
    vault.apply(&[replace("notes/a.md", "second", "third"), delete("b.md", "B")]).unwrap();
    assert_eq!(vault.trashed().unwrap().len(), 4);
    assert_eq!(vault.prune_kept(ninety_days_ago()).unwrap(), 2);

    let left: Vec<String> = vault.trashed().unwrap().iter().map(|kept| kept.path.to_string()).collect();
    assert_eq!(left, ["notes/a.md", "b.md"]);
    assert!(!home.at(".quipu/trash/20200131T093000.123456789Z-000-replaced").exists(), "no empty folder is left");
    assert!(home.at(".quipu/trash/not-one-of-ours/old.md").exists());
    assert_eq!(home.text("notes/a.md").as_deref(), Some("third"));
    assert_eq!(vault.prune_kept(ninety_days_ago()).unwrap(), 0);
}

#[test]
fn pruning_is_refused_if_a_write_is_unrecovered_or_the_vault_is_read_only() {
    let home = Home::new(&[("notes/a.md", "second"), (OLD, "first")]);
    let options = VaultOptions { read_only: true, ..VaultOptions::default() };
    let reader = FolderVault::open(home.folder.path(), options).unwrap();
    assert!(reader.prune_kept(ninety_days_ago()).is_err());

    let vault = home.open();
    let inode = |path: &str| std::fs::metadata(home.at(path)).unwrap().ino();
    let newer = format!(r#"{{"format":999,"home":{{"root":{},"own":{}}}}}"#, inode(""), inode(".quipu"));
    home.save(".quipu/journal.json", &newer);
    std::fs::set_permissions(home.at(".quipu/journal.json"), PermissionsExt::from_mode(0o600)).unwrap();
    let refused = vault.prune_kept(ninety_days_ago()).unwrap_err();
    assert!(refused.to_string().contains("a newer Quipu wrote"), "{refused}");
    assert_eq!(home.text(OLD).as_deref(), Some("first"));
    std::fs::remove_file(home.at(".quipu/journal.json")).unwrap();
    assert_eq!(vault.prune_kept(ninety_days_ago()).unwrap(), 1);
}
