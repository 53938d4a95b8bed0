//! The toolset `work`: daily work on notes, in small steps: edit a part, move, query, see what changed and go back.

pub(crate) mod edit_node;
pub(crate) mod move_node;
pub(crate) mod query_nodes;
