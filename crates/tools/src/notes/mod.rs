//! The toolset `notes`: a note is a node of a graph, identified by its id.

pub(crate) mod create_node;
pub(crate) mod delete_node;
pub(crate) mod find_path;
pub(crate) mod get_hubs;
pub(crate) mod get_neighbors;
pub(crate) mod get_node;
pub(crate) mod list_nodes;
pub(crate) mod nodes_exist;
pub(crate) mod random_node;
pub(crate) mod resolve_nodes;
pub(crate) mod search;
pub(crate) mod search_by_tags;
pub(crate) mod update_node;

mod node;

pub(crate) use node::json;
