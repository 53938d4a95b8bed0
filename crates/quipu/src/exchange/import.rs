//! Somebody's file taken into memory: read line by line, planned against what is there, applied as one change.
//!
//! What is there already is not added again, only completed, so the same file twice changes nothing. One change also means that one undo
//! takes an import back. Our own lines keep their numbers in a memory that has never held anything.

use std::collections::HashMap;
use std::io::{self, BufRead, Read};

use quipu_core::memory::{Entity, EntityId, EntityTypes, name_key};
use quipu_core::model::VaultPath;
use quipu_core::ports::{
    ApplyError, Author, ChangeNumber, EntityRef, MemoryChange, MemoryFailure, MemoryStore, NewEntity,
};
use quipu_core::quoted;
use serde::de::IgnoredAny;

use super::document::{Spot, Walk, not_utf8};
use super::over_long::over_long;
use super::record::{EntityRecord, Origin, Record, Reference};

/// The greatest number that is kept: every reader of JSON knows it exactly, and counting can go on from there.
const GREATEST_KEPT: i64 = 1 << 53;

/// The newest version of our own form that can be read.
const NEWEST_FORM: i64 = 1;

/// What some editors put before a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The type of what comes without one.
const UNTYPED: &str = "Thing";

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

    fn take_entity(&mut self, spot: &Spot, given: EntityRecord) -> Result<(), ImportError> {
        let given = EntityRecord { name: given.name.trim().to_owned(), ..given };
        let mut given = if self.is_ours { given } else { given.tidied() };
        if !self.is_ours {
            given.entity_type = given.entity_type.map(|written| self.types.canonical(&written));
        }
        let observations = std::mem::take(&mut given.observations);
        let (id, entity_type) = (given.origin.id, given.entity_type.clone());
        let name = given.name.clone();
        for fault in std::mem::take(&mut given.faults) {
            self.problem(spot, format!("of {name:?} {fault}; the rest of it is taken in"));
        }
        let place = match self.named(&name)? {
            Some(known) => {
                self.imported.known += 1;
                self.complete(spot, known, given);
                known
            }
            None => self.create(given),
        };
        if let Some(id) = id {
            self.by_id.insert(id, place);
        }
        if let Some(given) = entity_type {
            let (first, at) = self.typed.entry(key(place)).or_insert_with(|| (given.clone(), spot.line));
            if *first != given {
                let message = format!("{name:?} has the type {first} on line {at}, and {given} here; the first counts");
                self.problem(spot, message);
            }
        }
        self.unmatched.remove(&key(place));
        for (text, origin) in observations {
            self.observe(place, &text, origin)?;
        }
        Ok(())
    }

    fn create(&mut self, given: EntityRecord) -> EntityRef {
        let EntityRecord { name, entity_type, aliases, description, origin, .. } = given;
        let key = name_key(&name);
        let entity_type = entity_type.unwrap_or_else(|| UNTYPED.to_owned());
        let new = NewEntity { name, entity_type, aliases, description };
        let made = EntityRef::Made(self.push(MemoryChange::CreateEntity(new), origin));
        self.imported.entities += 1;
        self.by_name.insert(key, made);
        made
    }

    /// Adds to an entity of memory, or from further up in the file, what it lacks. A description that says something else is
    /// not taken, and told. Ties come with the description they are of: the links of another mean what they mean here.
    fn complete(&mut self, spot: &Spot, place: EntityRef, given: EntityRecord) {
        let is_typed = self.typed.contains_key(&key(place));
        let (aliases, description) = match place {
            EntityRef::Made(made) => {
                let MemoryChange::CreateEntity(new) = &mut self.changes[made] else { return };
                if let Some(entity_type) = given.entity_type.as_ref().filter(|_| !is_typed) {
                    new.entity_type.clone_from(entity_type);
                }
                (&mut new.aliases, &mut new.description)
            }
            EntityRef::Id(id) => {
                let Some(entity) = self.there.get_mut(&id) else { return };
                (&mut entity.aliases, &mut entity.description)
            }
        };
        let more = given.lacking(aliases);
        let (own, other) = (said(description.as_ref()), said(given.description.as_ref()));
        let is_another = own.is_some() && other.is_some() && own != other;
        let is_described = own.is_none() && other.is_some();
        let new_description = given.description.filter(|_| is_described);
        if is_described {
            description.clone_from(&new_description);
        }
        aliases.extend_from_slice(&more);
        if is_another {
            self.problem(spot, format!("{:?} has another description already, which counts", given.name));
        }
        let made = match place {
            EntityRef::Made(made) => made,
            EntityRef::Id(_) if !is_described && more.is_empty() => return,
            EntityRef::Id(id) => self.give(id, more, new_description),
        };
        if is_described {
            self.tie(made, given.origin.ties);
        }
    }

    /// The place of the change that gives an entity of memory what it lacked.
    fn give(&mut self, id: EntityId, more: Vec<String>, description: Option<String>) -> usize {
        let place = *self.given.entry(id).or_insert_with(|| {
            self.imported.completed += 1;
            self.changes.push(MemoryChange::CompleteEntity { id, aliases: Vec::new(), description: None });
            self.changes.len() - 1
        });
        if let MemoryChange::CompleteEntity { aliases, description: said, .. } = &mut self.changes[place] {
            aliases.extend(more);
            *said = said.take().or(description);
        }
        place
    }

    /// Takes what waits for entities by their numbers: those of the next document mean other things. Names may still come.
    fn end_of_numbers(&mut self) -> Result<(), ImportError> {
        self.unmatched.clear();
        for (spot, record) in std::mem::take(&mut self.waiting) {
            if self.may_come(&record)? {
                self.for_names.push((spot, record));
            } else {
                self.take_waiting(&spot, record)?;
            }
        }
        self.by_id.clear();
        Ok(())
    }

    /// Whether something waits for names alone, and for one that is not there yet.
    fn may_come(&mut self, record: &Record) -> Result<bool, ImportError> {
        let ends = match record {
            Record::Observation { entity, .. } => [entity, entity],
            Record::Relation { from, to, .. } => [from, to],
            Record::Entity(_) | Record::Header { .. } => return Ok(false),
        };
        if ends.iter().any(|end| matches!(end, Reference::Id(_))) {
            return Ok(false);
        }
        Ok(self.find(ends[0])?.is_none() || self.find(ends[1])?.is_none())
    }

    fn take_all_waiting(&mut self) -> Result<(), ImportError> {
        self.end_of_numbers()?;
        for (spot, record) in std::mem::take(&mut self.for_names) {
            self.take_waiting(&spot, record)?;
        }
        Ok(())
    }

    fn take_waiting(&mut self, spot: &Spot, record: Record) -> Result<(), ImportError> {
        match record {
            Record::Observation { entity, text, origin } => match self.find(&entity)? {
                Some(place) => self.observe(place, &text, origin)?,
                None => self.problem(spot, missing("an observation", &entity)),
            },
            Record::Relation { from, to, relation_type, origin } => {
                let (source, target) = (self.find(&from)?, self.find(&to)?);
                match (source, target) {
                    (Some(source), Some(target)) => self.relate(source, target, relation_type.trim(), origin)?,
                    (None, _) => self.problem(spot, missing("a relation", &from)),
                    (_, None) => self.problem(spot, missing("a relation", &to)),
                }
            }
            Record::Entity(_) | Record::Header { .. } => {}
        }
        Ok(())
    }

    fn observe(&mut self, place: EntityRef, text: &str, origin: Origin) -> Result<(), ImportError> {
        let (text, key) = (text.trim().to_owned(), key(place));
        if let RefKey::Id(id) = key
            && !self.texts.contains_key(&key)
        {
            let mut there: HashMap<String, usize> = HashMap::new();
            for seen in self.store.observations_of(&[id])?.pop().unwrap_or_default() {
                *there.entry(seen.text).or_default() += 1;
            }
            self.texts.insert(key, there);
        }
        let there = self.texts.entry(key).or_default();
        let unmatched = self.unmatched.entry(key).or_insert_with(|| there.clone());
        if let Some(left) = unmatched.get_mut(&text).filter(|left| **left > 0) {
            *left -= 1;
            self.imported.known += 1;
            return Ok(());
        }
        *there.entry(text.clone()).or_default() += 1;
        self.push(MemoryChange::AddObservation { entity: place, text }, origin);
        self.imported.observations += 1;
        Ok(())
    }

    fn relate(
        &mut self,
        from: EntityRef,
        to: EntityRef,
        relation_type: &str,
        origin: Origin,
    ) -> Result<(), ImportError> {
        let key = (key(from), key(to), relation_type.to_owned());
        let is_there = match (from, to) {
            (EntityRef::Id(from), EntityRef::Id(to)) => {
                let filter = quipu_core::ports::RelationFilter {
                    from: Some(from),
                    to: Some(to),
                    relation_type: Some(relation_type.to_owned()),
                };
                !self.store.relations_where(&filter, 0, 1)?.is_empty()
            }
            _ => false,
        };
        if is_there || !self.related.insert(key) {
            self.imported.known += 1;
            return Ok(());
        }
        self.push(MemoryChange::AddRelation { from, to, relation_type: relation_type.to_owned() }, origin);
        self.imported.relations += 1;
        Ok(())
    }

    /// Adds a change, and what its thing was where the file comes from; returns its place.
    fn push(&mut self, change: MemoryChange, origin: Origin) -> usize {
        let made = self.changes.len();
        self.changes.push(change);
        self.numbers.push((made, origin.id));
        if let Some((created_ns, updated_ns)) = origin.times {
            self.changes.push(MemoryChange::SetTimes { made, created_ns, updated_ns });
        }
        self.tie(made, origin.ties);
        made
    }

    /// Ties links of what is at a place of the changes. A tie to a note that is not here counts for nothing until it is.
    fn tie(&mut self, made: usize, ties: Vec<(String, VaultPath)>) {
        let ties = ties.into_iter().map(|(target, path)| MemoryChange::Tie { made, target, path });
        self.changes.extend(ties);
    }

    /// Has everything made under the number it has in the file, if those can be numbers here: all or none, since a mixture
    /// would say nothing to anyone.
    fn keep_numbers(&mut self) {
        let mut greatest = [0; 3];
        let can_be_kept = self.numbers.iter().all(|(place, number)| {
            let last = match self.changes[*place] {
                MemoryChange::CreateEntity(_) => &mut greatest[0],
                MemoryChange::AddObservation { .. } => &mut greatest[1],
                _ => &mut greatest[2],
            };
            let grows = number.is_some_and(|number| *last < number && number <= GREATEST_KEPT);
            *last = number.unwrap_or_default();
            grows
        });
        if !can_be_kept {
            return;
        }
        for (place, number) in &self.numbers {
            let change = &mut self.changes[*place];
            if let Some(number) = *number {
                *change = MemoryChange::Numbered { number, change: Box::new(change.clone()) };
            }
        }
    }

    fn find(&mut self, reference: &Reference) -> Result<Option<EntityRef>, ImportError> {
        match reference {
            Reference::Id(id) => Ok(self.by_id.get(id).copied()),
            Reference::Name(name) => self.named(name),
        }
    }

    fn named(&mut self, name: &str) -> Result<Option<EntityRef>, ImportError> {
        let key = name_key(name);
        if let Some(known) = self.by_name.get(&key) {
            return Ok(Some(*known));
        }
        // A name that is only an alias there is another entity here.
        let called = self.store.entities_called(std::slice::from_ref(&key))?.pop().unwrap_or_default();
        let entities = self.store.entities(&called)?;
        let there = entities.into_iter().flatten().find(|entity| name_key(&entity.name) == key);
        let Some(entity) = there else { return Ok(None) };
        let found = EntityRef::Id(entity.id);
        self.there.insert(entity.id, entity);
        self.by_name.insert(key, found);
        Ok(Some(found))
    }

    fn problem(&mut self, spot: &Spot, message: String) {
        let message = match &spot.place {
            Some(place) => format!("{place}: {message}"),
            None => message,
        };
        self.problems.push(Problem { line: spot.line, message });
    }
}

/// What a description says, if anything.
fn said(description: Option<&String>) -> Option<&str> {
    description.map(|text| text.trim()).filter(|text| !text.is_empty())
}

fn key(entity: EntityRef) -> RefKey {
    match entity {
        EntityRef::Id(id) => RefKey::Id(id),
        EntityRef::Made(place) => RefKey::Made(place),
    }
}

fn missing(what: &str, reference: &Reference) -> String {
    match reference {
        Reference::Id(id) => format!("{what} of entity {id}, which the file does not have"),
        Reference::Name(name) => format!("{what} of {}, which is neither in the file nor in memory", quoted(name)),
    }
}
