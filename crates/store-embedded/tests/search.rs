//! What finds what: words, compounds, scripts without spaces, and how strictly a query is taken.

#![expect(clippy::unwrap_used, reason = "what a test shares fails as the test does")]

use proptest::prelude::*;
use quipu_core::model::{NoteKey, Tag};
use quipu_core::ports::{NoteChange, NoteStore, TextHits, TextMatch, TextQuery};
use quipu_store_embedded::EmbeddedStore;
use quipu_testkit::store_conformance::note;

/// A store in memory with these texts under the keys 0, 1, 2 and so on.
fn store(texts: &[&str]) -> EmbeddedStore {
    let store = EmbeddedStore::in_memory().unwrap();
    store.load("search").unwrap();
    for (key, text) in (0..).map(NoteKey).zip(texts) {
        store.apply(&[NoteChange::Put { key, note: &note("n.md", text), text }]).unwrap();
    }
    store
}

fn search(store: &EmbeddedStore, text: &str) -> TextHits {
    store.search_text(&TextQuery { text: text.to_owned(), limit: 50, ..TextQuery::default() }).unwrap()
}

fn keys(store: &EmbeddedStore, text: &str) -> Vec<u32> {
    search(store, text).hits.iter().map(|hit| hit.key.0).collect()
}

/// Whether the text alone in a store is found by the query, as typed.
fn finds(text: &str, query: &str) -> bool {
    let hits = search(&store(&[text, "something else"]), query);
    hits.matched == TextMatch::Phrase && hits.hits.iter().any(|hit| hit.key.0 == 0)
}

#[test]
fn compounds_are_found_whole_and_in_parts() {
    for (text, queries) in [
        ("call snake_case here", ["snake_case", "snake", "case", "SNAKE_CASE"]),
        ("call getUserName here", ["getUserName", "getusername", "user", "name"]),
        ("use std::fs::File now", ["std::fs::File", "fs::File", "file", "std"]),
        ("open src/store/catalog.rs twice", ["src/store/catalog.rs", "catalog.rs", "catalog", "store"]),
        ("error E0382: moved", ["E0382", "e0382", "0382", "error e0382"]),
        ("don't touch l'index", ["don't", "don’t", "index", "l'index"]),
        ("on 2024-01-05 at 10ms", ["2024-01-05", "2024", "10ms", "ms"]),
        ("Ｆｕｌｌ　Ｗｉｄｔｈ １２３", ["full width", "Full", "123", "ｗｉｄｔｈ"]),
        ("ship it 👍🏽 🚀!", ["👍", "🚀", "👍🏽", "ship it 👍"]),
    ] {
        for query in queries {
            assert!(finds(text, query), "{query} in {text}");
        }
    }
}

#[test]
fn common_words_do_not_decide() {
    let mut texts: Vec<String> = (0..60).map(|number| format!("how the weather was on day {number}")).collect();
    texts[10] = "deploy with one command".to_owned();
    texts[20] = "the way we deploy a service".to_owned();
    texts[30] = "how not to deploy: by hand, on the day of the release".to_owned();
    let store = store(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let hits = search(&store, "how deploy the");
    let mut found: Vec<u32> = hits.hits.iter().map(|hit| hit.key.0).collect();
    found.sort_unstable();
    assert_eq!(
        (hits.matched, found),
        (TextMatch::AllWords, vec![10, 20, 30]),
        "the one with every word hides no other"
    );
    let hits = search(&store, "the how");
    assert_eq!(hits.matched, TextMatch::AllWords);
    assert_eq!(hits.hits.len(), 57, "where all words are such, all of them are wanted");
}

#[test]
fn compounds_written_in_another_way_are_found_by_their_parts() {
    let store = store(&["fooBar", "foo_bar", "foo", "foobar"]);
    assert_eq!(keys(&store, "foobar"), [3, 0], "the first has its parts, too, so the word counts for less");
    let hits = search(&store, "barFoo");
    assert_eq!(hits.matched, TextMatch::AllWords);
    assert_eq!(hits.hits.len(), 2);
}

#[test]
fn accents_count_until_nothing_else_is_found() {
    assert!(finds("un café", "CAFE\u{301}"));
    let store = store(&["un café", "du cafe"]);
    assert_eq!(keys(&store, "cafe"), [1]);
    let store = self::store(&["un café"]);
    assert_eq!(search(&store, "cafe").matched, TextMatch::Similar);
}

#[test]
fn words_are_found_by_their_stems() {
    let store = store(&[
        "She was running the indexers over many libraries.",
        "Der Hund und die Katze liefen über die alten Häuser der kleinen Stadt, und die Leute sahen ihnen lange nach.",
    ]);
    assert_eq!(keys(&store, "run indexer library"), [0]);
    assert_eq!(keys(&store, "haus"), [1]);
    assert_eq!(search(&store, "running indexers").matched, TextMatch::AllWords);
}

#[test]
fn typo_or_part_of_a_word_finds_it_when_nothing_else_does() {
    let store = store(&["kubernetes deployment", "deployment of reconfiguration", "weather"]);
    let hits = search(&store, "kubernets deploymnet");
    assert_eq!((hits.matched, hits.hits.len(), hits.hits[0].key.0), (TextMatch::Similar, 1, 0));
    assert_eq!(keys(&store, "configur"), [1]);
    assert_eq!(keys(&store, "xyzzy"), [0; 0]);
}

#[test]
fn sentence_without_spaces_is_relaxed_to_pairs_of_characters() {
    let store = store(&["数据库连接的配置", "数据库", "天气"]);
    let hits = search(&store, "如何配置数据库");
    assert_eq!(hits.matched, TextMatch::AnyWord);
    assert_eq!(hits.hits.iter().map(|hit| hit.key.0).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(search(&store, "数据库 配置").matched, TextMatch::AllWords);
}

#[test]
fn note_with_the_queried_name_comes_first() {
    let store = EmbeddedStore::in_memory().unwrap();
    store.load("search").unwrap();
    let (body, heading) = ("plain words and the compass among them", "## Compass use\nplain words\n");
    let (in_body, in_heading, in_title) =
        (note("a.md", body), note("b.md", heading), note("compass.md", "plain words"));
    let mut in_tag = note("d.md", "plain words");
    in_tag.tags = vec![Tag::new("Compass")];
    store
        .apply(&[
            NoteChange::Put { key: NoteKey(0), note: &in_body, text: body },
            NoteChange::Put { key: NoteKey(1), note: &in_tag, text: "plain words" },
            NoteChange::Put { key: NoteKey(2), note: &in_heading, text: heading },
            NoteChange::Put { key: NoteKey(3), note: &in_title, text: "plain words" },
        ])
        .unwrap();
    let keys = keys(&store, "compass");
    assert_eq!((keys.len(), keys[0]), (4, 3), "{keys:?}");
    let ranked = store.rank_text("compass", 10).unwrap();
    assert_eq!((ranked.hits.len(), ranked.hits[0].key), (4, NoteKey(3)), "{ranked:?}");
    assert!(ranked.hits[0].score <= ranked.most, "{ranked:?}");
}

fn ranked(store: &EmbeddedStore, text: &str, limit: usize) -> Vec<u32> {
    // Without those that tie with the last.
    store.rank_text(text, limit).unwrap().hits.iter().take(limit).map(|hit| hit.key.0).collect()
}

#[test]
fn phrases_rank_above_the_same_words_apart() {
    let mut texts = vec!["red and blue and lantern"; 40];
    texts[17] = "and and blue lantern red";
    texts[29] = "lantern_blue and and red";
    let store = store(&texts);
    assert_eq!(ranked(&store, "blue lantern", 3), [17, 0, 1]);
    assert_eq!(ranked(&store, "red lantern_blue", 2), [29, 0]);
}

#[test]
fn of_sections_under_one_title_the_one_that_answers_is_first() {
    let mut texts: Vec<String> = (0..30).map(|day| format!("# 天気\n{day}日の天気は晴れで、風は弱い。")).collect();
    texts[4] = "# 梅雨\n梅雨の語源はよく分かっていない。梅雨という字は古い。".to_owned();
    texts[9] = "# 梅雨\n北海道にはこの季節がない。".to_owned();
    let store = store(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(ranked(&store, "梅雨がないのは北海道か", 2), [9, 4]);
}

#[test]
fn single_characters_support_a_pair_and_find_nothing_alone() {
    let mut texts = vec!["空は青い"; 20];
    texts[3] = "検索の速さ";
    texts[7] = "検索と速度";
    let store = store(&texts);
    assert_eq!(ranked(&store, "検索速報", 2), [3, 7], "equal but for their order");
    texts[7] = "検索の報い速さ";
    let store = self::store(&texts);
    assert_eq!(ranked(&store, "検索速報", 2), [7, 3], "it has one character more of the query");
    assert_eq!(ranked(&store, "速達", 2), [0; 0], "no pair of it is there");
}

#[test]
fn pasted_page_is_a_valid_query() {
    let page = "alpha beta gamma ".repeat(5_000);
    let store = store(&["gamma beta", "delta"]);
    assert_eq!(search(&store, &page).matched, TextMatch::AnyWord);
    assert_eq!(keys(&store, &page), [0]);
    assert_eq!(keys(&store, &"検索".repeat(5_000)), [0; 0]);
    assert_eq!(keys(&store, &"x".repeat(1_000_000)), [0; 0]);
}

const UNSPACED: &str = "[一-龥ぁ-んァ-ヶ가-힣ก-ฮ]{2,12}";

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_character_and_each_pair_of_an_unspaced_text_finds_it(before in "[a-z ]{0,5}", run in UNSPACED, after in "[A-Z.、 ]{0,5}") {
        let store = store(&[&format!("{before}{run}{after}")]);
        let chars: Vec<char> = run.chars().collect();
        for length in 1..=3 {
            for piece in chars.windows(length) {
                let piece: String = piece.iter().collect();
                let hits = search(&store, &piece);
                prop_assert_eq!((hits.hits.len(), hits.matched), (1, TextMatch::Phrase), "{}", piece);
            }
        }
    }

    #[test]
    fn each_piece_between_spaces_finds_its_text(text in "([a-zA-Z0-9é_.:'/日本がx-]{1,8}[ \n]){1,8}") {
        let store = store(&[&text]);
        for piece in text.split_whitespace().filter(|piece| piece.chars().any(char::is_alphanumeric)) {
            let hits = search(&store, piece);
            prop_assert_eq!((hits.hits.len(), hits.matched), (1, TextMatch::Phrase), "{}", piece);
        }
        // The whole is a phrase of itself.
        if text.chars().any(char::is_alphanumeric) {
            prop_assert_eq!(search(&store, &text).matched, TextMatch::Phrase);
            prop_assert_eq!(keys(&store, &text), [0]);
        }
    }

    #[test]
    fn every_text_with_a_word_of_the_query_is_ranked_and_a_limit_only_cuts(
        texts in prop::collection::vec(prop::collection::vec("[a-f]", 1..8), 1..40),
        gone in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        query in prop::collection::vec("[a-h]", 1..5),
    ) {
        let texts: Vec<String> = texts.iter().map(|words| words.join(" ")).collect();
        let store = store(&texts.iter().map(String::as_str).collect::<Vec<_>>());
        let gone: Vec<u32> = gone.iter().map(|index| index.index(texts.len()) as u32).collect();
        gone.iter().for_each(|key| store.apply(&[NoteChange::Remove { key: NoteKey(*key) }]).unwrap());
        let has = |text: &str| text.split(' ').any(|word| query.iter().any(|wanted| wanted == word));
        let keys = (0..).zip(&texts).filter(|(key, text)| !gone.contains(key) && has(text)).map(|(key, _)| key);
        let all = ranked(&store, &query.join(" "), 100);
        let mut found = all.clone();
        found.sort_unstable();
        prop_assert_eq!(&found, &keys.collect::<Vec<u32>>());
        for limit in 1..=all.len() {
            prop_assert_eq!(&ranked(&store, &query.join(" "), limit), &all[..limit], "{}", limit);
        }
    }

    #[test]
    fn no_text_and_no_query_is_too_odd(text in "\\PC{0,40}", query in any::<String>()) {
        let store = store(&[&text]);
        search(&store, &query);
        search(&store, &text);
        ranked(&store, &query, 5);
        ranked(&store, &text, 5);
    }
}
