//! Writing to the text index.
//!
//! Changes are kept until they are committed, so that a writer that failed (a full disk) can be replaced and fed again.

use quipu_core::model::{Note, NoteKey};
use tantivy::directory::{Directory, META_LOCK};
use tantivy::error::DataCorruption;
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy, UserOperation};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, Index, IndexWriter, SegmentReader, TERMINATED, TantivyDocument, TantivyError, Term};

use super::damage::{TextError, guarded};
use super::schema::IndexFields;

/// Memory of each of tantivy's threads; its minimum is 15 MB.
const ARENA_BYTES: usize = 32 << 20;

/// The position of the text index: the catalog's epoch and the last list of changes that it has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct IndexPosition {
    pub(crate) epoch: String,
    pub(crate) seq: u64,
}

/// One change for the text index.
pub(crate) enum TextChange {
    /// Deletes everything.
    Clear,
    Delete(NoteKey),
    /// Adds a note that is not in the index.
    Add(Documents),
}

/// A note's sections as documents.
pub(crate) struct Documents {
    key: NoteKey,
    documents: Vec<TantivyDocument>,
    bytes: usize,
}

impl Documents {
    /// The note's ranges must be inside the text.
    pub(super) fn new(key: NoteKey, note: &Note, text: &str, fields: &IndexFields) -> Self {
        Self { key, documents: fields.documents(key.0, note, text), bytes: text.len() }
    }
}

impl TextChange {
    /// The length of its text.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Clear | Self::Delete(_) => 0,
            Self::Add(documents) => documents.bytes,
        }
    }
}

/// Changes that are not committed yet.
#[derive(Default)]
pub(super) struct SectionWriter {
    /// Created at the first change, since it takes threads and memory.
    writer: Option<IndexWriter>,
    uncommitted: Vec<TextChange>,
    /// How many of them the writer has.
    fed: usize,
    /// Whether an earlier writer failed, which may have committed some of them.
    is_retry: bool,
}

impl SectionWriter {
    /// Takes changes, without feeding them to tantivy.
    pub(super) fn take(&mut self, changes: &mut Vec<TextChange>) {
        self.uncommitted.append(changes);
    }

    /// Bytes of text held in memory until the next commit.
    pub(super) fn uncommitted_bytes(&self) -> usize {
        self.uncommitted.iter().map(TextChange::bytes).sum()
    }

    /// Feeds tantivy the changes that it does not have yet.
    pub(super) fn feed(&mut self, index: &Index, fields: &IndexFields) -> Result<(), TextError> {
        let outcome = guarded(|| self.try_feed(index, fields).map(drop));
        outcome.inspect_err(|_| self.give_up())
    }

    /// Commits all changes; the index is at the position then.
    pub(super) fn commit(
        &mut self,
        index: &Index,
        fields: &IndexFields,
        position: &IndexPosition,
    ) -> Result<(), TextError> {
        let outcome = guarded(|| {
            self.rehearse_deletions(index, fields)?;
            let mut commit = self.try_feed(index, fields)?.prepare_commit()?;
            commit.set_payload(&position.to_payload());
            commit.commit()
        });
        outcome.inspect_err(|_| self.give_up())?;
        self.uncommitted.clear();
        (self.fed, self.is_retry) = (0, false);
        Ok(())
    }

    /// Waits for running merges; nothing writes to the files afterwards. Changes that were fed and not committed are fed again
    /// later.
    pub(super) fn finish(&mut self) -> Result<(), TextError> {
        let writer = self.writer.take();
        if self.fed > 0 {
            (self.fed, self.is_retry) = (0, true);
        }
        guarded(|| writer.map_or(Ok(()), IndexWriter::wait_merging_threads))
    }

    /// Whether tantivy's writer exists, with its threads and memory.
    #[cfg(test)]
    pub(super) fn is_open(&self) -> bool {
        self.writer.is_some()
    }

    /// Drops all changes.
    pub(super) fn abandon(&mut self) {
        *self = Self::default();
    }

    /// Reads what a commit will read: each segment, and the positions of the notes to delete in it.
    ///
    /// Tantivy reads it on a thread where a panic aborts the process. Here a panic can be caught.
    fn rehearse_deletions(&self, index: &Index, fields: &IndexFields) -> tantivy::Result<()> {
        if self.uncommitted.iter().any(|change| matches!(change, TextChange::Clear)) {
            // No segment will be read.
            return Ok(());
        }
        let deleted: Vec<Term> = self
            .uncommitted
            .iter()
            .filter_map(|change| match change {
                TextChange::Delete(key) => Some(*key),
                TextChange::Add(Documents { key, .. }) => self.is_retry.then_some(*key),
                TextChange::Clear => None,
            })
            .map(|key| Term::from_field_u64(fields.key, key.0.into()))
            .collect();
        for reader in open_segments(index)? {
            if reader.alive_bitset().is_some_and(|alive| alive.bitset().max_value() != reader.max_doc()) {
                return Err(corruption("the deletions belong to another segment"));
            }
            let keys = reader.inverted_index(fields.key)?;
            for term in &deleted {
                let Some(mut postings) = keys.read_postings(term, IndexRecordOption::Basic)? else { continue };
                while postings.doc() != TERMINATED {
                    if postings.doc() >= reader.max_doc() {
                        return Err(corruption("a note is beyond the end of its segment"));
                    }
                    postings.advance();
                }
            }
        }
        Ok(())
    }

    fn try_feed(&mut self, index: &Index, fields: &IndexFields) -> tantivy::Result<&mut IndexWriter> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(new_writer(index)?),
        };
        let by_key = |key: NoteKey| Term::from_field_u64(fields.key, key.0.into());
        for change in &self.uncommitted[self.fed..] {
            match change {
                TextChange::Clear => {
                    writer.delete_all_documents()?;
                }
                TextChange::Delete(key) => {
                    writer.delete_term(by_key(*key));
                }
                TextChange::Add(Documents { key, documents, .. }) => {
                    if self.is_retry {
                        writer.delete_term(by_key(*key));
                    }
                    writer.run(documents.iter().cloned().map(UserOperation::Add).collect::<Vec<_>>())?;
                }
            }
            self.fed += 1;
        }
        Ok(writer)
    }

    fn give_up(&mut self) {
        self.writer = None;
        (self.fed, self.is_retry) = (0, true);
    }
}

impl IndexPosition {
    fn to_payload(&self) -> String {
        format!("{}:{}", self.epoch, self.seq)
    }

    /// The position of a commit.
    pub(super) fn from_payload(payload: &str) -> Option<Self> {
        let (epoch, seq) = payload.split_once(':')?;
        Some(Self { epoch: epoch.to_owned(), seq: seq.parse().ok()? })
    }
}

/// Opens every segment. The lock keeps a merge that finishes meanwhile from deleting files before they are opened.
fn open_segments(index: &Index) -> tantivy::Result<Vec<SegmentReader>> {
    let _lock = index.directory().acquire_lock(&META_LOCK)?;
    index.searchable_segments()?.iter().map(SegmentReader::open).collect()
}

fn new_writer(index: &Index) -> tantivy::Result<IndexWriter> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let options = IndexWriterOptions::builder()
        .num_worker_threads(cores.min(2))
        .memory_budget_per_thread(ARENA_BYTES)
        .num_merge_threads(1)
        .build();
    let writer = index.writer_with_options(options)?;
    let mut merge_policy = LogMergePolicy::default();
    // Deleted sections slow down every search until a merge drops them.
    merge_policy.set_del_docs_ratio_before_merge(0.3);
    writer.set_merge_policy(Box::new(merge_policy));
    Ok(writer)
}

fn corruption(what: &str) -> TantivyError {
    TantivyError::DataCorruption(DataCorruption::comment_only(what))
}
