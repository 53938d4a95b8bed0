//! `quipu search`: what is found, and how it is shown.

use crate::sandbox::{Sandbox, check};

#[test]
fn search_finds_sections_and_reports_partial_matches() {
    let vault = Sandbox::example();
    vault.run(&["index"]).expect(0);
    let words = |arguments: &[&str]| vault.run(&[&["search", "--words"], arguments].concat());
    check("search_phrase", &words(&["melting", "ice"]).expect(0));
    check("search_all_words", &words(&["lightning", "arresters", "--limit", "3"]).expect(0));
    check("search_any_word", &words(&["spider", "zeppelin"]).expect(0));
    check("search_japanese", &words(&["百葉箱", "--limit", "2"]).expect(0));
    check("search_nothing", &words(&["zeppelin"]).expect(1));
}

/// As an agent finds it: none of these words is in the note.
#[test]
fn search_finds_by_meaning_unless_only_words_are_asked_for() {
    let vault = Sandbox::of(
        "//- bulgogi.md\nThin slices of beef in a sweet marinade, grilled over charcoal.\n\
         //- tomatoes.md\nWater the seedlings each morning and keep snails away.\n\
         //- pancakes.md\nFlour, eggs and milk, fried in butter for breakfast.\n",
    );
    vault.run(&["index"]).expect(0);
    let question = ["how", "to", "cook", "meat"];
    let answer = vault.run(&[&["search", "--json"], &question[..]].concat()).expect(0).json();
    assert_eq!((&answer["matched"], &answer["hits"][0]["path"]), (&"hybrid".into(), &"bulgogi.md".into()), "{answer}");
    vault.run(&[&["search", "--words"], &question[..]].concat()).expect(1);
    // As the tool has it.
    let tool = vault.run(&["call", "search", r#"{"query": "how to cook meat"}"#]).expect(0).json();
    let ids: Vec<_> = tool.as_array().unwrap().iter().map(|hit| hit["id"].clone()).collect();
    let paths: Vec<_> = answer["hits"].as_array().unwrap().iter().map(|hit| hit["path"].clone()).collect();
    assert_eq!(paths, ids);
}

#[test]
fn search_without_vectors_has_a_warning() {
    let vault = Sandbox::example();
    vault.run(&["index", "--no-embed"]).expect(0);
    let ran = vault.run(&["search", "telltale"]).expect(0);
    assert!(ran.stdout.starts_with("Anemometer  station/Anemometer.md:"), "{ran}");
    assert!(ran.stderr.contains("passages are embedded so far") && ran.stderr.contains("`quipu index`"), "{ran}");
}

#[test]
fn search_as_json_is_one_value() {
    let vault = Sandbox::example();
    let ran = vault.run(&["search", "--words", "telltale", "--json", "--limit", "1"]).expect(0);
    assert_eq!(ran.stdout.lines().count(), 1, "{ran}");
    let answer = ran.json();
    assert_eq!(answer["matched"], "phrase");
    let hit = &answer["hits"][0];
    assert_eq!(hit["path"], "station/Anemometer.md");
    let line = hit["line"].as_u64().unwrap() as usize;
    let file = vault.read("station/Anemometer.md");
    assert_eq!(file.lines().nth(line - 1).unwrap(), hit["snippet"].as_str().unwrap(), "the line is where it says");
    assert_eq!(vault.run(&["search", "--words", "zeppelin", "--json"]).expect(1).json()["matched"], "nothing");
}

#[test]
fn an_empty_search_or_limit_is_a_usage_error() {
    let vault = Sandbox::example();
    vault.run(&["search"]).expect(2);
    check("search_blank", &vault.run(&["search", "  "]).expect(2));
    vault.run(&["search", "ice", "--limit", "0"]).expect(2);
}
