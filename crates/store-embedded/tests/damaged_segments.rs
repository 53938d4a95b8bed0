//! A text index whose segment files are invalid, truncated, corrupt or missing is opened, searched, written and checked. None of
//! it may end the process.

#![expect(clippy::disallowed_methods, reason = "breaks the store's own files")]
#![expect(clippy::unwrap_used, reason = "what a test shares fails as the test does")]

use std::fs::OpenOptions;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quipu_core::model::NoteKey;
use quipu_core::ports::{NoteChange, NoteStore, StoreError, TextQuery};
use quipu_store_embedded::EmbeddedStore;
use quipu_testkit::store_conformance::note;

const KINDS: [&str; 7] = ["term", "idx", "pos", "store", "fast", "fieldnorm", "del"];
const NOTES: usize = 60;

type Damage = fn(&Path);

/// What happens to a file. Each leaves a new file, as a restored backup would, or none.
const DAMAGES: [(&str, Damage); 5] = [
    ("junk", |file| replace(file, b"junk\n".to_vec())),
    ("emptied", |file| replace(file, Vec::new())),
    ("cut in half", |file| {
        let bytes = std::fs::read(file).unwrap();
        replace(file, bytes[..bytes.len() / 2].to_vec());
    }),
    ("flipped", |file| {
        let mut bytes = std::fs::read(file).unwrap();
        bytes[0] ^= 0x55;
        replace(file, bytes);
    }),
    ("removed", |file| std::fs::remove_file(file).unwrap()),
];

/// Also one that is open keeps its old bytes.
fn replace(file: &Path, bytes: Vec<u8>) {
    std::fs::remove_file(file).unwrap();
    std::fs::write(file, bytes).unwrap();
}

/// Corrupts every byte of the file's first half while a process has it open.
fn corrupt_in_place(file: &Path) {
    let half = std::fs::metadata(file).unwrap().len() / 2;
    let mut file = OpenOptions::new().write(true).open(file).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.write_all(&vec![0xd7; usize::try_from(half).unwrap()]).unwrap();
}

fn text() -> String {
    "alpha beta\n## More\ngamma delta ".repeat(5)
}

fn put_all(store: &EmbeddedStore) {
    let text = text();
    let notes: Vec<_> = (0..NOTES).map(|key| note(&format!("n{key}.md"), &text)).collect();
    let changes: Vec<_> =
        (0..).map(NoteKey).zip(&notes).map(|(key, note)| NoteChange::Put { key, note, text: &text }).collect();
    store.apply(&changes).unwrap();
}

/// A closed store with files of every kind. Made once, since that is slow, and copied.
fn filled() -> tempfile::TempDir {
    static FILLED: LazyLock<tempfile::TempDir> = LazyLock::new(fill);
    let folder = tempfile::tempdir().unwrap();
    for part in ["", "text"] {
        std::fs::create_dir_all(folder.path().join(part)).unwrap();
        for entry in std::fs::read_dir(FILLED.path().join(part)).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_file() {
                std::fs::copy(entry.path(), folder.path().join(part).join(entry.file_name())).unwrap();
            }
        }
    }
    folder
}

fn fill() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = opened(folder.path());
    put_all(&store);
    assert_eq!(search(&store, "gamma").unwrap(), NOTES * 5);
    drop(store);
    // A deletion has a file, unless its segment is merged at once.
    let (text, mut keys) = (text(), 0..);
    while files(folder.path(), "del").is_empty() {
        let key = keys.next().unwrap();
        let again = note(&format!("n{key}.md"), &text);
        opened(folder.path()).0.apply(&[NoteChange::Put { key: NoteKey(key), note: &again, text: &text }]).unwrap();
    }
    folder
}

/// With the notes whose text is missing.
fn opened(folder: &Path) -> (EmbeddedStore, usize) {
    let store = EmbeddedStore::open(folder).unwrap();
    let loaded = store.load("segments").unwrap();
    (store, loaded.text_missing.len())
}

fn search(store: &EmbeddedStore, words: &str) -> Result<usize, StoreError> {
    Ok(store.search_text(&TextQuery { text: words.to_owned(), limit: 9999, ..TextQuery::default() })?.hits.len())
}

fn files(folder: &Path, kind: &str) -> Vec<PathBuf> {
    let all = std::fs::read_dir(folder.join("text")).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.extension().is_some_and(|extension| extension == kind)).collect()
}

fn is_whole(store: &EmbeddedStore) {
    assert_eq!(store.check().unwrap(), [""; 0]);
    assert_eq!(search(store, "gamma").unwrap(), NOTES * 5);
}

#[test]
fn damaged_file_is_found_at_opening_and_the_text_index_rebuilt() {
    for kind in KINDS {
        for (damage, spoil) in DAMAGES {
            let folder = filled();
            files(folder.path(), kind).iter().for_each(|file| spoil(file));
            let (store, missing) = opened(folder.path());
            assert_eq!(missing, NOTES, ".{kind} {damage}");
            let notices = store.notices();
            assert!(notices.iter().any(|line| line.contains("Cannot use the text index")), "{notices:?}");
            put_all(&store);
            is_whole(&store);
        }
    }
}

#[test]
fn check_names_files_damaged_after_opening() {
    for kind in KINDS {
        for (damage, spoil) in DAMAGES {
            let folder = filled();
            let (store, _) = opened(folder.path());
            files(folder.path(), kind).iter().for_each(|file| spoil(file));
            let findings = store.check().unwrap();
            let is_named = |line: &String| line.starts_with("The text index is damaged") && line.contains(kind);
            assert!(findings.iter().any(is_named), ".{kind} {damage}: {findings:?}");
        }
    }
}

#[test]
fn check_names_files_overwritten_in_place() {
    for kind in KINDS {
        let folder = filled();
        let (store, _) = opened(folder.path());
        files(folder.path(), kind).iter().for_each(|file| corrupt_in_place(file));
        let findings = store.check().unwrap();
        assert!(findings.iter().any(|line| line.contains(kind)), ".{kind}: {findings:?}");
    }
}

#[test]
fn corrupt_index_neither_panics_nor_loses_notes() {
    let text = text();
    let other = note("n1.md", &text);
    for kind in KINDS {
        let folder = filled();
        let (store, _) = opened(folder.path());
        files(folder.path(), kind).iter().for_each(|file| corrupt_in_place(file));
        for key in [1, 2] {
            store.apply(&[NoteChange::Put { key: NoteKey(key), note: &other, text: &text }]).unwrap();
            // Commits.
            drop(search(&store, "gamma"));
        }
        drop(store);
        let (store, missing) = opened(folder.path());
        put_all(&store);
        is_whole(&store);
        assert!(missing >= NOTES - 2, ".{kind}: {missing} notes are missing");
    }
}

#[test]
fn lost_text_index_works_again_once_every_note_is_put() {
    let folder = filled();
    let (store, _) = opened(folder.path());
    std::fs::remove_file(folder.path().join("text/meta.json")).unwrap();
    let (text, changed) = (text(), note("n0.md", &text()));
    store.apply(&[NoteChange::Put { key: NoteKey(0), note: &changed, text: &text }]).unwrap();
    let first = search(&store, "gamma").unwrap_err();
    assert!(first.source.to_string().contains("a running server rebuilds it"), "{}", first.source);
    let second = search(&store, "gamma").unwrap_err();
    assert!(second.source.to_string().contains(&format!("{NOTES} notes are missing")), "{}", second.source);
    put_all(&store);
    is_whole(&store);
    drop(store);
    let (store, missing) = opened(folder.path());
    assert_eq!(missing, 0);
    is_whole(&store);
}

#[test]
fn deleted_text_index_is_noticed_and_rebuilt() {
    for gone in ["text", "text/meta.json"] {
        let folder = filled();
        let (store, _) = opened(folder.path());
        assert_eq!(search(&store, "gamma").unwrap(), NOTES * 5, "{gone}");
        let path = folder.path().join(gone);
        if path.is_dir() {
            std::fs::remove_dir_all(&path).unwrap();
        } else {
            std::fs::remove_file(&path).unwrap();
        }
        assert!(store.check().unwrap().concat().contains("its files are missing"), "{gone}");
        // The next change cannot be written, so the search that must see it meets the absence.
        let (text, changed) = (text(), note("n0.md", &text()));
        store.apply(&[NoteChange::Put { key: NoteKey(0), note: &changed, text: &text }]).unwrap();
        assert!(search(&store, "gamma").is_err(), "{gone}: to find nothing would be a lie");
        assert_eq!(store.text_lost().unwrap().len(), NOTES, "{gone}");
        put_all(&store);
        assert_eq!(search(&store, "gamma").unwrap(), NOTES * 5, "{gone}");
        drop(store);
        let (store, missing) = opened(folder.path());
        assert_eq!(missing, 0, "{gone}");
        is_whole(&store);
    }
}

fn cut(file: &Path) {
    OpenOptions::new().write(true).open(file).unwrap().set_len(0).unwrap();
}

fn shorten(file: &Path) {
    let half = std::fs::metadata(file).unwrap().len() / 2;
    OpenOptions::new().write(true).open(file).unwrap().set_len(half).unwrap();
}

#[test]
fn search_survives_truncated_and_replaced_files_until_the_next_start_rebuilds() {
    let in_place: [(&str, Damage); 3] =
        [("cut to nothing", cut), ("cut in half in place", shorten), ("overwritten", corrupt_in_place)];
    for kind in KINDS {
        for (damage, spoil) in DAMAGES.into_iter().chain(in_place) {
            let folder = filled();
            let (store, _) = opened(folder.path());
            files(folder.path(), kind).iter().for_each(|file| spoil(file));
            for words in ["gamma", "gamma delta", "alpha"] {
                assert_eq!(search(&store, words).unwrap(), NOTES * 5, ".{kind} {damage}: {words}");
            }
            drop(store);
            let (store, missing) = opened(folder.path());
            assert_eq!(missing, NOTES, ".{kind} {damage}");
            put_all(&store);
            is_whole(&store);
        }
    }
}

/// Reading a mapped file behind its new end would end the process with SIGBUS.
#[test]
fn files_truncated_during_searches_neither_end_the_process_nor_hide_a_note() {
    let folder = filled();
    let (store, _) = opened(folder.path());
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                KINDS.iter().flat_map(|kind| files(folder.path(), kind)).for_each(|file| {
                    // A merge may have deleted it meanwhile.
                    drop(OpenOptions::new().write(true).open(file).and_then(|file| file.set_len(7)));
                });
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        for round in 0..12 {
            // A new segment is read back, so its commit may fail, and then no search answers until the notes are put again.
            match search(&store, "gamma") {
                Ok(found) => assert_eq!(found, NOTES * 5, "round {round}"),
                Err(error) => {
                    assert_eq!(error.to_string(), "cannot search the index");
                    put_all(&store);
                }
            }
            let (text, again) = (text(), note("n3.md", &text()));
            store.apply(&[NoteChange::Put { key: NoteKey(3), note: &again, text: &text }]).unwrap();
        }
        is_done.store(true, Ordering::Relaxed);
    });
    put_all(&store);
    if search(&store, "gamma").is_err() {
        put_all(&store);
    }
    assert_eq!(search(&store, "gamma").unwrap(), NOTES * 5);
}
