//! Databases that came with a cloned vault, and folders that others replace while they are open.

#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "a test makes what the store must not trust")]

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use quipu_core::memory::{EntityId, ObservationId};
use quipu_core::model::NoteKey;
use quipu_core::ports::{ChangeNumber, MemoryStore, NoteChange, NoteStore, TextQuery};
use quipu_store_embedded::{EmbeddedStore, MemoryDatabase};
use quipu_testkit::memory_conformance::{author, create, observe};
use quipu_testkit::store_conformance::note;
use rusqlite::Connection;
use tempfile::TempDir;

/// A statement that never ends, wherever it runs.
const ENDLESS: &str = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";

/// A memory with an entity and an observation, and its file.
fn memory() -> (TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("memory.db");
    MemoryDatabase::open(&file).unwrap().apply(&[create("Ada"), observe(1, "seen")], &author(1)).unwrap();
    (home, file)
}

#[test]
fn memory_with_unknown_objects_is_refused_and_unchanged() {
    for (sql, named) in [
        ("CREATE TRIGGER t AFTER INSERT ON change BEGIN DELETE FROM observation; END", "trigger \"t\""),
        (&format!("CREATE TRIGGER t AFTER INSERT ON change BEGIN {ENDLESS}; END"), "trigger \"t\""),
        (&format!("DROP TABLE context; CREATE VIEW context AS {ENDLESS}"), "view \"context\""),
        ("CREATE TABLE more (x)", "table \"more\""),
        ("CREATE INDEX i ON observation (length(text))", "index \"i\""),
        ("DROP INDEX observation_by_entity", "has no index \"observation_by_entity\""),
    ] {
        let (home, file) = memory();
        Connection::open(&file).unwrap().execute_batch(sql).unwrap();
        let bytes = std::fs::read(&file).unwrap();
        let refused = MemoryDatabase::open(&file).err().expect(sql).to_string();
        assert!(refused.contains(named), "{sql}: {refused}");
        assert!(std::fs::read(&file).unwrap() == bytes, "{sql}");
        drop(home);
    }
}

#[test]
fn memory_with_numbers_that_leave_no_next_one_is_refused_with_the_cause() {
    for (sql, named) in [
        ("UPDATE sqlite_sequence SET seq = 9223372036854775807 WHERE name = 'entity'", "row 9223372036854775807"),
        (
            "INSERT INTO change VALUES (9223372036854775807, 1, 'x', 'x', NULL);
             DELETE FROM sqlite_sequence WHERE name = 'change'",
            "change 9223372036854775807",
        ),
        ("UPDATE last_write SET number = 9223372036854775807", "write 9223372036854775807"),
    ] {
        let (_home, file) = memory();
        Connection::open(&file).unwrap().execute_batch(sql).unwrap();
        let bytes = std::fs::read(&file).unwrap();
        let refused = MemoryDatabase::open(&file).err().expect(sql).to_string();
        assert!(refused.contains(&format!("has {named}, a number out of range")), "{sql}: {refused}");
        assert!(std::fs::read(&file).unwrap() == bytes, "{sql}");
    }
}

#[test]
fn overlong_texts_in_memory_are_refused_with_the_cause() {
    let refused = |sql: &str, bytes: usize| {
        let (_home, file) = memory();
        Connection::open(&file).unwrap().execute(sql, ["x".repeat(bytes)]).unwrap();
        let memory = MemoryDatabase::open(&file).unwrap();
        let read = memory.observations_after(ObservationId(0), 1).map(drop);
        let read = read.and_then(|()| memory.entities_after(EntityId(0), 1).map(drop));
        read.and_then(|()| memory.log_before(ChangeNumber(i64::MAX), 9).map(drop))
            .err()
            .map(|error| error.advice.unwrap_or_default())
    };
    for sql in [
        "UPDATE observation SET text = ?1",
        "UPDATE entity SET name = ?1",
        "UPDATE entity SET type = ?1",
        "UPDATE entity SET description = ?1",
        "UPDATE change SET client = ?1",
    ] {
        // The second is longer than the limit that SQLite is given.
        for bytes in [1 << 20, 17 << 20] {
            let told = refused(sql, bytes).expect(sql);
            assert!(told.contains("it has a text that is longer than any that Quipu writes"), "{sql}: {told}");
        }
        assert_eq!(refused(sql, 1600), None, "{sql}");
    }
}

#[test]
fn batches_of_a_memory_have_a_bounded_size() {
    let (_home, file) = memory();
    let insert = "INSERT INTO observation (entity, text, created_ns, updated_ns) VALUES (1, ?1, 1, 1)";
    let db = Connection::open(&file).unwrap();
    for _ in 0..23 {
        db.execute(insert, ["x".repeat(800_000)]).unwrap();
    }
    drop(db);
    let memory = MemoryDatabase::open(&file).unwrap();
    let count = |after| memory.observations_after(ObservationId(after), 1000).unwrap().len();
    assert_eq!([count(0), count(22), count(24)], [22, 2, 0], "sixteen megabytes at a time");
}

/// Each change undoes the other.
#[test]
fn changes_that_undo_each_other_in_a_circle_are_read() {
    let (_home, file) = memory();
    let db = Connection::open(&file).unwrap();
    db.execute_batch("PRAGMA foreign_keys = off; INSERT INTO change VALUES (2, 1, 'x', 'x', 3), (3, 1, 'x', 'x', 2);")
        .unwrap();
    drop(db);
    let memory = MemoryDatabase::open(&file).unwrap();
    assert_eq!(memory.log_before(ChangeNumber(i64::MAX), 10).unwrap().len(), 3);
    drop(memory.undo(ChangeNumber(2), &author(4)));
}

fn index() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fill(&folder.path().join("index"));
    folder
}

fn fill(folder: &Path) {
    let store = EmbeddedStore::open(folder).unwrap();
    store.load("hostile").unwrap();
    let text = "alpha\n";
    store.apply(&[NoteChange::Put { key: NoteKey(1), note: &note("a.md", text), text }]).unwrap();
    assert_eq!(search(&store), 1);
}

fn search(store: &EmbeddedStore) -> usize {
    let query = TextQuery { text: "alpha".to_owned(), limit: 10, ..TextQuery::default() };
    store.search_text(&query).map_or(0, |found| found.hits.len())
}

#[test]
fn index_with_unknown_objects_or_a_journal_is_rebuilt() {
    let endless = format!("CREATE TRIGGER t AFTER UPDATE ON meta BEGIN {ENDLESS}; END");
    let view = format!("DROP TABLE links; CREATE VIEW links AS {ENDLESS}");
    for spoil in [Some(endless.as_str()), Some(view.as_str()), Some("CREATE TABLE more (x)"), None] {
        let home = index();
        let folder = home.path().join("index");
        match spoil {
            Some(sql) => Connection::open(folder.join("catalog.db")).unwrap().execute_batch(sql).unwrap(),
            None => std::fs::write(folder.join("catalog.db-journal"), "anything").unwrap(),
        }
        let store = EmbeddedStore::open(&folder).unwrap();
        assert!(
            store.notices()[0].contains("Cannot use the catalog of the index: it has"),
            "{spoil:?}: {:?}",
            store.notices()
        );
        assert_eq!(store.load("hostile").unwrap().notes.len(), 0, "{spoil:?}");
        drop(store);
        fill(&folder);
    }
}

/// The files of the text index are read whole. A file with a hole takes no space in the archive that brings it.
#[test]
fn index_far_larger_than_the_notes_is_rebuilt() {
    for name in ["text/planted.idx", "catalog.db"] {
        let home = index();
        let folder = home.path().join("index");
        let file = std::fs::File::options().create(true).append(true).open(folder.join(name)).unwrap();
        file.set_len(3 << 30).unwrap();
        let store = EmbeddedStore::open_for_notes(&folder, &|| 6).unwrap();
        assert!(store.notices()[0].contains("far more than the notes need"), "{name}: {:?}", store.notices());
        assert_eq!(store.load("hostile").unwrap().notes.len(), 0, "{name}");
        drop(store);
        fill(&folder);
    }
    // The size of the notes is not needed for a small one.
    let home = index();
    let store = EmbeddedStore::open_for_notes(&home.path().join("index"), &|| unreachable!()).unwrap();
    assert_eq!(store.load("hostile").unwrap().notes.len(), 1);
}

/// Memory is reserved for every key up to the largest one, and a number is added to `seq`.
#[test]
fn index_with_numbers_out_of_range_is_rebuilt() {
    for sql in [
        "UPDATE note SET key = 4294967294",
        "UPDATE note SET key = 4294967295",
        "UPDATE note SET key = 4294967296",
        "UPDATE note SET key = -1",
        "UPDATE note SET key = 2000000",
        "UPDATE meta SET seq = 9223372036854775807",
        "UPDATE meta SET seq = -1",
    ] {
        let home = index();
        let folder = home.path().join("index");
        Connection::open(folder.join("catalog.db")).unwrap().execute_batch(sql).unwrap();
        let store = EmbeddedStore::open(&folder).unwrap();
        assert_eq!(store.load("hostile").unwrap().notes.len(), 0, "{sql}");
        let notice = &store.notices()[0];
        assert!(notice.contains("out of range") && notice.ends_with("the index is rebuilt."), "{sql}: {notice}");
        drop(store);
        fill(&folder);
    }
}

#[test]
fn shared_folder_has_memory_of_the_group_and_an_index_of_its_owner() {
    for (folder_mode, files) in [(0o755, 0o600), (0o2770, 0o660)] {
        let home = tempfile::tempdir().unwrap();
        let own = home.path().join("own");
        std::fs::create_dir(&own).unwrap();
        std::fs::set_permissions(&own, std::fs::Permissions::from_mode(folder_mode)).unwrap();
        fill(&own.join("index"));
        let memory = MemoryDatabase::open(&own.join("memory.db")).unwrap();
        memory.apply(&[create("Ada")], &author(1)).unwrap();
        let mode = |path: &str| std::fs::metadata(own.join(path)).unwrap().permissions().mode() & 0o7777;
        for folder in ["index", "index/text"] {
            assert_eq!(mode(folder), 0o700, "{folder}");
        }
        for file in ["index/index.lock", "index/catalog.db"] {
            assert_eq!(mode(file), 0o600, "{file}");
        }
        for file in ["memory.db", "memory.db-wal", "memory.db-shm", "memory.last"] {
            assert_eq!(mode(file), files, "{file}");
        }
        let segments = std::fs::read_dir(own.join("index/text")).unwrap();
        segments.for_each(|entry| assert_eq!(entry.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o600));
        memory.backup(&home.path().join("backup.db")).unwrap();
        assert_eq!(mode("../backup.db"), 0o600);
    }
}

/// The index is damaged, so it is removed and made again: where it lies, not where a link leads.
#[test]
fn nothing_is_deleted_through_a_link_in_place_of_the_folder() {
    for name in ["index", "index/text"] {
        let home = index();
        let theirs = home.path().join("theirs");
        fill(&theirs);
        let before = files(&theirs);
        let store = EmbeddedStore::open(&home.path().join("index")).unwrap();
        store.load("hostile").unwrap();
        let place = home.path().join(name);
        std::fs::rename(&place, home.path().join("moved")).unwrap();
        symlink(theirs.join(name.strip_prefix("index").unwrap().trim_start_matches('/')), &place).unwrap();
        let text = if name == "index" { home.path().join("moved/text") } else { home.path().join("moved") };
        for file in files(&text).into_keys() {
            std::fs::write(file, "").unwrap();
        }
        let text = "beta\n";
        for key in 2..5 {
            let changed = note(&format!("{key}.md"), text);
            drop(store.apply(&[NoteChange::Put { key: NoteKey(key), note: &changed, text }]));
            search(&store);
        }
        drop(store.check());
        drop(store);
        assert!(files(&theirs) == before, "{name}: files of others were changed");
    }
}

fn files(folder: &Path) -> std::collections::BTreeMap<PathBuf, Vec<u8>> {
    let mut all = std::collections::BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    all
}

#[test]
fn folder_that_is_a_link_is_not_opened() {
    let home = tempfile::tempdir().unwrap();
    let theirs = home.path().join("theirs");
    std::fs::create_dir(&theirs).unwrap();
    symlink(&theirs, home.path().join("own")).unwrap();
    assert!(EmbeddedStore::open(&home.path().join("own/index")).is_err());
    assert!(EmbeddedStore::open(&home.path().join("own")).is_err());
    assert!(MemoryDatabase::open(&home.path().join("own/memory.db")).is_err());
    assert_eq!(std::fs::read_dir(&theirs).unwrap().count(), 0);
}
