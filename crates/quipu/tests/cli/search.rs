//! `quipu search`: what is found, and how it is shown.

use crate::sandbox::{Sandbox, check};

#[test]
fn search_finds_sections_and_says_when_it_was_relaxed() {
    let vault = Sandbox::example();
    vault.run(&["index"]).expect(0);
    check("search_phrase", &vault.run(&["search", "melting", "ice"]).expect(0));
    check("search_all_words", &vault.run(&["search", "lightning", "arresters", "--limit", "3"]).expect(0));
    check("search_any_word", &vault.run(&["search", "spider", "zeppelin"]).expect(0));
    check("search_japanese", &vault.run(&["search", "百葉箱", "--limit", "2"]).expect(0));
    check("search_nothing", &vault.run(&["search", "zeppelin"]).expect(1));
}

#[test]
fn search_as_json_is_one_value() {
    let vault = Sandbox::example();
    let ran = vault.run(&["search", "telltale", "--json", "--limit", "1"]).expect(0);
    assert_eq!(ran.stdout.lines().count(), 1, "{ran}");
    let answer = ran.json();
    assert_eq!(answer["matched"], "phrase");
    let hit = &answer["hits"][0];
    assert_eq!(hit["path"], "station/Anemometer.md");
    let line = hit["line"].as_u64().unwrap() as usize;
    let file = vault.read("station/Anemometer.md");
    assert_eq!(file.lines().nth(line - 1).unwrap(), hit["snippet"].as_str().unwrap(), "the line is where it says");
    assert_eq!(vault.run(&["search", "zeppelin", "--json"]).expect(1).json()["matched"], "nothing");
}

#[test]
fn an_empty_search_or_limit_is_a_usage_error() {
    let vault = Sandbox::example();
    vault.run(&["search"]).expect(2);
    check("search_blank", &vault.run(&["search", "  "]).expect(2));
    vault.run(&["search", "ice", "--limit", "0"]).expect(2);
}
