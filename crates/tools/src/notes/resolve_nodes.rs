//! `resolve_nodes`: turns names into note ids.

use quipu_core::index::{NameMatch, Snapshot, best_match, exact_match};
use quipu_core::model::{Note, NoteId, NoteKey, Tag, VaultPath};
use quipu_core::ports::NoteSet;
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::{Access, Call, Tool};
use crate::tool_error::{ToolError, ToolErrorKind};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Titles, aliases or file names.
    #[schemars(length(max = 200), inner(length(max = 1000)))]
    names: Vec<String>,
    /// "exact": same name in any case; "fuzzy": also typos; "semantic": also other words for it.
    #[serde(default)]
    strategy: Strategy,
    /// Minimum score; not for "exact".
    #[serde(default = "default_threshold")]
    #[schemars(range(min = 0, max = 1))]
    threshold: f64,
    /// Only notes with this tag.
    tag: Option<String>,
    /// Only ids with this prefix.
    path: Option<String>,
}

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Strategy {
    Exact,
    #[default]
    Fuzzy,
    Semantic,
}

fn default_threshold() -> f64 {
    0.7
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Resolved {
    query: String,
    /// The node's id.
    r#match: Option<String>,
    /// 1 for the same name, 0 for no match.
    score: f64,
}

pub(crate) struct ResolveNodes;

impl Tool for ResolveNodes {
    type Params = Params;
    type Output = Vec<Resolved>;

    const NAME: &'static str = "resolve_nodes";
    const DESCRIPTION: &'static str = "Turn names into note ids, one result per name; match is null if no name is \
        similar. Use it before you create or link notes. To check ids use nodes_exist.";
    const ACCESS: Access = Access::Read;

    fn call(call: &Call<'_>, params: Params) -> Result<Vec<Resolved>, ToolError> {
        let snapshot = call.knowledge.snapshot();
        let tag = params.tag.as_deref().map(|tag| Tag::new(tag).folded);
        let prefix = NoteId::new(&params.path.unwrap_or_default());
        let admits = |note: &Note| {
            let is_below = prefix.as_str().is_empty() || note.path.note_id().as_str().starts_with(prefix.as_str());
            is_below && tag.as_ref().is_none_or(|tag| note.has_tag(tag))
        };
        let among: NoteSet;
        let find: &(dyn Fn(&str) -> Option<NameMatch> + Sync) = match params.strategy {
            Strategy::Exact => &|name| exact_match(&snapshot, name, admits),
            Strategy::Fuzzy => &|name| best_match(&snapshot, name, params.threshold - HALF_STEP, admits),
            Strategy::Semantic if !call.knowledge.has_meaning() => {
                let message = "cannot use `strategy` \"semantic\": there is no embedding model; use \"fuzzy\"";
                return Err(ToolError::new(ToolErrorKind::Provider, message));
            }
            // Called once before the names, so that a failing model is an error and not a list without matches.
            Strategy::Semantic => {
                call.knowledge.closest("", &NoteSet::default())?;
                among = snapshot.files().filter(|key| admits(snapshot.note(*key))).collect();
                &|name| {
                    let closest = || call.knowledge.closest(name, &among).ok().flatten();
                    let closest = || closest().map(|(key, score)| NameMatch { key, score: f64::from(score) });
                    exact_match(&snapshot, name, admits).or_else(closest)
                }
            }
        };
        // Each name is compared with every note: in parallel, because lists are long.
        let resolved: Vec<Resolved> = params
            .names
            .into_par_iter()
            .map(|query| {
                let found = find(&query).map(|found| NameMatch { score: rounded(found.score), ..found });
                let found = found.filter(|found| found.score >= params.threshold || found.score == 1.0);
                Resolved {
                    r#match: found.map(|found| snapshot.note(found.key).id.to_string()),
                    score: found.map_or(0.0, |found| found.score),
                    query,
                }
            })
            .collect();
        warn_of_shared_names(call, &snapshot, &resolved, admits);
        Ok(resolved)
    }
}

/// Warns of names that several notes have: the match is only one of them.
fn warn_of_shared_names(call: &Call<'_>, snapshot: &Snapshot, resolved: &[Resolved], admits: impl Fn(&Note) -> bool) {
    let mut warned = 0;
    for Resolved { query, r#match, .. } in resolved.iter().filter(|resolved| resolved.score == 1.0) {
        let Some(found) = r#match.as_deref().and_then(|id| snapshot.lookup(id).first().copied()) else { continue };
        let path = |key: NoteKey| &snapshot.note(key).path;
        let named = snapshot.named(query).into_iter().filter(|key| *key != found && admits(snapshot.note(*key)));
        let mut others: Vec<&VaultPath> = named.map(path).collect();
        others.sort();
        if !others.is_empty() && warned < MAX_SHARED_NAMES {
            warned += 1;
            call.warn_of_others(query, path(found), others.into_iter());
        }
    }
}

/// Names with a warning.
const MAX_SHARED_NAMES: usize = 5;

/// Scores have two decimals, and the threshold is compared with the rounded score: 0.67 passes a threshold of 0.67.
fn rounded(score: f64) -> f64 {
    let rounded = (score * 100.0).round() / 100.0;
    // Only the same name scores 1.
    if score < 1.0 { rounded.min(0.99) } else { rounded }
}

const HALF_STEP: f64 = 0.005;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::testing::{Harness, check};

    const KITCHEN: &str = "\
//- recipes/bulgogi.md
---
tags: [korean/beef]
aliases: [Fire Meat]
---
//- recipes/chicken.md
//- old/bulgogi.md
//- pie.md
---
title: Crème Brûlée
---
";

    fn resolved(query: &str, id: Option<&str>, score: f64) -> Value {
        json!({"query": query, "match": id, "score": score})
    }

    #[test]
    fn fuzzy_matches_typos() {
        let arguments = json!({"names": ["bulgogi", "chikken"], "threshold": 0.5, "path": "recipes/"});
        let expected = json!([
            resolved("bulgogi", Some("recipes/bulgogi.md"), 1.0),
            resolved("chikken", Some("recipes/chicken.md"), 0.67)
        ]);
        check(KITCHEN, "resolve_nodes", arguments, expected);
    }

    #[test]
    fn the_threshold_applies_to_the_rounded_score() {
        let hit = json!([resolved("chikken", Some("recipes/chicken.md"), 0.67)]);
        check(KITCHEN, "resolve_nodes", json!({"names": ["chikken"], "threshold": 0.67}), hit);
        let miss = json!([resolved("chikken", None, 0.0)]);
        check(KITCHEN, "resolve_nodes", json!({"names": ["chikken"], "threshold": "0.68"}), miss.clone());
        check(KITCHEN, "resolve_nodes", json!({"names": ["chikken"]}), miss);
    }

    #[test]
    fn exchanged_letters_are_a_typo() {
        let expected = json!([resolved("grpah view", Some("graph view.md"), 0.83)]);
        check("//- graph view.md\n//- graph.md\n", "resolve_nodes", json!({"names": ["grpah view"]}), expected);
    }

    #[test]
    fn exact_matches_title_alias_and_file_name() {
        let names = ["BULGOGI", "fire meat", "CRÈME brûlée", "Cre\u{300}me Brûlée", "Pie", "chikken", ""];
        let expected = json!([
            resolved(names[0], Some("old/bulgogi.md"), 1.0),
            resolved(names[1], Some("recipes/bulgogi.md"), 1.0),
            resolved(names[2], Some("pie.md"), 1.0),
            resolved(names[3], Some("pie.md"), 1.0),
            resolved(names[4], Some("pie.md"), 1.0),
            resolved(names[5], None, 0.0),
            resolved(names[6], None, 0.0)
        ]);
        check(KITCHEN, "resolve_nodes", json!({"names": names, "strategy": "exact"}), expected);
    }

    #[test]
    fn tag_limits_the_candidates() {
        let expected = json!([resolved("bulgogi", Some("recipes/bulgogi.md"), 1.0), resolved("chicken", None, 0.0)]);
        check(KITCHEN, "resolve_nodes", json!({"names": ["bulgogi", "chicken"], "tag": "Korean"}), expected);
    }

    #[test]
    fn no_names_give_no_results() {
        check(KITCHEN, "resolve_nodes", json!({"names": []}), json!([]));
    }

    #[test]
    fn many_names_keep_their_order_and_too_many_are_refused() {
        let harness = Harness::new(KITCHEN);
        let names: Vec<String> = (0..200).map(|number| format!("name {number}")).collect();
        let answer = harness.call("resolve_nodes", json!({"names": names}));
        let queries: Vec<&str> = answer.as_array().unwrap().iter().map(|one| one["query"].as_str().unwrap()).collect();
        assert_eq!(queries, names);
        let (code, message) = harness.fails("resolve_nodes", json!({"names": vec!["x"; 201]}));
        assert_eq!(code, "INVALID_PARAMS");
        assert_eq!(message, "`names` has 201 items; it must be a list of at most 200 strings");
    }

    #[test]
    fn semantic_finds_other_words() {
        let harness = Harness::with_meaning(KITCHEN);
        let names = json!({"names": ["poultry", "bulgogi"], "strategy": "semantic", "threshold": 0.5});
        let answer = harness.call("resolve_nodes", names);
        assert_eq!(answer[0]["match"], "recipes/chicken.md", "{answer}");
        let score = answer[0]["score"].as_f64().unwrap();
        assert!((0.5..1.0).contains(&score), "{answer}");
        assert_eq!(
            (&answer[1]["match"], &answer[1]["score"]),
            (&json!("old/bulgogi.md"), &json!(1.0)),
            "the very name"
        );
        let filtered = json!({"names": ["poultry"], "strategy": "semantic", "path": "old/", "threshold": 0});
        assert_eq!(harness.call("resolve_nodes", filtered)[0]["match"], "old/bulgogi.md");
    }

    #[test]
    fn semantic_needs_an_embedder() {
        let harness = Harness::new(KITCHEN);
        let (code, message) = harness.fails("resolve_nodes", json!({"names": ["x"], "strategy": "semantic"}));
        assert_eq!(code, "PROVIDER_ERROR");
        assert!(message.ends_with("there is no embedding model; use \"fuzzy\""), "{message}");
        let (code, message) = harness.fails("resolve_nodes", json!({"names": ["x"], "threshold": 1.5}));
        assert_eq!(code, "INVALID_PARAMS");
        assert_eq!(message, "`threshold` is 1.5; it must be a number from 0 to 1");
    }
}
