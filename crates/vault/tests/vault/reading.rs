//! Reading of notes, and of paths that are not notes.

use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::home::{Home, listed, path};
use quipu_core::model::ContentHash;
use quipu_core::ports::{VaultError, VaultFiles};

#[test]
fn read_returns_the_whole_note_and_the_stat_of_its_listing() {
    let home = Home::new(&[("Notes/A.md", "# A\r\n\u{1F9F6}\0")]);
    let vault = home.open();
    let content = vault.read(&path("Notes/A.md")).unwrap().unwrap();
    assert_eq!(content.bytes, "# A\r\n\u{1F9F6}\0".as_bytes());
    assert_eq!(content.hash, ContentHash::of(&content.bytes));
    assert_eq!(content.stat, vault.list().unwrap().files[0].stat);
    for absent in ["notes/a.md", "Notes", "Notes/B.md", "Notes/A.md/x.md", "x/y/z.md"] {
        assert!(vault.read(&path(absent)).unwrap().is_none(), "{absent}");
    }
}

#[test]
fn pipes_and_folders_named_like_notes_are_skipped_without_blocking() {
    let home = Home::new(&[("folder.md/inner.md", "")]);
    assert!(Command::new("mkfifo").arg(home.at("pipe.md")).status().unwrap().success());
    symlink("pipe.md", home.at("link.md")).unwrap();
    let vault = home.open();
    assert_eq!(listed(&vault), ["folder.md/inner.md"]);
    for at in ["pipe.md", "link.md", "folder.md"] {
        assert!(vault.read(&path(at)).unwrap().is_none(), "{at}");
    }
}

#[test]
fn too_large_file_is_refused_with_its_size() {
    let home = Home::new(&[("big.md", "")]);
    std::fs::File::options().write(true).open(home.at("big.md")).unwrap().set_len((64 << 20) + 1).unwrap();
    let VaultError::Read { path: at, source } = home.open().read(&path("big.md")).unwrap_err() else {
        panic!("not from a file")
    };
    assert_eq!((at.as_str(), source.kind()), ("big.md", ErrorKind::FileTooLarge));
    assert!(source.to_string().contains("67108865"));
}

#[test]
fn find_any_case_ignores_case_and_returns_the_exact_name_first() {
    let home = Home::new(&[
        ("Notes/Graph.md", ""),
        ("notes/other.md", ""),
        ("X.md", ""),
        ("x.md", ""),
        (".Hidden/Y.md", ""),
        ("Caf\u{e9}.md", ""),
    ]);
    let vault = home.open();
    let find = |at: &str| vault.find_any_case(&path(at)).unwrap().first().map(ToString::to_string);
    assert_eq!(find("notes/graph.md").as_deref(), Some("Notes/Graph.md"));
    assert_eq!(find("NOTES/OTHER.MD").as_deref(), Some("notes/other.md"));
    assert_eq!(find("notes").as_deref(), Some("notes"));
    assert_eq!(find("x.md").as_deref(), Some("x.md"));
    assert_eq!(find("X.md").as_deref(), Some("X.md"));
    assert_eq!(find("X.MD").as_deref(), Some("X.md"));
    assert_eq!(find(".hidden/y.md").as_deref(), Some(".Hidden/Y.md"));
    assert_eq!(find("CAFE\u{301}.md").as_deref(), Some("Caf\u{e9}.md"));
    assert_eq!(find("notes/none.md"), None);
    assert_eq!(find("x.md/y.md"), None);
}

#[test]
fn removed_vault_folder_is_an_error_and_not_empty() {
    let home = Home::new(&[("vault/a.md", "a")]);
    let vault = quipu_vault::FolderVault::open(&home.at("vault"), quipu_vault::VaultOptions::default()).unwrap();
    std::fs::rename(home.at("vault"), home.at("elsewhere")).unwrap();
    let is_gone =
        |error: VaultError| matches!(error, VaultError::Read { source, .. } if source.kind() == ErrorKind::NotFound);
    assert!(is_gone(vault.list().unwrap_err()));
    assert!(is_gone(vault.list_below(&path("a.md")).unwrap_err()));
    assert!(is_gone(vault.read(&path("a.md")).unwrap_err()));
    assert!(is_gone(vault.find_any_case(&path("a.md")).unwrap_err()));
    assert!(is_gone(vault.trashed().unwrap_err()));
    assert!(vault.apply(&[crate::home::create("b.md", "b")]).is_err());
    std::fs::rename(home.at("elsewhere"), home.at("vault")).unwrap();
    assert_eq!(listed(&vault), ["a.md"]);
}

#[test]
fn constantly_replaced_file_is_read_consistently_or_not_at_all() {
    let home = Home::new(&[("a.md", "")]);
    let (one, two) = ("1".repeat(100_000), "2".repeat(50_000));
    home.save("a.md", &one);
    let vault = home.open();
    let is_over = Arc::new(AtomicBool::new(false));
    let writer = {
        let (is_over, at, temporary) = (Arc::clone(&is_over), home.at("a.md"), home.at("a.md~"));
        let texts = [one.clone(), two.clone()];
        std::thread::spawn(move || {
            for text in texts.iter().cycle().take_while(|_| !is_over.load(Ordering::Relaxed)) {
                std::fs::write(&temporary, text).unwrap();
                std::fs::rename(&temporary, &at).unwrap();
            }
        })
    };
    let mut count = 0;
    for _ in 0..300 {
        match vault.read(&path("a.md")) {
            Ok(content) => {
                let bytes = content.expect("it is never gone").bytes;
                assert!(bytes == one.as_bytes() || bytes == two.as_bytes());
                count += 1;
            }
            Err(VaultError::Read { source, .. }) => assert_eq!(source.kind(), ErrorKind::ResourceBusy),
            Err(error) => panic!("{error}"),
        }
    }
    is_over.store(true, Ordering::Relaxed);
    writer.join().unwrap();
    assert!(count > 0);
}
