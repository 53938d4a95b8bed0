//! Words that a question is made of and that hardly tell what it is about: `what`, `did`, `the`.
//!
//! Rarity does not see to them. What is remembered is mostly said in statements, in which `what` and `when` are rare, and a
//! text that happens to have them would come before the answer. Measured in docs/memory.md.

/// How much such a word counts beside others. Not nothing: of two texts that have the rest, it still tells one.
pub(super) const WEIGHT: f32 = 0.2;

/// English ones, sorted. Those of other languages are left to their rarity.
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
    fn they_can_be_looked_up() {
        assert!(WORDS.is_sorted());
        assert!(is_function_word("what") && is_function_word("a") && !is_function_word("watt"));
    }
}
