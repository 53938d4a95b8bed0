//! `history.jsonl` as it may come with a vault, and in a folder that accounts share.

use std::os::unix::fs::PermissionsExt;

use quipu_core::model::VaultPath;
use quipu_core::ports::{
    LoggedFile, LoggedVersion, NamePeriod, NoteAction, NoteHistory, TrashReason, VaultFiles, WriteFilter, WriteNumber,
};
use quipu_vault::FolderVault;

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
fn a_file_with_more_entries_than_a_history_can_have_is_set_aside() {
    let file = r#"{"do":"edit","path":"a"}"#;
    let line =
        |number: i64, files: &str| format!("{{\"n\":{number},\"at\":{number},\"by\":\"\",\"files\":[{files}]}}\n");
    let many_files = line(1, &vec![file; 300_001].join(","));
    let many_lines: String = (1..=150_001).map(|number| line(number, file)).collect();
    for text in [many_files, many_lines, "\n".repeat((64 << 20) + 1)] {
        let home = Home::new(&[("a.md", "one"), (HISTORY, &text)]);
        let vault = home.open();
        assert!(vault.writes(&WriteFilter::default()).unwrap().is_empty());
        vault.apply(&[replace("a.md", "one", "two")]).unwrap();
        assert_eq!(numbers(&home).len(), 1, "{}", text.len());
    }
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

fn outside(action: NoteAction, path: &str, before: &str, after: Option<&str>) -> LoggedFile {
    let version = |text: &str| LoggedVersion::of(text.as_bytes(), 0);
    let (before, after) = (Some(version(before)), after.map(version));
    LoggedFile { action, path: VaultPath::parse(path).unwrap(), from: None, before, after, kept: None }
}

/// The text that the last write displaced.
fn last_kept(vault: &FolderVault) -> Option<String> {
    let last = vault.writes(&WriteFilter { limit: 1, ..WriteFilter::default() }).unwrap().remove(0);
    let kept = last.files[0].kept.as_ref()?;
    vault.kept_bytes(kept).unwrap().map(|bytes| String::from_utf8(bytes).unwrap())
}

#[test]
fn a_written_text_that_another_program_replaces_in_place_is_kept() {
    let home = Home::new(&[("d/a.md", "one"), ("b.md", "bee")]);
    let vault = home.open();
    vault.apply(&[replace("d/a.md", "one", "two")]).unwrap();
    home.save("d/a.md", "three");
    vault.record_outside(&[outside(NoteAction::Edit, "d/a.md", "two", Some("three"))]).unwrap();
    assert_eq!(last_kept(&vault).as_deref(), Some("two"));
    // From then on so are the texts of other programs.
    std::fs::remove_file(home.at("d/a.md")).unwrap();
    vault.record_outside(&[outside(NoteAction::Delete, "d/a.md", "three", None)]).unwrap();
    assert_eq!(last_kept(&vault).as_deref(), Some("three"));
    assert_eq!(vault.trashed().unwrap()[0].reason, TrashReason::Deleted);
    assert!(!home.at(".quipu/trash/written").exists(), "nothing is copied of a deleted note");
    // A note that this program has not written is not copied.
    home.save("b.md", "wasp");
    vault.record_outside(&[outside(NoteAction::Edit, "b.md", "bee", Some("wasp"))]).unwrap();
    assert_eq!((last_kept(&vault), home.at(".quipu/trash/written").exists()), (None, false));
}

#[test]
fn copies_of_written_texts_follow_their_notes() {
    let home = Home::new(&[("a.md", "one"), ("b.md", "bee")]);
    std::fs::set_permissions(home.at("a.md"), PermissionsExt::from_mode(0o600)).unwrap();
    let vault = home.open();
    vault.apply(&[replace("a.md", "one", "two"), replace("b.md", "bee", "wasp")]).unwrap();
    let copy = |name: &str| home.text(&format!(".quipu/trash/written/{name}"));
    assert_eq!((copy("a.md").as_deref(), copy("b.md").as_deref()), (Some("two"), Some("wasp")));
    let mode = std::fs::metadata(home.at(".quipu/trash/written/a.md")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "a private note has a private copy");
    // Another program moves a note.
    std::fs::rename(home.at("a.md"), home.at("c.md")).unwrap();
    let moved = LoggedFile {
        from: Some(VaultPath::parse("a.md").unwrap()),
        ..outside(NoteAction::Move, "c.md", "two", Some("two"))
    };
    vault.record_outside(&[moved]).unwrap();
    assert_eq!((copy("a.md"), copy("c.md").as_deref()), (None, Some("two")));
    vault
        .forget(
            &[NamePeriod { path: VaultPath::parse("c.md").unwrap(), since_ns: i64::MIN, until_ns: i64::MAX }],
            WriteNumber(0),
        )
        .unwrap();
    assert_eq!((copy("c.md"), copy("b.md").as_deref()), (None, Some("wasp")));
    vault.prune_kept(i64::MAX).unwrap();
    assert_eq!(copy("b.md"), None, "a copy is pruned like a version");
}
