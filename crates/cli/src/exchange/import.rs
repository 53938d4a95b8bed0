//! Somebody's file taken into memory: read line by line, planned against what is there, applied as one change.
//!
//! What is there already is not added again, only completed, so the same file twice changes nothing. One change also means that one undo
//! takes an import back. Our own lines keep their numbers in a memory that has never held anything.

mod entities;
mod facts;
mod references;

use std::collections::HashMap;
use std::io::{self, BufRead, Read};

use quipu_core::memory::{Entity, EntityId, EntityTypes};
use quipu_core::ports::{ApplyError, Author, ChangeNumber, EntityRef, MemoryChange, MemoryFailure, MemoryStore};
use serde::de::IgnoredAny;

use super::document::{Spot, Walk, not_utf8};
use super::over_long::over_long;
use super::record::Record;

/// The newest version of our own form that can be read.
const NEWEST_FORM: i64 = 1;

/// What some editors put before a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Something in the file that was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Counted from 1.
    pub(crate) line: usize,
    pub(crate) message: String,
}

/// What an import did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Imported {
    pub(crate) entities: usize,
    pub(crate) observations: usize,
    pub(crate) relations: usize,
    /// Things of the file that were there already.
    pub(crate) known: usize,
    /// Entities of memory among them that got an alias or a description.
    pub(crate) completed: usize,
}

/// Why nothing was taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImportError {
    #[error("cannot read the file: {0}")]
    Read(#[from] io::Error),
    #[error("{failure}: {source}", failure = .0, source = .0.source)]
    Store(#[from] MemoryFailure),
    #[error("the file cannot be taken in: {0}")]
    Refused(#[from] ApplyError),
    #[error(
        "line {line}: the file was written by a newer Quipu, in version {version} of its form, and this one knows \
         {NEWEST_FORM}; import it with a newer one"
    )]
    Newer { line: usize, version: i64 },
}

/// An import on its way.
pub(crate) struct Import<'a> {
    store: &'a dyn MemoryStore,
    types: &'a EntityTypes,
    changes: Vec<MemoryChange>,
    /// For each change that makes something the number it has in the file.
    numbers: Vec<(usize, Option<i64>)>,
    /// Whether the file is an export of ours.
    is_ours: bool,
    imported: Imported,
    problems: Vec<Problem>,
    /// By the numbers of the file.
    by_id: HashMap<i64, EntityRef>,
    /// By name: those of the file, and those of the store once asked for.
    by_name: HashMap<String, EntityRef>,
    /// Those of the store that were asked for, with what the file adds to them.
    there: HashMap<EntityId, Entity>,
    /// The places of their changes.
    given: HashMap<EntityId, usize>,
    /// The type that the file first gave an entity, and its line.
    typed: HashMap<RefKey, (String, usize)>,
    /// How often each text is there, in the store and in the file so far.
    texts: HashMap<RefKey, HashMap<String, usize>>,
    /// How often each text is still there to be matched, by the same line or by observations that stand alone: these repeat
    /// what they mean to repeat, another line does not.
    unmatched: HashMap<RefKey, HashMap<String, usize>>,
    /// Relations of the file so far.
    related: std::collections::HashSet<(RefKey, RefKey, String)>,
    /// Relations and loose observations: their entities may come later in the file.
    waiting: Vec<(Spot, Record)>,
    /// Those among them that wait for names, from documents before this one.
    for_names: Vec<(Spot, Record)>,
    /// Whether there were whole documents so far, and no lines.
    only_documents: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum RefKey {
    Id(EntityId),
    Made(usize),
}

impl<'a> Import<'a> {
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
        }
    }

    /// Reads the whole file. `progress` is told the number of each line.
    pub(crate) fn read(&mut self, file: &mut dyn BufRead, progress: &dyn Fn(usize)) -> Result<(), ImportError> {
        let mut bytes = Vec::new();
        let mut number = 0;
        // What was read as a document, and is lines after all.
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
        self.take_all_waiting()
    }

    /// What was not taken: as it was found, which for things that wait for their entities is at the end of their document or
    /// of the file.
    pub(crate) fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Applies all of it as one change, or nothing where there is nothing new.
    pub(crate) fn apply(mut self, author: &Author) -> Result<Imported, ImportError> {
        if self.is_ours && self.store.head()? == ChangeNumber(0) {
            self.keep_numbers();
        }
        self.store.apply(&self.changes, author)?;
        Ok(self.imported)
    }

    /// Whether a line begins something that goes on below it, unlike a line that was cut off. Behind other lines only a
    /// document is believed to.
    fn goes_on(&self, line: &[u8]) -> bool {
        let is_open = matches!(line.trim_ascii_end().last(), Some(b'{' | b'[' | b','));
        if !self.only_documents && !is_open {
            return false;
        }
        let mut values = serde_json::Deserializer::from_slice(line).into_iter::<IgnoredAny>();
        let breaks_off = values.find_map(Result::err).is_some_and(|error| error.is_eof());
        let walk = Walk::new(line, 1);
        breaks_off
            && (self.only_documents || walk.next_value(values.byte_offset()).is_some_and(|at| walk.opens_document(at)))
    }

    /// Everything from a line to the end of the file, whose first thing goes on below that line. If that is no document and
    /// breaks off, the line was a damaged one after all, and lines are what follows: returns its number and its end.
    fn take_whole(&mut self, number: usize, bytes: &[u8]) -> Result<Option<(usize, usize)>, ImportError> {
        let mut walk = Walk::new(bytes, number);
        let Some(at) = self.take_all(&mut walk, true)? else { return Ok(None) };
        let line = walk.line(at);
        let end = bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| at + end + 1);
        self.take_line(line, &bytes[at..end])?;
        Ok(Some((line, end)))
    }

    fn take_line(&mut self, number: usize, line: &[u8]) -> Result<(), ImportError> {
        let line = line.trim_ascii_end();
        let mut walk = Walk::new(line, number);
        if let Err(error) = str::from_utf8(line)
            && !walk.opens_document(0)
        {
            let spot = Spot { line: number, place: None };
            self.problem(&spot, not_utf8(&line[error.valid_up_to()..]));
            return Ok(());
        }
        self.take_all(&mut walk, false)?;
        Ok(())
    }

    /// Everything in a text: two processes may have written one thing each without a break, or one into the other. Where
    /// there may be lines, it stops at what is damaged and no document.
    fn take_all(&mut self, walk: &mut Walk<'_>, may_be_lines: bool) -> Result<Option<usize>, ImportError> {
        let mut at = 0;
        while let Some(next) = walk.next_value(at) {
            let is_document = walk.opens_document(next);
            self.only_documents &= is_document;
            if is_document {
                self.end_of_numbers()?;
            }
            let reached = walk.take(next, &mut |spot, found| match found {
                Ok(record) => self.take(spot, record),
                Err(message) => {
                    self.problem(&spot, message);
                    Ok(())
                }
            })?;
            if is_document {
                self.end_of_numbers()?;
            }
            at = match reached {
                Ok(end) => end,
                Err(_) if may_be_lines && !is_document => return Ok(Some(next)),
                Err(damage) => {
                    let whole = walk.next_whole(&damage);
                    let (spot, message) = walk.told(&damage, whole.is_some());
                    self.problem(&spot, message);
                    let Some(whole) = whole else { break };
                    whole
                }
            };
        }
        Ok(None)
    }

    fn take(&mut self, spot: Spot, mut record: Record) -> Result<(), ImportError> {
        if let Some(fault) = over_long(&mut record) {
            self.problem(&spot, fault);
            return Ok(());
        }
        match record {
            Record::Entity(given) => self.take_entity(&spot, given)?,
            // Another export may stand before this one: its numbers mean other things.
            Record::Header { version } => {
                if version > NEWEST_FORM {
                    return Err(ImportError::Newer { line: spot.line, version });
                }
                self.end_of_numbers()?;
                self.is_ours = true;
            }
            waiting => self.waiting.push((spot, waiting)),
        }
        Ok(())
    }

    fn problem(&mut self, spot: &Spot, message: String) {
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
