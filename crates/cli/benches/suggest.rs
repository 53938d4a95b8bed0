//! How good suggestions are, on real vaults: tags of a note from the other notes, summaries against those that pages have in their
//! frontmatter, names against what authors link. `cargo bench -p quipu --bench suggest -- VAULT...` prints three tables, for the half
//! of the notes on which no weight was chosen. With `--tune` it chooses weights on the other half and prints them. Each vault gets
//! an index in `.quipu/suggest`: give it copies.
#![expect(clippy::print_stdout, reason = "a measurement tells its figures")]

#[path = "common/open.rs"]
mod open;

#[path = "suggest/entities.rs"]
mod entities;
#[path = "suggest/summaries.rs"]
mod summaries;
#[path = "suggest/tags.rs"]
mod tags;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::ensure;
use quipu_core::index::Snapshot;
use quipu_core::model::NoteKey;
use quipu_core::search::Meaning;
use quipu_core::{Knowledge, Session};
use quipu_embed::Builtin;

use open::open;

/// Notes measured in one vault, of both halves together.
const MOST: usize = 800;

/// A vault with every note in the index, and coarse vectors.
struct Vault {
    name: String,
    knowledge: Knowledge,
    snapshot: Arc<Snapshot>,
}

impl Vault {
    fn open(path: &Path) -> anyhow::Result<Self> {
        let (knowledge, store) = open(path, "suggest")?;
        let knowledge = knowledge.with_meaning(Meaning::new(Arc::new(Builtin::new()), store));
        knowledge.start(&|_| {})?;
        knowledge.embed_coarse(&|_| true)?;
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Ok(Self { name, snapshot: knowledge.snapshot(), knowledge })
    }

    /// Notes of a half, evenly from all that are fit to be measured.
    fn sample(&self, half: Half, is_fit: impl Fn(NoteKey) -> bool) -> Vec<NoteKey> {
        let fit: Vec<NoteKey> = self.snapshot.files().filter(|key| is_fit(*key)).collect();
        let step = fit.len().div_ceil(MOST).max(1);
        let in_half = |key: &NoteKey| Half::of(self.snapshot.note(*key).path.as_str()) == half;
        fit.into_iter().step_by(step).filter(in_half).collect()
    }

    fn body(&self, key: NoteKey) -> anyhow::Result<String> {
        let path = self.snapshot.note(key).path.as_str();
        let read = self.knowledge.read(&Session::default(), path)?;
        Ok(read.map(|read| read.body().to_owned()).unwrap_or_default())
    }
}

/// Weights are chosen on one half of the notes, and measured on the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    Tune,
    Test,
}

impl Half {
    /// By a hash of the path (FNV-1a), so that the same notes are in the same half in every run.
    fn of(path: &str) -> Self {
        let hash = path
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        if (hash >> 32) % 2 == 0 { Self::Tune } else { Self::Test }
    }
}

/// The best of some weights by a score: one weight at a time takes each of its values, until none is better. The same result in
/// every run, and nothing else decides.
fn tuned<W: Copy>(start: W, variants: &[&dyn Fn(W) -> Vec<W>], score: impl Fn(&W) -> f64) -> (W, f64) {
    let (mut best, mut best_score) = (start, score(&start));
    loop {
        let before = best_score;
        for variant in variants {
            for candidate in variant(best) {
                let found = score(&candidate);
                if found > best_score + 1e-6 {
                    (best, best_score) = (candidate, found);
                }
            }
        }
        if best_score <= before {
            return (best, best_score);
        }
    }
}

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let (options, vaults): (Vec<String>, Vec<String>) =
        arguments.into_iter().partition(|argument| argument.starts_with("--"));
    ensure!(!vaults.is_empty(), "usage: suggest [--tune] VAULT...");
    let vaults = vaults.iter().map(|path| Vault::open(&PathBuf::from(path))).collect::<anyhow::Result<Vec<_>>>()?;
    if options.iter().any(|option| option == "--tune") {
        tags::tune(&vaults)?;
        return summaries::tune(&vaults);
    }
    tags::measure(&vaults)?;
    summaries::measure(&vaults)?;
    entities::measure(&vaults)
}

fn percent(part: usize, whole: usize) -> String {
    format!("{:.0} %", part as f64 / whole.max(1) as f64 * 100.0)
}
