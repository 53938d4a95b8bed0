//! The toolset `notes`: a note is a node of a graph, identified by its id.

mod create_node;
mod delete_node;
mod find_path;
mod get_hubs;
mod get_neighbors;
mod get_node;
mod list_nodes;
mod nodes_exist;
mod random_node;
mod resolve_nodes;
mod search;
mod search_by_tags;
mod update_node;

mod node;

pub(crate) use create_node::CreateNode;
pub(crate) use delete_node::DeleteNode;
pub(crate) use find_path::FindPath;
pub(crate) use get_hubs::GetHubs;
pub(crate) use get_neighbors::GetNeighbors;
pub(crate) use get_node::GetNode;
pub(crate) use list_nodes::ListNodes;
pub(crate) use nodes_exist::NodesExist;
pub(crate) use random_node::RandomNode;
pub(crate) use resolve_nodes::ResolveNodes;
pub(crate) use search::Search;
pub(crate) use search_by_tags::SearchByTags;
pub(crate) use update_node::UpdateNode;
