//! One document in full.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::document::DocumentMetadata;
use crate::fault::{Fault, FaultKind};
use crate::tool::{Access, Call, Tool};
use crate::truncate::{NEIGHBOUR, truncate};

const PATH_REQUIRED: &str = "Document path is required";

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Path from the vault root, such as "guides/getting-started.md".
    path: String,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    path: String,
    /// The whole text without frontmatter.
    content: String,
    metadata: DocumentMetadata,
    /// Bytes of the file.
    size: u64,
}

pub(crate) struct GetDocument;

impl Tool for GetDocument {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "get_document";
    const DESCRIPTION: &'static str = "Read one document in full, never cut. Use a path from list_documents or \
        search_docs; for long notes get_node is cheaper.";
    const ACCESS: Access = Access::Read;
    const IDEMPOTENT: bool = true;

    fn missing(_argument: &str) -> Option<&'static str> {
        Some(PATH_REQUIRED)
    }

    fn call(call: &Call<'_>, params: Params) -> Result<Output, Fault> {
        if params.path.trim().is_empty() {
            return Err(Fault::invalid(PATH_REQUIRED));
        }
        // A path that leads out of the vault is no path inside it, and answers like any other that is not there.
        let Some(read) = call.knowledge.read_file(call.session, &params.path)? else {
            let path = truncate(&params.path, NEIGHBOUR);
            return Err(Fault::new(FaultKind::NotFound, format!("Document not found: {path}")));
        };
        let note = read.note();
        Ok(Output {
            path: note.path.to_string(),
            content: read.body().to_owned(),
            metadata: DocumentMetadata::of(note),
            size: note.stat.size,
        })
    }
}
