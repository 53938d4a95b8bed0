//! Two accounts of one group that write the same vault.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use quipu_core::ports::{
    FileChange, NamePeriod, NoteAction, NoteHistory, VaultFiles, WriteError, WriteFilter, WriteNumber, WriteOrigin,
};
use quipu_vault::{FolderVault, VaultOptions};

use crate::home::{Home, create, delete, hash, path, replace};

const VAULT: &str = "QUIPU_TEST_GROUP_VAULT";
const NOTE: &str = "QUIPU_TEST_GROUP_NOTE";
const PASSED_ON: &str = "QUIPU_TEST_LOCK_PASSED_ON";
const HOLDER: &str = "holder: ";

const FIRST: u32 = 64_001;
const SECOND: u32 = 64_002;
const OUTSIDER: u32 = 64_003;
const GROUP: u32 = 64_010;
const OTHER_GROUP: u32 = 64_011;

/// The command of the error message and of SECURITY.md.
const SHARE: &str = concat!(
    r"find .quipu \( -path '.quipu/index*' -o -path '.quipu/history-*' -o -path '.quipu/tokens*' ",
    r"-o -path '.quipu/trash/*' -o -name 'write.lock.refused-*' -o -name write.lock -size +10c \) -prune ",
    r"-o \( -type d -o -type f -links 1 \) ",
    "-exec chgrp 64010 {} + -exec chmod g+rwX {} + -type d -exec chmod g+s {} +"
);

/// Runs as each account: creates, changes and deletes a note.
#[test]
fn write_note_in_child_process() {
    let (Some(root), Ok(note)) = (std::env::var_os(VAULT), std::env::var(NOTE)) else { return };
    let vault = FolderVault::open(root.as_ref(), VaultOptions::default()).unwrap();
    vault.list().unwrap();
    let changes = [replace("shared.md", "old", &note), create("made.md", &note)];
    vault.apply(&changes).unwrap_or_else(|error| panic!("refused: {error}"));
    vault.apply(&[replace("shared.md", &note, "old"), delete("made.md", &note)]).unwrap();
    assert!(!vault.trashed().unwrap().is_empty());
}

/// Holds the lock, or fails.
#[test]
fn lock_in_child_process() {
    let Some(root) = std::env::var_os(VAULT) else { return };
    if std::env::var_os(NOTE).is_some() {
        return;
    }
    let own = Path::new(&root).join(".quipu");
    for locked in [own.clone(), own.join("write.lock")] {
        let error = std::fs::File::open(&locked).and_then(|file| Ok(file.try_lock()?)).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied, "{locked:?}");
    }
}

/// Runs one of the tests above as another account; returns its output and whether it succeeded.
fn run_as((user, group): (u32, u32), test: &str, home: &Home, note: Option<&str>) -> Option<(bool, String)> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("sharing::{test}"), "--nocapture"]).env(VAULT, home.folder.path());
    if let Some(note) = note {
        command.env(NOTE, note);
    }
    match command.uid(user).gid(group).current_dir("/").stdin(Stdio::null()).output() {
        Ok(output) => {
            let told = [output.stdout, output.stderr].concat();
            Some((output.status.success(), String::from_utf8_lossy(&told).into_owned()))
        }
        Err(error) => {
            quipu_testkit::skip(&format!("another user cannot run this test: {error}"));
            None
        }
    }
}

fn shell(home: &Home, script: &str) {
    let status = Command::new("sh").args(["-ec", script]).current_dir(home.folder.path()).status();
    assert!(status.unwrap().success(), "{script}");
}

/// A vault that belongs to the first account and that its group may write.
fn group_vault() -> Option<Home> {
    if !rustix::process::geteuid().is_root() {
        quipu_testkit::skip("only root can run a program as another user");
        return None;
    }
    let home = Home::new(&[("shared.md", "old")]);
    chown(home.folder.path(), Some(FIRST), Some(GROUP)).unwrap();
    chown(home.at("shared.md"), Some(FIRST), Some(GROUP)).unwrap();
    std::fs::set_permissions(home.folder.path(), PermissionsExt::from_mode(0o2770)).unwrap();
    std::fs::set_permissions(home.at("shared.md"), PermissionsExt::from_mode(0o660)).unwrap();
    Some(home)
}

#[test]
fn second_account_of_a_shared_vault_writes_and_an_outsider_cannot_lock_it() {
    let Some(home) = group_vault() else { return };
    let write = |user, note| run_as((user, GROUP), "write_note_in_child_process", &home, Some(note));
    let Some((done, told)) = write(FIRST, "by the first") else { return };
    assert!(done, "{told}");
    // Private until the user shares it. The error says how.
    shell(&home, "chmod 2700 .quipu");
    let (done, told) = write(SECOND, "too early").unwrap();
    assert!(!done && told.contains("refused: cannot write shared.md") && told.contains("user id 64001"), "{told}");
    assert!(told.contains(&SHARE.replace(&GROUP.to_string(), "GROUP")), "{told}");
    // Links that came with the vault lead elsewhere.
    shell(&home, "touch key key2 .quipu/tokens.toml; chmod 600 key key2 .quipu/tokens.toml");
    shell(&home, "chown 64001:64011 key key2 .quipu/tokens.toml; ln -s ../key .quipu/link; ln key2 .quipu/hard");
    shell(&home, SHARE);
    for private in ["key", "key2", ".quipu/tokens.toml"] {
        let file = home.at(private).metadata().unwrap();
        assert!(file.mode() & 0o777 == 0o600 && file.gid() != GROUP, "{private}: {:o}", file.mode());
    }
    shell(&home, "chmod 600 .quipu/write.lock");
    let (done, told) = write(SECOND, "a lock of before").unwrap();
    assert!(!done && told.contains(".quipu/write.lock belongs to another account"), "{told}");
    // The first account's next write opens the lock to the group; then both write in turn.
    for (user, note) in [(FIRST, "again"), (SECOND, "by the second"), (FIRST, "and again"), (SECOND, "at last")] {
        let (done, told) = write(user, note).unwrap();
        assert!(done, "{user}: {told}");
    }
    let lock = home.at(".quipu/write.lock").metadata().unwrap();
    assert_eq!((lock.mode() & 0o7777, lock.gid()), (0o660, GROUP));
    assert_eq!(home.text("shared.md").as_deref(), Some("old"));
    shell(&home, "chmod o+rx .");
    let (refused, told) = run_as((OUTSIDER, OTHER_GROUP), "lock_in_child_process", &home, None).unwrap();
    assert!(refused, "{told}");
}

#[test]
fn private_note_renamed_to_the_lock_keeps_its_mode_and_text() {
    if !rustix::process::geteuid().is_root() {
        quipu_testkit::skip("only root can give a folder to another group");
        return;
    }
    let home = Home::new(&[("a.md", "old"), ("secret.md", "a long secret"), ("pin.md", "4711")]);
    shell(
        &home,
        "mkdir .quipu; chgrp 64010 .quipu; chmod 2770 .quipu; chmod 600 secret.md; mv secret.md .quipu/write.lock",
    );
    // The group might have the command run that shares the folder, which must not open the note either.
    shell(&home, SHARE);
    shell(&home, "test -n \"$(find .quipu/write.lock -perm 600)\"");
    home.open().apply(&[replace("a.md", "old", "new")]).unwrap();
    let lock = home.at(".quipu/write.lock");
    assert_eq!(
        (lock.metadata().unwrap().mode() & 0o777, std::fs::read_to_string(&lock).unwrap().len() <= 10),
        (0o660, true)
    );
    shell(&home, SHARE);
    shell(
        &home,
        "test \"$(cat .quipu/write.lock.refused-*)\" = 'a long secret'; test -n \"$(find .quipu/write.lock.refused-* -perm 600)\"",
    );
    // A text that could be the id of a process.
    shell(&home, "rm .quipu/write.lock*; chmod 600 pin.md; mv pin.md .quipu/write.lock");
    home.open().apply(&[replace("a.md", "new", "newer")]).unwrap();
    let lock = home.at(".quipu/write.lock");
    assert_eq!(lock.metadata().unwrap().mode() & 0o777, 0o660);
    shell(
        &home,
        "test \"$(cat .quipu/write.lock.refused-*)\" = 4711; test -n \"$(find .quipu/write.lock.refused-* -perm 600)\"",
    );
}

#[test]
fn interrupted_write_of_another_account_is_refused_with_a_warning() {
    let Some(home) = group_vault() else { return };
    let write = |user, note| run_as((user, GROUP), "write_note_in_child_process", &home, Some(note));
    let Some((done, told)) = write(FIRST, "by the first") else { return };
    assert!(done, "{told}");
    shell(&home, SHARE);
    // The journal is private to the first account: the second cannot read it.
    home.save(".quipu/journal.json", "{}");
    chown(home.at(".quipu/journal.json"), Some(FIRST), Some(GROUP)).unwrap();
    std::fs::set_permissions(home.at(".quipu/journal.json"), PermissionsExt::from_mode(0o600)).unwrap();
    shell(&home, "chmod 660 .quipu/write.lock");
    let (done, told) = write(SECOND, "by the second").unwrap();
    assert!(done, "{told}");
    let names: Vec<_> = std::fs::read_dir(home.at(".quipu")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().any(|name| name.to_string_lossy().starts_with("journal.refused-")), "{names:?}");
}

/// Locks the folder in a process of another account until it is killed: this one, or a child that outlives it.
#[test]
fn hold_folder_in_child_process() {
    let (Some(root), None) = (std::env::var_os(VAULT), std::env::var_os(NOTE)) else { return };
    let folder = std::fs::File::open(Path::new(&root).join(".quipu")).unwrap();
    folder.lock().unwrap();
    if std::env::var_os(PASSED_ON).is_some() {
        let child = Command::new("sleep").arg("600").stdin(folder).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        println!("{HOLDER}{}", child.unwrap().id());
        return;
    }
    std::thread::sleep(std::time::Duration::from_secs(600));
}

#[test]
fn lock_that_an_outsider_has_on_the_folder_does_not_delay_writes() {
    let Some(home) = group_vault() else { return };
    let write = |note| run_as((FIRST, GROUP), "write_note_in_child_process", &home, Some(note));
    let Some((done, told)) = write("first") else { return };
    assert!(done, "{told}");
    assert_eq!(home.at(".quipu").metadata().unwrap().mode() & 0o777, 0o700, "private from the start");
    // Created by an earlier version, and opened by another account before it was closed to others.
    shell(&home, "chmod 755 . .quipu");
    let holder = || {
        let mut holder = Command::new(std::env::current_exe().unwrap());
        let test = ["--exact", "sharing::hold_folder_in_child_process", "--nocapture"];
        holder.args(test).env(VAULT, home.folder.path()).uid(OUTSIDER).gid(OTHER_GROUP).current_dir("/");
        holder
    };
    let locked_write = |note| {
        let start = std::time::Instant::now();
        while std::fs::File::open(home.at(".quipu")).unwrap().try_lock().is_ok() {
            assert!(start.elapsed().as_secs() < 20, "never locked");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        write(note).unwrap()
    };
    let mut process = holder().stdout(Stdio::null()).spawn().unwrap();
    let (done, told) = locked_write("second");
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(done, "{told}");
    // The kernel's table of locks names the process that took the lock, which has ended.
    let said = holder().env(PASSED_ON, "1").output().unwrap().stdout;
    let said = String::from_utf8(said).unwrap();
    let child = said.lines().find_map(|line| line.split_once(HOLDER)).expect("it says its child").1.to_owned();
    let (done, told) = locked_write("third");
    shell(&home, &format!("kill {child}"));
    assert!(done, "{told}");
}

#[test]
fn sharing_the_folder_does_not_open_private_notes_in_the_trash() {
    let Some(home) = group_vault() else { return };
    std::fs::set_permissions(home.at("shared.md"), PermissionsExt::from_mode(0o600)).unwrap();
    let Some((done, told)) = run_as((FIRST, GROUP), "write_note_in_child_process", &home, Some("private")) else {
        return;
    };
    assert!(done, "{told}");
    shell(&home, SHARE);
    shell(
        &home,
        "test -z \"$(find .quipu/trash -name shared.md ! -perm 600)\"; find .quipu/trash -name shared.md | grep -q .",
    );
}

/// Runs as an account: changes a note in a folder that only that account can enter.
#[test]
fn write_private_note_in_child_process() {
    let Some(root) = std::env::var_os(VAULT) else { return };
    if !Path::new(&root).join("private/mine.md").metadata().is_ok_and(|file| file.len() == 3) {
        return;
    }
    let vault = FolderVault::open(root.as_ref(), VaultOptions::default()).unwrap();
    vault.list().unwrap();
    vault.apply(&[replace("private/mine.md", "old", "newer")]).unwrap();
}

#[test]
fn group_cannot_read_versions_of_notes_in_a_folder_that_it_cannot_enter() {
    let Some(home) = group_vault() else { return };
    shell(
        &home,
        "mkdir private; printf old > private/mine.md; chown -R 64001:64010 private; chmod 644 private/mine.md; chmod 700 private",
    );
    let write = |user| run_as((user, GROUP), "write_note_in_child_process", &home, Some("x"));
    let Some((done, told)) = write(FIRST) else { return };
    assert!(done, "{told}");
    shell(&home, SHARE);
    let (done, told) = run_as((FIRST, GROUP), "write_private_note_in_child_process", &home, None).unwrap();
    assert!(done, "{told}");
    shell(&home, "test \"$(cat private/mine.md)\" = newer; find .quipu/trash -path '*/private/mine.md' | grep -q .");
    shell(&home, "test -z \"$(find .quipu/trash -name private -type d -perm /077)\"");
    // The other account's list leaves it out.
    let (done, told) = write(SECOND).unwrap();
    assert!(done, "{told}");
}

/// An ACL that gives one account everything, the group nothing and a mask of everything; the mode is then 0770.
fn close_by_acl(folder: &Path) -> bool {
    const NO_ID: u32 = u32::MAX;
    let entries: [(u16, u16, u32); 5] =
        [(1, 7, NO_ID), (2, 7, OUTSIDER), (4, 0, NO_ID), (16, 7, NO_ID), (32, 0, NO_ID)];
    let entry = |(tag, bits, id): &(u16, u16, u32)| {
        [&tag.to_le_bytes()[..], &bits.to_le_bytes()[..], &id.to_le_bytes()[..]].concat()
    };
    let acl: Vec<u8> = 2u32.to_le_bytes().into_iter().chain(entries.iter().flat_map(entry)).collect();
    let set = rustix::fs::setxattr(folder, c"system.posix_acl_access", &acl, rustix::fs::XattrFlags::empty());
    if let Err(error) = &set {
        quipu_testkit::skip(&format!("this file system has no ACLs: {error}"));
        return false;
    }
    assert_eq!(folder.metadata().unwrap().mode() & 0o777, 0o770);
    true
}

#[test]
fn group_cannot_read_versions_of_notes_in_a_folder_that_an_acl_closes() {
    let Some(home) = mixed_vault() else { return };
    shell(
        &home,
        "chmod 644 closed/s.md; chmod 770 closed; rm -r .quipu; mkdir .quipu; chgrp 64010 .quipu; chmod 2770 .quipu",
    );
    if !close_by_acl(&home.at("closed")) {
        return;
    }
    home.open().apply(&[replace("closed/s.md", "now", "later")]).unwrap();
    for folder in [".quipu/trash/*-replaced/closed", ".quipu/trash/written-group/closed"] {
        shell(&home, &format!("test -f {folder}/s.md; test -z \"$(find {folder} -type d -perm /077)\""));
    }
    let shared = home.text(".quipu/history.jsonl").unwrap();
    assert!(!shared.contains("s.md") && shared.contains("\"unlisted\":1"), "{shared}");
}

#[test]
fn copy_of_a_text_in_a_closed_folder_is_closed_to_the_group() {
    if !rustix::process::geteuid().is_root() {
        quipu_testkit::skip("only root can give a folder to another account");
        return;
    }
    let home = Home::new(&[("secret/s.md", "old")]);
    shell(
        &home,
        "chmod 700 secret; mkdir -p .quipu/trash/written-group/secret; chgrp -R 64010 .quipu; chmod -R 2770 .quipu",
    );
    let vault = FolderVault::open(home.folder.path(), VaultOptions::default()).unwrap();
    let copies = home.at(".quipu/trash/written-group/secret");
    // One that another account planted is not used.
    chown(&copies, Some(SECOND), Some(GROUP)).unwrap();
    vault.apply(&[replace("secret/s.md", "old", "new")]).unwrap();
    assert!(!copies.join("s.md").exists());
    // One that was open before the folder was closed is closed.
    chown(&copies, Some(0), Some(GROUP)).unwrap();
    vault.apply(&[replace("secret/s.md", "new", "newer")]).unwrap();
    assert_eq!(copies.metadata().unwrap().mode() & 0o7777, 0o700);
    assert_eq!(std::fs::read_to_string(copies.join("s.md")).unwrap(), "newer");
}

#[test]
fn deeply_nested_trash_does_not_overflow_the_stack() {
    let home = Home::new(&[("a.md", "old")]);
    let vault = FolderVault::open(home.folder.path(), VaultOptions::default()).unwrap();
    vault.apply(&[replace("a.md", "old", "new")]).unwrap();
    let planted = "cd .quipu/trash; mkdir 20260101T000000.000000000Z-000-deleted; cd 2026*-deleted; \
                   i=0; while [ $i -lt 1000 ]; do mkdir d; cd -P d; i=$((i+1)); done";
    shell(&home, planted);
    let list = std::thread::Builder::new().stack_size(1 << 20).spawn(move || vault.trashed().unwrap().len());
    assert_eq!(list.unwrap().join().unwrap(), 1);
    shell(&home, "rm -rf .quipu/trash");
}

/// Undoes the last write of a note, or reverts the note to the text before it, as the tools do.
fn undo(vault: &FolderVault, note: &str, now: Option<&str>) -> Result<(), WriteError> {
    let writes = vault.writes(&WriteFilter { id: Some(path(note).note_id()), ..WriteFilter::default() }).unwrap();
    let file = writes[0].files.iter().find(|file| file.path == path(note)).unwrap();
    let kept = [file.kept.clone()];
    let bytes = vault.kept_bytes(file.kept.as_deref().unwrap_or_default()).unwrap().unwrap_or_default();
    assert_eq!(Some(quipu_core::model::ContentHash::of(&bytes)), file.before.map(|before| before.hash), "not kept");
    let change = match now {
        Some(now) => FileChange::Replace { path: path(note), expected: hash(now), bytes },
        None => FileChange::Create { path: path(note), bytes },
    };
    vault.apply_for(&[change], &WriteOrigin { action: NoteAction::Undo, kept: &kept, ..WriteOrigin::UNKNOWN }).map(drop)
}

/// A vault of root in a folder that the group may write, with a private note, a closed folder, and an open note.
fn mixed_vault() -> Option<Home> {
    if !rustix::process::geteuid().is_root() {
        quipu_testkit::skip("only root can give a file to another account");
        return None;
    }
    let home =
        Home::new(&[("secret.md", "secret"), ("closed/s.md", "closed"), ("open/p.md", "open"), ("p.md", "open")]);
    shell(&home, "mkdir .quipu; chgrp -R 64010 .; chmod 2770 . .quipu open; chmod 660 p.md open/p.md");
    shell(&home, "chmod 600 secret.md; chmod 700 closed; chmod 640 closed/s.md");
    let vault = home.open();
    let changes = [("secret.md", "secret"), ("closed/s.md", "closed"), ("open/p.md", "open"), ("p.md", "open")];
    vault.apply(&changes.map(|(note, old)| replace(note, old, "now"))).unwrap();
    Some(home)
}

#[test]
fn forged_history_does_not_copy_a_private_text_to_another_note() {
    let Some(home) = mixed_vault() else { return };
    // A line that names the kept version of another note.
    let line = home.text(".quipu/history.jsonl").unwrap();
    let swapped = line.replace("replaced/p.md", "replaced/secret.md");
    assert_ne!(line, swapped);
    home.save(".quipu/history.jsonl", &swapped);
    let writes = home.open().writes(&WriteFilter::default()).unwrap();
    let kept = writes[0].files.iter().map(|file| file.kept.is_some()).collect::<Vec<_>>();
    assert_eq!(kept, [true, false, true, true], "{writes:?}");
    // A member of the group can rename files and folders of the trash too. Their permissions stay.
    let forge = |note: &str, text: &str| {
        let old = blake3_of(text);
        home.save(".quipu/history.jsonl", &line.replace(&blake3_of("open"), &old));
        undo(&home.open(), note, Some("now")).unwrap_err().to_string()
    };
    shell(&home, "cd .quipu/trash/*-replaced; mv secret.md p.md");
    assert!(forge("p.md", "secret").contains("the group can read the note"));
    shell(&home, "cd .quipu/trash/*-replaced; rm -r open; mv closed open; mv open/s.md open/p.md");
    assert!(forge("open/p.md", "closed").contains("the group can read the note"));
    // A deleted note would be created in the open folder.
    std::fs::remove_file(home.at("open/p.md")).unwrap();
    assert!(undo(&home.open(), "open/p.md", None).unwrap_err().to_string().contains("the group can read the note"));
    let private: Vec<_> = home.tree().into_iter().filter(|(_, text)| text == "secret" || text == "closed").collect();
    assert!(private.is_empty(), "{private:?}");
}

#[test]
fn forged_history_does_not_write_a_foreign_text_to_a_private_note() {
    let Some(home) = mixed_vault() else { return };
    let line = home.text(".quipu/history.jsonl").unwrap();
    let forged = home.text(".quipu/history-0.jsonl").unwrap().replacen("\"n\":1", "\"n\":2", 1);
    home.save(".quipu/history.jsonl", &(line + &forged.replace(&blake3_of("closed"), &blake3_of("forged"))));
    shell(&home, "cd .quipu/trash/*-replaced/closed; rm s.md; printf forged > s.md; chmod 664 s.md");
    shell(&home, "chown 64002:64010 .quipu/trash/*-replaced/closed/s.md");
    let refused = undo(&home.open(), "closed/s.md", Some("now")).unwrap_err().to_string();
    assert!(refused.contains("belongs to an account that cannot write the note"), "{refused}");
    // The group may write this note anyway.
    shell(&home, "chown 64002:64010 .quipu/trash/*-replaced/p.md");
    undo(&home.open(), "p.md", Some("now")).unwrap();
    assert_eq!((home.text("p.md").as_deref(), home.text("closed/s.md").as_deref()), (Some("open"), Some("now")));
}

fn blake3_of(text: &str) -> String {
    hash(text).0.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn undone_deletion_of_a_private_note_is_private() {
    let home = Home::new(&[("a.md", "private")]);
    std::fs::set_permissions(home.at("a.md"), PermissionsExt::from_mode(0o600)).unwrap();
    let vault = home.open();
    vault.apply(&[delete("a.md", "private")]).unwrap();
    undo(&vault, "a.md", None).unwrap();
    let mode = home.at("a.md").metadata().unwrap().mode() & 0o777;
    assert_eq!((home.text("a.md").as_deref(), mode), (Some("private"), 0o600));
}

#[test]
fn texts_of_every_member_are_copied_and_earlier_copies_stay_private() {
    let Some(home) = group_vault() else { return };
    let write = |user, note| run_as((user, GROUP), "write_note_in_child_process", &home, Some(note));
    let Some((done, told)) = write(FIRST, "first") else { return };
    assert!(done, "{told}");
    assert_eq!(home.text(".quipu/trash/written/shared.md").as_deref(), Some("old"));
    shell(&home, "mkdir .quipu/trash/written/more; chown 64001:64010 .quipu/trash/written/more");
    shell(&home, SHARE);
    shell(&home, "chmod 660 .quipu/write.lock");
    for user in [SECOND, FIRST, SECOND] {
        let (done, told) = write(user, "again").unwrap();
        assert!(done, "{told}");
        let copy = home.at(".quipu/trash/written-group/shared.md");
        assert_eq!((std::fs::read_to_string(&copy).unwrap().as_str(), copy.metadata().unwrap().uid()), ("old", user));
    }
    assert_eq!(home.text(".quipu/trash/written/shared.md"), None, "the first account has replaced its own");
    assert_eq!(home.at(".quipu/trash/written").metadata().unwrap().mode() & 0o077, 0);
}

#[test]
fn history_of_notes_that_the_group_cannot_read_is_private() {
    let Some(home) = mixed_vault() else { return };
    let (shared, private) = (home.text(".quipu/history.jsonl").unwrap(), home.text(".quipu/history-0.jsonl").unwrap());
    for hidden in ["secret.md", "s.md", &blake3_of("secret"), &blake3_of("closed")] {
        assert!(!shared.contains(hidden) && private.contains(hidden), "{hidden}: {shared}{private}");
    }
    assert!(shared.contains("\"unlisted\":2") && !private.contains("open/p.md"), "{shared}{private}");
    assert_eq!(home.at(".quipu/history-0.jsonl").metadata().unwrap().mode() & 0o777, 0o600);
    // This account sees one history.
    let vault = home.open();
    let writes = vault.writes(&WriteFilter::default()).unwrap();
    assert_eq!((writes.len(), writes[0].files.len(), writes[0].unlisted), (1, 4, 0), "{writes:?}");
    vault.apply(&[delete("closed/s.md", "now")]).unwrap();
    let of = |id: &str| WriteFilter { id: Some(path(id).note_id()), ..WriteFilter::default() };
    let numbers: Vec<i64> = vault.writes(&of("closed/s.md")).unwrap().iter().map(|write| write.number.0).collect();
    assert_eq!(numbers, [2, 1]);
    undo(&vault, "closed/s.md", None).unwrap();
    assert_eq!(home.text("closed/s.md").as_deref(), Some("now"));
    // A redacted note is in neither file.
    let name = NamePeriod { path: path("closed/s.md"), since_ns: i64::MIN, until_ns: i64::MAX };
    vault.forget(&[name], WriteNumber(0)).unwrap();
    let texts = [".quipu/history.jsonl", ".quipu/history-0.jsonl"].map(|file| home.text(file).unwrap());
    assert!(!texts.concat().contains("s.md\""), "{texts:?}");
    assert!(vault.writes(&of("closed/s.md")).unwrap().is_empty());
    assert_eq!(vault.writes(&of("secret.md")).unwrap().len(), 1);
    // Numbers go on when another member removes the shared file, and a planted file is not used.
    std::fs::remove_file(home.at(".quipu/history.jsonl")).unwrap();
    vault.apply(&[replace("secret.md", "now", "later")]).unwrap();
    assert_eq!(vault.writes(&of("secret.md")).unwrap()[0].number.0, 4);
    chown(home.at(".quipu/history-0.jsonl"), Some(SECOND), Some(GROUP)).unwrap();
    vault.apply(&[replace("secret.md", "later", "last")]).unwrap();
    assert_eq!(vault.writes(&of("secret.md")).unwrap()[0].number.0, 5);
    assert_eq!(home.at(".quipu/history-0.jsonl").metadata().unwrap().uid(), 0);
}
