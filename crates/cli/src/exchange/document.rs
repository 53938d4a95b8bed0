//! Splits a text into items: single records, or documents with lists of them. Each item is parsed alone, so an invalid one
//! affects no other, and is reported with its path in the document and its line in the file.

use std::fmt;
use std::rc::Rc;

use serde::de::IgnoredAny;
use serde_json::Value;

use super::record::{KINDS, Record, has_kind, record};

/// The keys of a document's lists.
const LISTS: [&[u8]; 7] = [
    b"entities",
    b"memory_entities",
    b"observations",
    b"memory_observations",
    b"relations",
    b"memory_relations",
    b"graph",
];

/// Nesting of lists that is followed: no real file has more, and recursion must end.
const DEEPEST: usize = 16;

/// The position of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ItemPosition {
    /// In the file, counted from 1.
    pub(super) line: usize,
    /// In its document, if it is part of one.
    pub(super) place: Option<DocumentPlace>,
}

/// A place in a document: `memory_relations[17]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DocumentPlace {
    /// Shared by all items of a list.
    list: Rc<str>,
    index: Option<usize>,
}

impl fmt::Display for DocumentPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.list)?;
        self.index.map_or(Ok(()), |index| write!(f, "[{index}]"))
    }
}

/// Where a text stops being JSON.
#[derive(Debug)]
pub(super) struct Damage {
    at: usize,
    place: Option<DocumentPlace>,
    /// `None` if the text ends too early.
    reason: Option<String>,
}

impl Damage {
    fn of(at: usize, error: &serde_json::Error) -> Self {
        Self { at, place: None, reason: (!error.is_eof()).then(|| reason(error)) }
    }
}

/// The parser's message without its position, which is not that in the file.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line").next().unwrap_or(&text).to_owned()
}

/// Called with each item, or with why it is invalid.
pub(super) type Take<'t, E> = dyn FnMut(ItemPosition, Result<Record, String>) -> Result<(), E> + 't;

/// Where a value ends, or where it is damaged.
type Reached = Result<usize, Damage>;

/// A walk over a text.
pub(super) struct DocumentWalk<'t> {
    text: &'t [u8],
    /// An offset and its line, from which other lines are counted.
    counted: (usize, usize),
}

impl<'t> DocumentWalk<'t> {
    /// `line` is the line number of the text's first line.
    pub(super) fn new(text: &'t [u8], line: usize) -> Self {
        Self { text, counted: (0, line) }
    }

    /// Whether a document with lists begins here, even if it is damaged further on.
    pub(super) fn opens_document(&self, at: usize) -> bool {
        match self.byte(at) {
            Some(b'[') => true,
            Some(b'{') => self.shape(at).0,
            _ => false,
        }
    }

    /// Reads one value with all its items; returns where it ends.
    pub(super) fn take<E>(&mut self, at: usize, take: &mut Take<'_, E>) -> Result<Reached, E> {
        self.value(at, None, 0, take)
    }

    /// Where the next value begins, if there is one.
    pub(super) fn next_value(&self, at: usize) -> Option<usize> {
        let at = self.skip_space(at);
        (at < self.text.len()).then_some(at)
    }

    /// The next whole item after a damage. It must have a `type`: other objects may be parts of the damaged item.
    pub(super) fn next_whole(&self, damage: &Damage) -> Option<usize> {
        let mut starts = (damage.at..self.text.len()).filter(|at| self.text[*at] == b'{');
        starts.find(|at| {
            let value = serde_json::Deserializer::from_slice(&self.text[*at..]).into_iter::<Value>().next();
            value.is_some_and(|value| value.is_ok_and(|value| has_kind(&value)))
        })
    }

    /// The line of an offset. Fast when offsets are asked for roughly in order.
    pub(super) fn line(&mut self, at: usize) -> usize {
        let (before, line) = self.counted;
        let line = if before <= at {
            line + line_ends(&self.text[before..at])
        } else {
            line - line_ends(&self.text[at..before])
        };
        self.counted = (at, line);
        line
    }

    /// The position of a damage and its message.
    pub(super) fn describe(&mut self, damage: &Damage, is_followed: bool) -> (ItemPosition, String) {
        let rest = &self.text[damage.at..];
        let shown = String::from_utf8_lossy(&rest[..rest.len().min(200)]);
        let shown: String = shown.trim().chars().take(40).collect();
        let reason = damage.reason.as_deref();
        let message = if is_followed {
            let reason = reason.unwrap_or("it is incomplete");
            format!("not JSON ({reason}) from {shown:?} up to the next valid item")
        } else if let Some(reason) = reason {
            format!("not JSON ({reason}) from {shown:?} on")
        } else {
            let what = if damage.place.is_some() { "document" } else { "line" };
            format!("not JSON: the {what} is incomplete from {shown:?} on")
        };
        (ItemPosition { line: self.line(damage.at), place: damage.place.clone() }, message)
    }

    fn value<E>(
        &mut self,
        at: usize,
        place: Option<&DocumentPlace>,
        depth: usize,
        take: &mut Take<'_, E>,
    ) -> Result<Reached, E> {
        if depth < DEEPEST {
            match self.byte(at) {
                Some(b'[') => return self.list(at, place, depth + 1, take),
                Some(b'{') => {
                    let (is_document, end) = self.shape(at);
                    return match end {
                        _ if is_document => self.document(at, place, depth + 1, take),
                        Ok(end) => self.one(at, end, place, take),
                        Err(damage) => Ok(Err(Damage { at, ..damage })),
                    };
                }
                _ => {}
            }
        }
        match self.skip(at) {
            Ok(end) => self.one(at, end, place, take),
            Err(damage) => Ok(Err(damage)),
        }
    }

    /// Reads the text between two offsets as one item.
    fn one<E>(
        &mut self,
        at: usize,
        end: usize,
        place: Option<&DocumentPlace>,
        take: &mut Take<'_, E>,
    ) -> Result<Reached, E> {
        let (at, found) = match str::from_utf8(&self.text[at..end]) {
            Ok(text) => (at, serde_json::from_str(text).map_err(|error| format!("not JSON ({})", reason(&error)))),
            // Replacing the bytes would change the text.
            Err(error) => (at + error.valid_up_to(), Err(not_utf8(&self.text[at + error.valid_up_to()..]))),
        };
        let spot = ItemPosition { line: self.line(at), place: place.cloned() };
        take(spot, found.and_then(|value: Value| record(&value)))?;
        Ok(Ok(end))
    }

    /// Reads the items of a list. After a damaged item it continues with the next object that starts a line in the same
    /// column: items of a list that is indented or has one item a line do, and objects inside of them do not.
    fn list<E>(
        &mut self,
        at: usize,
        place: Option<&DocumentPlace>,
        depth: usize,
        take: &mut Take<'_, E>,
    ) -> Result<Reached, E> {
        let list: Rc<str> = place.map(DocumentPlace::to_string).unwrap_or_default().into();
        let mut at = self.skip_space(at + 1);
        if self.byte(at) == Some(b']') {
            return Ok(Ok(at + 1));
        }
        for index in 0.. {
            let place = DocumentPlace { list: Rc::clone(&list), index: Some(index) };
            let behind = match self.value(at, Some(&place), depth, take)? {
                Ok(end) => self.behind(end, b']'),
                Err(damage) => Err(damage),
            };
            at = match behind {
                Ok(AfterValue::More(next)) => next,
                Ok(AfterValue::End(end)) => return Ok(Ok(end)),
                Err(damage) => {
                    let damage = Damage { place: damage.place.or(Some(place)), ..damage };
                    let Some(next) = self.sibling(at) else { return Ok(Err(damage)) };
                    let (spot, message) = self.describe(&damage, true);
                    take(spot, Err(message))?;
                    next
                }
            };
        }
        unreachable!("a list ends where the text does")
    }

    fn document<E>(
        &mut self,
        at: usize,
        place: Option<&DocumentPlace>,
        depth: usize,
        take: &mut Take<'_, E>,
    ) -> Result<Reached, E> {
        let mut at = self.skip_space(at + 1);
        loop {
            let (key, value) = match self.field(at) {
                Ok(field) => field,
                Err(damage) => return Ok(Err(damage)),
            };
            let reached = if self.is_list(key, value) {
                let key = String::from_utf8_lossy(key);
                let list = place.map_or_else(|| key.to_string(), |place| format!("{place}.{key}")).into();
                self.value(value, Some(&DocumentPlace { list, index: None }), depth, take)?
            } else {
                self.skip(value)
            };
            match reached.and_then(|end| self.behind(end, b'}')) {
                Ok(AfterValue::More(next)) => at = next,
                Ok(AfterValue::End(end)) => return Ok(Ok(end)),
                Err(damage) => return Ok(Err(damage)),
            }
        }
    }

    /// Whether an object is a document, as far as it can be read, and where it ends.
    fn shape(&self, at: usize) -> (bool, Reached) {
        let (mut is_thing, mut has_lists) = (false, false);
        let mut at = self.skip_space(at + 1);
        if self.byte(at) == Some(b'}') {
            return (false, Ok(at + 1));
        }
        let end = loop {
            let (key, value) = match self.field(at) {
                Ok(field) => field,
                Err(damage) => break Err(damage),
            };
            is_thing |= key == b"name" || key == b"type" && self.is_kind(value);
            has_lists |= self.is_list(key, value);
            match self.skip(value).and_then(|end| self.behind(end, b'}')) {
                Ok(AfterValue::More(next)) => at = next,
                Ok(AfterValue::End(end)) => break Ok(end),
                Err(damage) => break Err(damage),
            }
        };
        (has_lists && !is_thing, end)
    }

    fn is_list(&self, key: &[u8], value: usize) -> bool {
        LISTS.contains(&key) && matches!(self.byte(value), Some(b'[' | b'{'))
    }

    /// Whether a value is a known `type`.
    fn is_kind(&self, value: usize) -> bool {
        let written = self.text[value..].strip_prefix(b"\"");
        written.is_some_and(|written| KINDS.iter().any(|kind| written.starts_with(kind.as_bytes())))
    }

    /// The key that begins here, as written, and where its value begins.
    fn field(&self, at: usize) -> Result<(&'t [u8], usize), Damage> {
        if self.byte(at).is_some_and(|byte| byte != b'"') {
            return Err(self.unexpected(at, "expected a key"));
        }
        let end = self.skip(at)?;
        let colon = self.skip_space(end);
        match self.byte(colon) {
            Some(b':') => Ok((&self.text[at + 1..end - 1], self.skip_space(colon + 1))),
            _ => Err(self.unexpected(colon, "expected `:`")),
        }
    }

    /// The character after an item or a field.
    fn behind(&self, end: usize, close: u8) -> Result<AfterValue, Damage> {
        let at = self.skip_space(end);
        match self.byte(at) {
            Some(b',') => {
                let next = self.skip_space(at + 1);
                // A trailing comma is harmless.
                Ok(if self.byte(next) == Some(close) { AfterValue::End(next + 1) } else { AfterValue::More(next) })
            }
            Some(byte) if byte == close => Ok(AfterValue::End(at + 1)),
            _ => Err(self.unexpected(at, &format!("expected `,` or `{}`", char::from(close)))),
        }
    }

    /// The end of a value that is not parsed.
    fn skip(&self, at: usize) -> Reached {
        let mut values = serde_json::Deserializer::from_slice(&self.text[at..]).into_iter::<IgnoredAny>();
        match values.next() {
            Some(Ok(_)) => Ok(at + values.byte_offset()),
            Some(Err(error)) => Err(Damage::of(at, &error)),
            None => Err(Damage { at, place: None, reason: None }),
        }
    }

    fn unexpected(&self, at: usize, reason: &str) -> Damage {
        Damage { at, place: None, reason: (at < self.text.len()).then(|| reason.to_owned()) }
    }

    /// The next object that starts a line in the same column as the value at this offset, or in the first column if that
    /// value does not start its line.
    fn sibling(&self, at: usize) -> Option<usize> {
        let start = self.text[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let may_precede = |bytes: &[u8]| bytes.iter().all(|byte| byte.is_ascii_whitespace() || *byte == b',');
        let column = if may_precede(&self.text[start..at]) { at - start } else { 0 };
        let mut line = at;
        loop {
            line += self.text[line..].iter().position(|byte| *byte == b'\n')? + 1;
            let begins = self.text.get(line..=line + column);
            if begins.is_some_and(|begins| begins[column] == b'{' && may_precede(&begins[..column])) {
                return Some(line + column);
            }
        }
    }

    fn skip_space(&self, at: usize) -> usize {
        at + self.text[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count()
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.get(at).copied()
    }
}

/// What follows an item of a list or a field of an object.
enum AfterValue {
    More(usize),
    End(usize),
}

/// The message for bytes that are not UTF-8 from the first on.
pub(super) fn not_utf8(bytes: &[u8]) -> String {
    format!("not UTF-8 (byte 0x{:02x}); save the file as UTF-8", bytes[0])
}

fn line_ends(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}
