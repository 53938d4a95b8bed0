//! Random renames and moves in folders with symbolic links and a name in another Unicode form: every link of every note leads to
//! the same file afterwards. `cargo xtask fuzz renames` does the same in memory, in far more vaults.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use quipu_core::index::FileBatch;
use quipu_core::notes::{NoteError, NoteMove, NoteUpdate};
use quipu_core::parse::TitleRule;
use quipu_core::{Knowledge, Parts, Session};
use quipu_testkit::generate::Random;
use quipu_testkit::store_conformance::NoteStorage;
use quipu_testkit::{FixedClock, MemNoteStorage, MemSources};
use quipu_vault::{FolderVault, VaultOptions};

const VAULTS: u64 = 40;
const CHANGES: usize = 5;

const FOLDERS: [&str; 4] = ["", "a/", "a/deep/", "b/"];
/// The last one is decomposed: other programs write the same name in one piece.
const STEMS: [&str; 6] = ["one", "two", "Two", "my note", "plan", "cafe\u{301}"];
/// In some vaults one of them has no target.
const LINKS: [(&str, &str); 4] =
    [("ldir", "a"), ("b/in", "../a/deep"), ("z.md", "a/one.md"), ("a/deep/w.md", "../../b/plan.md")];
const PLACES: [&str; 5] = ["/", "a/", "b/", "a/deep/", "new/"];

fn pick<'a, T>(random: &mut Random, from: &'a [T]) -> &'a T {
    &from[random.below(from.len())]
}

/// A vault whose files begin with a number of their own.
fn vault(random: &mut Random) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    for folder in FOLDERS {
        std::fs::create_dir_all(home.path().join(folder)).unwrap();
    }
    for (path, target) in LINKS {
        if random.below(3) > 0 {
            symlink(target, home.path().join(path)).unwrap();
        }
    }
    let mut number = 0;
    for folder in FOLDERS {
        for stem in STEMS {
            if random.below(3) == 0 {
                number += 1;
                let text = format!("file {number}\n{}", links(random, folder));
                std::fs::write(home.path().join(format!("{folder}{stem}.md")), text).unwrap();
            }
        }
    }
    home
}

fn links(random: &mut Random, from: &str) -> String {
    let up = "../".repeat(from.matches('/').count());
    let folders = ["a/", "a/deep/", "b/", "ldir/", "ldir/deep/", "b/in/"];
    let count = random.below(5);
    let links = (0..count).map(|_| {
        let (folder, stem) = (*pick(random, &folders), *pick(random, &STEMS));
        let stem = if random.below(2) == 0 { stem.replace("e\u{301}", "\u{e9}") } else { stem.to_owned() };
        match random.below(5) {
            0 => format!("[[{folder}{stem}]]\n"),
            1 => format!("[x](<{up}{folder}{stem}.md>)\n"),
            2 => "[[z]]\n".to_owned(),
            _ => format!("[[{stem}]]\n"),
        }
    });
    links.collect()
}

fn open(home: &tempfile::TempDir) -> Knowledge {
    let clock = Arc::new(FixedClock::default());
    let knowledge = Knowledge::new(Parts {
        vault: Arc::new(FolderVault::open(home.path(), VaultOptions::default()).unwrap()),
        store: Arc::new(MemNoteStorage::default().open()),
        sources: Arc::new(MemSources::new(clock.clone())),
        clock,
        title_rule: TitleRule::default(),
        stale_after: Knowledge::STALE_AFTER,
    });
    knowledge.start(&|_| {}).unwrap();
    knowledge
}

/// The numbers of the files that the links of each file lead to, as seen from its own folder, by the number of the file.
fn meanings(home: &tempfile::TempDir, knowledge: &Knowledge) -> BTreeMap<String, Vec<Option<String>>> {
    let snapshot = knowledge.snapshot();
    let root = home.path().canonicalize().unwrap();
    let number = |path: &str| {
        let text = std::fs::read_to_string(root.join(path)).unwrap_or_default();
        text.lines().find(|line| line.starts_with("file ")).map(str::to_owned)
    };
    let mut meanings = BTreeMap::new();
    for key in snapshot.files() {
        let path = &snapshot.note(key).path;
        // The other paths of a file have other folders, from which its links may lead elsewhere.
        if std::fs::canonicalize(root.join(path.as_str())).is_ok_and(|real| real == root.join(path.as_str())) {
            let target = |target| number(snapshot.note(target).path.as_str());
            let links = snapshot.links(key).map(|link| link.target.and_then(target)).collect();
            meanings.insert(number(path.as_str()).unwrap(), links);
        }
    }
    meanings
}

/// The path to name a note by, and its folder. What a note's own links mean may depend on the path it is read by, so one with
/// links goes by its real path.
fn named(home: &tempfile::TempDir, path: &str) -> (String, Option<String>) {
    let root = home.path().canonicalize().unwrap();
    let real = root.join(path).canonicalize().unwrap();
    let has_links = std::fs::read_to_string(&real).unwrap().contains('[');
    let real = real.strip_prefix(&root).unwrap().to_str().unwrap();
    let folder = real.rfind('/').map(|slash| real[..=slash].to_owned());
    (if has_links { real } else { path }.to_owned(), folder)
}

fn texts<'p>(home: &tempfile::TempDir, paths: &'p [String]) -> BTreeMap<&'p String, String> {
    let text = |path: &String| std::fs::read_to_string(home.path().join(path)).unwrap_or_default();
    paths.iter().map(|path| (path, text(path))).collect()
}

fn check(before: &BTreeMap<String, Vec<Option<String>>>, after: &BTreeMap<String, Vec<Option<String>>>, step: &str) {
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>(), "{step}");
    for (file, links) in before {
        assert_eq!(links.len(), after[file].len(), "{step}: {file}");
        for (link, (meant, means)) in links.iter().zip(&after[file]).enumerate() {
            // A broken link may come to lead to a renamed note.
            assert!(meant.is_none() || meant == means, "{step}: link {link} of {file} led to {meant:?}, now {means:?}");
        }
    }
}

#[test]
fn every_link_leads_to_the_same_file_after_random_renames_among_symbolic_links() {
    let (mut done, mut refused) = (0, 0);
    for seed in 0..VAULTS {
        let mut random = Random(seed);
        let home = vault(&mut random);
        let knowledge = open(&home);
        for _ in 0..CHANGES {
            let before = meanings(&home, &knowledge);
            let paths: Vec<String> =
                knowledge.snapshot().files().map(|key| knowledge.snapshot().note(key).path.to_string()).collect();
            if paths.is_empty() {
                break;
            }
            let (id, folder) = named(&home, pick::<String>(&mut random, &paths));
            let session = Session::default();
            let seed = format!("vault {seed} with {:#?}", texts(&home, &paths));
            let (step, outcome) = match (random.below(4), folder) {
                (0 | 1, _) => {
                    let title = Some(*pick(&mut random, &STEMS));
                    let update = NoteUpdate { id: &id, title, update_links: true, ..NoteUpdate::default() };
                    (format!("{seed}: {update:?}"), knowledge.update_note(&session, None, &update).map(drop))
                }
                (2, Some(folder)) => {
                    let wanted =
                        NoteMove { id: &folder, to: pick::<&str>(&mut random, &PLACES[1..]), update_links: true };
                    (format!("{seed}: {wanted:?}"), knowledge.move_notes(&session, None, &wanted).map(drop))
                }
                _ => {
                    let wanted = NoteMove { id: &id, to: pick::<&str>(&mut random, &PLACES), update_links: true };
                    (format!("{seed}: {wanted:?}"), knowledge.move_notes(&session, None, &wanted).map(drop))
                }
            };
            match outcome {
                Ok(()) => done += 1,
                Err(
                    NoteError::LinkCaptured { .. }
                    | NoteError::Exists { .. }
                    | NoteError::BadDestination { .. }
                    | NoteError::NotFound { .. }
                    | NoteError::BadId { .. }
                    | NoteError::BadTitle { .. },
                ) => refused += 1,
                Err(error) => panic!("{step}: {error}"),
            }
            check(&before, &meanings(&home, &knowledge), &step);
            knowledge.apply(&FileBatch::All, &|_| {}).unwrap();
            check(&before, &meanings(&home, &knowledge), &format!("{step}, read again"));
        }
    }
    assert!(done > refused && done > 50, "{done} were made and {refused} refused: this tested too little");
}
