//! A summary: by a language model, else the sentences nearest to the whole text that say different things, in their own order.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Method;
use super::by_model::not_used;
use super::sentences::{plain_text, sentences};
use crate::Knowledge;
use crate::search::words::{folded, words};

/// Sentences that are compared. Those of long texts are taken from all over.
const MAX_SENTENCES: usize = 200;

/// How much each property of a sentence counts, against 1 for nearness to the whole text. `cargo bench --bench suggest` measures them
/// on one half of the described pages of real vaults; with `--tune` it looks for better ones on the other half.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SummaryWeights {
    /// Nearness to a sentence that was chosen already, which counts against it.
    pub diversity: f32,
    /// What the first sentence gains, the second half of it, the third a third: people begin with what a text is about.
    pub lead: f32,
    /// Nearness to the title.
    pub title: f32,
}

impl SummaryWeights {
    /// The weights in use.
    pub const CHOSEN: Self = Self { diversity: 0.7, lead: 0.5, title: 0.3 };
}

/// A summary of a note or a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Sentences of the note, unless a language model made them. Empty where it has none.
    pub text: String,
    /// How it was made.
    pub method: Method,
    /// Why a language model was not used, or did not read everything.
    pub warnings: Vec<String>,
}

/// The sentences of a text with their vectors.
pub struct ComparedSentences<'t> {
    all: Vec<&'t str>,
    vectors: Vec<Vec<f32>>,
    title: Vec<f32>,
    by_meaning: bool,
}

impl Knowledge {
    /// Summarizes a text in at most `max_chars` characters.
    pub fn summarize(&self, title: &str, body: &str, max_chars: usize) -> Summary {
        let plain = plain_text(body);
        if plain.trim().is_empty() {
            return self.extract(title, &plain, max_chars);
        }
        match self.summary_by_model(title, body, max_chars) {
            Some(Ok(answer)) => Summary { text: answer.value, method: Method::Model, warnings: answer.warnings },
            Some(Err(why)) => Summary { warnings: vec![not_used(&why)], ..self.extract(title, &plain, max_chars) },
            None => self.extract(title, &plain, max_chars),
        }
    }

    /// An extractive summary of a plain text.
    fn extract(&self, title: &str, plain: &str, max_chars: usize) -> Summary {
        let sentences = self.compared_sentences(title, plain);
        let method = Method::without_model(sentences.by_meaning);
        Summary { text: sentences.chosen(&SummaryWeights::CHOSEN, max_chars), method, warnings: Vec::new() }
    }

    /// The sentences of a plain text, ready to be compared.
    pub fn compared_sentences<'t>(&self, title: &str, plain: &'t str) -> ComparedSentences<'t> {
        let mut all = sentences(plain);
        if all.len() > MAX_SENTENCES {
            let step = all.len() as f32 / MAX_SENTENCES as f32;
            all = (0..MAX_SENTENCES).map(|number| all[(number as f32 * step) as usize]).collect();
        }
        let mut seen = FxHashSet::default();
        all.retain(|sentence| seen.insert(*sentence));
        let with_title: Vec<&str> = all.iter().copied().chain([title]).collect();
        let vectors = self.sentence_vectors(&with_title);
        let by_meaning = vectors.is_some();
        let mut vectors = vectors.unwrap_or_else(|| word_vectors(&with_title));
        let title = vectors.pop().unwrap_or_default();
        ComparedSentences { all, vectors, title, by_meaning }
    }

    /// Coarse vectors, which cost microseconds. A model without them would take seconds for a long note.
    fn sentence_vectors(&self, sentences: &[&str]) -> Option<Vec<Vec<f32>>> {
        let mut encoder = self.meaning.as_ref()?.embedder.coarse_encoder()?;
        Some(sentences.iter().map(|sentence| encoder.encode(sentence)).collect())
    }
}

/// Vectors of words, weighted by how rare each word is among the sentences.
fn word_vectors(sentences: &[&str]) -> Vec<Vec<f32>> {
    let mut numbers: FxHashMap<String, usize> = FxHashMap::default();
    let mut counts: Vec<f32> = Vec::new();
    let of_sentence: Vec<Vec<usize>> = sentences
        .iter()
        .map(|sentence| {
            let mut own: Vec<usize> = Vec::new();
            for word in words(sentence) {
                let next = numbers.len();
                let number = *numbers.entry(folded(word.text)).or_insert(next);
                if !own.contains(&number) {
                    own.push(number);
                }
            }
            counts.resize(numbers.len(), 0.0);
            own.iter().for_each(|number| counts[*number] += 1.0);
            own
        })
        .collect();
    let total = sentences.len() as f32;
    let vector = |own: &Vec<usize>| {
        let mut vector = vec![0.0; counts.len()];
        for number in own {
            vector[*number] = (1.0 + total / counts[*number]).ln();
        }
        normalized(vector)
    };
    of_sentence.iter().map(vector).collect()
}

fn normalized(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|x| *x /= length);
    }
    vector
}

impl ComparedSentences<'_> {
    /// The best sentences by maximal marginal relevance, in order.
    pub fn chosen(&self, weights: &SummaryWeights, max_chars: usize) -> String {
        let Self { all, vectors, title, .. } = self;
        let Some(first) = vectors.first() else { return String::new() };
        let mut whole = vec![0.0; first.len()];
        for vector in vectors {
            whole.iter_mut().zip(vector).for_each(|(sum, x)| *sum += x);
        }
        let whole = normalized(whole);
        let cosine = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let relevance = |number: usize| {
            let vector = &vectors[number];
            let lead = weights.lead / (number as f32 + 1.0);
            cosine(vector, &whole) + weights.title * cosine(vector, title) + lead
        };
        let length = |number: usize| all[number].chars().count();
        let mut left: Vec<(usize, f32, f32)> = (0..all.len()).map(|number| (number, relevance(number), 0.0)).collect();
        let (mut taken, mut room) = (Vec::new(), max_chars);
        loop {
            // One character for the space between two sentences.
            left.retain(|(number, ..)| length(*number) + usize::from(!taken.is_empty()) <= room);
            let worth = |candidate: &&(usize, f32, f32)| candidate.1 - weights.diversity * candidate.2;
            let best = left.iter().max_by(|a, b| worth(a).total_cmp(&worth(b)).then(b.0.cmp(&a.0)));
            let Some(&(best, ..)) = best else { break };
            room -= length(best) + usize::from(!taken.is_empty());
            taken.push(best);
            left.retain(|(number, ..)| *number != best);
            for (number, _, nearest) in &mut left {
                *nearest = nearest.max(cosine(&vectors[*number], &vectors[best]));
            }
        }
        taken.sort_unstable();
        let text: Vec<&str> = taken.into_iter().map(|number| all[number]).collect();
        text.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_and_different_sentences_are_chosen_in_order() {
        let all = [
            "Rain gauges measure rain with a tipping bucket.",
            "Rain gauges measure rain with tipping buckets.",
            "The anemometer measures wind and freezes in winter.",
            "Lunch was good on the third of May.",
        ];
        let chosen = |all: &[&str], max_chars: usize| {
            let (vectors, all) = (word_vectors(all), all.to_vec());
            let sentences = ComparedSentences { all, vectors, title: Vec::new(), by_meaning: false };
            sentences.chosen(&SummaryWeights::CHOSEN, max_chars)
        };
        assert_eq!(
            chosen(&all, 100),
            "Rain gauges measure rain with a tipping bucket. The anemometer measures wind and freezes in winter."
        );
        assert_eq!(chosen(&all, 36), all[3], "only what fits");
        assert_eq!(chosen(&[], 100), "");
    }
}
