//! The vault as pages: documents in sections, with typed links, and how far each can be trusted. Here a note is called a
//! page; it goes by its real path and by a UUID made from it, and every file is one.

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
