//! `ubp_get_context`: one page and summaries of the pages around it, within a size.
//!
//! Order: near pages before far ones, dependencies before references, much linked pages before others. A summary that does
//! not fit is left out and counted; a shorter one after it may still fit.

use quipu_core::index::{RelatedNote, Snapshot};
use quipu_core::quoted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::page::{doc_id, read_page, summaries};
use crate::answer_size::{LIST_ROOM, fitting_text, json_chars};
use crate::entities::{EntityName, MAX_ENTITIES, linking_entities};
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;
use crate::truncate::{cut_name, truncate};

/// Pages read at a time.
const BATCH: usize = 32;
/// After so many misfits in a row the other pages are not read.
const MAX_MISFITS: usize = 32;
/// Pages listed at most.
const MAX_RELATED: usize = 1000;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Path of the page.
    #[schemars(length(min = 1))]
    filepath: String,
    /// Maximum distance in links, in either direction.
    #[serde(default = "default_depth")]
    #[schemars(range(min = 1, max = 3))]
    depth: usize,
    /// Maximum characters of text and summaries.
    #[schemars(range(min = 1, max = 1_000_000), extend("default" = DEFAULT_SIZE))]
    max_size: Option<usize>,
    /// Add memory entities that link to the page.
    #[serde(default)]
    include_entities: bool,
}

fn default_depth() -> usize {
    2
}

const DEFAULT_SIZE: usize = 50_000;
/// Characters of the center as JSON, unless the client chose a size.
const MAX_CENTER: usize = LIST_ROOM - 1_000;

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    center: Center,
    /// Most useful first.
    related: Vec<RelatedPage>,
    /// Characters of the center's content and of all summaries.
    total_size: usize,
    /// Pages left out because they did not fit.
    truncated_count: usize,
    /// Only on request; at most 20.
    #[serde(skip_serializing_if = "Option::is_none")]
    entities: Option<Vec<EntityName>>,
}

#[derive(Serialize, JsonSchema)]
struct Center {
    doc_id: String,
    filepath: String,
    title: String,
    /// The text without frontmatter, cut at max_size.
    content: String,
}

#[derive(Serialize, JsonSchema)]
struct RelatedPage {
    doc_id: String,
    filepath: String,
    title: String,
    /// Type of the last link on the path.
    link_type: &'static str,
    direction: Direction,
    /// The first 500 characters.
    summary: String,
    depth: usize,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Direction {
    Outlink,
    Backlink,
}

pub(crate) struct GetContext;

impl Tool for GetContext {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "ubp_get_context";
    const DESCRIPTION: &'static str = "Read a page and summaries of the pages around it, most useful first, within \
        max_size characters. Use it to prepare work on a topic.";
    const ACCESS: Access = Access::Read;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, ToolError> {
        let read = read_page(call, &params.filepath)?;
        let note = read.note();
        let max_size = params.max_size.unwrap_or(DEFAULT_SIZE);
        let content = match params.max_size {
            Some(max_size) => truncate(read.body(), max_size),
            None => fitting_text(&truncate(read.body(), max_size), MAX_CENTER),
        };
        if content.len() == read.body().len() {
            call.knowledge.show_whole(call.session, &read);
        } else {
            let how = if params.max_size.is_some() { "at `max_size`" } else { "to fit; pass `max_size` for more" };
            call.warn(format!("{}: the text is cut {how}", quoted(note.path.as_str())));
        }
        let around: Vec<RelatedNote> = read.snapshot.related(read.key, params.depth).into_iter().flatten().collect();
        let size = content.chars().count();
        let room = RemainingSpace {
            text: max_size.saturating_sub(size),
            answer: params.max_size.is_none().then(|| LIST_ROOM.saturating_sub(json_chars(&content))),
        };
        let (related, used) = fitting(call, &read.snapshot, &around, room);
        let speaking = || linking_entities(call, &read.snapshot, read.key, MAX_ENTITIES);
        let entities = params.include_entities.then(speaking).transpose()?;
        Ok(Output {
            entities,
            center: Center {
                doc_id: doc_id(note),
                filepath: note.path.to_string(),
                title: cut_name(&note.title),
                content,
            },
            truncated_count: around.len() - related.len(),
            related,
            total_size: size + used,
        })
    }
}

/// Space left for the pages around the center.
struct RemainingSpace {
    /// Characters of summaries.
    text: usize,
    /// Characters of the answer, unless the client chose a size.
    answer: Option<usize>,
}

/// The pages whose summaries fit, and the characters of those.
fn fitting(
    call: &Call<'_>,
    snapshot: &Snapshot,
    around: &[RelatedNote],
    mut room: RemainingSpace,
) -> (Vec<RelatedPage>, usize) {
    let (mut pages, mut used, mut misfits) = (Vec::new(), 0, 0);
    for batch in around.chunks(BATCH) {
        let keys: Vec<_> = batch.iter().map(|related| related.key).collect();
        for (related, summary) in batch.iter().zip(summaries(call, snapshot, &keys)) {
            let size = summary.chars().count();
            let note = snapshot.note(related.key);
            let page = RelatedPage {
                doc_id: doc_id(note),
                filepath: note.path.to_string(),
                title: cut_name(&note.title),
                link_type: related.link_type.name(),
                direction: if related.is_outgoing { Direction::Outlink } else { Direction::Backlink },
                summary,
                depth: related.depth,
            };
            let answer_size = json_chars(&page) + 1;
            let is_too_long = room.answer.is_some_and(|left| answer_size > left);
            if used + size > room.text || is_too_long || pages.len() == MAX_RELATED {
                misfits += 1;
                continue;
            }
            misfits = 0;
            used += size;
            room.answer = room.answer.map(|left| left - answer_size);
            pages.push(page);
        }
        if misfits >= MAX_MISFITS {
            break;
        }
    }
    (pages, used)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::testing::Harness;

    const VAULT: &str = "\
//- center.md
[[mentioned]] [[needed|depends_on]]
//- needed.md
Needed. [[far|implements]]
//- mentioned.md
Mentioned.
//- user.md
[[center|extends]] it.
//- far.md
Far.
//- farther.md
[[far]]
";

    fn related(answer: &Value) -> Vec<String> {
        let line = |page: &Value| {
            let text = |name: &str| page[name].as_str().unwrap().to_owned();
            format!("{} {} {} {}", page["depth"], text("direction"), text("link_type"), text("filepath"))
        };
        answer["related"].as_array().unwrap().iter().map(line).collect()
    }

    #[test]
    fn related_pages_are_ordered_by_distance_type_and_links() {
        let harness = Harness::new(VAULT);
        let answer = harness.call("ubp_get_context", json!({"filepath": "center.md"}));
        assert_eq!(
            related(&answer),
            [
                "1 outlink depends_on needed.md",
                "1 backlink extends user.md",
                "1 outlink references mentioned.md",
                "2 outlink implements far.md",
            ]
        );
        assert_eq!(answer["center"]["content"], "[[mentioned]] [[needed|depends_on]]\n");
        assert_eq!(answer["related"][1]["summary"], "[[center|extends]] it.");
        let sizes = [36, 26, 22, 10, 4];
        assert_eq!(
            (&answer["total_size"], &answer["truncated_count"]),
            (&json!(sizes.iter().sum::<usize>()), &json!(0))
        );
        let deep = harness.call("ubp_get_context", json!({"filepath": "center.md", "depth": 3}));
        assert_eq!(related(&deep)[4], "3 backlink references farther.md");
        assert_eq!(related(&harness.call("ubp_get_context", json!({"filepath": "center.md", "depth": 1}))).len(), 3);
    }

    #[test]
    fn summaries_that_do_not_fit_are_counted() {
        let harness = Harness::new(VAULT);
        let answer = harness.call("ubp_get_context", json!({"filepath": "center.md", "max_size": 36 + 26 + 11}));
        assert_eq!(related(&answer), ["1 outlink depends_on needed.md", "1 outlink references mentioned.md"]);
        assert_eq!((&answer["total_size"], &answer["truncated_count"]), (&json!(36 + 26 + 10), &json!(2)));
        let called = harness.called("ubp_get_context", json!({"filepath": "center.md", "max_size": 20}));
        assert_eq!(called.warnings, ["\"center.md\": the text is cut at `max_size`"]);
        let crate::Reply::Answer(answer) = called.reply else { panic!("it answers") };
        assert_eq!(answer["center"]["content"], "[[men... [truncated]");
        assert_eq!((&answer["total_size"], &answer["truncated_count"]), (&json!(20), &json!(4)));
    }

    #[test]
    fn a_summary_is_500_characters_of_the_text() {
        let harness = Harness::new(&format!("//- a.md\n[[b]]\n//- b.md\n---\ntitle: B\n---\n{}", "é".repeat(2000)));
        let answer = harness.call("ubp_get_context", json!({"filepath": "a.md"}));
        assert_eq!(answer["related"][0]["summary"].as_str().unwrap().chars().count(), 500);
        assert_eq!(harness.call("ubp_get_context", json!({"filepath": "x.md"}))["protocol"]["code"], -32602);
        assert_eq!(
            harness.call("ubp_get_context", json!({"filepath": "a.md", "depth": 4}))["protocol"]["code"],
            -32602
        );
    }
}
