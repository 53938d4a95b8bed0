//! The tools offered to a client. The vault may be open in another process, which then sends only the names of its tools:
//! every process has all descriptions and schemas.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::registry::{INVALID_PARAMS, Registry, RegistryOptions, Reply, ToolResponse, every_tool, unknown_tool};
use crate::tool::{Access, ToolInfo, Toolset};

/// The tools that a client sees and may call.
#[derive(Debug, Clone)]
pub struct Offer {
    tools: Vec<ToolInfo>,
    options: RegistryOptions,
    /// The entries of `tools` in the list of all tools, with whole descriptions.
    handles: Vec<&'static ToolInfo>,
    /// These and the tools of all other toolsets.
    of_all_toolsets: Vec<&'static ToolInfo>,
    /// The names of all other tools.
    hidden: Vec<&'static str>,
}

impl Offer {
    /// The tools of a registry that the options admit.
    pub fn of(registry: &Registry, options: RegistryOptions) -> Self {
        Self::among(registry.tools().map(|tool| tool.name), options)
    }

    /// The tools with these names that the options admit, always in the same order.
    pub fn among<'a>(names: impl IntoIterator<Item = &'a str>, options: RegistryOptions) -> Self {
        let names: Vec<&str> = names.into_iter().collect();
        Self::new(every_tool().iter().filter(|tool| names.contains(&tool.name)), options)
    }

    /// This offer without the tools that write.
    pub fn reading(&self) -> Self {
        Self::new(self.of_all_toolsets(), RegistryOptions { read_only: true, ..self.options.clone() })
    }

    fn new(available: impl Iterator<Item = &'static ToolInfo>, options: RegistryOptions) -> Self {
        let of_all_toolsets: Vec<&'static ToolInfo> = available.filter(|tool| options.allows(tool)).collect();
        let handles: Vec<&'static ToolInfo> =
            of_all_toolsets.iter().copied().filter(|tool| options.chooses(tool)).collect();
        let mut tools: Vec<ToolInfo> = handles.iter().copied().cloned().collect();
        let hidden = hidden(&tools);
        for tool in &mut tools {
            tool.description = without_tools(&tool.description, &hidden).into();
            let mut schema = Map::clone(&tool.input_schema);
            drop_mentions(&mut schema, &hidden);
            // Otherwise it stays the one that all offers share.
            if schema != *tool.input_schema {
                tool.input_schema = Arc::new(schema);
            }
        }
        Self { tools, handles, of_all_toolsets, options, hidden }
    }

    /// The tools, always in the same order.
    pub fn tools(&self) -> impl Iterator<Item = &ToolInfo> {
        self.tools.iter()
    }

    /// The tools for the explorer: toolsets limit what a model chooses from, and the page of a person needs all of them.
    pub fn of_all_toolsets(&self) -> impl Iterator<Item = &'static ToolInfo> {
        self.of_all_toolsets.iter().copied()
    }

    /// The tool of this name, or the error for a client that asked for it.
    pub fn find(&self, name: &str) -> Result<&'static ToolInfo, Reply> {
        self.handles.iter().copied().find(|tool| tool.name == name).ok_or_else(|| self.not_offered(name))
    }

    /// Like [`Offer::find`], in all toolsets.
    pub fn find_in_all_toolsets(&self, name: &str) -> Result<&'static ToolInfo, Reply> {
        self.of_all_toolsets().find(|tool| tool.name == name).ok_or_else(|| self.not_offered(name))
    }

    /// Removes advice that names other tools from the warnings and the error of a response: such clauses, except the first, which
    /// says what happened. `may` tells which of the offered tools the caller may use.
    pub fn fit(&self, response: &mut ToolResponse, may: impl Fn(Access) -> bool) {
        // Most responses have no advice.
        if response.warnings.is_empty() && matches!(response.reply, Reply::Answer(_)) {
            return;
        }
        let has = |name: &str| self.handles.iter().any(|tool| tool.name == name && may(tool.access));
        let hidden: Vec<&str> = every_tool().iter().map(|tool| tool.name).filter(|name| !has(name)).collect();
        response.warnings.iter_mut().for_each(|warning| drop_advice(warning, &hidden));
        match &mut response.reply {
            Reply::Answer(_) => {}
            Reply::Protocol { message, .. } => drop_advice(message, &hidden),
            Reply::Failure(text) => {
                let mut error: Value = serde_json::from_str(text).unwrap_or_default();
                match error.pointer_mut("/error/message") {
                    Some(Value::String(message)) => {
                        drop_advice(message, &hidden);
                        *text = error.to_string();
                    }
                    _ => drop_advice(text, &hidden),
                }
            }
        }
    }

    fn not_offered(&self, name: &str) -> Reply {
        let Some(tool) = every_tool().iter().find(|tool| tool.name == name) else {
            return unknown_tool(name, self.tools());
        };
        let why = if !self.options.allows(tool) {
            "this server is read-only".to_owned()
        } else if self.options.toolsets == [Toolset::Essential] && !self.options.chooses(tool) {
            "this server runs with the toolset essential only; start it without `--toolsets essential` for all tools"
                .to_owned()
        } else if !self.options.chooses(tool) {
            format!("this server runs without the toolset {}", tool.toolset.name())
        } else {
            let need = tool.need.unwrap_or("the process that owns the vault has another version of Quipu");
            without_tools(need, &self.hidden)
        };
        let message = format!("{name} is not offered: {why}");
        Reply::Protocol { code: INVALID_PARAMS, message }
    }
}

/// Removes the clauses of a message that name one of these tools, except the first.
fn drop_advice(message: &mut String, tools: &[&str]) {
    let clauses = clauses(message);
    let is_kept = |(place, clause): &(usize, &&str)| *place == 0 || !advises(clause, tools);
    let kept: Vec<&str> = clauses.iter().enumerate().filter(is_kept).map(|(_, clause)| *clause).collect();
    if kept.len() < clauses.len() {
        *message = kept.join("; ");
    }
}

/// The clauses of a message, separated by `; ` outside of names, texts and commands in quotation marks.
fn clauses(message: &str) -> Vec<&str> {
    let (mut clauses, mut start, mut quote, mut is_escaped) = (Vec::new(), 0, None, false);
    for (at, character) in message.char_indices() {
        match (quote, character) {
            _ if is_escaped => is_escaped = false,
            (Some('"'), '\\') => is_escaped = true,
            (Some(open), _) if open == character => quote = None,
            (None, '"' | '`') => quote = Some(character),
            (None, ';') if message[at..].starts_with("; ") => {
                clauses.push(&message[start..at]);
                start = at + 2;
            }
            _ => {}
        }
    }
    clauses.push(&message[start..]);
    clauses
}

/// Whether a clause names one of these tools outside of quotation marks.
fn advises(clause: &str, tools: &[&str]) -> bool {
    let unquoted = clause.split(['"', '`']).step_by(2);
    unquoted.flat_map(words).any(|word| word.contains('_') && tools.contains(&word))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
}

/// The names of all other tools.
fn hidden(tools: &[ToolInfo]) -> Vec<&'static str> {
    let is_hidden = |name: &&str| tools.iter().all(|tool| tool.name != *name);
    every_tool().iter().map(|tool| tool.name).filter(is_hidden).collect()
}

/// Removes the clauses that name these tools from every description in a schema.
fn drop_mentions(schema: &mut Map<String, Value>, tools: &[&str]) {
    schema.iter_mut().for_each(|(key, value)| match value {
        Value::String(text) if key == "description" => *text = without_tools(text, tools),
        value => drop_mentions_inside(value, tools),
    });
}

fn drop_mentions_inside(schema: &mut Value, tools: &[&str]) {
    match schema {
        Value::Object(object) => drop_mentions(object, tools),
        Value::Array(items) => items.iter_mut().for_each(|item| drop_mentions_inside(item, tools)),
        _ => {}
    }
}

/// A description without the clauses (separated by `. ` and `; `) that name one of these tools.
fn without_tools(text: &str, tools: &[&str]) -> String {
    // A name without an underscore, such as `search`, is also a common word.
    let names_one = |clause: &&str| words(clause).any(|word| word.contains('_') && tools.contains(&word));
    let sentences = text.split(". ").filter_map(|sentence| {
        let clauses: Vec<&str> = sentence.trim_end_matches('.').split("; ").collect();
        let kept: Vec<&str> = clauses.iter().copied().filter(|clause| !names_one(clause)).collect();
        let first = kept.first()?.chars().next()?;
        let is_sentence = clauses[0].starts_with(char::is_uppercase);
        let start = if is_sentence { first.to_uppercase().to_string() } else { first.to_string() };
        Some(format!("{start}{}", &kept.join("; ")[first.len_utf8()..]))
    });
    let text_kept = sentences.collect::<Vec<_>>().join(". ");
    if text.ends_with('.') && !text_kept.is_empty() { format!("{text_kept}.") } else { text_kept }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool_error::{ToolError, ToolErrorKind};

    #[test]
    fn descriptions_name_only_offered_tools() {
        let all: Vec<&str> = every_tool().iter().map(|tool| tool.name).collect();
        let offer = |toolsets: &[Toolset], read_only| {
            Offer::among(all.iter().copied(), RegistryOptions { toolsets: toolsets.to_vec(), read_only })
        };
        let mut offers: Vec<Offer> = Vec::new();
        for first in Toolset::ALL {
            offers.extend(Toolset::ALL.map(|second| offer(&[first, second], false)));
            offers.push(offer(&[first], true));
        }
        offers.push(offer(&Toolset::ALL, false).reading());
        offers.push(offer(&[Toolset::Essential], false));
        offers.push(offer(&[Toolset::Essential], true));
        // Each tool alone.
        offers.extend(all.iter().map(|name| Offer::among([*name], RegistryOptions::default())));
        for offer in offers {
            let offered: Vec<&str> = offer.tools().map(|tool| tool.name).collect();
            for tool in offer.tools() {
                let mut shown = tool.description.to_string();
                for schema in [&tool.input_schema, &tool.output_schema] {
                    schema.iter().for_each(|(_, value)| add_descriptions(value, &mut shown));
                }
                let words = shown.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
                for word in words.filter(|word| word.contains('_') && all.contains(word)) {
                    assert!(offered.contains(&word), "{} names {word}, among {offered:?}", tool.name);
                }
                let text = &tool.description;
                assert!(text.starts_with(char::is_uppercase) && text.ends_with('.'), "{}: {text}", tool.name);
            }
        }
        let whole = Offer::among(all.iter().copied(), RegistryOptions::default());
        for (tool, original) in whole.tools().zip(every_tool().iter()) {
            assert_eq!(tool.description, original.description, "nothing is dropped where all tools are offered");
        }
    }

    /// Names of properties may equal those of tools.
    fn add_descriptions(schema: &Value, text: &mut String) {
        match schema {
            Value::Object(object) => object.iter().for_each(|(key, value)| match value {
                Value::String(description) if key == "description" => *text += &format!(" {description}"),
                value => add_descriptions(value, text),
            }),
            Value::Array(items) => items.iter().for_each(|item| add_descriptions(item, text)),
            _ => {}
        }
    }

    #[test]
    fn only_clauses_that_name_missing_tools_are_removed() {
        let text = "Read one. Use it once you have an id; to find one call find_it. To list call list_all, then go on.";
        assert_eq!(without_tools(text, &["find_it", "list_all"]), "Read one. Use it once you have an id.");
        assert_eq!(without_tools("Call find_it; then read.", &["find_it"]), "Then read.");
        assert_eq!(without_tools(text, &[]), text);
    }

    #[test]
    fn warnings_and_errors_advise_only_tools_that_the_caller_may_use() {
        let fitted = |names: &[&str], reply: Reply, warning: &str, may: fn(Access) -> bool| {
            let mut response = ToolResponse { reply, warnings: vec![warning.to_owned()] };
            Offer::among(names.iter().copied(), RegistryOptions::default()).fit(&mut response, may);
            response
        };
        let told = |names: &[&str], warning: &str| {
            let response = fitted(names, Reply::Answer(Value::Null), warning, |_| true);
            response.warnings.concat()
        };
        let warning = "\"a; b.md\": 5 characters were replaced; revert_node brings them back; in a shell, `x; y` does";
        assert_eq!(told(&["revert_node"], warning), warning);
        let without = "\"a; b.md\": 5 characters were replaced; in a shell, `x; y` does";
        assert_eq!(told(&["get_node"], warning), without);
        for kept in [
            "revert_node happened; see \"revert_node.md; x\"",
            "the note \"a\\\"; revert_node\" has a name; and text",
            "nothing; to; cut",
        ] {
            assert_eq!(told(&["get_node"], kept), kept);
        }
        let reads: fn(Access) -> bool = |access| access == Access::Read;
        let offered = ["revert_node", "get_node"];
        assert_eq!(fitted(&offered, Reply::Answer(Value::Null), warning, reads).warnings, [without]);
        let error = ToolError::new(ToolErrorKind::NotFound, "no \"x\"; revert_node y; get_node lists \"a; b\"");
        for (toolset, fits) in [
            (
                Toolset::Notes,
                Reply::Failure(
                    r#"{"error":{"code":"NODE_NOT_FOUND","message":"no \"x\"; get_node lists \"a; b\""}}"#.into(),
                ),
            ),
            (Toolset::Docs, Reply::Failure(r#"Error: no "x"; get_node lists "a; b""#.into())),
            (Toolset::Pages, Reply::Protocol { code: -32602, message: r#"no "x"; get_node lists "a; b""#.into() }),
        ] {
            let reply = error.reply(toolset);
            assert_eq!(fitted(&offered, reply.clone(), "", |_| true).reply, reply);
            assert_eq!(fitted(&offered, reply, "", reads).reply, fits);
        }
    }

    #[test]
    fn unavailable_tool_names_what_is_missing_and_an_alternative() {
        let refusal = |names: &[&str]| {
            let offer = Offer::among(names.iter().copied(), RegistryOptions::default());
            let Err(Reply::Protocol { message, .. }) = offer.find("search") else { panic!("it is not offered") };
            message
        };
        let both = refusal(&["ubp_search", "get_node"]);
        assert!(both.contains("`[embedding] provider") && both.contains("ubp_search"), "{both}");
        let alone = refusal(&["get_node"]);
        assert!(alone.contains("`[embedding] provider") && !alone.contains("ubp_search"), "{alone}");
    }

    #[test]
    fn tools_that_are_not_offered_are_refused() {
        let options = RegistryOptions { toolsets: vec![Toolset::Notes], read_only: true };
        let offer = Offer::among(["create_node", "get_node", "list_documents", "of a newer version"], options);
        assert_eq!(offer.tools().map(|tool| tool.name).collect::<Vec<_>>(), ["get_node"]);
        assert_eq!(offer.find("get_node").map(|tool| tool.name), Ok("get_node"));
        let refused = offer.find("create_node").map(|tool| tool.name);
        let Err(Reply::Protocol { code, message }) = refused else { panic!("{refused:?}") };
        assert_eq!(code, -32602);
        assert_eq!(message, "create_node is not offered: this server is read-only");
        let Err(Reply::Protocol { message, .. }) = offer.find("list_documents") else { panic!("it is not offered") };
        assert_eq!(message, "list_documents is not offered: this server runs without the toolset docs");
        assert_eq!(offer.find_in_all_toolsets("list_documents").map(|tool| tool.name), Ok("list_documents"));
        let refused = offer.find_in_all_toolsets("create_node").map(|tool| tool.name);
        let read_only = "create_node is not offered: this server is read-only".to_owned();
        assert_eq!(refused, Err(Reply::Protocol { code: -32602, message: read_only }));
        let unknown = Reply::Protocol { code: -32602, message: "Unknown tool: get_nod; did you mean get_node?".into() };
        assert_eq!(offer.find("get_nod").map(|tool| tool.name), Err(unknown));
    }
}
