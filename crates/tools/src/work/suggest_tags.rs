//! `suggest_tags`: tags for a note from similar notes, linked notes and the words of its text.

use quipu_core::quoted;
use quipu_core::suggest::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::no_such_note;
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;
use crate::truncate::cut_name;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Id of the note.
    #[schemars(length(min = 1))]
    id: String,
    /// Maximum tags.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 50))]
    limit: usize,
}

fn default_limit() -> usize {
    5
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    id: String,
    suggestions: Vec<Suggestion>,
    /// "neighbours" compares notes by meaning, "neighbours_by_words" by words, "llm" asks the configured model.
    method: &'static str,
}

#[derive(Serialize, JsonSchema)]
struct Suggestion {
    tag: String,
    score: f64,
    reason: String,
}

pub(crate) struct SuggestTags;

impl Tool for SuggestTags {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "suggest_tags";
    const DESCRIPTION: &'static str = "Suggest tags of this vault for a note, from similar and linked notes and its \
        text. To add them use edit_node.";
    const ACCESS: Access = Access::Read;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let read = call.read(&params.id)?.ok_or_else(|| no_such_note(call, &params.id))?;
        let found = call.knowledge.suggest_tags(&read.snapshot, read.key, read.body(), params.limit)?;
        let suggestions = found.tags.into_iter().map(|found| {
            let example = found.example.map(|key| quoted(read.snapshot.note(key).id.as_str()));
            let from_notes = example.map(|example| match found.notes {
                1 => format!("the similar note {example} has it"),
                count => format!("{count} similar or linked notes have it, such as {example}"),
            });
            let from_text = found.is_in_text.then(|| "its name is in the text".to_owned());
            let from_folder = (found.in_folder > 0).then(|| match found.in_folder {
                1 => "a note of its folder has it".to_owned(),
                count => format!("{count} notes of its folder have it"),
            });
            let mut reason: Vec<String> = from_text.into_iter().chain(from_notes).chain(from_folder).collect();
            if reason.is_empty() {
                reason.push("the language model chose it".to_owned());
            }
            Suggestion { tag: cut_name(&found.tag), score: thousandths(found.score), reason: reason.join("; ") }
        });
        let suggestions = suggestions.collect();
        found.warnings.into_iter().for_each(|warning| call.warn(warning));
        let method = match found.method {
            Method::Model => "llm",
            Method::Meaning => "neighbours",
            Method::Words => "neighbours_by_words",
        };
        Ok(Output { id: read.note().id.to_string(), suggestions, method })
    }
}

fn thousandths(score: f32) -> f64 {
    (f64::from(score) * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::Harness;

    const NOTES: &str = "\
//- frost.md
Ice on the anemometer stops the wind measurements in winter.
//- ice.md
---
tags: [weather/winter, station]
---
How ice is kept off the anemometer: a heater melts ice before the wind measurements stop.
//- heater.md
---
tags: [weather/winter]
---
The heater of the anemometer and its winter power.
//- bread.md
---
tags: [baking]
---
Sourdough needs flour, water and salt.
";

    #[test]
    fn tags_come_from_similar_notes_and_from_the_text() {
        let harness = Harness::new(NOTES);
        let answer = harness.call("suggest_tags", json!({"id": "frost.md", "limit": 2}));
        let tags: Vec<&str> =
            answer["suggestions"].as_array().unwrap().iter().map(|s| s["tag"].as_str().unwrap()).collect();
        assert_eq!(tags, ["weather/winter"], "the other one is doubtful: {answer}");
        assert_eq!(answer["method"], "neighbours_by_words");
        let reason = answer["suggestions"][0]["reason"].as_str().unwrap();
        assert!(
            reason.starts_with("its name is in the text; 2 similar or linked notes have it, such as \"ice.md\""),
            "{reason}"
        );
        let own = harness.call("suggest_tags", json!({"id": "ice.md"}));
        assert!(!own.to_string().contains("weather/winter"), "{own}");
    }

    #[test]
    fn meaning_is_used_where_there_is_a_model() {
        let harness = Harness::with_meaning(NOTES);
        let answer = harness.call("suggest_tags", json!({"id": "frost.md", "limit": 1}));
        assert_eq!(
            (&answer["method"], &answer["suggestions"][0]["tag"]),
            (&json!("neighbours"), &json!("weather/winter"))
        );
    }

    #[test]
    fn a_missing_note_is_named() {
        let harness = Harness::new(NOTES);
        let (code, message) = harness.fails("suggest_tags", json!({"id": "frots.md"}));
        assert_eq!(
            (code.as_str(), message.as_str()),
            ("NODE_NOT_FOUND", "no note has the id \"frots.md\"; near names: \"frost.md\"")
        );
    }
}
