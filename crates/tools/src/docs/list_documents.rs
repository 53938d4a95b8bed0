//! What documents there are.

use quipu_core::model::{Note, fold};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::document::{DocumentMetadata, section};
use crate::fault::Fault;
use crate::tool::{Access, Call, Tool};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Params {
    /// Only this section, usually a top folder such as "guides"; "root" for files in none.
    #[serde(default = "every_section")]
    section: String,
    /// At most this many.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 1000))]
    limit: usize,
    /// Leave out this many first, for the next page.
    #[serde(default)]
    offset: usize,
}

fn every_section() -> String {
    "all".to_owned()
}

fn default_limit() -> usize {
    1000
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Output {
    documents: Vec<DocumentMetadata>,
    /// All that match, beyond the limit too.
    total: usize,
    section: String,
}

pub(crate) struct ListDocuments;

impl Tool for ListDocuments {
    type Params = Params;
    type Output = Output;

    const NAME: &'static str = "list_documents";
    const DESCRIPTION: &'static str = "List documents in order of path: title, path, section, tags, description. Use it \
        to see what is documented; to find something in the text call search_docs.";
    const ACCESS: Access = Access::Read;
    const IDEMPOTENT: bool = true;

    fn call(call: &Call<'_>, params: Params) -> Result<Output, Fault> {
        let snapshot = call.knowledge.snapshot();
        let wanted = fold(&params.section);
        let admits = |note: &&Note| params.section == every_section() || fold(&section(note)) == wanted;
        let mut found: Vec<&Note> = snapshot.files().map(|key| snapshot.note(key)).filter(admits).collect();
        found.sort_unstable_by_key(|note| &note.path);
        let page = found.iter().skip(params.offset).take(params.limit);
        Ok(Output {
            documents: page.map(|note| DocumentMetadata::of(note)).collect(),
            total: found.len(),
            section: params.section,
        })
    }
}
