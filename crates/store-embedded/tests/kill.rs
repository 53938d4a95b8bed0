//! Kills a writing process again and again, at moments of chance, and looks at what is left.
//!
//! The test runs itself as the writer. Step `n` of the history is the same in every process, so the writer's number of
//! finished steps says what the store must hold.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "what a test shares fails as the test does")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use quipu_core::model::{FileStat, Note, NoteKey};
use quipu_core::ports::{NoteChange, NoteStore, TextQuery};
use quipu_store_embedded::EmbeddedStore;
use quipu_testkit::store_conformance::note;

const FOLDER: &str = "QUIPU_TEST_KILL_FOLDER";
const DONE: &str = "QUIPU_TEST_KILL_DONE";
const ROUNDS: u64 = 40;

#[test]
fn a_killed_writer_leaves_a_store_that_catches_up() {
    if let (Ok(folder), Ok(done)) = (std::env::var(FOLDER), std::env::var(DONE)) {
        write_forever(Path::new(&folder), done.parse().unwrap());
    }
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(42);
    let mut done = 0;
    let mut texts_lost = 0;
    for round in 0..ROUNDS {
        done = write_until_killed(folder.path(), done, &mut random);
        // In the other rounds the next writer meets what this one left.
        if round % 2 == 0 || round == ROUNDS - 1 {
            let (store, steps, lost) = catch_up(folder.path(), done);
            check_against_model(&store, &model_after(steps));
            (done, texts_lost) = (steps, texts_lost + lost);
        }
    }
    assert!(done > ROUNDS, "the writers got somewhere: {done} steps");
    assert!(texts_lost > 0, "some writer was killed before its commit");
}

/// Starts a writer, kills it, and returns how many steps it said were done.
fn write_until_killed(folder: &Path, done: u64, random: &mut Random) -> u64 {
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args(["a_killed_writer_leaves_a_store_that_catches_up", "--exact", "--nocapture"])
        .env(FOLDER, folder)
        .env(DONE, done.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut done = done;
    let mut take_step = |line: String| {
        if let Some((_, step)) = line.rsplit_once("done ") {
            done = step.parse().unwrap();
        }
    };
    let wanted_lines = random.below(40);
    lines.by_ref().take(wanted_lines).for_each(&mut take_step);
    std::thread::sleep(Duration::from_micros(random.below(20_000) as u64));
    assert!(writer.try_wait().unwrap().is_none(), "a writer ends only when it is killed");
    writer.kill().unwrap();
    writer.wait().unwrap();
    lines.for_each(&mut take_step);
    done
}

/// The writer's life.
fn write_forever(folder: &Path, done: u64) -> ! {
    let (store, mut steps, _) = catch_up(folder, done);
    let mut model = model_after(steps);
    loop {
        println!("done {steps}");
        let texts = step(steps, &mut model);
        store.apply(&changes(&texts)).unwrap();
        steps += 1;
        if steps % 7 == 0 {
            search(&store, "common");
        }
    }
}

/// Opens the store as a program would, puts missing texts again, and says how many steps it holds: those known to be
/// done, or one more that was killed before it could say so.
fn catch_up(folder: &Path, done: u64) -> (EmbeddedStore, u64, usize) {
    let store = EmbeddedStore::open(folder).unwrap();
    let loaded = store.load("kill").unwrap();
    assert_eq!(store.notices(), [""; 0]);
    let notes: BTreeMap<u32, Note> = loaded.notes.into_iter().map(|(key, note)| (key.0, note)).collect();
    let holds = |steps| model_after(steps).into_iter().map(|(key, (note, _))| (key, note)).eq(notes.clone());
    let steps = [done, done + 1].into_iter().find(|steps| holds(*steps)).expect("all of a step or nothing is there");
    let model = model_after(steps);
    for keys in loaded.text_missing.chunks(2) {
        let put = |key: &NoteKey| NoteChange::Put { key: *key, note: &model[&key.0].0, text: &model[&key.0].1 };
        store.apply(&keys.iter().map(put).collect::<Vec<_>>()).unwrap();
        // A commit between them, so that a kill finds some texts put again and some not.
        search(&store, "common");
    }
    (store, steps, loaded.text_missing.len())
}

type Model = BTreeMap<u32, (Note, String)>;

fn check_against_model(store: &EmbeddedStore, model: &Model) {
    assert_eq!(store.check().unwrap(), [""; 0]);
    assert_eq!(search(store, "common"), model.keys().copied().collect::<Vec<_>>());
    for (key, (_, text)) in model {
        let own_word = text.split(' ').next().unwrap();
        assert_eq!(search(store, own_word), [*key], "{own_word}");
    }
}

fn search(store: &EmbeddedStore, text: &str) -> Vec<u32> {
    let hits =
        store.search_text(&TextQuery { text: text.to_owned(), limit: 1000, ..TextQuery::default() }).unwrap().hits;
    let mut keys: Vec<u32> = hits.into_iter().map(|hit| hit.key.0).collect();
    keys.sort_unstable();
    keys
}

fn model_after(steps: u64) -> Model {
    let mut model = Model::new();
    (0..steps).for_each(|number| drop(step(number, &mut model)));
    model
}

/// A change that owns what it brings.
enum Step {
    Put(u32, Box<Note>, String),
    Touch(u32, FileStat),
    Remove(u32),
}

/// Changes the model by step `number` of the history, and says how.
fn step(number: u64, model: &mut Model) -> Vec<Step> {
    let mut random = Random(number * 1_000_003 + 17);
    let mut steps = Vec::new();
    for index in 0..1 + random.below(5) {
        let key = random.below(40) as u32;
        let known = model.contains_key(&key);
        // The first always puts, so that no two steps leave the same state.
        steps.push(match random.below(4) {
            0 if known && index > 0 => {
                model.remove(&key);
                Step::Remove(key)
            }
            1 if known && index > 0 => {
                let stat = FileStat { modified_ns: number as i64, size: 1 };
                model.get_mut(&key).unwrap().0.stat = stat;
                Step::Touch(key, stat)
            }
            _ => {
                let letters =
                    |number: u64| number.to_string().bytes().map(|b| char::from(b - b'0' + b'a')).collect::<String>();
                let text = format!("x{}y{} common words", letters(number), letters(index as u64));
                let note = note(&format!("n{key}.md"), &text);
                model.insert(key, (note.clone(), text.clone()));
                Step::Put(key, Box::new(note), text)
            }
        });
    }
    steps
}

fn changes(steps: &[Step]) -> Vec<NoteChange<'_>> {
    fn change(step: &Step) -> NoteChange<'_> {
        match step {
            Step::Put(key, note, text) => NoteChange::Put { key: NoteKey(*key), note, text },
            Step::Touch(key, stat) => NoteChange::Touch { key: NoteKey(*key), stat: *stat },
            Step::Remove(key) => NoteChange::Remove { key: NoteKey(*key) },
        }
    }
    steps.iter().map(change).collect()
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}
