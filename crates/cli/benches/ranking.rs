//! How well searches rank: one judged set against its vault, by words, by meaning and by everything, with coarse vectors,
//! with full ones, and with half of each, beside plain BM25. How many of the queries, and of made-up words, find anything.
//! Run by `cargo xtask eval`, which lays the vault out; prints one JSON line.
#![expect(clippy::print_stdout, reason = "a measurement tells its figures")]
#![expect(clippy::disallowed_methods, reason = "reads a judged set")]

#[path = "common/bigrams.rs"]
mod bigrams;
#[path = "common/open.rs"]
mod open;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use bigrams::Bigrams;
use quipu_core::Knowledge;
use quipu_core::model::NoteKey;
use quipu_core::ports::{
    Calibration, Coverage, Embedder, Grade, MissingVector, NoteSet, PassageHash, Role, StoreError, VectorHit,
    VectorQuery, VectorStore,
};
use quipu_core::search::{Effort, Meaning, NoteSearch, RankingSources, Round, Weights};
use quipu_embed::Builtin;
use quipu_store_embedded::EmbeddedStore;
use quipu_testkit::generate::Random;
use rayon::prelude::*;
use serde::Deserialize;
use serde_json::json;

/// How deep a ranking is looked at.
const DEPTH: usize = 100;

/// How many queries of made-up words are asked.
const MADE_UP: usize = 100;

/// Weights of meaning to choose from.
const WEIGHTS: [f32; 15] = [0.1, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9];

/// How many of the closest sections are compared between coarse and full vectors.
const NEAREST: usize = 50;

#[derive(Deserialize)]
struct Query {
    id: String,
    text: String,
    /// Pages that link with these very words, and would be found for that.
    #[serde(default)]
    exclude: HashSet<String>,
}

type Judged = HashMap<String, HashMap<String, f64>>;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let mut next = || arguments.next().context("usage: ranking VAULT QUERIES QRELS [MOST [words|weights]]");
    let (vault, queries, judged) = (PathBuf::from(next()?), PathBuf::from(next()?), PathBuf::from(next()?));
    let most: usize = arguments.next().map_or(Ok(usize::MAX), |most| most.parse())?;
    let mode = arguments.next();

    let queries: Vec<Query> = std::fs::read_to_string(queries)?
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()
        .context("a query is not as expected")?;
    let judged = read_judged(&judged)?;
    let mut asked: Vec<&Query> = queries.iter().filter(|query| judged.contains_key(&query.id)).collect();
    // Every so-many-th where there are too many, so that all kinds are among them.
    let step = asked.len().div_ceil(most.max(1)).max(1);
    asked = asked.into_iter().step_by(step).collect();

    let mut report = Report { vault, asked, judged, arms: serde_json::Map::new() };
    if mode.as_deref() == Some("words") {
        let (knowledge, _) = open::open(&report.vault, "index-words")?;
        knowledge.start(&|_| {})?;
        report.add("words", &knowledge, RankingSources::Words)?;
        return report.print(&knowledge, &json!({}));
    }
    let model = Arc::new(Builtin::new());
    let (mut knowledge, stores) = open(&report.vault, &model)?;
    if mode.as_deref() == Some("weights") {
        return report.print_weights(knowledge, &stores, &model);
    }
    let both = RankingSources::Everything;
    let states: [(&str, RankingSources, IsFull); 6] = [
        ("words", RankingSources::Words, |_| true),
        ("meaning", RankingSources::Meaning, |_| true),
        ("meaning_coarse", RankingSources::Meaning, |_| false),
        ("coarse", both, |_| false),
        ("half", both, |key| key.0 % 2 == 0),
        ("full", both, |_| true),
    ];
    for (name, by, is_full) in states {
        let vectors = Mixed { is_full, stores: stores.clone() };
        knowledge = knowledge.with_meaning(Meaning::new(model.clone(), Arc::new(vectors)));
        report.add(name, &knowledge, by)?;
    }
    let similarities = compare(&stores, &model, &report.asked)?;
    report.print(&knowledge, &similarities)
}

/// What is asked, and how each way to search did.
struct Report<'q> {
    vault: PathBuf,
    asked: Vec<&'q Query>,
    judged: Judged,
    arms: serde_json::Map<String, serde_json::Value>,
}

impl Report<'_> {
    fn add(&mut self, arm: &str, knowledge: &Knowledge, by: RankingSources) -> anyhow::Result<()> {
        let ranked = |query: &&Query| {
            let search = NoteSearch { by, ..NoteSearch::new(&query.text, DEPTH + query.exclude.len()) };
            let ranked = rank(knowledge, &search)?;
            Ok((!ranked.is_empty(), score(&ranked, query, &self.judged[&query.id])))
        };
        let answers: Vec<(bool, [f64; 3])> = self.asked.par_iter().map(ranked).collect::<anyhow::Result<_>>()?;
        let is_answered =
            |text: String| Ok(!rank(knowledge, &NoteSearch { by, ..NoteSearch::new(&text, 1) })?.is_empty());
        let made_up = made_up().into_par_iter().map(is_answered);
        let made_up: Vec<bool> = made_up.collect::<anyhow::Result<_>>()?;
        let share = |answered: Vec<bool>| {
            answered.iter().filter(|answered| **answered).count() as f64 / answered.len().max(1) as f64
        };
        let (answered, scores): (Vec<bool>, Vec<[f64; 3]>) = answers.into_iter().unzip();
        let mut measures = means(&scores);
        measures["answered"] = share(answered).into();
        measures["made_up_answered"] = share(made_up).into();
        self.arms.insert(arm.to_owned(), measures);
        Ok(())
    }

    /// nDCG by the weight of meaning, with full vectors and with coarse ones.
    fn print_weights(self, mut knowledge: Knowledge, stores: &Arc<Stores>, model: &Arc<Builtin>) -> anyhow::Result<()> {
        let grades: [(&str, IsFull); 2] = [("full", |_| true), ("coarse", |_| false)];
        let mut by_grade = serde_json::Map::new();
        for (grade, is_full) in grades {
            let vectors = Mixed { is_full, stores: stores.clone() };
            knowledge = knowledge.with_meaning(Meaning::new(model.clone(), Arc::new(vectors)));
            let ndcg = |weight: &f32| {
                let weights = Weights { meaning: *weight, coarse: *weight };
                let of_query = |query: &&Query| {
                    let search = NoteSearch { weights, ..NoteSearch::new(&query.text, DEPTH + query.exclude.len()) };
                    Ok(score(&rank(&knowledge, &search)?, query, &self.judged[&query.id])[0])
                };
                let scores: Vec<f64> = self.asked.par_iter().map(of_query).collect::<anyhow::Result<_>>()?;
                Ok(scores.iter().sum::<f64>() / scores.len().max(1) as f64)
            };
            let by_weight = WEIGHTS.iter().map(ndcg).collect::<anyhow::Result<Vec<f64>>>()?;
            by_grade.insert(grade.to_owned(), json!(by_weight));
        }
        println!("{}", json!({"weights": WEIGHTS, "ndcg": by_grade}));
        Ok(())
    }

    fn print(mut self, knowledge: &Knowledge, similarities: &serde_json::Value) -> anyhow::Result<()> {
        let snapshot = knowledge.snapshot();
        let texts = snapshot.files().map(|key| {
            let note = snapshot.note(key);
            let text = std::fs::read_to_string(self.vault.join(note.path.as_str()))?;
            Ok((document(note.path.as_str()), format!("{}\n{}", note.title, &text[note.body_start..])))
        });
        let bigrams = Bigrams::new(texts.collect::<std::io::Result<Vec<_>>>()?.into_iter());
        let scores: Vec<[f64; 3]> = self
            .asked
            .par_iter()
            .map(|query| {
                let ranked = bigrams.rank(&query.text, DEPTH + query.exclude.len());
                score(&ranked.into_iter().map(str::to_owned).collect::<Vec<_>>(), query, &self.judged[&query.id])
            })
            .collect();
        self.arms.insert("bigrams".to_owned(), means(&scores));
        let (queries, notes) = (self.asked.len(), snapshot.files().len());
        println!("{}", json!({"queries": queries, "notes": notes, "arms": self.arms, "similarities": similarities}));
        Ok(())
    }
}

fn means(scores: &[[f64; 3]]) -> serde_json::Value {
    let mean = |place: usize| scores.iter().map(|score| score[place]).sum::<f64>() / scores.len().max(1) as f64;
    json!({"ndcg": mean(0), "mrr": mean(1), "recall": mean(2)})
}

/// Words that no language has, so that a search should find nothing: syllables, and letters in any order.
fn made_up() -> Vec<String> {
    let mut random = Random(18);
    let mut pick = |letters: &str| {
        let letters: Vec<char> = letters.chars().collect();
        letters[random.below(letters.len())]
    };
    let mut word = |kind: usize| -> String {
        let length = 3 + usize::from(pick("abcd") > 'b');
        match kind {
            0 => (0..length).flat_map(|_| [pick("bdfgjkpqvwxz"), pick("aeiouy")]).collect(),
            1 => (0..2 * length).map(|_| pick("bcdfghjklmnpqrstvwxz")).collect(),
            2 => (0..length).map(|_| pick("ゐゑぬぽぴゅぎゃぷべゎヴヰヱ")).collect(),
            _ => (0..length).map(|_| pick("жщцфхъэюыйяшч")).collect(),
        }
    };
    (0..MADE_UP).map(|place| [word(place % 4), word(place % 4)].join(" ")).collect()
}

/// The vault with vectors of both grades, each in an index of its own.
fn open(vault: &Path, model: &Arc<Builtin>) -> anyhow::Result<(Knowledge, Arc<Stores>)> {
    let open = |index| -> anyhow::Result<_> {
        let (knowledge, store) = open::open(vault, index)?;
        let knowledge = knowledge.with_meaning(Meaning::new(model.clone(), store.clone()));
        knowledge.start(&|_| {})?;
        Ok((knowledge, store))
    };
    let (knowledge, full) = open("index")?;
    while knowledge.embed_some(256, Effort::EveryCore)? != Round::Idle {}
    let (roughly, coarse) = open("index-coarse")?;
    roughly.embed_coarse(&|_| true)?;
    let (ours, theirs) = (knowledge.snapshot(), roughly.snapshot());
    let by_path: HashMap<&str, NoteKey> = ours.files().map(|key| (ours.note(key).path.as_str(), key)).collect();
    let key = |key| Some((key, *by_path.get(theirs.note(key).path.as_str())?));
    let keys: HashMap<NoteKey, NoteKey> = theirs.files().filter_map(key).collect();
    let of_ours = keys.iter().map(|(theirs, ours)| (*ours, *theirs)).collect();
    Ok((knowledge, Arc::new(Stores { full, coarse, keys, of_ours })))
}

/// The vectors of both grades.
struct Stores {
    full: Arc<EmbeddedStore>,
    coarse: Arc<EmbeddedStore>,
    /// The notes of the coarse index as the full one calls them.
    keys: HashMap<NoteKey, NoteKey>,
    /// The other way round.
    of_ours: HashMap<NoteKey, NoteKey>,
}

/// Whether a note has full vectors.
type IsFull = fn(NoteKey) -> bool;

/// An index in which some notes have full vectors and the others coarse ones.
struct Mixed {
    is_full: IsFull,
    stores: Arc<Stores>,
}

impl VectorStore for Mixed {
    fn nearest(&self, query: &VectorQuery<'_>) -> Result<Vec<VectorHit>, StoreError> {
        let Stores { full, coarse, keys, .. } = &*self.stores;
        let admitted = keys.iter().filter(|(_, key)| query.admits(**key));
        let (is_full, is_coarse): (Vec<_>, Vec<_>) = admitted.partition(|(_, key)| (self.is_full)(**key));
        let is_full: NoteSet = is_full.into_iter().map(|(_, key)| *key).collect();
        let is_coarse: NoteSet = is_coarse.into_iter().map(|(key, _)| *key).collect();
        let mut hits = full.nearest(&VectorQuery { among: Some(&is_full), ..*query })?;
        let others = coarse.nearest(&VectorQuery { among: Some(&is_coarse), ..*query })?;
        hits.extend(others.into_iter().map(|hit| VectorHit { key: keys[&hit.key], ..hit }));
        hits.sort_by(|a, b| b.similarity.total_cmp(&a.similarity).then((a.key, a.section).cmp(&(b.key, b.section))));
        hits.truncate(query.limit);
        Ok(hits)
    }

    fn similarities(
        &self,
        query: &VectorQuery<'_>,
        sections: &[(NoteKey, usize)],
    ) -> Result<Vec<Option<f32>>, StoreError> {
        let Stores { full, coarse, of_ours, .. } = &*self.stores;
        let none = NoteKey(u32::MAX);
        let in_coarse: Vec<(NoteKey, usize)> =
            sections.iter().map(|(key, section)| (of_ours.get(key).copied().unwrap_or(none), *section)).collect();
        let by_grade = full.similarities(query, sections)?.into_iter().zip(coarse.similarities(query, &in_coarse)?);
        let of_section =
            |((key, _), (full, coarse)): (&(NoteKey, usize), _)| if (self.is_full)(*key) { full } else { coarse };
        Ok(sections.iter().zip(by_grade).map(of_section).collect())
    }

    fn coverage(&self, space: &str) -> Result<Coverage, StoreError> {
        self.stores.full.coverage(space)
    }

    fn missing(&self, _: &str, _: Grade, _: Option<&[NoteKey]>, _: usize) -> Result<Vec<MissingVector>, StoreError> {
        Ok(Vec::new())
    }

    fn put_vectors(&self, _: &str, _: Grade, _: &[(PassageHash, Vec<f32>)]) -> Result<(), StoreError> {
        Ok(())
    }
}

/// How similar the closest sections are by coarse and by full vectors (mean and deviation, each for a query, then their
/// means), and which share of the ten closest sections the full half of a half and half index has, where it should be half.
fn compare(stores: &Arc<Stores>, model: &Builtin, asked: &[&Query]) -> anyhow::Result<serde_json::Value> {
    // Either half once, since one may have more of what is asked for.
    let half = |is_full: IsFull| Mixed { is_full, stores: stores.clone() };
    let halves = [half(|key| key.0 % 2 == 0), half(|key| key.0 % 2 == 1)];
    let of_query = |query: &&Query| -> anyhow::Result<[f64; 5]> {
        let vector = model.embed(Role::Query, &[&query.text])?.remove(0);
        let nearest = |store: &dyn VectorStore, calibration, limit| {
            store.nearest(&VectorQuery { calibration, ..VectorQuery::new(model.space(), &vector, limit) })
        };
        let spread = |store: &dyn VectorStore| -> anyhow::Result<(f64, f64)> {
            let hits = nearest(store, Calibration::NONE, NEAREST)?;
            let count = hits.len().max(1) as f64;
            let mean = hits.iter().map(|hit| f64::from(hit.similarity)).sum::<f64>() / count;
            let squares = hits.iter().map(|hit| (f64::from(hit.similarity) - mean).powi(2)).sum::<f64>();
            Ok((mean, (squares / count).sqrt()))
        };
        let (coarse, full) = (spread(&*stores.coarse)?, spread(&*stores.full)?);
        let mut best = nearest(&halves[0], model.coarse_calibration(), 10)?;
        best.extend(nearest(&halves[1], model.coarse_calibration(), 10)?);
        let full_share = best.iter().filter(|hit| hit.grade == Grade::FULL).count() as f64 / best.len().max(1) as f64;
        Ok([coarse.0, coarse.1, full.0, full.1, full_share])
    };
    let all: Vec<[f64; 5]> = asked.par_iter().map(of_query).collect::<Result<_, _>>()?;
    let mean = |place: usize| all.iter().map(|of| of[place]).sum::<f64>() / all.len().max(1) as f64;
    Ok(json!({"coarse": [mean(0), mean(1)], "full": [mean(2), mean(3)], "full_share": mean(4)}))
}

fn read_judged(file: &Path) -> anyhow::Result<Judged> {
    let mut judged = Judged::new();
    for line in std::fs::read_to_string(file)?.lines().skip(1) {
        let mut columns = line.split('\t');
        let (Some(query), Some(document), Some(score)) = (columns.next(), columns.next(), columns.next()) else {
            continue;
        };
        judged.entry(query.to_owned()).or_default().insert(document.to_owned(), score.trim().parse()?);
    }
    Ok(judged)
}

/// The documents found, best first.
fn rank(knowledge: &Knowledge, search: &NoteSearch<'_>) -> anyhow::Result<Vec<String>> {
    let found = knowledge.search(search)?;
    Ok(found.found.iter().map(|note| document(found.snapshot.note(note.key).path.as_str())).collect())
}

/// nDCG and reciprocal rank at 10, recall at 100.
fn score(ranked: &[String], query: &Query, judged: &HashMap<String, f64>) -> [f64; 3] {
    let ranked = ranked.iter().filter(|document| !query.exclude.contains(*document)).take(DEPTH);
    let ranked: Vec<f64> = ranked.map(|document| judged.get(document).copied().unwrap_or(0.0)).collect();
    let gain = |(place, score): (usize, &f64)| (score.exp2() - 1.0) / (place as f64 + 2.0).log2();
    let mut ideal: Vec<f64> = judged.values().copied().collect();
    ideal.sort_by(|a, b| b.total_cmp(a));
    let best: f64 = ideal.iter().take(10).enumerate().map(gain).sum();
    let ndcg = if best > 0.0 { ranked.iter().take(10).enumerate().map(gain).sum::<f64>() / best } else { 0.0 };
    let first = ranked.iter().take(10).position(|score| *score > 0.0);
    let relevant = judged.values().filter(|score| **score > 0.0).count().max(1);
    let found = ranked.iter().filter(|score| **score > 0.0).count();
    [ndcg, first.map_or(0.0, |place| 1.0 / (place as f64 + 1.0)), found as f64 / relevant as f64]
}

/// A set's own id of a document: the path in a real vault, the percent-decoded stem in one that was laid out.
fn document(path: &str) -> String {
    match path.strip_prefix("documents/") {
        Some(name) => name.strip_suffix(".md").unwrap_or(name).replace("%2f", "/").replace("%25", "%"),
        None => path.to_owned(),
    }
}
