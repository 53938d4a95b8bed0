//! Tags of a note from the other notes: its own are hidden.

use std::collections::{BTreeMap, HashSet};

use quipu_core::model::NoteKey;
use quipu_core::parse::inline_tags;
use quipu_core::suggest::{TagSigns, TagWeights, plain_text};

use super::{Half, Vault, percent, tuned};

/// Suggestions that count.
const AT: usize = 5;

/// Fewer notes with tags than this in a half say nothing about a vault.
const LEAST_NOTES: usize = 20;

/// A note whose tags are hidden.
struct Case<'v> {
    signs: TagSigns<'v>,
    /// Its tags, but for those of no other note, which cannot be found.
    wanted: HashSet<&'v str>,
    most_similar: Vec<&'v str>,
}

struct Cases<'v> {
    cases: Vec<Case<'v>>,
    /// Tags of the vault, most frequent first.
    frequent: Vec<&'v str>,
}

/// Hits, suggestions and tags to find, summed over notes.
#[derive(Default, Clone, Copy)]
struct Tally {
    hits: usize,
    suggested: usize,
    wanted: usize,
}

impl Tally {
    fn add<'t>(&mut self, suggested: impl IntoIterator<Item = &'t str>, wanted: &HashSet<&str>) {
        for tag in suggested.into_iter().take(AT) {
            self.suggested += 1;
            self.hits += usize::from(wanted.contains(tag));
        }
        self.wanted += wanted.len();
    }

    fn f1(&self) -> f64 {
        2.0 * self.hits as f64 / (self.suggested + self.wanted).max(1) as f64
    }

    fn shown(&self) -> String {
        let (precision, recall) = (percent(self.hits, self.suggested), percent(self.hits, self.wanted));
        format!("{precision} / {recall} / {:.0} %", self.f1() * 100.0)
    }
}

impl<'v> Cases<'v> {
    fn of(vault: &'v Vault, half: Half) -> anyhow::Result<Self> {
        let snapshot = &*vault.snapshot;
        let tags = |key: NoteKey| snapshot.note(key).tags.iter().map(|tag| tag.folded.as_str());
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        snapshot.files().flat_map(tags).for_each(|tag| *counts.entry(tag).or_default() += 1);
        let wanted = |key: NoteKey| -> HashSet<&str> { tags(key).filter(|tag| counts[tag] > 1).collect() };
        let mut cases = Vec::new();
        for key in vault.sample(half, |key| !wanted(key).is_empty()) {
            let signs = vault.knowledge.tag_signs(snapshot, key, &plain_text(&without_tags(&vault.body(key)?)))?;
            let most_similar = signs.most_similar().into_iter().flat_map(tags).collect();
            cases.push(Case { signs, wanted: wanted(key), most_similar });
        }
        let mut frequent: Vec<&str> = counts.keys().copied().collect();
        frequent.sort_by_key(|tag| std::cmp::Reverse(counts[tag]));
        Ok(Self { cases, frequent })
    }

    fn suggested(&self, weights: &TagWeights) -> Tally {
        let mut tally = Tally::default();
        for case in &self.cases {
            let mut found = case.signs.ranked(weights);
            weights.leave_doubtful_out(&mut found);
            let folded: Vec<String> = found.iter().take(AT).map(|found| found.tag.to_lowercase()).collect();
            tally.add(folded.iter().map(String::as_str), &case.wanted);
        }
        tally
    }

    fn baseline<'c>(&'c self, suggested: impl Fn(&'c Case<'v>) -> &'c [&'v str]) -> Tally {
        let mut tally = Tally::default();
        self.cases.iter().for_each(|case| tally.add(suggested(case).iter().copied(), &case.wanted));
        tally
    }
}

/// A text without its inline tags: each would give itself away.
fn without_tags(body: &str) -> String {
    let mut blanked = body.to_owned();
    for (_, at) in inline_tags(body).into_iter().rev() {
        // The `#` is one byte before the name.
        blanked.replace_range(at.start - 1..at.end, " ");
    }
    blanked
}

pub(super) fn measure(vaults: &[Vault]) -> anyhow::Result<()> {
    println!(
        "| vault | notes | tags | `suggest_tags`: precision / recall / F1 | tags of the most similar note | five most frequent tags |"
    );
    println!("|---|--:|--:|--:|--:|--:|");
    for vault in vaults {
        let cases = Cases::of(vault, Half::Test)?;
        if cases.cases.len() < LEAST_NOTES {
            continue;
        }
        let (ours, similar) = (cases.suggested(&TagWeights::CHOSEN), cases.baseline(|case| &case.most_similar));
        let frequent = cases.baseline(|_| &cases.frequent);
        let (notes, tags) = (cases.cases.len(), cases.frequent.len());
        let (name, ours, similar, frequent) = (&vault.name, ours.shown(), similar.shown(), frequent.shown());
        println!("| {name} | {notes} | {tags} | {ours} | {similar} | {frequent} |");
    }
    println!();
    Ok(())
}

/// Chooses the weights with the best F1, averaged over vaults.
pub(super) fn tune(vaults: &[Vault]) -> anyhow::Result<()> {
    let all = vaults.iter().map(|vault| Cases::of(vault, Half::Tune)).collect::<anyhow::Result<Vec<_>>>()?;
    let all: Vec<Cases<'_>> = all.into_iter().filter(|cases| cases.cases.len() >= LEAST_NOTES).collect();
    let score = |weights: &TagWeights| {
        all.iter().map(|cases| cases.suggested(weights).f1()).sum::<f64>() / all.len().max(1) as f64
    };
    const SHARES: [f32; 11] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];
    let (best, f1) = tuned(
        TagWeights { steepness: 1, linked: 0.0, in_title: 0.0, in_text: 0.0, in_folder: 0.0, least_share: 0.0 },
        &[
            &|weights| [1, 2, 3, 4, 6, 8].map(|steepness| TagWeights { steepness, ..weights }).to_vec(),
            &|weights| SHARES.map(|linked| TagWeights { linked, ..weights }).to_vec(),
            &|weights| SHARES.map(|in_title| TagWeights { in_title, ..weights }).to_vec(),
            &|weights| SHARES.map(|in_text| TagWeights { in_text, ..weights }).to_vec(),
            &|weights| SHARES.map(|in_folder| TagWeights { in_folder, ..weights }).to_vec(),
            &|weights| SHARES.map(|least_share| TagWeights { least_share, ..weights }).to_vec(),
        ],
        score,
    );
    println!(
        "{best:?}: F1 {:.1} % in {} vaults; those in use: {:.1} %",
        f1 * 100.0,
        all.len(),
        score(&TagWeights::CHOSEN) * 100.0
    );
    Ok(())
}
