//! Known models: the prefixes that some need before a text, and whether they read other languages than English.

/// A provider's model.
pub(super) struct RemoteModel {
    pub(super) name: String,
    pub(super) query_prefix: &'static str,
    pub(super) passage_prefix: &'static str,
    pub(super) worth_beyond_english: f32,
}

const REPRESENT: &str = "Represent this sentence for searching relevant passages: ";

/// Trained on English.
const ENGLISH: f32 = 0.2;
/// Trained on many languages.
const MANY: f32 = 1.0;
/// An unknown model.
const UNKNOWN: f32 = 0.6;

/// A part of the name, the prefix of queries, that of passages, and the worth beyond English. The first match counts.
const KNOWN: [(&str, &str, &str, f32); 19] = [
    ("nomic-embed-text-v2", "search_query: ", "search_document: ", MANY),
    ("nomic-embed", "search_query: ", "search_document: ", ENGLISH),
    ("embeddinggemma", "task: search result | query: ", "title: none | text: ", MANY),
    (
        "qwen3-embedding",
        "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:",
        "",
        MANY,
    ),
    ("multilingual-e5", "query: ", "passage: ", MANY),
    ("e5-", "query: ", "passage: ", ENGLISH),
    ("mxbai-embed-large", REPRESENT, "", ENGLISH),
    ("snowflake-arctic-embed2", "query: ", "", MANY),
    ("arctic-embed-l-v2", "query: ", "", MANY),
    ("snowflake-arctic-embed", REPRESENT, "", ENGLISH),
    ("bge-m3", "", "", MANY),
    ("bge-small-en", REPRESENT, "", ENGLISH),
    ("bge-base-en", REPRESENT, "", ENGLISH),
    ("bge-large", REPRESENT, "", ENGLISH),
    ("granite-embedding:278m", "", "", MANY),
    ("granite-embedding", "", "", ENGLISH),
    ("all-minilm", "", "", ENGLISH),
    ("multilingual", "", "", MANY),
    ("text-embedding-3", "", "", MANY),
];

impl RemoteModel {
    pub(super) fn named(name: &str) -> Self {
        let lowercase = name.to_lowercase();
        let known = KNOWN.iter().find(|(word, ..)| lowercase.contains(word));
        let (_, query_prefix, passage_prefix, worth_beyond_english) = *known.unwrap_or(&("", "", "", UNKNOWN));
        Self { name: name.to_owned(), query_prefix, passage_prefix, worth_beyond_english }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_specific_names_come_first() {
        for (place, (word, ..)) in KNOWN.iter().enumerate() {
            let hidden_by = KNOWN[..place].iter().find(|(earlier, ..)| word.contains(earlier));
            assert!(hidden_by.is_none(), "{word} is never found");
        }
        assert_eq!(RemoteModel::named("intfloat/multilingual-e5-small").worth_beyond_english, MANY);
        assert_eq!(RemoteModel::named("nomic-embed-text:latest").query_prefix, "search_query: ");
        assert_eq!(RemoteModel::named("my-own").worth_beyond_english, UNKNOWN);
    }
}
