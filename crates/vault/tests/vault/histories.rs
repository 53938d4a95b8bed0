//! `history.jsonl` as it may come with a vault, and in a folder that accounts share.

use std::os::unix::fs::PermissionsExt;

use quipu_core::ports::{NoteHistory, VaultFiles, WriteFilter};

use crate::home::{Home, create, replace};

const HISTORY: &str = ".quipu/history.jsonl";

fn numbers(home: &Home) -> Vec<i64> {
    home.open().writes(&WriteFilter::default()).unwrap().iter().map(|write| write.number.0).collect()
}

#[test]
fn a_large_file_without_entries_is_set_aside_and_prevents_no_write() {
    let home = Home::new(&[("a.md", "one"), (HISTORY, &"\n".repeat((16 << 20) + 1))]);
    let vault = home.open();
    vault.apply(&[replace("a.md", "one", "two")]).unwrap();
    vault.apply(&[create("b.md", "bee")]).unwrap();
    assert_eq!((home.text("a.md").as_deref(), numbers(&home)), (Some("two"), vec![2, 1]));
    let warnings = vault.list().unwrap().warnings;
    assert!(warnings.iter().any(|warning| warning.path.starts_with(".quipu/history.refused-")), "{warnings:?}");
}

#[test]
fn an_entry_at_the_end_of_the_numbers_is_ignored() {
    let home = Home::new(&[("a.md", "one")]);
    home.open().apply(&[replace("a.md", "one", "two")]).unwrap();
    let line = home.text(HISTORY).unwrap();
    let last = line.replacen("\"n\":1", &format!("\"n\":{}", i64::MAX), 1);
    assert_ne!(line, last);
    home.save(HISTORY, &format!("{line}{last}"));
    home.open().apply(&[replace("a.md", "two", "three")]).unwrap();
    assert_eq!(numbers(&home), [2, 1]);
}

#[test]
fn the_history_of_a_shared_folder_is_for_the_group() {
    for (folder, file) in [(0o2770, 0o660), (0o700, 0o600)] {
        let home = Home::new(&[("a.md", "one"), (".quipu/kept.txt", "")]);
        std::fs::set_permissions(home.at(".quipu"), PermissionsExt::from_mode(folder)).unwrap();
        let vault = home.open();
        vault.apply(&[replace("a.md", "one", "two")]).unwrap();
        vault.prune_kept(i64::MAX).unwrap();
        let mode = std::fs::metadata(home.at(HISTORY)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, file, "{mode:o}");
    }
}
