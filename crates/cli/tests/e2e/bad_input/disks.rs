//! Disks that are full, read-only or closed to us. A test that may not mount a disk or change its account is skipped with a message.

#![expect(clippy::disallowed_methods, reason = "files are put in the server's way")]

use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use tempfile::TempDir;

use super::{reveals_no_internals, still_answers, unharmed};
use crate::client::{Client, LEGACY, QUIPU, files_below, ids, serve_command, vault};

/// A small disk in memory, gone when this is dropped.
struct Disk {
    root: PathBuf,
    _folder: TempDir,
}

impl Disk {
    fn mount() -> Option<Self> {
        let folder = TempDir::new().unwrap();
        let root = folder.path().join("disk");
        std::fs::create_dir(&root).unwrap();
        if !run("mount", &["-t", "tmpfs", "-o", "size=2m", "tmpfs"], &root) {
            quipu_testkit::skip("mounting is not allowed here");
            return None;
        }
        Some(Self { root, _folder: folder })
    }

    /// Leaves no room, in a file called `filler`.
    fn fill(&self) {
        let mut filler = std::fs::File::create(self.root.join("filler")).unwrap();
        while filler.write_all(&[0; 4096]).is_ok() {}
    }

    /// Serves it as a vault.
    fn open(&self) -> Client {
        let command = serve_command(&self.root, &[]);
        Client::start_with(TempDir::new().unwrap(), command).shake_hands(LEGACY)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        run("umount", &["-l"], &self.root);
    }
}

fn run(program: &str, arguments: &[&str], at: &Path) -> bool {
    Command::new(program).args(arguments).arg(at).output().is_ok_and(|output| output.status.success())
}

/// Every kind of write is refused, with the system's reason and nothing of this machine.
#[track_caller]
fn every_write_fails(client: &mut Client, reason: &str) {
    for (tool, arguments) in [
        ("create_node", json!({ "id": "c.md", "content": "c" })),
        ("update_node", json!({ "id": "a.md", "content": "c" })),
        ("delete_node", json!({ "id": "b.md" })),
    ] {
        let (code, message) = client.error(tool, arguments);
        assert_eq!(code, "PROVIDER_ERROR");
        assert!(message.contains(reason), "{message}");
        reveals_no_internals(&message);
    }
}

#[test]
fn full_disk_is_reported_and_loses_nothing() {
    let Some(disk) = Disk::mount() else { return };
    std::fs::write(disk.root.join("a.md"), "old a [[b]]\n").unwrap();
    std::fs::write(disk.root.join("b.md"), "old b [[a]]\n").unwrap();
    let mut client = disk.open();
    client.answer("get_node", json!({ "id": "a.md" }));
    let big = "x".repeat(3_000_000);
    unharmed(&mut client, &disk.root, |client| {
        for (tool, arguments) in [
            ("create_node", json!({ "id": "new/big.md", "content": big })),
            ("update_node", json!({ "id": "a.md", "content": big })),
            ("update_node", json!({ "id": "b.md", "content": big, "title": "B two", "update_links": true })),
        ] {
            let (code, message) = client.error(tool, arguments);
            assert_eq!(code, "PROVIDER_ERROR", "{message}");
            assert!(message.contains("No space left"), "{message}");
            reveals_no_internals(&message);
        }
        assert_eq!(client.answer("get_node", json!({ "id": "a.md" }))["content"], "old a [[b]]\n");
        assert!(!disk.root.join("new").exists(), "a folder made for nothing is gone again");
    });

    // Filled to the last byte by another program.
    disk.fill();
    unharmed(&mut client, &disk.root, |client| {
        let (code, message) = client.error("update_node", json!({ "id": "b.md", "content": "new b\n" }));
        assert_eq!(code, "PROVIDER_ERROR", "{message}");
        assert_eq!(client.answer("get_node", json!({ "id": "b.md" }))["content"], "old b [[a]]\n");
    });

    let entity = json!({ "name": "Ada", "entity_type": "Person", "observations": vec![&big[..9000]; 20] });
    let (_, message) = client.error("create_entity", entity.clone());
    assert!(message.contains("the disk is full; retry once that is fixed"), "{message}");
    reveals_no_internals(&message);

    // With room again everything works again.
    std::fs::remove_file(disk.root.join("filler")).unwrap();
    client.answer("create_entity", entity);
    client.answer("update_node", json!({ "id": "a.md", "content": "new a\n" }));
    client.answer("create_node", json!({ "id": "c.md", "content": "c" }));
    assert_eq!(std::fs::read_to_string(disk.root.join("a.md")).unwrap(), "new a\n");
    still_answers(&mut client);
}

#[test]
fn vault_on_a_full_disk_is_served_without_a_stored_index() {
    let Some(disk) = Disk::mount() else { return };
    std::fs::write(disk.root.join("a.md"), "a\n").unwrap();
    disk.fill();
    let mut client = disk.open();
    unharmed(&mut client, &disk.root, |client| {
        assert_eq!(client.answer("get_node", json!({ "id": "a.md" }))["content"], "a\n");
        let (code, message) = client.error("update_node", json!({ "id": "a.md", "content": "b" }));
        assert_eq!(code, "PROVIDER_ERROR", "{message}");
    });
}

#[test]
fn commands_on_a_full_disk_name_the_fix() {
    let Some(disk) = Disk::mount() else { return };
    for note in 0..50 {
        std::fs::write(disk.root.join(format!("{note}.md")), format!("words {note}\n").repeat(50)).unwrap();
    }
    let quipu = |arguments: &[&str]| {
        let mut command = Command::new(QUIPU);
        command.args(arguments).arg(&disk.root).env("QUIPU_EMBEDDING_PROVIDER", "none");
        let ran = command.output().unwrap();
        (ran.status.code(), String::from_utf8(ran.stderr).unwrap())
    };
    let advises = |said: &str| assert!(said.contains("make room on the disk"), "{said}");
    // Full before there is an index, and again under one that is there.
    disk.fill();
    for arguments in [&["index"][..], &["doctor"]] {
        let (code, said) = quipu(arguments);
        assert_eq!(code, Some(0), "{said}");
        if arguments == ["index"] {
            advises(&said);
        }
    }
    std::fs::remove_file(disk.root.join("filler")).unwrap();
    assert_eq!(quipu(&["index"]).0, Some(0));
    for note in 0..50 {
        std::fs::write(disk.root.join(format!("{note}.md")), format!("changed {note}\n").repeat(50)).unwrap();
    }
    disk.fill();
    let (code, said) = quipu(&["index"]);
    assert_eq!(code, Some(1), "{said}");
    advises(&said);
    let (_, said) = quipu(&["doctor"]);
    advises(&said);
}

#[test]
fn read_only_disk_is_read_and_writes_name_the_cause() {
    let Some(disk) = Disk::mount() else { return };
    std::fs::write(disk.root.join("a.md"), "a [[b]]\n").unwrap();
    std::fs::write(disk.root.join("b.md"), "b\n").unwrap();
    assert!(run("mount", &["-o", "remount,ro"], &disk.root));
    let mut client = disk.open();
    unharmed(&mut client, &disk.root, |client| {
        assert_eq!(ids(&client.answer("get_neighbors", json!({ "id": "a.md" }))), ["b.md"]);
        assert_eq!(client.answer("search_docs", json!({ "query": "b" }))["total"], 2);
        every_write_fails(client, "Read-only file system");
    });
}

/// A client whose server runs as an account that owns nothing: the account of the tests may be root, which can read everything.
fn open_unprivileged(folder: TempDir) -> Option<Client> {
    // That account may not be able to reach the program where it was built.
    let program = folder.path().join("quipu");
    std::fs::copy(QUIPU, &program).unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    if !Command::new("setpriv")
        .args(nobody)
        .arg(&program)
        .arg("--version")
        .output()
        .is_ok_and(|ran| ran.status.success())
    {
        quipu_testkit::skip("this test cannot become somebody else here");
        return None;
    }
    let mut command = Command::new("setpriv");
    command.args(nobody).arg(&program).arg("serve").arg(folder.path().join("vault"));
    Some(Client::start_with(folder, command).shake_hands(LEGACY))
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

#[test]
fn vault_without_write_permission_is_read_and_writes_name_the_cause() {
    let folder = vault("//- vault/a.md\na [[b]]\n//- vault/b.md\nb\n");
    let Some(mut client) = open_unprivileged(folder) else { return };
    let root = client.root().join("vault");
    unharmed(&mut client, &root, |client| {
        assert_eq!(ids(&client.answer("get_neighbors", json!({ "id": "a.md" }))), ["b.md"]);
        every_write_fails(client, "Permission denied");
        // Memory could not be opened; its tools are there and say so.
        for (tool, arguments) in [
            ("create_entity", json!({ "name": "Ada", "entity_type": "Person" })),
            ("search_entities", json!({ "query": "Ada" })),
            ("set_context", json!({ "project_id": 1 })),
            ("get_entity", json!({ "entity_id": 1 })),
        ] {
            let (code, message) = client.error(tool, arguments);
            assert_eq!(code, "InternalServerError");
            assert!(
                message.starts_with("memory cannot be used: it cannot be opened for writing: permission denied"),
                "{message}"
            );
            reveals_no_internals(&message);
        }
        client.answer("get_version", json!({}));
        client.answer("get_current_time", json!({}));
    });
}

#[test]
fn unreadable_files_are_reported_and_the_rest_served() {
    let folder = vault(
        "//- vault/a.md\na\n//- vault/closed.md\nclosed\n//- vault/shut/inside.md\ninside\n//- vault/fixed/f.md\nf\n",
    );
    let root = folder.path().join("vault");
    // The vault belongs to that account, but not the unreadable files in it. If this fails, starting as that account fails too.
    let _ = chown(&root, Some(65534), Some(65534));
    set_mode(&root.join("closed.md"), 0o600);
    set_mode(&root.join("shut"), 0o700);
    let before = files_below(&root);
    let Some(mut client) = open_unprivileged(folder) else { return };
    let listed = client.call("list_nodes", json!({}));
    let told = crate::client::warnings(&listed);
    for path in ["closed.md", "shut"] {
        assert!(told.iter().any(|line| line.starts_with(&format!("{path:?}"))), "{path}: {told:?}");
    }
    for (tool, arguments) in [
        ("get_node", json!({ "id": "closed.md" })),
        ("update_node", json!({ "id": "closed.md", "content": "x" })),
        ("delete_node", json!({ "id": "closed.md" })),
        ("create_node", json!({ "id": "closed.md", "content": "x" })),
        ("get_node", json!({ "id": "shut/inside.md" })),
        ("create_node", json!({ "id": "shut/new.md", "content": "x" })),
        ("create_node", json!({ "id": "fixed/new.md", "content": "x" })),
    ] {
        let (code, message) = client.error(tool, arguments.clone());
        assert!(["PROVIDER_ERROR", "NODE_EXISTS"].contains(&code.as_str()), "{tool} {arguments}: {code} {message}");
        reveals_no_internals(&message);
    }
    assert_eq!(files_below(&root), before);
    client.answer("create_node", json!({ "id": "new.md", "content": "mine" }));
    assert_eq!(client.read("vault/new.md"), "mine");
    still_answers(&mut client);
}
