//! An open tantivy index, in a folder or in memory. Nothing here panics, whatever the files contain.

use std::sync::Arc;

use parking_lot::Mutex;
use quipu_core::ports::{RankedText, TextHits, TextMatch, TextQuery};
use tantivy::directory::RamDirectory;
use tantivy::{Index, IndexReader, IndexSettings, ReloadPolicy, TantivyError};

use super::bm25;
use super::damage::{TextError, guarded, is_refusal};
use super::directory::IndexDirectory;
use super::files::findings;
use super::query::QueryWords;
use super::schema::{self, IndexFields};
use super::segment_scores;
use super::tokenizer::{self, WordTokenizer};
use super::view::IndexView;
use super::writer::IndexPosition;
use quipu_own_folder::OwnFolder;

/// The open index.
pub(super) struct TantivyEngine {
    pub(super) index: Index,
    reader: IndexReader,
    view: Mutex<Arc<IndexView>>,
    /// The store's folder and the index's own; `None` in memory.
    directory: Option<(Arc<OwnFolder>, IndexDirectory)>,
}

/// The index's folder inside the store's.
const FOLDER: &str = "text";

/// Deletes the index in the store's folder. It must not be open.
pub(super) fn remove(store: &OwnFolder) -> std::io::Result<()> {
    store.remove_folder(FOLDER)
}

impl TantivyEngine {
    /// Opens or creates the index in the store's folder.
    pub(super) fn open(store: &Arc<OwnFolder>) -> Result<Self, TextError> {
        let folder = store.folder(FOLDER).map_err(|error| TextError::Failed(error.into()))?;
        let directory = IndexDirectory::new(folder);
        let (schema, _) = schema::schema();
        let index = guarded(|| {
            if Index::exists(&directory)? {
                Index::open(directory.clone())
            } else {
                Index::create(directory.clone(), schema.clone(), settings())
            }
        });
        let index = index.map_err(TextError::or_damage)?;
        if index.schema() != schema {
            return Err(TextError::Damaged("it was written by another version of Quipu".to_owned()));
        }
        Self::over(index, Some((store.clone(), directory))).map_err(TextError::or_damage)
    }

    /// An empty index without files.
    pub(super) fn in_memory() -> Result<Self, TextError> {
        Self::over(Index::create(RamDirectory::create(), schema::schema().0, settings())?, None)
    }

    fn over(index: Index, directory: Option<(Arc<OwnFolder>, IndexDirectory)>) -> Result<Self, TextError> {
        index.tokenizers().register(tokenizer::NAME, WordTokenizer);
        let reader: IndexReader = guarded(|| {
            index
                .reader_builder()
                .reload_policy(ReloadPolicy::Manual)
                .doc_store_cache_num_blocks(0)
                .num_warming_threads(1)
                .try_into()
        })?;
        let view = guarded(|| IndexView::new(reader.searcher(), &schema::schema().1, None))?;
        Ok(Self { reader, view: Mutex::new(Arc::new(view)), index, directory })
    }

    /// An empty index in place of this damaged one.
    pub(super) fn reset(&self) -> Result<Self, TextError> {
        let Some((store, directory)) = &self.directory else { return Self::in_memory() };
        directory.abandon();
        remove(store).map_err(|error| TextError::Failed(error.into()))?;
        Self::open(store)
    }

    /// The position of the last commit; `None` if it is unknown.
    pub(super) fn committed(&self) -> Option<IndexPosition> {
        let metas = guarded(|| self.index.load_metas()).ok()?;
        IndexPosition::from_payload(&metas.payload?)
    }

    /// Makes the last commit visible.
    pub(super) fn reload(&self) -> Result<(), TextError> {
        guarded(|| {
            self.reader.reload()?;
            let view = IndexView::new(self.reader.searcher(), &schema::schema().1, Some(&self.view()))?;
            *self.view.lock() = Arc::new(view);
            Ok(())
        })
    }

    fn view(&self) -> Arc<IndexView> {
        Arc::clone(&self.view.lock())
    }

    /// Searches with the strictest reading of a query that finds anything.
    pub(super) fn search(&self, query: &TextQuery, fields: &IndexFields) -> Result<TextHits, TextError> {
        let view = self.view();
        if query.limit == 0 || view.sections() == 0 {
            return Ok(TextHits::default());
        }
        let mut words = QueryWords::parse(&query.text, &view.languages);
        let most = guarded(|| words.most(&view, fields))?;
        let mut level = words.strictest(fields);
        while let Some(asked) = level {
            // A query that is a name wants the note of that name first.
            let named = if asked.matched == TextMatch::AnyWord { None } else { words.named(most, fields) };
            let (hits, total) = guarded(|| {
                segment_scores::search(&asked, named.as_deref(), query.limit, query.among.as_deref(), &view, fields)
            })?;
            if !hits.is_empty() {
                return Ok(TextHits { hits, matched: asked.matched, total });
            }
            // Once, and only when the words as typed find nothing.
            if asked.matched == TextMatch::Phrase {
                guarded(|| words.find_similar(&view, fields).and_then(|()| words.find_common(&view, fields)))?;
            }
            level = words.relaxed(asked.matched, fields);
        }
        Ok(TextHits::default())
    }

    /// Ranks all sections by their words.
    pub(super) fn rank(&self, text: &str, limit: usize, fields: &IndexFields) -> Result<RankedText, TextError> {
        let view = self.view();
        if limit == 0 || view.sections() == 0 {
            return Ok(RankedText::default());
        }
        let mut words = QueryWords::parse(text, &view.languages);
        if words.strictest(fields).is_none() {
            return Ok(RankedText::default());
        }
        guarded(|| {
            words.find_similar(&view, fields)?;
            let most = words.most(&view, fields)?;
            let hits = segment_scores::rank(&words, most, limit, &view, fields)?;
            Ok(RankedText { hits, most: most * bm25::ALL_FIELDS })
        })
    }

    pub(super) fn sections(&self) -> u64 {
        self.view().sections()
    }

    /// Problems of the files, every byte of which is read. Nothing may write to them meanwhile.
    pub(super) fn findings(&self) -> Result<Vec<String>, TextError> {
        self.directory.as_ref().map_or(Ok(Vec::new()), |(_, directory)| findings(&self.index, directory))
    }

    /// Finds out whether an error comes from damage.
    pub(super) fn diagnose(&self, error: TextError) -> TextError {
        match error {
            TextError::Failed(TantivyError::DataCorruption(corruption)) => {
                TextError::Damaged(format!("{corruption:?}"))
            }
            TextError::Failed(error) if !is_refusal(&error) => match self.findings() {
                Ok(findings) => match findings.into_iter().next() {
                    Some(finding) => TextError::Damaged(finding),
                    // The files are sound, so a retry may help.
                    None => TextError::Failed(error),
                },
                Err(TextError::Damaged(reason)) => TextError::Damaged(reason),
                Err(TextError::Failed(_)) => TextError::Failed(error),
            },
            error => error,
        }
    }
}

fn settings() -> IndexSettings {
    // Nothing is stored in documents, so no thread is needed to compress them.
    IndexSettings { docstore_compress_dedicated_thread: false, ..IndexSettings::default() }
}
