//! Foreign journals: a vault that was cloned or unpacked can contain one, and opening it must not apply it.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

use quipu_core::RequestKey;
use quipu_core::ports::VaultFiles;

use crate::home::{Home, create, hash, path};

const TEMPORARY: &str = ".18a0b1c2d3e4f506-77-0.quipu-tmp";
const VERSION: &str = "20260131T093000.123456789Z-000-replaced/a.md";

/// A vault below a folder with a file and an empty folder of the user's.
fn surrounded() -> (Home, Home) {
    let around = Home::new(&[("victim.txt", "mine")]);
    std::fs::create_dir(around.at("outdir")).unwrap();
    let vault = Home { folder: tempfile::Builder::new().tempdir_in(around.folder.path()).unwrap() };
    vault.save("a.md", "note");
    std::fs::create_dir(vault.at(".quipu")).unwrap();
    (around, vault)
}

fn put(folder: &str, name: &str, temporary: &str) -> String {
    let new = hash("note").0;
    format!(r#"{{"folder":"{folder}","name":"{name}","temporary":"{temporary}","deed":{{"Put":{{"new":{new:?}}}}}}}"#)
}

fn take(folder: &str, name: &str, kept: &str) -> String {
    let old = vec![0; 32];
    format!(
        r#"{{"folder":"{folder}","name":"{name}","temporary":"{TEMPORARY}","deed":{{"Take":{{"old":{old:?},"kept":"{kept}"}}}}}}"#
    )
}

/// Opens, lists and writes with a journal in place, and expects that it was renamed, reported and not applied. The file has
/// the mode of Quipu's journals.
fn expect_refused(journal: impl Fn(&Home) -> String) {
    expect_refused_as(journal, |file| std::fs::set_permissions(file, PermissionsExt::from_mode(0o600)).unwrap());
}

fn expect_refused_as(journal: impl Fn(&Home) -> String, dress: impl Fn(&Path)) {
    for name in ["journal.json", "journal.done.json"] {
        let (around, home) = surrounded();
        let text = journal(&home);
        home.save(&format!(".quipu/{name}"), &text);
        dress(&home.at(&format!(".quipu/{name}")));
        home.save(TEMPORARY, "not ours to judge");
        let vault = home.open();
        assert!(around.at("victim.txt").exists() && around.at("outdir").exists(), "{name}: {text}");
        assert_eq!(home.text("a.md").as_deref(), Some("note"), "{name}: {text}");
        assert!(home.at(TEMPORARY).exists(), "{name}: {text}");
        assert!(!home.at(&format!(".quipu/{name}")).exists(), "{name}: {text}");
        let warnings = vault.list().unwrap().warnings;
        let [warning] = warnings.as_slice() else { panic!("{name}: {text}: {warnings:?}") };
        assert!(warning.path.starts_with(".quipu/journal.refused-"), "{warning}");
        assert_eq!(home.text(&warning.path).as_deref(), Some(text.as_str()));
        vault.apply(&[create("b.md", "written as ever")]).unwrap();
    }
}

fn foreign(effects: &str, made: &str) -> String {
    format!(r#"{{"format":1,"effects":[{effects}],"made":[{made}]}}"#)
}

/// A journal whose writer knew the inodes of the folders: its entries are checked too.
fn well_informed(home: &Home, effects: &str, made: &str) -> String {
    let inode = |path: &str| std::fs::metadata(home.at(path)).unwrap().ino();
    let (root, own) = (inode(""), inode(".quipu"));
    format!(r#"{{"format":2,"home":{{"root":{root},"own":{own}}},"effects":[{effects}],"made":[{made}]}}"#)
}

#[test]
fn journal_with_paths_outside_the_vault_is_refused() {
    let reaching = [
        (put("..", "x", "victim.txt"), ""),
        (put("", "x", "../victim.txt"), ""),
        (put("", "x", "a.md"), ""),
        (put("", "../victim.txt", TEMPORARY), ""),
        (put("sub/../..", "victim.txt", TEMPORARY), ""),
        (put("/", "x", TEMPORARY), ""),
        (put(".", "x", TEMPORARY), ""),
        (put(".quipu", "write.lock", TEMPORARY), ""),
        (put(".GIT/hooks", "x", TEMPORARY), ""),
        (take("", "a.md", "../../a.md"), ""),
        (take("", "a.md", "a.md"), ""),
        (take("", "a.md", &VERSION.replace("a.md", "../../../a.md")), ""),
        (String::new(), r#""../outdir""#),
        (String::new(), r#""/outdir""#),
        (String::new(), r#""""#),
    ];
    for (effects, made) in &reaching {
        expect_refused(|_| foreign(effects, made));
        expect_refused(|home| well_informed(home, effects, made));
    }
}

#[test]
fn journal_from_another_folder_is_refused() {
    let effects = [put("", "a.md", TEMPORARY), take("", "a.md", VERSION)].join(",");
    expect_refused(|_| foreign(&effects, ""));
    expect_refused(|home| {
        let elsewhere = tempfile::tempdir().unwrap();
        let other = std::fs::metadata(elsewhere.path()).unwrap().ino();
        let own = std::fs::metadata(home.at(".quipu")).unwrap().ino();
        format!(r#"{{"format":2,"home":{{"root":{other},"own":{own}}},"effects":[{effects}],"made":[]}}"#)
    });
    // A foreign journal of a newer format does not prevent the vault from being opened.
    expect_refused(|_| r#"{"format":99,"home":{"root":1,"own":2}}"#.to_owned());
}

#[test]
fn journal_that_another_account_may_have_written_is_refused() {
    // It knows the folders and the content of the note, which it would delete.
    let effects = [put("", "a.md", TEMPORARY), put("", "b.md", TEMPORARY)].join(",");
    let forged = |home: &Home| well_informed(home, &effects, "");
    expect_refused_as(forged, |file| std::fs::set_permissions(file, PermissionsExt::from_mode(0o644)).unwrap());
    if !rustix::process::geteuid().is_root() {
        quipu_testkit::skip("in part: only root can make files of another user");
        return;
    }
    expect_refused_as(forged, |file| {
        std::fs::set_permissions(file, PermissionsExt::from_mode(0o600)).unwrap();
        chown(file, Some(64_001), None).unwrap();
    });
}

#[test]
fn link_or_folder_in_place_of_a_journal_is_refused() {
    let (around, home) = surrounded();
    symlink(around.at("victim.txt"), home.at(".quipu/journal.json")).unwrap();
    std::fs::create_dir(home.at(".quipu/journal.done.json")).unwrap();
    let vault = home.open();
    assert_eq!(vault.list().unwrap().warnings.len(), 2);
    vault.apply(&[create("b.md", "written as ever")]).unwrap();
    assert_eq!(around.text("victim.txt").as_deref(), Some("mine"));
}

/// A vault in the middle of a write, and the journal of that write as every version since format 2 wrote it.
fn interrupted(entries: impl Fn(&Home) -> String, files: &[(&str, &str)]) -> Home {
    let home = Home::new(files);
    std::fs::create_dir_all(home.at(".quipu")).unwrap();
    let file = home.at(".quipu/journal.json");
    home.save(".quipu/journal.json", &entries(&home));
    std::fs::set_permissions(file, PermissionsExt::from_mode(0o600)).unwrap();
    home
}

#[test]
fn journal_of_an_earlier_version_is_undone() {
    let temporary = |index: u32| TEMPORARY.replace("-0.", &format!("-{index}."));
    let deleted = VERSION.replace("replaced/a.md", "deleted/c.md");
    let (old, new) = (hash("old").0, hash("new").0);
    let entry = |name: &str, index: u32, deed: &str| {
        format!(r#"{{"folder":"","name":"{name}","temporary":"{}","deed":{deed}}}"#, temporary(index))
    };
    let effects = [
        entry("a.md", 0, &format!(r#"{{"Swap":{{"old":{old:?},"new":{new:?},"kept":"{VERSION}"}}}}"#)),
        entry("c.md", 1, &format!(r#"{{"Take":{{"old":{old:?},"kept":"{deleted}"}}}}"#)),
        put("made", "b.md", &temporary(2)),
    ];
    // The first two operations took place; the last one did not.
    let files = [
        ("a.md", "new"),
        (&temporary(0), "old"),
        (&format!(".quipu/trash/{VERSION}"), "old"),
        (&temporary(1), "old"),
        (&format!(".quipu/trash/{deleted}"), "old"),
        (&format!("made/{}", temporary(2)), "note"),
    ];
    let home = interrupted(|home| well_informed(home, &effects.join(","), r#""made""#), &files);
    assert_eq!(home.open().list().unwrap().warnings, []);
    assert_eq!(home.tree(), [("a.md".to_owned(), "old".to_owned()), ("c.md".to_owned(), "old".to_owned())]);
}

#[test]
fn journal_of_an_earlier_version_records_its_request() {
    let key = RequestKey(7);
    let asked = format!(r#","asked":{{"request":"{key}","place":"a.md"}}}}"#);
    let journal = |home: &Home| {
        let journal = well_informed(home, &put("", "a.md", TEMPORARY), "");
        format!("{}{asked}", journal.strip_suffix('}').unwrap())
    };
    let home = interrupted(journal, &[("a.md", "note")]);
    assert_eq!(home.open().applied_request(key).unwrap(), Some(path("a.md")));
}
