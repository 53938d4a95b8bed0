//! Memory and search time of vectors in a store in memory, as a server on a database has one: `cargo run --release -p
//! quipu-store-embedded --example measure_vectors -- 200000`. The vectors are random, of 384 dimensions.

#![expect(clippy::print_stdout, reason = "it is a program for people")]
#![expect(clippy::disallowed_methods, reason = "it reads its own size from /proc")]

use std::time::Instant;

use quipu_core::model::{Note, NoteKey};
use quipu_core::ports::{Grade, NoteChange, NoteStore, VectorQuery, VectorStore};
use quipu_core::search::passages;
use quipu_store_embedded::EmbeddedStore;
use quipu_testkit::generate::Random;
use quipu_testkit::store_conformance::note;

const DIMENSIONS: usize = 384;
const SPACE: &str = "random";
const BATCH: usize = 1000;
const QUERIES: u32 = 20;

fn vector(random: &mut Random) -> Vec<f32> {
    let numbers: Vec<f32> = (0..DIMENSIONS).map(|_| random.below(2001) as f32 - 1000.0).collect();
    let length = numbers.iter().map(|number| number * number).sum::<f32>().sqrt();
    numbers.iter().map(|number| number / length).collect()
}

/// Resident memory of this process.
fn resident_bytes() -> Option<usize> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?.split(' ').nth(1)?.parse::<usize>().ok()?;
    Some(pages * 4096)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: usize = std::env::args().nth(1).map_or(Ok(100_000), |count| count.parse())?;
    let store = EmbeddedStore::in_memory()?;
    store.load("measure")?;
    let mut hashes = Vec::with_capacity(count);
    let numbers: Vec<u32> = (0..u32::try_from(count)?).collect();
    for numbers in numbers.chunks(BATCH) {
        let text = |number: &u32| format!("passage {number}");
        let notes: Vec<(Note, String)> =
            numbers.iter().map(|number| (note(&format!("{number}.md"), &text(number)), text(number))).collect();
        hashes.extend(notes.iter().flat_map(|(note, text)| passages(note, text)).map(|passage| passage.hash()));
        let puts = numbers.iter().zip(&notes);
        let puts = puts.map(|(number, (note, text))| NoteChange::Put { key: NoteKey(*number), note, text });
        store.apply(&puts.collect::<Vec<_>>())?;
    }
    let mut random = Random(1);
    let query = vector(&mut random);
    store.nearest(&VectorQuery::new(SPACE, &query, 10))?;
    let before = resident_bytes().ok_or("no /proc")?;
    for hashes in hashes.chunks(BATCH) {
        let vectors: Vec<_> = hashes.iter().map(|hash| (*hash, vector(&mut random))).collect();
        store.put_vectors(SPACE, Grade::FULL, &vectors)?;
    }
    let bytes = resident_bytes().ok_or("no /proc")?.saturating_sub(before);
    let started = Instant::now();
    for _ in 0..QUERIES {
        store.nearest(&VectorQuery::new(SPACE, &vector(&mut random), 10))?;
    }
    let passages = hashes.len();
    let ms = (started.elapsed() / QUERIES).as_secs_f64() * 1000.0;
    println!("{passages} passages: {} bytes each, {ms:.2} ms for an exact search", bytes / passages);
    Ok(())
}
