//! The toolset `pages`: a note is a page with sections, typed links and staleness, identified by its real path and by a
//! UUID derived from it. Every file is one.

mod ubp_fulltext_search;
mod ubp_get_context;
mod ubp_get_graph;
mod ubp_get_page;
mod ubp_list_pages;
mod ubp_search;

mod page;

pub(crate) use ubp_fulltext_search::FulltextSearch;
pub(crate) use ubp_get_context::GetContext;
pub(crate) use ubp_get_graph::GetGraph;
pub(crate) use ubp_get_page::GetPage;
pub(crate) use ubp_list_pages::ListPages;
pub(crate) use ubp_search::SearchPages;
