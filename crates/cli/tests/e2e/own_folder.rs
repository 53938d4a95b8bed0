//! `.quipu` on a machine with other accounts, and in a vault that others can write: who may read it, and what is not followed,
//! waited for or written over in it.

#![expect(clippy::disallowed_methods, reason = "files are put in the server's way")]

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;

use crate::client::{Client, LEGACY, QUIPU, serve_command, vault, warnings};

/// An account that owns nothing here.
const NOBODY: u32 = 65_534;

fn serve(vault: &Path) -> Client {
    Client::start_with(TempDir::new().unwrap(), serve_command(vault, &[])).shake_hands(LEGACY)
}

/// A vault with a note, a memory and an index, as a server leaves it.
fn used() -> TempDir {
    let folder = vault("//- a.md\nalpha\n");
    let mut client = serve(folder.path());
    client.answer("list_nodes", json!({}));
    client.answer("create_entity", json!({"name": "Ada", "entity_type": "x", "observations": ["first of all"]}));
    client.close();
    folder
}

fn shell(folder: &Path, script: &str) {
    assert!(Command::new("sh").args(["-ec", script]).current_dir(folder).status().unwrap().success(), "{script}");
}

fn check_modes(folder: &Path, folders: u32, files: u32) {
    let mode = |path: &Path| path.symlink_metadata().unwrap().mode();
    assert_eq!(mode(folder) & 0o7777, folders, "{}", folder.display());
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("share") {
            check_modes(&path, folders, files);
        } else if path.is_file() && !path.ends_with("owner.lock") {
            assert_eq!(mode(&path) & 0o7777, files, "{}", path.display());
        }
    }
}

#[test]
fn own_folder_of_an_earlier_version_is_closed_to_other_accounts() {
    let folder = used();
    let own = folder.path().join(".quipu");
    assert!(Command::new(QUIPU).arg("--vault").arg(folder.path()).arg("backup").status().unwrap().success());
    shell(&own, "chmod -R a+rX .");
    let mut client = serve(folder.path());
    client.answer("create_entity", json!({"name": "Bo", "entity_type": "x"}));
    check_modes(&own, 0o700, 0o600);
    client.close();
}

#[test]
fn own_folder_that_is_shared_on_purpose_stays_shared_with_its_group_alone() {
    let folder = used();
    let own = folder.path().join(".quipu");
    shell(&own, "rm -r share; chmod -R ug+rwX,o+rX .; find . -type d -exec chmod g+s {} +");
    let mut client = serve(folder.path());
    client.answer("create_entity", json!({"name": "Bo", "entity_type": "x"}));
    // The index has the texts of notes that the group may not be able to read.
    assert_eq!(own.join("index").symlink_metadata().unwrap().mode() & 0o7777, 0o700);
    client.close();
    std::fs::remove_dir_all(own.join("index")).unwrap();
    check_modes(&own, 0o2770, 0o660);
}

/// A second account of the group has an index of its own, with what it can read.
#[test]
fn index_of_a_shared_folder_belongs_to_one_account() {
    if !rustix::process::geteuid().is_root() {
        return quipu_testkit::skip("only root can run a program as another user");
    }
    let folder = used();
    let own = folder.path().join(".quipu");
    shell(folder.path(), "chmod 755 .; chgrp -R 64010 .; printf 'zanzibar' > secret.md; chmod 600 secret.md");
    shell(&own, "rm -r share; chmod -R ug+rwX,o-rwx .; find . -type d -exec chmod g+s {} +");
    serve(folder.path()).close();
    let mut command = serve_command(folder.path(), &[]);
    command.uid(64_002).gid(64_010).env("HOME", "/nonexistent");
    let mut second = Client::start_with(TempDir::new().unwrap(), command).shake_hands(LEGACY);
    let nodes = second.answer("list_nodes", json!({}));
    assert!(nodes.to_string().contains("a.md") && !nodes.to_string().contains("secret"), "{nodes}");
    second.close();
    for (name, owner) in [("index", 0), ("index-64002", 64_002)] {
        let metadata = own.join(name).symlink_metadata().unwrap();
        assert_eq!((metadata.mode() & 0o7777, metadata.uid()), (0o700, owner), "{name}");
        assert!(own.join(name).join("catalog.db").is_file());
    }
}

/// A shared lock on a file that can be read would do.
#[test]
fn another_account_cannot_lock_the_index() {
    if !rustix::process::geteuid().is_root() {
        quipu_testkit::skip("only root can run a program as another account");
        return;
    }
    let folder = used();
    shell(folder.path(), "chmod 755 .");
    let lock = folder.path().join(".quipu/index/index.lock");
    shell(folder.path(), "chmod -R a+rX .quipu");
    let mut client = serve(folder.path());
    let locked =
        Command::new("flock").args(["-s", "-n"]).arg(&lock).arg("true").uid(NOBODY).gid(NOBODY).output().unwrap();
    assert!(String::from_utf8_lossy(&locked.stderr).contains("ermission denied"), "{locked:?}");
    client.close();
}

#[test]
fn own_folder_of_another_account_is_not_used() {
    if !rustix::process::geteuid().is_root() {
        quipu_testkit::skip("only root can give files away");
        return;
    }
    // The account that creates the folder chooses its mode, so a mode that looks shared on purpose is not trusted either.
    for mode in ["700", "777", "2770", "2777"] {
        let folder = used();
        shell(folder.path(), &format!("chown -R 65534 .quipu; chown 12345 .quipu; chmod {mode} .quipu"));
        let listed = || std::fs::read_dir(folder.path().join(".quipu")).unwrap().count();
        let before = listed();
        let mut client = serve(folder.path());
        let (_, refused) = client.error("create_entity", json!({"name": "Bo", "entity_type": "x"}));
        assert!(refused.contains("memory cannot be used"), "{mode}: {refused}");
        // A write would leave the old version of the note there.
        let (_, refused) = client.error("update_node", json!({"id": "a.md", "content": "beta\n"}));
        assert!(refused.contains("cannot write a.md: permission denied"), "{mode}: {refused}");
        let found = client.answer("search", json!({"query": "alpha"}));
        assert!(found.to_string().contains("a.md"), "{mode}: {found}");
        client.close();
        assert_eq!(std::fs::read_to_string(folder.path().join("a.md")).unwrap(), "alpha\n", "{mode}");
        assert_eq!(listed(), before, "{mode}: something was created in it");
        assert!(!folder.path().join(".quipu/owner.lock").metadata().is_ok_and(|there| there.uid() == 0), "{mode}");
    }
}

/// A member of the group creates the folder for the index of another member first, with a database of its own in it.
#[test]
fn index_that_a_member_of_the_group_planted_is_not_used() {
    if !rustix::process::geteuid().is_root() {
        return quipu_testkit::skip("only root can run a program as another user");
    }
    for planted in ["index-64002", "index"] {
        let folder = used();
        let own = folder.path().join(".quipu");
        shell(folder.path(), "chmod 755 .; chgrp -R 64010 .; chown -R 64001 . ");
        shell(&own, "rm -r share; chmod -R ug+rwX,o-rwx .; find . -type d -exec chmod g+s {} +");
        shell(&own, &format!("cp -r index planted; rm -r index; mv planted {planted}; chown -R 64003 {planted}"));
        shell(&own, &format!("chmod -R 777 {planted}"));
        let mut command = serve_command(folder.path(), &[]);
        command.uid(64_002).gid(64_010).env("HOME", "/nonexistent");
        let before = std::fs::read(own.join(planted).join("catalog.db")).unwrap();
        let mut second = Client::start_with(TempDir::new().unwrap(), command).shake_hands(LEGACY);
        assert_eq!(second.answer("list_nodes", json!({}))["total"], 1, "{planted}");
        second.close();
        assert!(std::fs::read(own.join(planted).join("catalog.db")).unwrap() == before, "{planted} was written");
    }
}

#[test]
fn pipe_or_file_in_place_of_a_journal_does_not_block() {
    for script in ["mkfifo memory.db-journal", "printf x > memory.db-journal", "ln -s /dev/zero memory.db-journal"] {
        let folder = used();
        shell(&folder.path().join(".quipu"), script);
        let started = Instant::now();
        let mut client = serve(folder.path());
        let (_, refused) = client.error("create_entity", json!({"name": "Bo", "entity_type": "x"}));
        assert!(refused.contains("memory cannot be used"), "{script}: {refused}");
        assert_eq!(client.answer("list_nodes", json!({}))["total"], 1, "{script}");
        client.close();
        for command in ["status", "doctor", "verify", "audit", "undo", "export", "backup"] {
            let mut ran = Command::new(QUIPU);
            ran.arg("--vault").arg(folder.path()).arg(command).output().unwrap();
        }
        assert!(started.elapsed() < Duration::from_secs(50), "{script}: {:?}", started.elapsed());
        assert!(
            folder.path().join(".quipu/memory.db-journal").symlink_metadata().is_ok(),
            "{script}: it is left there"
        );
    }
}

/// The observations in a memory that no server has open.
fn observations(file: &Path) -> Vec<String> {
    let db = Connection::open(file).unwrap();
    let mut texts = db.prepare("SELECT text FROM observation").unwrap();
    texts.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

const ENDLESS: &str = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";

/// A used vault whose database has a trigger that came with it.
fn with_trigger(database: &str, on: &str, body: &str) -> TempDir {
    let folder = used();
    let db = Connection::open(folder.path().join(database)).unwrap();
    db.execute_batch(&format!("CREATE TRIGGER planted AFTER {on} BEGIN {body}; END")).unwrap();
    folder
}

#[test]
fn trigger_in_a_memory_that_came_with_a_vault_never_runs() {
    for body in [ENDLESS, "DELETE FROM observation"] {
        let folder = with_trigger(".quipu/memory.db", "INSERT ON change", body);
        let file = folder.path().join(".quipu/memory.db");
        assert_eq!(observations(&file), ["first of all"]);
        let started = Instant::now();
        let mut client = serve(folder.path());
        assert_eq!(client.answer("list_nodes", json!({}))["total"], 1);
        let (_, refused) = client.error("create_entity", json!({"name": "Bo", "entity_type": "x"}));
        assert!(refused.contains("has trigger \"planted\" that Quipu does not create"), "{refused}");
        assert!(refused.contains("move it away, or put a backup in its place"), "{refused}");
        assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
        client.close();
        assert_eq!(observations(&file), ["first of all"], "{body}");
    }
}

#[test]
fn trigger_in_an_index_that_came_with_a_vault_never_runs() {
    for (on, body) in [("UPDATE ON meta", ENDLESS), ("INSERT ON meta", "DELETE FROM meta")] {
        let folder = with_trigger(".quipu/index/catalog.db", on, body);
        let copy = TempDir::new().unwrap();
        shell(folder.path(), &format!("cp -r . {}", copy.path().display()));
        let started = Instant::now();
        let mut client = serve(folder.path());
        assert_eq!(client.answer("list_nodes", json!({}))["total"], 1);
        client.close();
        let indexed = Command::new(QUIPU).args(["index", "--no-embed"]).arg(copy.path()).output().unwrap();
        let said = String::from_utf8(indexed.stderr).unwrap();
        assert!(said.contains("trigger \"planted\"") && said.contains("rebuilt"), "{said}");
        assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
        let index = Connection::open(folder.path().join(".quipu/index/catalog.db")).unwrap();
        let triggers = "SELECT count(*) FROM sqlite_master WHERE type = 'trigger'";
        let left: i64 = index.query_row(triggers, [], |row| row.get(0)).unwrap();
        assert_eq!(left, 0, "the index is made anew");
    }
}

#[test]
fn symlink_in_place_of_the_own_folder_is_not_followed() {
    let (folder, theirs) = (used(), TempDir::new().unwrap());
    let mut client = serve(folder.path());
    client.answer("create_entity", json!({"name": "Bo", "entity_type": "x"}));
    std::fs::write(theirs.path().join("owner.lock"), "theirs").unwrap();
    std::fs::create_dir(theirs.path().join("share")).unwrap();
    std::fs::set_permissions(theirs.path().join("share"), PermissionsExt::from_mode(0o700)).unwrap();
    std::fs::write(theirs.path().join("share/owner.sock"), "theirs").unwrap();
    std::fs::rename(folder.path().join(".quipu"), folder.path().join("moved")).unwrap();
    symlink(theirs.path(), folder.path().join(".quipu")).unwrap();
    // The owner looks after its lock more than once in this time.
    std::thread::sleep(Duration::from_secs(2));
    let (_, refused) = client.error("create_entity", json!({"name": "Cy", "entity_type": "x"}));
    assert!(refused.contains("moved, deleted or truncated"), "{refused}");
    client.call("create_node", json!({"id": "b.md", "content": "beta"}));
    client.call("search", json!({"query": "beta"}));
    client.close();
    let read = |name| std::fs::read_to_string(theirs.path().join(name)).unwrap();
    assert_eq!((read("owner.lock").as_str(), read("share/owner.sock").as_str()), ("theirs", "theirs"));
    let mut names: Vec<_> = std::fs::read_dir(theirs.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["owner.lock", "share"]);
}

#[test]
fn emptied_memory_is_refused_and_a_removed_one_reported() {
    let folder = used();
    let file = folder.path().join(".quipu/memory.db");
    std::fs::write(&file, "").unwrap();
    let mut client = serve(folder.path());
    let (_, refused) = client.error("create_entity", json!({"name": "Bo", "entity_type": "x"}));
    assert!(refused.contains("its file is empty, and a memory was kept in it"), "{refused}");
    client.close();
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 0);

    std::fs::remove_file(&file).unwrap();
    let mut client = serve(folder.path());
    client.answer("create_entity", json!({"name": "Bo", "entity_type": "x"}));
    let told = warnings(&client.call("list_nodes", json!({})));
    assert!(told.iter().any(|told| told.contains("memory.db was removed, so memory starts empty")), "{told:?}");
    client.close();
}
