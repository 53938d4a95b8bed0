//! The types of the domain: a note and its parts, its ids, and frontmatter values.
//!
//! None of these types is serialisable: `tools` defines the wire format, and each store its rows.

mod doc_type;
mod id;
mod link;
mod loose;
mod note;
mod value;

pub use doc_type::DocType;
pub use id::{ContentHash, NoteId, NoteKey, PathError, VaultPath, fold};
pub(crate) use id::{composed_lowercase, one_sigma};
pub(crate) use link::has_attachment_extension;
pub use link::{Link, LinkSyntax, LinkType};
pub(crate) use loose::{hash_of_folded, hash_of_target, loose_hash, without_extension};
pub use note::{FileStat, Note, Section, SourceVersion, Tag, TextCounts, Warning};
pub use value::Value;
