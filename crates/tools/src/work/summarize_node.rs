//! `summarize_node`: the sentences of a note that say most about it.

use quipu_core::suggest::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::no_such_note;
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Id of the note.
    #[schemars(length(min = 1))]
    id: String,
    /// Maximum characters.
    #[serde(default = "default_max_chars")]
    #[schemars(range(min = 100, max = 10_000))]
    max_chars: usize,
}

fn default_max_chars() -> usize {
    600
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    id: String,
    summary: String,
    /// "extractive" compares sentences by meaning, "extractive_by_words" by words, "llm" asks the configured model.
    method: &'static str,
}

pub(crate) struct SummarizeNode;

impl Tool for SummarizeNode {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "summarize_node";
    const DESCRIPTION: &'static str =
        "Summarize a note, to judge a long one before reading it. For one section use get_node.";
    const ACCESS: Access = Access::Read;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let read = call.read(&params.id)?.ok_or_else(|| no_such_note(call, &params.id))?;
        let summary = call.knowledge.summarize(&read.note().title, read.body(), params.max_chars);
        if summary.text.is_empty() {
            call.warn("no sentence of this note fits; it may have only headings, tables or code".to_owned());
        }
        summary.warnings.into_iter().for_each(|warning| call.warn(warning));
        let method = match summary.method {
            Method::Model => "llm",
            Method::Meaning => "extractive",
            Method::Words => "extractive_by_words",
        };
        Ok(Output { id: read.note().id.to_string(), summary: summary.text, method })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::Harness;

    const NOTE: &str = "\
//- station.md
---
title: Station
---
# Station

The station measures rain and wind on the hill. Rain is measured by a tipping bucket.

```
not a sentence at all, only code
```

The wind is measured by an anemometer that freezes in winter. Somebody ate an apple.
//- empty.md
# Only a heading
";

    #[test]
    fn sentences_are_chosen_in_order_within_the_limit() {
        for harness in [Harness::new(NOTE), Harness::before_embedding(NOTE)] {
            let answer = harness.call("summarize_node", json!({"id": "Station.md", "max_chars": 130}));
            let summary = answer["summary"].as_str().unwrap();
            assert!(summary.starts_with("The station measures rain and wind on the hill."), "{answer}");
            assert!(summary.chars().count() <= 130 && !summary.contains("code"), "{answer}");
            assert!(answer["method"].as_str().unwrap().starts_with("extractive"), "{answer}");
        }
    }

    #[test]
    fn a_note_without_sentences_has_a_warning() {
        let called = Harness::new(NOTE).called("summarize_node", json!({"id": "empty.md"}));
        assert!(called.warnings[0].starts_with("no sentence of this note fits"), "{called:?}");
    }
}
