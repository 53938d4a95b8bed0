//! `find_path`: the shortest path of links from one note to another.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::not_found::node_not_found;
use crate::tool::{Access, Call, Tool};
use crate::tool_error::ToolError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Id of the first note.
    source: String,
    /// Id of the last note.
    target: String,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    /// Ids from source to target, both included.
    path: Vec<String>,
    /// Links followed.
    length: usize,
}

pub(crate) struct FindPath;

impl Tool for FindPath {
    type Params = Params;
    type Output = Option<Output>;

    const NAME: &'static str = "find_path";
    const DESCRIPTION: &'static str =
        "Find the shortest path of links from one note to another, in link direction; null if there is none.";
    const ACCESS: Access = Access::Read;
    const HAS_VIEW: bool = true;

    fn call(call: &Call<'_>, params: Params) -> Result<Option<Output>, ToolError> {
        let snapshot = call.knowledge.snapshot();
        let find = |id: &str| {
            let found = call.find(&snapshot, id);
            if found.is_none() {
                call.warn(node_not_found(&snapshot, id));
            }
            found
        };
        let (Some(source), Some(target)) = (find(&params.source), find(&params.target)) else { return Ok(None) };
        let path = snapshot.shortest_path(source, target);
        Ok(path.map(|path| Output {
            length: path.len() - 1,
            path: path.into_iter().map(|key| snapshot.note(key).id.to_string()).collect(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::check;

    const CHAIN: &str = "\
//- notes/intro.md
[[basics]] [[detour]]
//- notes/basics.md
[[advanced]]
//- notes/detour.md
[[detour-2]]
//- notes/detour-2.md
[[advanced]]
//- notes/advanced.md
";

    #[test]
    fn the_shortest_path_is_found() {
        let path = ["notes/intro.md", "notes/basics.md", "notes/advanced.md"];
        let arguments = json!({"source": "notes/intro.md", "target": "Notes/Advanced.md"});
        check(CHAIN, "find_path", arguments, json!({"path": path, "length": 2}));
    }

    #[test]
    fn a_path_to_itself_has_length_zero() {
        let arguments = json!({"source": "notes/intro.md", "target": "notes/intro.md"});
        check(CHAIN, "find_path", arguments, json!({"path": ["notes/intro.md"], "length": 0}));
    }

    #[test]
    fn links_are_one_way_and_missing_notes_have_no_path() {
        for (source, target) in
            [("notes/advanced.md", "notes/intro.md"), ("notes/intro.md", "x.md"), ("x.md", "x.md"), ("", "")]
        {
            check(CHAIN, "find_path", json!({"source": source, "target": target}), json!(null));
        }
    }

    #[test]
    fn equally_short_paths_are_ordered_by_id() {
        let vault = "//- s.md\n[[b]] [[a]]\n//- a.md\n[[t]]\n//- b.md\n[[t]]\n//- t.md\n";
        let arguments = json!({"source": "s.md", "target": "t.md"});
        check(vault, "find_path", arguments, json!({"path": ["s.md", "a.md", "t.md"], "length": 2}));
    }
}
