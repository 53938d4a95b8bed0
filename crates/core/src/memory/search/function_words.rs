//! Function words: `what`, `did`, `the`.
//!
//! Their rarity does not lower their weight. Memory is mostly statements, in which `what` and `when` are rare, and a text that
//! happens to have them would rank above the answer. Measured in docs/memory.md.

/// Their weight. Not zero: between two texts that have the other words, they decide.
pub(super) const WEIGHT: f32 = 0.2;

/// English only, sorted. Those of other languages have the weight of their rarity.
const WORDS: [&str; 87] = [
    "a", "about", "after", "all", "am", "an", "and", "any", "are", "as", "at", "be", "been", "before", "being", "but",
    "by", "can", "could", "did", "do", "does", "doing", "during", "each", "for", "from", "had", "has", "have",
    "having", "he", "her", "hers", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its", "me", "might",
    "must", "my", "of", "on", "or", "our", "ours", "shall", "she", "should", "so", "some", "such", "than", "that",
    "the", "their", "theirs", "them", "then", "there", "these", "they", "this", "those", "to", "us", "was", "we",
    "were", "what", "when", "where", "which", "who", "whom", "whose", "why", "will", "with", "would",
];

/// Whether a folded word is one of them.
pub(super) fn is_function_word(word: &str) -> bool {
    WORDS.binary_search(&word).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_words_are_sorted_and_found() {
        assert!(WORDS.is_sorted());
        assert!(is_function_word("what") && is_function_word("a") && !is_function_word("watt"));
    }
}
