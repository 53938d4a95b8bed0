//! Import of a file into memory: read line by line, compared with memory, applied as one change.
//!
//! Existing items are completed, not added again, so importing a file twice changes nothing. One change also means that one
//! undo reverts an import. Our own export keeps its ids if memory has no changes yet.

mod entities;
mod facts;
mod history;
mod references;

use std::collections::HashMap;
use std::io::{self, BufRead, Read};

use quipu_core::memory::{Entity, EntityId, EntityTypes};
use quipu_core::ports::{ApplyError, Author, ChangeNumber, EntityRef, MemoryChange, MemoryFailure, MemoryStore};
use serde::de::IgnoredAny;

use super::document::{DocumentWalk, ItemPosition, not_utf8};
use super::over_long::over_long;
use super::record::Record;
use history::FileHistory;

/// The newest version of our own format.
const FORMAT_VERSION: i64 = 1;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// An item of the file that was not imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Counted from 1.
    pub(crate) line: usize,
    pub(crate) message: String,
}

/// The result of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Imported {
    pub(crate) entities: usize,
    pub(crate) observations: usize,
    pub(crate) relations: usize,
    /// Items of the file that existed already.
    pub(crate) known: usize,
    /// Entities among them that got an alias or a description.
    pub(crate) completed: usize,
    /// Entries of the log that were copied.
    pub(crate) changes: usize,
    /// Entries of the log that were not, since memory has changes of its own.
    pub(crate) changes_left: usize,
}

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImportError {
    #[error("cannot read the file: {0}")]
    Read(#[from] io::Error),
    #[error("{failure}: {source}", failure = .0, source = .0.source)]
    Store(#[from] MemoryFailure),
    #[error("cannot import the file: {0}")]
    Refused(#[from] ApplyError),
    #[error(
        "cannot import line {line}: its format version is {version}, and this program reads up to version {FORMAT_VERSION}; \
         update quipu"
    )]
    Newer { line: usize, version: i64 },
}

/// An import in progress.
pub(crate) struct Importer<'a> {
    store: &'a dyn MemoryStore,
    types: &'a EntityTypes,
    changes: Vec<MemoryChange>,
    /// For each change that creates an item, its id in the file.
    numbers: Vec<(usize, Option<i64>)>,
    /// Whether the file is an export of ours.
    is_ours: bool,
    imported: Imported,
    problems: Vec<Problem>,
    /// Entities by their id in the file.
    by_id: HashMap<i64, EntityRef>,
    /// Entities by name: those of the file, and those of the store that were looked up.
    by_name: HashMap<String, EntityRef>,
    /// Entities of the store that were looked up, with what the file adds to them.
    there: HashMap<EntityId, Entity>,
    /// The indexes of their changes.
    given: HashMap<EntityId, usize>,
    /// The type that the file first gave an entity, and its line.
    typed: HashMap<RefKey, (String, usize)>,
    /// How often an entity has each text, in the store and in the file so far.
    texts: HashMap<RefKey, HashMap<String, usize>>,
    /// How often each text is still unmatched. An entity's line or separate observations may repeat a text on purpose; a
    /// second line of the same entity does not.
    unmatched: HashMap<RefKey, HashMap<String, usize>>,
    /// Relations of the file so far.
    related: std::collections::HashSet<(RefKey, RefKey, String)>,
    /// Relations and separate observations, whose entities may come later in the file.
    waiting: Vec<(ItemPosition, Record)>,
    /// Records of earlier documents that refer to entities by name.
    for_names: Vec<(ItemPosition, Record)>,
    /// Whether the file so far has only documents, and no lines.
    only_documents: bool,
    /// What the file has of a log.
    history: FileHistory,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum RefKey {
    Id(EntityId),
    Made(usize),
}

impl<'a> Importer<'a> {
    pub(crate) fn new(store: &'a dyn MemoryStore, types: &'a EntityTypes) -> Self {
        Self {
            store,
            types,
            changes: Vec::new(),
            numbers: Vec::new(),
            is_ours: false,
            imported: Imported::default(),
            problems: Vec::new(),
            by_id: HashMap::new(),
            by_name: HashMap::new(),
            there: HashMap::new(),
            given: HashMap::new(),
            typed: HashMap::new(),
            texts: HashMap::new(),
            unmatched: HashMap::new(),
            related: std::collections::HashSet::new(),
            waiting: Vec::new(),
            for_names: Vec::new(),
            only_documents: true,
            history: FileHistory::default(),
        }
    }

    /// Reads the whole file. `progress` gets the number of each line.
    pub(crate) fn read(&mut self, file: &mut dyn BufRead, progress: &dyn Fn(usize)) -> Result<(), ImportError> {
        let mut bytes = Vec::new();
        let mut number = 0;
        // Text that was read as a document but turned out to be lines.
        let mut held = io::Cursor::new(Vec::new());
        loop {
            bytes.clear();
            if held.read_until(b'\n', &mut bytes)? == 0 && file.read_until(b'\n', &mut bytes)? == 0 {
                break;
            }
            number += 1;
            progress(number);
            if bytes.starts_with(BYTE_ORDER_MARK) {
                bytes.drain(..BYTE_ORDER_MARK.len());
            }
            if self.goes_on(&bytes) {
                held.read_to_end(&mut bytes)?;
                file.read_to_end(&mut bytes)?;
                if let Some((last, behind)) = self.take_whole(number, &bytes)? {
                    number = last;
                    held = io::Cursor::new(bytes.split_off(behind));
                }
            } else {
                self.take_line(number, &bytes)?;
            }
        }
        self.take_all_waiting()?;
        self.finish_history();
        Ok(())
    }

    /// Items that cannot be imported, in the order in which they were resolved: references at the end of their document or
    /// of the file.
    pub(crate) fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Copies the log of the file into a memory without changes. Otherwise applies everything as one change; without anything new,
    /// no change.
    pub(crate) fn apply(mut self, author: &Author) -> Result<Imported, ImportError> {
        if self.copy_history()? {
            return Ok(self.imported);
        }
        if self.is_ours && self.store.head()? == ChangeNumber(0) {
            self.keep_ids();
        }
        self.store.apply(&self.changes, author)?;
        Ok(self.imported)
    }

    /// Whether a line begins a value that continues on the next lines, unlike a truncated line. After other lines only a
    /// document may.
    fn goes_on(&self, line: &[u8]) -> bool {
        let is_open = matches!(line.trim_ascii_end().last(), Some(b'{' | b'[' | b','));
        if !self.only_documents && !is_open {
            return false;
        }
        let mut values = serde_json::Deserializer::from_slice(line).into_iter::<IgnoredAny>();
        let breaks_off = values.find_map(Result::err).is_some_and(|error| error.is_eof());
        let walk = DocumentWalk::new(line, 1);
        breaks_off
            && (self.only_documents || walk.next_value(values.byte_offset()).is_some_and(|at| walk.opens_document(at)))
    }

    /// Reads from a line to the end of the file, where the line's value continues on the next lines. If that value is
    /// incomplete and not a document, the line was a damaged one: returns its number and end, and lines follow.
    fn take_whole(&mut self, number: usize, bytes: &[u8]) -> Result<Option<(usize, usize)>, ImportError> {
        let mut walk = DocumentWalk::new(bytes, number);
        let Some(at) = self.take_all(&mut walk, true)? else { return Ok(None) };
        let line = walk.line(at);
        let end = bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| at + end + 1);
        self.take_line(line, &bytes[at..end])?;
        Ok(Some((line, end)))
    }

    fn take_line(&mut self, number: usize, line: &[u8]) -> Result<(), ImportError> {
        let line = line.trim_ascii_end();
        let mut walk = DocumentWalk::new(line, number);
        if let Err(error) = str::from_utf8(line)
            && !walk.opens_document(0)
        {
            let spot = ItemPosition { line: number, place: None };
            self.problem(&spot, not_utf8(&line[error.valid_up_to()..]));
            return Ok(());
        }
        self.take_all(&mut walk, false)?;
        Ok(())
    }

    /// Reads everything in a text: two processes may have written items without a line break, or one inside the other. If
    /// the text may have lines, stops at a damaged item that is not a document.
    fn take_all(&mut self, walk: &mut DocumentWalk<'_>, may_be_lines: bool) -> Result<Option<usize>, ImportError> {
        let mut at = 0;
        while let Some(next) = walk.next_value(at) {
            let is_document = walk.opens_document(next);
            self.only_documents &= is_document;
            if is_document {
                self.resolve_ids()?;
            }
            let reached = walk.take(next, &mut |spot, found| match found {
                Ok(record) => self.take(spot, record),
                Err(message) => {
                    self.problem(&spot, message);
                    Ok(())
                }
            })?;
            if is_document {
                self.resolve_ids()?;
            }
            at = match reached {
                Ok(end) => end,
                Err(_) if may_be_lines && !is_document => return Ok(Some(next)),
                Err(damage) => {
                    let whole = walk.next_whole(&damage);
                    let (spot, message) = walk.describe(&damage, whole.is_some());
                    self.problem(&spot, message);
                    let Some(whole) = whole else { break };
                    whole
                }
            };
        }
        Ok(None)
    }

    fn take(&mut self, spot: ItemPosition, mut record: Record) -> Result<(), ImportError> {
        if let Some(fault) = over_long(&mut record) {
            self.problem(&spot, fault);
            return Ok(());
        }
        self.history.add(&spot, &record);
        match record {
            Record::Entity(given) => self.take_entity(&spot, given)?,
            // Another export may precede this one, with other ids.
            Record::Header { version } => {
                if version > FORMAT_VERSION {
                    return Err(ImportError::Newer { line: spot.line, version });
                }
                self.resolve_ids()?;
                self.is_ours = true;
            }
            Record::Change(_) | Record::Ties(_) => {}
            waiting => self.waiting.push((spot, waiting)),
        }
        Ok(())
    }

    fn problem(&mut self, spot: &ItemPosition, message: String) {
        let message = match &spot.place {
            Some(place) => format!("{place}: {message}"),
            None => message,
        };
        self.problems.push(Problem { line: spot.line, message });
    }
}

fn key(entity: EntityRef) -> RefKey {
    match entity {
        EntityRef::Id(id) => RefKey::Id(id),
        EntityRef::Made(place) => RefKey::Made(place),
    }
}
