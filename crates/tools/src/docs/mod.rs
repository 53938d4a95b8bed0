//! The toolset `docs`: a note is a document, identified by its real path. Every file is one, also those whose path differs
//! from another's only in case.

mod get_document;
mod list_documents;
mod search_docs;

mod document;

pub(crate) use get_document::GetDocument;
pub(crate) use list_documents::ListDocuments;
pub(crate) use search_docs::SearchDocs;
