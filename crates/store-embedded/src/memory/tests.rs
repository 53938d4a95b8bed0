//! Files that are not what they should be, older schemas, copies: what only this store has to get right.

#![expect(clippy::disallowed_methods, reason = "makes the files that must not be touched")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use quipu_core::memory::EntityId;
use quipu_core::ports::{ChangeNumber, EntityUpdate, MemoryChange, MemoryFailure, MemoryStore};
use quipu_testkit::memory_conformance::{author, create, observe};
use rusqlite::Connection;
use tempfile::TempDir;

use super::{MemoryDatabase, MemoryOpenError, migrate};

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// A memory of one entity, its folder and its file.
fn with_ada() -> (TempDir, PathBuf, MemoryDatabase) {
    let home = folder();
    let file = home.path().join("memory.db");
    let memory = MemoryDatabase::open(&file).unwrap();
    memory.apply(&[create("Ada")], &author(1)).unwrap();
    (home, file, memory)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.collect();
    names.sort();
    names
}

#[test]
fn foreign_file_is_refused_and_unchanged() {
    let home = folder();
    let file = home.path().join("memory.db");
    let refused = |bytes: &[u8]| {
        std::fs::write(&file, bytes).unwrap();
        let error = MemoryDatabase::open(&file).err().expect("it is not ours").to_string();
        assert_eq!(std::fs::read(&file).unwrap(), bytes, "{error}");
        assert_eq!(names(home.path()), ["memory.db"], "{error}");
        error
    };
    assert!(refused(b"notes of somebody").contains("it is not a SQLite database"));
    assert!(refused(b"SQLite format 3\0and no more").contains("it is not a SQLite database"));
    let ours = home.path().join("ours.db");
    MemoryDatabase::open(&ours).unwrap();
    let bytes = std::fs::read(&ours).unwrap();
    std::fs::remove_file(&ours).unwrap();
    std::fs::remove_file(home.path().join("ours.last")).unwrap();
    assert!(refused(&bytes[..bytes.len() / 2]).contains("is damaged"));

    let other = home.path().join("other.db");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)").unwrap();
    let theirs = std::fs::read(&other).unwrap();
    std::fs::remove_file(&other).unwrap();
    assert!(refused(&theirs).contains("the database of another program"));
}

#[test]
fn newer_schema_is_refused_and_unchanged() {
    let home = folder();
    let file = home.path().join("memory.db");
    let later = Connection::open(&file).unwrap();
    later.pragma_update(None, "application_id", super::opening::APPLICATION_ID).unwrap();
    later.pragma_update(None, "user_version", migrate::NEWEST + 1).unwrap();
    drop(later);
    let bytes = std::fs::read(&file).unwrap();
    let error = MemoryDatabase::open(&file).err().unwrap();
    assert!(matches!(error, MemoryOpenError::Newer { found, .. } if found == migrate::NEWEST + 1), "{error}");
    assert_eq!(std::fs::read(&file).unwrap(), bytes);
}

/// As a program leaves it that is killed, or still runs on another machine.
#[test]
fn log_of_a_refused_file_is_unchanged() {
    let newer = format!(
        "PRAGMA application_id = {}; PRAGMA user_version = {}",
        super::opening::APPLICATION_ID,
        migrate::NEWEST + 1
    );
    for (statements, reason) in [
        (newer.as_str(), "use a newer version"),
        ("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)", "the database of another program"),
    ] {
        let home = folder();
        let theirs = Connection::open(home.path().join("theirs.db")).unwrap();
        theirs.pragma_update(None, "journal_mode", "WAL").unwrap();
        theirs.execute_batch(statements).unwrap();
        let file = home.path().join("memory.db");
        let log = home.path().join("memory.db-wal");
        std::fs::copy(home.path().join("theirs.db"), &file).unwrap();
        std::fs::copy(home.path().join("theirs.db-wal"), &log).unwrap();
        let bytes = || (std::fs::read(&file).unwrap(), std::fs::read(&log).unwrap());
        let before = bytes();
        let error = MemoryDatabase::open(&file).err().expect("it is not ours").to_string();
        assert!(error.contains(reason), "{error}");
        assert!(bytes() == before, "{error}");
    }
}

#[cfg(unix)]
#[test]
fn a_link_is_not_followed() {
    let home = folder();
    let elsewhere = home.path().join("elsewhere.db");
    std::os::unix::fs::symlink(&elsewhere, home.path().join("memory.db")).unwrap();
    let error = MemoryDatabase::open(&home.path().join("memory.db")).err().unwrap();
    assert!(error.to_string().contains("is a link"), "{error}");
    assert!(!elsewhere.exists());
}

#[test]
fn older_schema_is_backed_up_and_migrated() {
    for schema in 1..migrate::NEWEST {
        let home = folder();
        let file = home.path().join("memory.db");
        let older = migrate::file_of_schema(&file, schema);
        older
            .execute(
                "INSERT INTO entity (name, name_key, type, created_ns, updated_ns) VALUES ('Ada', 'ada', 'x', 1, 1)",
                [],
            )
            .unwrap();
        drop(older);
        let store = MemoryDatabase::open(&file).unwrap();
        assert_eq!(store.entities(&[EntityId(1)]).unwrap()[0].as_ref().unwrap().name, "Ada");
        store.apply(&[observe(1, "still here")], &author(2)).unwrap();
        let copies = home.path().join("backups");
        assert_eq!(names(&copies), [format!("memory-schema-{schema}-1.db")]);
        let copy = Connection::open(copies.join(&names(&copies)[0])).unwrap();
        let version: i64 = copy.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
        let name: String = copy.query_row("SELECT name FROM entity", [], |row| row.get(0)).unwrap();
        assert_eq!((version, name.as_str()), (schema, "Ada"));
        drop(store);
        MemoryDatabase::open(&file).unwrap();
        assert_eq!(names(&copies).len(), 1, "once is enough");
    }
}

/// A log of before contexts were written down.
#[test]
fn change_of_an_older_schema_is_undone() {
    let home = folder();
    let file = home.path().join("memory.db");
    let older = migrate::file_of_schema(&file, 4);
    older
        .execute_batch(
            r#"INSERT INTO change (at_ns, client, tool) VALUES (1, 'x', 'delete_entity');
            INSERT INTO change_step (change, position, kind, id, before) VALUES (1, 0, 'entity', 1,
            '{"name":"Ada","entity_type":"x","aliases":[],"description":null,"created_ns":1,"updated_ns":1}')"#,
        )
        .unwrap();
    drop(older);
    let store = MemoryDatabase::open(&file).unwrap();
    store.undo(ChangeNumber(1), &author(2)).unwrap();
    assert_eq!((store.entity_count().unwrap(), store.context("x").unwrap()), (1, None));
    assert_eq!(store.check().unwrap(), [""; 0]);
}

#[test]
fn backup_has_acknowledged_changes_and_is_never_overwritten() {
    let home = folder();
    let store = MemoryDatabase::open(&home.path().join("memory.db")).unwrap();
    store.apply(&[create("a"), observe(1, "x")], &author(1)).unwrap();
    let copy = home.path().join("copy.db");
    store.backup(&copy).unwrap();
    store.apply(&[create("b")], &author(2)).unwrap();
    let kept = std::fs::read(&copy).unwrap();
    assert!(store.backup(&copy).unwrap_err().to_string().contains("it exists"));
    assert_eq!(std::fs::read(&copy).unwrap(), kept);
    let copied = MemoryDatabase::open(&copy).unwrap();
    assert_eq!(copied.counts().unwrap().entities, 1);
    assert_eq!(copied.check().unwrap(), [""; 0]);
    copied.apply(&[create("c")], &author(3)).unwrap();
    assert!(copied.entities(&[EntityId(2)]).unwrap()[0].is_some(), "ids go on where they were");
    assert!(!names(home.path()).iter().any(|name| name.contains("unfinished")));
}

#[test]
fn snapshot_ignores_later_changes_and_is_read_only() {
    let home = folder();
    let store = MemoryDatabase::open(&home.path().join("memory.db")).unwrap();
    store.apply(&[create("a"), observe(1, "x")], &author(1)).unwrap();
    let counted = store.at_one_moment(|still| {
        store.apply(&[create("b"), observe(1, "y")], &author(2))?;
        assert_eq!(still.changed_since(ChangeNumber(0))?.entities, [EntityId(1)]);
        still.apply(&[create("c")], &author(3)).expect_err("it is a moment that has passed");
        Ok::<_, Box<dyn std::error::Error>>((still.counts()?, store.counts()?))
    });
    let (then, now) = counted.unwrap();
    assert_eq!((then.entities, then.observations, now.entities, now.observations), (1, 1, 2, 2));
}

#[test]
fn check_finds_rows_that_differ_from_the_log() {
    let home = folder();
    let file = home.path().join("memory.db");
    let store = MemoryDatabase::open(&file).unwrap();
    store.apply(&[create("a"), create("b"), observe(1, "x"), observe(2, "y")], &author(1)).unwrap();
    let meddler = Connection::open(&file).unwrap();
    meddler.execute_batch("PRAGMA foreign_keys = off; DELETE FROM entity WHERE id = 2; UPDATE observation SET text = 'z' WHERE id = 1; UPDATE entity SET name_key = 'q' WHERE id = 1").unwrap();
    let findings = store.check().unwrap().join("\n");
    for expected in [
        "A row of observation refers to a missing row of entity.",
        "The entity 2 differs from the log.",
        "The observation 1 differs from the log.",
        "The entity 1 has the name \"a\" but the key \"q\".",
    ] {
        assert!(findings.contains(expected), "{expected} is not in {findings}");
    }
}

#[test]
fn check_finds_rows_missing_from_the_log() {
    let (_home, file, store) = with_ada();
    let meddler = Connection::open(&file).unwrap();
    meddler
        .execute_batch(
            "INSERT INTO entity VALUES (7, 'Eve', 'eve', 'x', NULL, 1, 1);
            INSERT INTO observation VALUES (3, 1, 'listens', 1, 1); INSERT INTO relation VALUES (2, 7, 1, 'r', 1, 1)",
        )
        .unwrap();
    let expected = [
        "The entity 7 is not in the log.",
        "The observation 3 is not in the log.",
        "The relation 2 is not in the log.",
    ];
    assert_eq!(store.check().unwrap(), expected);
}

#[test]
fn check_ignores_concurrent_writes() {
    let (_home, file, store) = with_ada();
    let many: Vec<_> = (0..300).map(|number| create(&format!("{number}"))).collect();
    store.apply(&many, &author(1)).unwrap();
    let is_checked = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let other = MemoryDatabase::open(&file).unwrap();
            for time in 2..1000 {
                let update = EntityUpdate { description: Some(Some(format!("{time}"))), ..EntityUpdate::default() };
                let update = |id| MemoryChange::UpdateEntity { id: EntityId(id), update: update.clone() };
                other.apply(&(1..=300).map(update).collect::<Vec<_>>(), &author(time)).unwrap();
                if is_checked.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let findings: Vec<String> = (0..10).flat_map(|_| store.check().unwrap()).collect();
        is_checked.store(true, Ordering::Relaxed);
        assert_eq!(findings, [""; 0]);
    });
}

#[test]
fn two_processes_may_write_at_once() {
    let home = folder();
    let file = home.path().join("memory.db");
    MemoryDatabase::open(&file).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let file = &file;
            scope.spawn(move || {
                let store = MemoryDatabase::open(file).unwrap();
                for number in 0..25 {
                    store.apply(&[create(&format!("{writer} {number}"))], &author(1)).unwrap();
                }
            });
        }
    });
    let store = MemoryDatabase::open(&file).unwrap();
    assert_eq!((store.counts().unwrap().entities, store.head().unwrap().0), (100, 100));
    assert_eq!(store.check().unwrap(), [""; 0]);
}

#[test]
fn log_without_its_file_is_not_deleted() {
    let (home, file, memory) = with_ada();
    // As after a kill: the log is still there when the file is removed.
    let log = std::fs::read(home.path().join("memory.db-wal")).unwrap();
    drop(memory);
    std::fs::write(&file, b"").unwrap();
    std::fs::write(home.path().join("memory.db-wal"), &log).unwrap();
    let error = MemoryDatabase::open(&file).err().expect("what was acknowledged would be lost").to_string();
    assert!(error.contains("has changes of it"), "{error}");
    assert_eq!(std::fs::read(home.path().join("memory.db-wal")).unwrap(), log);
}

#[test]
fn moved_file_refuses_writes() {
    let (home, file, memory) = with_ada();
    std::fs::rename(&file, home.path().join("elsewhere.db")).unwrap();
    memory.apply(&[create("Bea")], &author(1)).expect_err("nobody would find it again");
    std::fs::rename(home.path().join("elsewhere.db"), &file).unwrap();
    memory.apply(&[create("Cleo")], &author(1)).unwrap();
    assert_eq!(memory.entity_count().unwrap(), 2);
}

#[test]
fn checkpointed_file_is_complete() {
    let (home, file, memory) = with_ada();
    let copy = home.path().join("copy.db");
    memory.settle().unwrap();
    std::fs::copy(&file, &copy).unwrap();
    assert_eq!(MemoryDatabase::open(&copy).unwrap().entity_count().unwrap(), 1);
}

#[test]
fn file_whose_creation_was_interrupted_is_recreated() {
    let home = folder();
    let file = home.path().join("memory.db");
    // What a kill leaves right after the first step: a database in the right mode, with nothing in it.
    let begun = Connection::open(&file).unwrap();
    begun.pragma_update(None, "journal_mode", "WAL").unwrap();
    drop(begun);
    assert!(std::fs::metadata(&file).unwrap().len() > 0);
    let store = MemoryDatabase::open(&file).unwrap();
    store.apply(&[create("Ada")], &author(1)).unwrap();
    drop(store);
    assert_eq!(MemoryDatabase::open(&file).unwrap().entity_count().unwrap(), 1);
}

#[test]
fn file_without_its_log_refuses_writes() {
    let (home, file, store) = with_ada();
    std::fs::remove_file(home.path().join("memory.db-wal")).unwrap();
    let refused = store.apply(&[create("Bo")], &author(2)).unwrap_err();
    let quipu_core::ports::ApplyError::Failed(failure) = refused else { panic!("{refused:?}") };
    assert!(failure.source.to_string().contains("the log beside it"), "{}", failure.source);
    // Closed in order, nothing that was acknowledged is lost.
    drop(store);
    let store = MemoryDatabase::open(&file).unwrap();
    assert_eq!(store.entity_count().unwrap(), 1);
}

#[test]
fn emptied_or_rewound_log_refuses_writes() {
    for is_rewound in [true, false] {
        let (home, _, store) = with_ada();
        let log = home.path().join("memory.db-wal");
        let earlier = std::fs::read(&log).unwrap();
        (0..30).for_each(|number| drop(store.apply(&[create(&format!("{number}"))], &author(2)).unwrap()));
        std::fs::write(&log, if is_rewound { &earlier } else { &[][..] }).unwrap();
        let acknowledged =
            (0..20).filter(|number| store.apply(&[create(&format!("late {number}"))], &author(3)).is_ok());
        assert_eq!(acknowledged.count(), 0, "rewound: {is_rewound}");
    }
}

/// A backup of the first of many changes, made as people do or by us, and copied over the open file.
#[test]
fn overwritten_file_refuses_writes() {
    for is_settled in [true, false] {
        let (home, file, store) = with_ada();
        let backup = home.path().join("backup.db");
        store.backup(&backup).unwrap();
        for number in 0..200 {
            store.apply(&[create(&format!("{number}"))], &author(2)).unwrap();
            if is_settled && number == 100 {
                store.settle().unwrap();
            }
        }
        copy_over(&backup, &file);
        let refused = store.apply(&[create("Bo")], &author(3)).unwrap_err();
        let quipu_core::ports::ApplyError::Failed(failure) = refused else { panic!("{refused:?}") };
        assert!(failure.source.to_string().contains("overwrote memory's file"), "{}", failure.source);
        let copied = std::fs::read(&file).unwrap();
        assert!(store.settle().is_err());
        // Whatever it says: a connection for reading comes up, and is closed with the others.
        drop(store.entity_count());
        drop(store);
        assert!(std::fs::read(&file).unwrap() == copied, "nothing of the log got into it");
    }
}

#[test]
fn truncated_file_refuses_writes() {
    let (_home, file, store) = with_ada();
    store.settle().unwrap();
    std::fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(4096).unwrap();
    store.apply(&[create("Bo")], &author(2)).expect_err("it would be lost");
}

/// Neither is a change of what is in it.
#[test]
fn file_checkpointed_or_touched_by_another_process_accepts_writes() {
    let home = folder();
    let file = home.path().join("memory.db");
    let (store, other) = (MemoryDatabase::open(&file).unwrap(), MemoryDatabase::open(&file).unwrap());
    for number in 0..10 {
        store.apply(&[create(&format!("{number}"))], &author(1)).unwrap();
        other.apply(&[create(&format!("other {number}"))], &author(1)).unwrap();
        other.settle().unwrap();
    }
    let touched = std::fs::OpenOptions::new().append(true).open(&file).unwrap();
    touched.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    store.apply(&[create("Bo")], &author(2)).unwrap();
    assert_eq!(store.entity_count().unwrap(), 21);
}

/// A file that begins as no database does, beside a log of ours that was left there.
#[test]
fn foreign_file_with_a_valid_log_is_refused() {
    let (home, file, memory) = with_ada();
    let log = std::fs::read(home.path().join("memory.db-wal")).unwrap();
    drop(memory);
    let theirs = vec![b'x'; 20_000];
    std::fs::write(&file, &theirs).unwrap();
    std::fs::write(home.path().join("memory.db-wal"), &log).unwrap();
    let error = MemoryDatabase::open(&file).err().expect("it is not ours").to_string();
    assert!(error.contains("it is not a SQLite database"), "{error}");
    assert_eq!(std::fs::read(&file).unwrap(), theirs);
    assert_eq!(std::fs::read(home.path().join("memory.db-wal")).unwrap(), log);
}

/// A kill while the log of a rewritten memory is moved into its file, after each number of pages.
#[test]
fn rewrite_that_is_killed_while_its_log_is_moved_loses_nothing() {
    const PAGE: usize = 4096;
    let (home, file, memory) = with_ada();
    let texts: Vec<MemoryChange> = (0..400).map(|number| create(&format!("{number} {}", "x".repeat(300)))).collect();
    memory.apply(&texts, &author(2)).unwrap();
    let deleted: Vec<MemoryChange> = (2..300).map(|id| MemoryChange::DeleteEntity { id: EntityId(id) }).collect();
    memory.apply(&deleted, &author(3)).unwrap();
    let count = memory.entity_count().unwrap();
    drop(memory);
    let db = Connection::open(&file).unwrap();
    db.execute_batch("PRAGMA wal_autocheckpoint = 0; VACUUM").unwrap();
    let (before, log) = (std::fs::read(&file).unwrap(), std::fs::read(home.path().join("memory.db-wal")).unwrap());
    let marker = std::fs::read(home.path().join("memory.started")).unwrap();
    let frames: Vec<&[u8]> = log[32..].chunks_exact(24 + PAGE).collect();
    let mut refused = 0;
    for moved in 0..=frames.len() {
        let mut bytes = before.clone();
        for frame in &frames[..moved] {
            let page = u32::from_be_bytes(frame[..4].try_into().unwrap()) as usize;
            bytes.resize(bytes.len().max(page * PAGE), 0);
            bytes[(page - 1) * PAGE..page * PAGE].copy_from_slice(&frame[24..]);
        }
        let killed = folder();
        let file = killed.path().join("memory.db");
        std::fs::write(&file, bytes).unwrap();
        std::fs::write(killed.path().join("memory.db-wal"), &log).unwrap();
        std::fs::write(killed.path().join("memory.started"), &marker).unwrap();
        refused += usize::from(MemoryDatabase::open(&file).is_err());
        std::fs::write(killed.path().join("memory.redacting"), "").unwrap();
        let memory = MemoryDatabase::open(&file).unwrap_or_else(|error| panic!("after {moved} pages: {error}"));
        assert_eq!(memory.entity_count().unwrap(), count, "after {moved} pages");
    }
    assert!(refused > 0, "without the mark a half moved log is taken for that of another file");
}

/// As when a server that works alone takes the vault over: the new engine opens memory before the old one lets go of it. A
/// process without its locks is one whose log another may remove.
#[cfg(target_os = "linux")]
#[test]
fn file_opened_twice_stays_locked() {
    use std::os::unix::fs::MetadataExt;

    let home = folder();
    // A name of which an address has to write some letters otherwise.
    let file = home.path().join("50% of? #1 é.db");
    let store = MemoryDatabase::open(&file).unwrap();
    store.apply(&[create("Ada")], &author(1)).unwrap();
    let is_locked = || {
        let (process, number) = (format!(" {} ", std::process::id()), format!(":{} ", file.metadata().unwrap().ino()));
        let all = std::fs::read_to_string("/proc/locks").unwrap();
        all.lines().any(|lock| lock.contains(&process) && lock.contains(&number))
    };
    assert!(is_locked());
    let again = MemoryDatabase::open(&file).unwrap();
    assert!(is_locked());
    assert_eq!(again.entity_count().unwrap(), 1);
    drop(again);
    assert!(is_locked());
}

/// By another process, as in life: closing a file here would release the locks on it.
fn copy_over(from: &Path, to: &Path) {
    assert!(std::process::Command::new("cp").arg(from).arg(to).status().unwrap().success());
}

#[test]
fn long_read_does_not_block_closing() {
    let (_home, file, store) = with_ada();
    let took = store.at_one_moment(|_| {
        store.apply(&[create("Bo")], &author(2)).unwrap();
        let started = std::time::Instant::now();
        store.settle().unwrap();
        Ok::<_, MemoryFailure>(started.elapsed())
    });
    assert!(took.unwrap() < std::time::Duration::from_secs(5));
    drop(store);
    assert_eq!(MemoryDatabase::open(&file).unwrap().entity_count().unwrap(), 2);
}

#[test]
fn change_and_undo_of_a_locked_memory_say_that_it_is_locked() {
    let (_home, file, memory) = with_ada();
    let other = Connection::open(&file).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let quipu_core::ports::ApplyError::Failed(change) = memory.apply(&[create("Bo")], &author(3)).unwrap_err() else {
        panic!("it is locked");
    };
    assert!(change.advice.as_deref().is_some_and(|advice| advice.contains("keeps its file locked")), "{change:?}");
    let quipu_core::ports::UndoError::Failed(undo) = memory.undo(ChangeNumber(1), &author(4)).unwrap_err() else {
        panic!("it is locked");
    };
    assert_eq!(undo.advice, change.advice);
}

#[test]
fn calls_behind_one_that_waits_for_a_lock_wait_no_longer_than_it() {
    let (_home, file, memory) = with_ada();
    let other = Connection::open(&file).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let started = std::time::Instant::now();
    std::thread::scope(|scope| {
        for number in 0..5 {
            let memory = &memory;
            scope.spawn(move || memory.apply(&[create("Bo")], &author(number)).unwrap_err());
        }
    });
    let took = started.elapsed();
    assert!(took < super::opening::BUSY_TIMEOUT * 3, "{took:?}");
}

#[test]
fn older_copy_after_a_checkpoint_by_another_process_is_noticed() {
    let (home, file, memory) = with_ada();
    let other = MemoryDatabase::open(&file).unwrap();
    other.apply(&[create("Bo")], &author(2)).unwrap();
    other.settle().unwrap();
    let older = home.path().join("older.db");
    copy_over(&file, &older);
    other.apply(&[create("Cy")], &author(3)).unwrap();
    other.settle().unwrap();
    copy_over(&older, &file);
    for memory in [&memory, &other] {
        assert!(memory.replaced().is_some());
        memory.apply(&[create("Di")], &author(4)).unwrap_err();
    }
    drop((memory, other));
    // While no process has it open, a person may put an older copy there.
    let memory = MemoryDatabase::open(&file).unwrap();
    assert_eq!((memory.replaced(), memory.entity_count().unwrap()), (None, 2));
    memory.apply(&[create("Di")], &author(4)).unwrap();
}

/// SQLite maps that file: reading behind its new end would end the process.
#[test]
fn truncated_shared_memory_refuses_reads_and_writes() {
    let (home, file, memory) = with_ada();
    // By another process: closing the file here would release the locks on it.
    let mut cut = std::process::Command::new("truncate");
    assert!(cut.args(["-s", "0"]).arg(home.path().join("memory.db-shm")).status().unwrap().success());
    memory.entity_count().unwrap_err();
    memory.apply(&[create("Bo")], &author(2)).unwrap_err();
    assert!(memory.replaced().is_some());
    drop(memory);
    assert_eq!(MemoryDatabase::open(&file).unwrap().entity_count().unwrap(), 1);
}
