//! Images that notes show: found as people write links to them, and only inside the vault.

use std::os::unix::fs::symlink;

use crate::home::{Home, path};
use quipu_core::ports::{VaultError, VaultFiles};
use quipu_vault::{FolderVault, VaultOptions};

const NOTE: &str = "notes/trip/Lake.md";

fn shown(vault: &FolderVault, target: &str) -> Option<(&'static str, String)> {
    let image = vault.image(&path(NOTE), target).unwrap()?;
    Some((image.media_type, String::from_utf8(image.bytes).unwrap()))
}

#[test]
fn an_image_is_found_beside_the_note_from_the_root_and_by_the_end_of_its_path() {
    let home = Home::new(&[
        (NOTE, ""),
        ("notes/trip/a.png", "beside"),
        ("a.png", "root"),
        ("notes/b.JPG", "above"),
        ("site/static/img/c.svg", "deep"),
        ("x/img/c.svg", "later"),
    ]);
    let vault = home.open();
    let png = |text: &str| Some(("image/png", text.to_owned()));
    assert_eq!(shown(&vault, "a.png"), png("beside"));
    assert_eq!(shown(&vault, "./a.png"), png("beside"));
    assert_eq!(shown(&vault, "/a.png"), png("root"));
    assert_eq!(shown(&vault, "../b.JPG"), Some(("image/jpeg", "above".to_owned())));
    assert_eq!(shown(&vault, "notes/b.JPG"), Some(("image/jpeg", "above".to_owned())));
    for target in ["c.svg", "img/c.svg", "/img/c.svg"] {
        assert_eq!(shown(&vault, target), Some(("image/svg+xml", "deep".to_owned())), "{target}");
    }
    assert_eq!(shown(&vault, "mg/c.svg"), None, "whole parts of the path only");
}

#[test]
fn files_that_are_no_images_or_not_part_of_the_vault_are_not_read() {
    let home = Home::new(&[
        (NOTE, ""),
        ("secret.txt", "x"),
        ("key.pem", "x"),
        (".hidden/a.png", "x"),
        (".b.png", "x"),
        (".quipu/c.png", "x"),
        (".gitignore", "ignored/\nd.png\n"),
        ("ignored/e.png", "x"),
        ("d.png", "x"),
        ("private/f.png", "x"),
    ]);
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("g.png"), "x").unwrap();
    symlink(outside.path().join("g.png"), home.at("g.png")).unwrap();
    symlink(outside.path(), home.at("out")).unwrap();
    let options = VaultOptions { exclude: vec!["private".to_owned()], ..VaultOptions::default() };
    let vault = FolderVault::open(home.folder.path(), options).unwrap();
    let outside = format!("../../../{}/g.png", outside.path().file_name().unwrap().to_str().unwrap());
    for target in [
        "secret.txt",
        "key.pem",
        NOTE,
        "/.hidden/a.png",
        ".b.png",
        "/.quipu/c.png",
        "/ignored/e.png",
        "d.png",
        "/private/f.png",
        "g.png",
        "/g.png",
        "/out/g.png",
        &outside,
        "/etc/x.png",
        "..",
        "",
        "a\0.png",
        "a\n.png",
        &format!("{}.png", "a".repeat(300)),
    ] {
        assert_eq!(shown(&vault, target), None, "{target}");
    }
}

#[test]
fn a_huge_image_is_refused_with_its_size() {
    let home = Home::new(&[(NOTE, ""), ("big.png", "")]);
    std::fs::File::options().write(true).open(home.at("big.png")).unwrap().set_len((16 << 20) + 1).unwrap();
    let VaultError::Read { source, .. } = home.open().image(&path(NOTE), "big.png").unwrap_err() else {
        panic!("not from a file")
    };
    assert!(source.to_string().contains("16777217"), "{source}");
}
