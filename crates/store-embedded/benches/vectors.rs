//! Prints what vectors cost: `cargo bench -p quipu-store-embedded --bench vectors [-- ROWS...]`, 10,000, 100,000 and
//! 300,000 by default, of 384 numbers each, in clusters as texts are.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a bench prints its table and has no caller to tell")]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use quipu_core::model::NoteKey;
use quipu_core::ports::{Grade, NoteChange, NoteSet, NoteStore, VectorQuery, VectorStore};
use quipu_store_embedded::EmbeddedStore;
use quipu_testkit::store_conformance::note;

const DIMENSIONS: usize = 384;
const SECTIONS: usize = 100;
const SPACE: &str = "bench";
const ROUNDS: usize = 100;

/// Which part a process does, and in which folder. Each has its own, so that memory left by one does not count
/// for the next.
const PART: &str = "QUIPU_BENCH_PART";
const FOLDER: &str = "QUIPU_BENCH_FOLDER";

fn main() {
    // Cargo passes `--bench`.
    let arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let mut sizes: Vec<usize> = arguments.map(|count| count.parse().unwrap()).collect();
    if let (Ok(part), Ok(folder)) = (std::env::var(PART), std::env::var(FOLDER)) {
        return run(&part, Path::new(&folder), sizes[0]);
    }
    if sizes.is_empty() {
        sizes = vec![10_000, 100_000, 300_000];
    }
    for rows in sizes {
        let folder = tempfile::tempdir().unwrap();
        println!("{rows} passages of {DIMENSIONS} numbers");
        for part in ["fill", "use"] {
            let mut command = Command::new(std::env::current_exe().unwrap());
            let status = command.arg(rows.to_string()).env(PART, part).env(FOLDER, folder.path()).status();
            assert!(status.unwrap().success());
        }
    }
}

fn run(part: &str, folder: &Path, rows: usize) {
    if part == "fill" {
        return fill(folder, rows);
    }
    let store = load(folder, rows);
    searches(&store, rows);
    updates(&store);
}

fn fill(folder: &Path, rows: usize) {
    let store = EmbeddedStore::open(folder).unwrap();
    store.load("bench").unwrap();
    for first in (0..rows / SECTIONS).step_by(100) {
        let texts: Vec<String> = (first..(first + 100).min(rows / SECTIONS)).map(text).collect();
        let notes: Vec<_> = (first..).zip(&texts).map(|(key, text)| note(&format!("n{key}.md"), text)).collect();
        let changes: Vec<_> = (first as u32..)
            .map(NoteKey)
            .zip(notes.iter().zip(&texts))
            .map(|(key, (note, text))| NoteChange::Put { key, note, text })
            .collect();
        store.apply(&changes).unwrap();
    }
    let mut random = Random(1);
    let (mut listing, mut putting) = (Duration::ZERO, Duration::ZERO);
    loop {
        let start = Instant::now();
        let missing = store.missing(SPACE, Grade::FULL, None, 64).unwrap();
        listing += start.elapsed();
        if missing.is_empty() {
            break;
        }
        let vectors: Vec<_> = missing.iter().map(|passage| (passage.hash, random.vector())).collect();
        let start = Instant::now();
        store.put_vectors(SPACE, Grade::FULL, &vectors).unwrap();
        putting += start.elapsed();
    }
    assert_eq!(store.coverage(SPACE).unwrap().embedded, rows);
    let each = |time: Duration| time.as_secs_f64() * 1e6 / rows as f64;
    println!("  {:<40} {:>8.1} µs", "naming what is missing, a passage", each(listing));
    println!("  {:<40} {:>8.1} µs", "putting, a vector", each(putting));
}

fn load(folder: &Path, rows: usize) -> EmbeddedStore {
    let store = EmbeddedStore::open(folder).unwrap();
    store.load("bench").unwrap();
    let bytes = std::fs::metadata(folder.join("vectors.db")).unwrap().len();
    println!("  {:<40} {:>8} bytes", "on disk, a vector", bytes / rows as u64);
    let before = resident_bytes();
    let start = Instant::now();
    assert_eq!(store.coverage(SPACE).unwrap().embedded, rows);
    println!("  {:<40} {:>8.1} ms", "into memory", start.elapsed().as_secs_f64() * 1e3);
    println!("  {:<40} {:>8} bytes", "in memory, a vector", resident_bytes().saturating_sub(before) / rows as u64);
    store
}

fn searches(store: &EmbeddedStore, rows: usize) {
    let mut random = Random(2);
    let queries: Vec<Vec<f32>> = (0..ROUNDS).map(|_| random.vector()).collect();
    let notes = (rows / SECTIONS) as u32;
    let one_in_ten: NoteSet = (0..notes).step_by(10).map(NoteKey).collect();
    let one_note = NoteSet::from_iter([NoteKey(notes / 2)]);
    let among = |query: &[f32], notes: &NoteSet| {
        store.nearest(&VectorQuery { among: Some(notes), ..VectorQuery::new(SPACE, query, 100) })
    };
    for limit in [1, 10, 100] {
        print_costs(&format!("the closest {limit}"), &queries, |query| {
            assert_eq!(store.nearest(&VectorQuery::new(SPACE, query, limit)).unwrap().len(), limit);
        });
    }
    print_costs("the closest 100 in a tenth of the notes", &queries, |query| {
        assert_eq!(among(query, &one_in_ten).unwrap().len(), 100);
    });
    print_costs("the closest 100 in one note", &queries, |query| {
        assert_eq!(among(query, &one_note).unwrap().len(), 100);
    });
}

fn updates(store: &EmbeddedStore) {
    let mut random = Random(3);
    let edits: Vec<String> = (0..ROUNDS).map(|round| format!("{}\nedit {round}", text(7))).collect();
    print_costs("a note edited", &edits, |text| {
        let note = note("n7.md", text);
        store.apply(&[NoteChange::Put { key: NoteKey(7), note: &note, text }]).unwrap();
    });
    let missing = store.missing(SPACE, Grade::FULL, None, 64).unwrap();
    assert_eq!(missing.len(), 1);
    let grades: Vec<u8> = (1..=ROUNDS as u8).collect();
    print_costs("a vector replaced", &grades, |grade| {
        store.put_vectors(SPACE, Grade(*grade), &[(missing[0].hash, random.vector())]).unwrap();
    });
}

/// Wall time, and the time of all threads on their cores.
fn print_costs<T>(name: &str, over: &[T], mut work: impl FnMut(&T)) {
    let (mut walls, mut cores) = (Vec::new(), Vec::new());
    for item in over {
        let (wall, core) = (Instant::now(), cpu_time());
        work(item);
        walls.push(wall.elapsed());
        cores.push(cpu_time() - core);
    }
    walls.sort_unstable();
    cores.sort_unstable();
    let (half, most) = (over.len() / 2, over.len() * 95 / 100);
    println!(
        "  {name:<40} {:>8.2?} p50, {:.2?} p95; on all cores {:.2?} p50, {:.2?} p95",
        walls[half], walls[most], cores[half], cores[most]
    );
}

fn text(key: usize) -> String {
    (0..SECTIONS).map(|section| format!("## Heading {section}\nThe text of note {key}, section {section}.\n")).collect()
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// Nearly normal, by the sum of four.
    fn number(&mut self) -> f32 {
        (0..4).map(|_| self.next() as f32 / (1_u64 << 31) as f32 - 0.5).sum()
    }

    /// In one of 200 clusters.
    fn vector(&mut self) -> Vec<f32> {
        let mut centre = Random(self.next() % 200 * 7919 + 5);
        (0..DIMENSIONS).map(|_| centre.number() + self.number()).collect()
    }
}

/// Zero where the system does not say.
fn resident_bytes() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "reads what the system says of the process")]
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}

/// CPU time of this process, all threads; zero where the system does not say.
fn cpu_time() -> Duration {
    #[cfg(unix)]
    return rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime).try_into().unwrap();
    #[cfg(not(unix))]
    Duration::ZERO
}
