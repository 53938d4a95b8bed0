//! Prints what the store costs: `cargo bench -p quipu-store-embedded [-- NOTES [FOLDER]]`, 100,000 notes by default.
//!
//! Notes are made of words drawn by Zipf's law from a fixed seed, about 1.5 KB and two sections each; one in sixteen has
//! Chinese text.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a bench prints its table and has no caller to tell")]

use std::path::Path;
use std::time::{Duration, Instant};

use quipu_core::model::{Note, NoteKey};
use quipu_core::ports::{NoteChange, NoteStore, TextQuery};
use quipu_store_embedded::EmbeddedStore;
use quipu_testkit::store_conformance::note;

const BATCH: u32 = 1000;
const VOCABULARY: u64 = 50_000;

fn main() {
    // Cargo passes `--bench`.
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let notes: u32 = arguments.next().map_or(100_000, |count| count.parse().unwrap());
    let folder =
        arguments.next().map_or_else(|| tempfile::tempdir().unwrap(), |path| tempfile::tempdir_in(path).unwrap());
    println!("{notes} notes in {}", folder.path().display());

    let made = Instant::now();
    let texts: Vec<(Note, String)> = (0..notes).map(made_note).collect();
    let bytes: usize = texts.iter().map(|(_, text)| text.len()).sum();
    println!("{:<44} {:>10.0} MB, {:.1} s", "texts made", bytes as f64 / 1e6, made.elapsed().as_secs_f64());

    first_index(folder.path(), &texts);
    warm_start(folder.path());
    let store = EmbeddedStore::open(folder.path()).unwrap();
    store.load("bench").unwrap();
    searches(&store);
    edits(&store, &texts);
    println!("{:<44} {:>10?}", "check", timed(|| assert_eq!(store.check().unwrap(), [""; 0])));
}

fn first_index(folder: &Path, texts: &[(Note, String)]) {
    let cpu = cpu_time();
    let wall = Instant::now();
    let store = EmbeddedStore::open(folder).unwrap();
    store.load("bench").unwrap();
    for (batch, chunk) in (0..).zip(texts.chunks(BATCH as usize)) {
        let keys = (batch * BATCH..).map(NoteKey);
        let changes: Vec<_> = keys.zip(chunk).map(|(key, (note, text))| NoteChange::Put { key, note, text }).collect();
        store.apply(&changes).unwrap();
    }
    let applied = wall.elapsed();
    store.search_text(&TextQuery { text: "w1".to_owned(), limit: 1, ..TextQuery::default() }).unwrap();
    println!("{:<44} {:>10?} until applied, {:?} until found", "first index", applied, wall.elapsed());
    let stats = store.stats().unwrap();
    drop(store);
    println!("{:<44} {:>10.1} s", "first index, CPU of all threads", (cpu_time() - cpu).as_secs_f64());
    println!("{:<44} {:>10.0} MB, {} sections", "on disk", stats.bytes_on_disk as f64 / 1e6, stats.sections);
}

fn warm_start(folder: &Path) {
    for _ in 0..3 {
        let mut store = None;
        let open = timed(|| store = Some(EmbeddedStore::open(folder).unwrap()));
        let store = store.unwrap();
        let before = cpu_time();
        let load = timed(|| assert_eq!(store.load("bench").unwrap().text_missing, []));
        let cpu = cpu_time() - before;
        println!("{:<44} {open:>10.1?} open, {load:.1?} load, CPU of all threads {cpu:.1?}", "warm start");
    }
}

fn searches(store: &EmbeddedStore) {
    let kinds: [(&str, &dyn Fn(u64) -> String); 7] = [
        ("one common word", &|n| word(n % 20)),
        ("one rare word", &|n| word(20_000 + n)),
        ("two common words", &|n| format!("{} {}", word(n % 20), word(n % 17 + 3))),
        ("six words, common and rare", &|n| words(6, |i| n * 7 % 40 * i * i * 9)),
        ("any of eight, one unknown", &|n| format!("{} unknownword", words(7, |i| n * 3 + i * 5))),
        ("one Chinese character", &|n| han(n % 50).to_string()),
        ("two Chinese characters", &|n| format!("{}{}", han(n % 30), han(n % 7))),
    ];
    for (name, query) in kinds {
        let queries = (0..200).map(|n| TextQuery { text: query(n), limit: 50, ..TextQuery::default() });
        let costs = queries.map(|query| cost(|| drop(store.search_text(&query).unwrap()))).collect();
        print_costs(&format!("search: {name}"), costs);
    }
}

fn edits(store: &EmbeddedStore, texts: &[(Note, String)]) {
    let (mut applies, mut finds) = (Vec::new(), Vec::new());
    for (key, (note, text)) in (0..).map(NoteKey).zip(texts.iter().take(200)) {
        applies.push(cost(|| store.apply(&[NoteChange::Put { key, note, text }]).unwrap()));
        finds.push(cost(|| {
            drop(store.search_text(&TextQuery { text: word(20_000), limit: 10, ..TextQuery::default() }).unwrap());
        }));
    }
    print_costs("apply of one note", applies);
    print_costs("search right after it, with its commit", finds);
}

/// Wall time, and what the calling thread had of a core: on a busy machine the second is the one to compare.
fn print_costs(name: &str, costs: Vec<(Duration, Duration)>) {
    let (mut wall, mut cpu): (Vec<_>, Vec<_>) = costs.into_iter().unzip();
    wall.sort_unstable();
    cpu.sort_unstable();
    let (half, most) = (wall.len() / 2, wall.len() * 95 / 100);
    println!(
        "{name:<44} {:>10.1?} p50, {:.1?} p95; on the core {:.1?} p50, {:.1?} p95",
        wall[half], wall[most], cpu[half], cpu[most]
    );
}

fn words(count: u64, rank: impl Fn(u64) -> u64) -> String {
    (0..count).map(|index| word(rank(index))).collect::<Vec<_>>().join(" ")
}

/// A note of about 1.5 KB.
fn made_note(key: u32) -> (Note, String) {
    let mut random = Random(u64::from(key) * 2 + 1);
    let mut text = String::with_capacity(1600);
    for section in 0..2 {
        if section > 0 {
            text.push_str(&format!("\n## {} {}\n", random.word(), random.word()));
        }
        if key.is_multiple_of(16) {
            (0..240).for_each(|_| text.push(han(random.zipf(3000))));
        } else {
            while text.len() < (section + 1) * 750 {
                text.push_str(&random.word());
                text.push(' ');
            }
        }
    }
    let mut note = note(&format!("folder{}/{} {key}.md", key % 100, random.word()), &text);
    note.tags = vec![quipu_core::model::Tag::new(&random.word())];
    (note, text)
}

fn word(rank: u64) -> String {
    // Letters that look like a word, other ones for each rank.
    let mut rest = rank * 7919 % VOCABULARY;
    let mut word = String::from("w");
    while rest > 0 {
        word.push(char::from(b'a' + (rest % 20) as u8));
        word.push(char::from(b"aeiou"[(rest % 5) as usize]));
        rest /= 20;
    }
    word
}

fn han(rank: u64) -> char {
    char::from_u32(0x4e00 + (rank * 101 % 5000) as u32).unwrap()
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// A rank below `n`, the lower the likelier.
    fn zipf(&mut self, n: u64) -> u64 {
        let uniform = self.next() as f64 / (1_u64 << 31) as f64;
        ((n as f64).powf(uniform) - 1.0) as u64
    }

    fn word(&mut self) -> String {
        word(self.zipf(VOCABULARY))
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn cost(work: impl FnOnce()) -> (Duration, Duration) {
    let before = thread_time();
    let wall = timed(work);
    (wall, thread_time() - before)
}

/// CPU time of the calling thread; zero where the system does not say.
fn thread_time() -> Duration {
    #[cfg(unix)]
    return clock(rustix::time::ClockId::ThreadCPUTime);
    #[cfg(not(unix))]
    Duration::ZERO
}

/// CPU time of this process, all threads; zero where the system does not say.
fn cpu_time() -> Duration {
    #[cfg(unix)]
    return clock(rustix::time::ClockId::ProcessCPUTime);
    #[cfg(not(unix))]
    Duration::ZERO
}

#[cfg(unix)]
fn clock(id: rustix::time::ClockId) -> Duration {
    rustix::time::clock_gettime(id).try_into().unwrap()
}
