//! Summaries against the ones that pages have in their frontmatter.

use std::collections::HashMap;

use quipu_core::model::NoteKey;
use quipu_core::search::words::{folded, words};
use quipu_core::suggest::{SummaryWeights, plain_text, sentences};

use super::{Half, Vault, tuned};

/// Characters of a summary: about as long as the descriptions people write.
const CHARS: usize = 200;

/// Fewer described pages than this in a half say nothing about a vault.
const LEAST_PAGES: usize = 10;

/// A page with a summary by its author.
struct Case {
    title: String,
    plain: String,
    given: String,
}

fn cases(vault: &Vault, half: Half) -> anyhow::Result<Vec<Case>> {
    let given = |key: NoteKey| {
        let note = vault.snapshot.note(key);
        ["description", "summary", "abstract"].iter().find_map(|name| note.text_property(name))
    };
    let mut cases = Vec::new();
    for key in vault.sample(half, |key| given(key).is_some()) {
        let plain = plain_text(&vault.body(key)?);
        if let Some(given) = given(key).filter(|_| !sentences(&plain).is_empty()) {
            cases.push(Case { title: vault.snapshot.note(key).title.clone(), plain, given });
        }
    }
    Ok(cases)
}

/// The first sentences that fit.
fn first_sentences(plain: &str) -> String {
    let mut room = CHARS;
    let mut first = sentences(plain);
    // With the space before the next sentence, as a summary has it.
    first.retain(|sentence| {
        let length = sentence.chars().count() + usize::from(room < CHARS);
        let fits = length <= room;
        room -= if fits { length } else { 0 };
        fits
    });
    first.join(" ")
}

/// Words in common with the given summary (ROUGE-1 F1).
fn overlap(ours: &str, given: &str) -> f64 {
    let count = |text: &str| {
        let mut counts: HashMap<String, usize> = HashMap::new();
        words(text).for_each(|word| *counts.entry(folded(word.text)).or_default() += 1);
        counts
    };
    let (ours, given) = (count(ours), count(given));
    let shared: usize = given.iter().map(|(word, count)| *count.min(ours.get(word).unwrap_or(&0))).sum();
    2.0 * shared as f64 / (ours.values().sum::<usize>() + given.values().sum::<usize>()).max(1) as f64
}

fn mean(scores: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = scores.len().max(1) as f64;
    scores.sum::<f64>() / count
}

pub(super) fn measure(vaults: &[Vault]) -> anyhow::Result<()> {
    println!("| vault | pages | `summarize_node`: ROUGE-1 F1 | first sentences |");
    println!("|---|--:|--:|--:|");
    for vault in vaults {
        let cases = cases(vault, Half::Test)?;
        if cases.len() < LEAST_PAGES {
            continue;
        }
        let ours = |case: &Case| vault.knowledge.summarize(&case.title, &case.plain, CHARS).text;
        let ours = mean(cases.iter().map(|case| overlap(&ours(case), &case.given)));
        let first = mean(cases.iter().map(|case| overlap(&first_sentences(&case.plain), &case.given)));
        println!("| {} | {} | {:.1} % | {:.1} % |", vault.name, cases.len(), ours * 100.0, first * 100.0);
    }
    println!();
    Ok(())
}

/// Chooses the weights with the best overlap, averaged over vaults.
pub(super) fn tune(vaults: &[Vault]) -> anyhow::Result<()> {
    let all = vaults.iter().map(|vault| cases(vault, Half::Tune)).collect::<anyhow::Result<Vec<_>>>()?;
    let compared: Vec<Vec<_>> = vaults
        .iter()
        .zip(&all)
        .filter(|(_, cases)| cases.len() >= LEAST_PAGES)
        .map(|(vault, cases)| {
            let compared = cases.iter().map(|case| vault.knowledge.compared_sentences(&case.title, &case.plain));
            compared.zip(cases.iter().map(|case| &case.given)).collect()
        })
        .collect();
    let score = |weights: &SummaryWeights| {
        mean(compared.iter().map(|cases| {
            mean(cases.iter().map(|(sentences, given)| overlap(&sentences.chosen(weights, CHARS), given)))
        }))
    };
    const VALUES: [f32; 9] = [0.0, 0.1, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0];
    let (best, f1) = tuned(
        SummaryWeights { diversity: 0.0, lead: 0.0, title: 0.0 },
        &[
            &|weights| VALUES.map(|diversity| SummaryWeights { diversity, ..weights }).to_vec(),
            &|weights| VALUES.map(|lead| SummaryWeights { lead, ..weights }).to_vec(),
            &|weights| VALUES.map(|title| SummaryWeights { title, ..weights }).to_vec(),
        ],
        score,
    );
    let chosen = score(&SummaryWeights::CHOSEN);
    println!(
        "{best:?}: ROUGE-1 F1 {:.1} % in {} vaults; those in use: {:.1} %",
        f1 * 100.0,
        compared.len(),
        chosen * 100.0
    );
    Ok(())
}
