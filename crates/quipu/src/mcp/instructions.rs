//! What an agent is told of this server before it calls anything: which tools to reach for first.

use quipu_tools::ToolInfo;

/// A few sentences, and of the tools only those that are there.
pub(super) fn for_tools<'a>(tools: impl Iterator<Item = &'a ToolInfo>) -> String {
    let names: Vec<&str> = tools.map(|tool| tool.name).collect();
    let mut text =
        "Quipu is a lasting, searchable memory over a folder of Markdown notes that people and other agents edit too. \
         Look here before you answer from memory."
            .to_owned();
    for (tool, hint) in HINTS {
        if names.contains(tool) {
            text.push(' ');
            text.push_str(hint);
        }
    }
    text
}

/// Each sentence with the tool it depends on.
const HINTS: &[(&str, &str)] = &[
    ("search", "To find notes on a subject use `search`;"),
    ("resolve_nodes", "to turn a loose name into ids, `resolve_nodes`;"),
    ("get_node", "to read one note by id, `get_node`, with `depth: 1` for its surroundings."),
    ("get_neighbors", "Follow links with `get_neighbors` and `find_path`; `get_hubs` shows what a vault is about."),
    ("update_node", "Read a note before you change it: an edit made elsewhere in between is refused, never lost."),
    ("search_docs", "For documentation by path: `list_documents`, `search_docs`, then `get_document`."),
    ("ubp_search", "For sections, typed links and staleness: `ubp_search`, then `ubp_get_context`."),
    ("create_entity", "Facts that fit no note go to the memory graph: `search_entities` first, then `create_entity`."),
    ("bulk_update", "Several facts at once: `bulk_update`."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_instructions_stay_short_with_every_tool_there() {
        let all: usize = HINTS.iter().map(|(_, hint)| hint.len() + 1).sum();
        assert!(all + for_tools(std::iter::empty()).len() <= 1024);
    }
}
