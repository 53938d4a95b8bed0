//! The toolset `pages`: a note is a page with sections, typed links and staleness, identified by its real path and by a
//! UUID derived from it. Every file is one.

pub(crate) mod ubp_fulltext_search;
pub(crate) mod ubp_get_context;
pub(crate) mod ubp_get_graph;
pub(crate) mod ubp_get_page;
pub(crate) mod ubp_list_pages;
pub(crate) mod ubp_search;

mod page;
