//! Writes and the trash.

use std::os::unix::fs::{PermissionsExt, symlink};

use crate::home::{Home, create, delete, listed, move_to, path, replace};
use quipu_core::ports::{FileChange, TrashReason, TrashedFile, VaultFiles, WriteError};
use quipu_vault::{FolderVault, VaultOptions};

fn kept(vault: &FolderVault) -> Vec<(String, TrashReason)> {
    vault.trashed().unwrap().into_iter().map(|kept| (kept.path.to_string(), kept.reason)).collect()
}

#[test]
fn every_kind_of_change_is_applied_and_keeps_the_old_version() {
    let home = Home::new(&[("a.md", "old a\r\n"), ("b.md", "old b"), ("c.md", "old c")]);
    let vault = home.open();
    let stats = vault
        .apply(&[
            create("new/deep/n.md", "\u{feff}new\0\r\n"),
            replace("a.md", "old a\r\n", "new a"),
            move_to("b.md", "moved/B.md", "old b", "new b"),
            delete("c.md", "old c"),
        ])
        .unwrap();
    assert_eq!(
        home.tree(),
        [
            ("a.md", "new a"),
            ("moved/", ""),
            ("moved/B.md", "new b"),
            ("new/", ""),
            ("new/deep/", ""),
            ("new/deep/n.md", "\u{feff}new\0\r\n")
        ]
        .map(|(path, text)| (path.to_owned(), text.to_owned()))
    );
    let listing = vault.list().unwrap();
    let stat_of = |wanted: &str| listing.files.iter().find(|file| file.path.as_str() == wanted).map(|file| file.stat);
    assert_eq!(stats, [stat_of("new/deep/n.md"), stat_of("a.md"), stat_of("moved/B.md"), None]);
    let mut all = kept(&vault);
    all.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(
        all,
        [("a.md", TrashReason::Replaced), ("b.md", TrashReason::Moved), ("c.md", TrashReason::Deleted)]
            .map(|(path, reason)| (path.to_owned(), reason))
    );
    assert_eq!(home.text(".quipu/.gitignore").as_deref(), Some("*\n"));
    assert!(!home.at(".quipu/journal.json").exists());
}

#[test]
fn trash_lists_newest_first_and_restores_exact_bytes() {
    let home = Home::new(&[("notes/a.md", "1")]);
    let vault = home.open();
    vault.apply(&[replace("notes/a.md", "1", "2")]).unwrap();
    vault.apply(&[delete("notes/a.md", "2")]).unwrap();
    let all = vault.trashed().unwrap();
    assert_eq!(all.iter().map(|kept| kept.reason).collect::<Vec<_>>(), [TrashReason::Deleted, TrashReason::Replaced]);
    assert!(all[0].at_ns > all[1].at_ns && all[0].version > all[1].version);
    assert_eq!(all[0].size, 1);

    vault.restore(&all[1]).unwrap();
    assert_eq!(home.text("notes/a.md").as_deref(), Some("1"));
    vault.restore(&all[0]).unwrap();
    assert_eq!(home.text("notes/a.md").as_deref(), Some("2"));
    assert_eq!(vault.trashed().unwrap().len(), 3, "the 1 that was there is kept in its turn");
    let stat = vault.restore(&all[0]).unwrap();
    assert_eq!(stat.size, 1);
    assert_eq!(vault.trashed().unwrap().len(), 3, "restoring what is there keeps nothing");
}

#[test]
fn version_from_a_case_only_rename_is_restored_under_its_old_name() {
    let home = Home::new(&[("notes/case.md", "old")]);
    let vault = home.open();
    vault.apply(&[move_to("notes/case.md", "notes/Case.md", "old", "new")]).unwrap();
    let before = vault.trashed().unwrap().remove(0);
    assert_eq!(before.path.as_str(), "notes/case.md");
    vault.restore(&before).unwrap();
    let files = || home.tree().into_iter().filter(|(path, _)| path.ends_with(".md")).collect::<Vec<_>>();
    assert_eq!(files(), [("notes/case.md".to_owned(), "old".to_owned())]);
    let replaced = vault.trashed().unwrap().remove(0);
    assert_eq!((replaced.path.as_str(), replaced.reason), ("notes/Case.md", TrashReason::Moved));
    vault.restore(&replaced).unwrap();
    assert_eq!(files(), [("notes/Case.md".to_owned(), "new".to_owned())]);
}

#[test]
fn restore_refuses_versions_that_are_not_in_the_trash() {
    let home = Home::new(&[("a.md", "a"), ("secret.md", "s")]);
    let vault = home.open();
    vault.apply(&[replace("a.md", "a", "b")]).unwrap();
    let real = vault.trashed().unwrap().remove(0);
    for version in ["", "../../secret.md", "x/../../../secret.md", "write.lock", "no-such-folder/a.md"] {
        let forged = TrashedFile { version: version.to_owned(), ..real.clone() };
        assert!(matches!(vault.restore(&forged), Err(WriteError::Missing { .. })), "{version}");
    }
    home.save(".quipu/trash/holiday pictures/a.md", "not ours");
    assert_eq!(vault.trashed().unwrap(), [real]);
}

#[test]
fn change_of_another_version_is_refused_without_effect() {
    let home = Home::new(&[("a.md", "1"), ("b.md", "1")]);
    let vault = home.open();
    let before = home.tree();
    let is_changed = |result: Result<_, WriteError>, at: &str| match result {
        Err(WriteError::Changed { path }) => assert_eq!(path.as_str(), at),
        other => panic!("{other:?}"),
    };
    is_changed(vault.apply(&[replace("a.md", "0", "2")]), "a.md");
    is_changed(vault.apply(&[delete("a.md", "0")]), "a.md");
    is_changed(vault.apply(&[move_to("a.md", "c.md", "0", "2")]), "a.md");
    is_changed(vault.apply(&[create("x/y.md", "n"), replace("a.md", "1", "2"), delete("b.md", "0")]), "b.md");
    for change in [replace("no.md", "0", "2"), delete("no/no.md", "0"), move_to("no.md", "x.md", "0", "2")] {
        assert!(matches!(vault.apply(&[change]), Err(WriteError::Missing { .. })));
    }
    assert_eq!(home.tree(), before);
    assert_eq!(kept(&vault), []);
}

#[test]
fn new_path_must_be_free_when_case_is_ignored() {
    let home = Home::new(&[("Notes/Graph.md", "1"), ("a.md", "2"), ("folder.md/x.md", "3")]);
    let vault = home.open();
    for (change, there) in [
        (create("Notes/Graph.md", ""), "Notes/Graph.md"),
        (create("notes/graph.md", ""), "Notes/Graph.md"),
        (move_to("a.md", "notes/GRAPH.md", "2", ""), "Notes/Graph.md"),
        (create("Folder.md", ""), "folder.md"),
        (create("folder.md", ""), "folder.md"),
    ] {
        match vault.apply(&[change]) {
            Err(WriteError::Exists { existing }) => assert_eq!(existing.as_str(), there),
            other => panic!("{other:?}"),
        }
    }
    vault.apply(&[move_to("Notes/Graph.md", "Notes/graph.md", "1", "1")]).unwrap();
    assert_eq!(listed(&vault), ["Notes/graph.md", "a.md", "folder.md/x.md"]);
    home.save("Notes/GRAPH.md", "third");
    assert!(matches!(
        vault.apply(&[move_to("Notes/graph.md", "Notes/Graph.md", "1", "1")]),
        Err(WriteError::Exists { .. })
    ));
}

#[test]
fn excluded_path_is_refused_without_a_trace() {
    let home = Home::new(&[(".gitignore", "private/\n*.tmp.md\n"), ("a.md", "a"), ("file.md", "f")]);
    let outside = tempfile::tempdir().unwrap();
    symlink(outside.path(), home.at("out")).unwrap();
    std::fs::write(outside.path().join("o.md"), "o").unwrap();
    symlink(outside.path().join("o.md"), home.at("link.md")).unwrap();
    let options = VaultOptions { exclude: vec!["drafts".to_owned()], ..VaultOptions::default() };
    let vault = FolderVault::open(home.folder.path(), options).unwrap();
    for at in [
        ".hidden.md",
        ".quipu/x.md",
        ".git/x.md",
        "a/.b/c.md",
        "node_modules/x.md",
        "private/x.md",
        "x.tmp.md",
        "drafts/deep/x.md",
        "plain.txt",
        "noextension",
        "out/x.md",
        "out/o.md",
        "link.md",
        "file.md/x.md",
    ] {
        let result = vault.apply(&[create(at, "x")]);
        assert!(matches!(result, Err(WriteError::Refused { .. })), "{at}: {result:?}");
        assert!(vault.apply(&[move_to("a.md", at, "a", "x")]).is_err(), "{at}");
    }
    assert!(matches!(vault.apply(&[replace("link.md", "o", "x")]), Err(WriteError::Refused { .. })));
    assert!(matches!(vault.apply(&[delete("out/o.md", "o")]), Err(WriteError::Refused { .. })));
    assert!(matches!(vault.apply(&[replace("a.md", "a", "1"), delete("a.md", "a")]), Err(WriteError::Refused { .. })));
    assert!(!home.at(".quipu").exists());
    assert_eq!(std::fs::read(outside.path().join("o.md")).unwrap(), b"o");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[test]
fn write_through_a_link_changes_its_target() {
    let home = Home::new(&[("real/a.md", "1")]);
    symlink("real/a.md", home.at("link.md")).unwrap();
    symlink("real", home.at("folder")).unwrap();
    let vault = home.open();
    vault.apply(&[replace("link.md", "1", "2")]).unwrap();
    vault.apply(&[replace("folder/a.md", "2", "3")]).unwrap();
    vault.apply(&[create("folder/sub/n.md", "n")]).unwrap();
    assert_eq!(home.text("real/a.md").as_deref(), Some("3"));
    assert_eq!(home.text("real/sub/n.md").as_deref(), Some("n"));
    assert!(home.at("link.md").is_symlink() && home.at("folder").is_symlink());
    assert!(matches!(vault.apply(&[delete("link.md", "3")]), Err(WriteError::Refused { .. })));
    let twice = vault.apply(&[replace("link.md", "3", "4"), replace("real/a.md", "3", "5")]);
    assert!(matches!(twice, Err(WriteError::Refused { .. })), "two paths, one file");
}

#[test]
fn replaced_file_keeps_its_permissions_and_gets_another_time() {
    let home = Home::new(&[("a.md", "0")]);
    std::fs::set_permissions(home.at("a.md"), PermissionsExt::from_mode(0o640)).unwrap();
    let vault = home.open();
    let mut before = vault.read(&path("a.md")).unwrap().unwrap().stat;
    for n in 0..20u8 {
        let (old, new) = (n.to_string(), (n + 1).to_string());
        let stat = vault.apply(&[replace("a.md", &old, &new)]).unwrap()[0].unwrap();
        assert_ne!(stat.modified_ns, before.modified_ns);
        before = stat;
    }
    assert_eq!(std::fs::metadata(home.at("a.md")).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn replacing_a_file_by_equal_bytes_changes_nothing() {
    let home = Home::new(&[("a.md", "same")]);
    let vault = home.open();
    let before = vault.read(&path("a.md")).unwrap().unwrap().stat;
    assert_eq!(vault.apply(&[replace("a.md", "same", "same")]).unwrap(), [Some(before)]);
    assert_eq!(kept(&vault), []);
    assert_eq!(vault.apply(&[]).unwrap(), []);
}

#[test]
fn names_of_maximal_length_can_be_written() {
    let home = Home::new(&[]);
    let name = format!("{}.md", "x".repeat(252));
    let vault = home.open();
    vault.apply(&[create(&name, "1")]).unwrap();
    vault.apply(&[replace(&name, "1", "2")]).unwrap();
    assert_eq!(listed(&vault), [name]);
}

#[test]
fn read_only_vault_reads_and_refuses_writes() {
    let home = Home::new(&[("a.md", "1")]);
    let options = VaultOptions { read_only: true, ..VaultOptions::default() };
    let vault = FolderVault::open(home.folder.path(), options).unwrap();
    assert_eq!(listed(&vault), ["a.md"]);
    match vault.apply(&[replace("a.md", "1", "2")]) {
        Err(WriteError::Write { source, .. }) => assert_eq!(source.kind(), std::io::ErrorKind::PermissionDenied),
        other => panic!("{other:?}"),
    }
    assert!(!home.at(".quipu").exists());
}

#[test]
fn next_write_removes_temporary_files_that_a_walk_found() {
    let home = Home::new(&[
        ("a.md", "1"),
        ("sub/.18a0b1c2d3e4f506-77-0.quipu-tmp", "half"),
        ("sub/.anything.quipu-tmp", "mine"),
        ("sub/.18a-77-0.quipu-tmp", "mine"),
        ("sub/.keep.tmp", "mine"),
        ("sub/n.quipu-tmp", "mine"),
    ]);
    let vault = home.open();
    vault.list().unwrap();
    vault.apply(&[FileChange::Create { path: path("b.md"), bytes: vec![] }]).unwrap();
    assert!(!home.at("sub/.18a0b1c2d3e4f506-77-0.quipu-tmp").exists());
    assert!(home.at("sub/.anything.quipu-tmp").exists() && home.at("sub/.18a-77-0.quipu-tmp").exists());
    assert!(home.at("sub/.keep.tmp").exists() && home.at("sub/n.quipu-tmp").exists());
}

#[test]
fn too_deep_path_is_refused_without_a_trace() {
    let home = Home::new(&[("a.md", "1")]);
    let vault = home.open();
    let deep = format!("{}n.md", "d/".repeat(65));
    for change in [create(&deep, "new"), move_to("a.md", &deep, "1", "1")] {
        match vault.apply(&[change]) {
            Err(WriteError::Refused { path, reason }) => {
                assert!(path.as_str() == deep && reason.contains("64 folders"));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(home.tree().len(), 1);
    vault.apply(&[create(&deep[2..], "new")]).unwrap();
}
