//! The toolset `docs`: a note is a document, identified by its real path. Every file is one, also those whose path differs
//! from another's only in case.

pub(crate) mod get_document;
pub(crate) mod list_documents;
pub(crate) mod search_docs;

mod document;
