//! Builds a document from parser events, and corrects the parser's spans.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};
use saphyr_parser::{Event, Marker, ScalarStyle, Span, Tag};

use super::{Document, Mapping, Numbers, ScalarSite, YamlEntry, YamlError, error};
use crate::model::{LinkType, Value};
use crate::parse::frontmatter::may_be_link;
use crate::parse::scalar::{QuoteStyle, resolve_plain};
use crate::quote::quoted;

/// Deeper than any real frontmatter, and shallow enough for recursion over a [`Value`].
const MAX_DEPTH: usize = 64;
/// The limit for anchored values, which are kept, and for expanded aliases, counted as bytes of text and 16 for each value.
const MAX_COPIED_WEIGHT: usize = 1 << 20;

/// Builds a document event by event.
pub(super) struct Reader<'y> {
    yaml: &'y str,
    numbers: Numbers,
    /// The byte offset of each character; empty for ASCII, where both are the same.
    byte_of_char: Vec<usize>,
    stack: Vec<Frame>,
    anchors: FxHashMap<usize, Value>,
    /// Spent of [`MAX_COPIED_WEIGHT`].
    copied_weight: usize,
    documents: usize,
    root: Option<Document>,
    /// The open top-level entry.
    key: Option<(String, Range<usize>)>,
    started: Option<usize>,
    written_end: usize,
    style: Option<QuoteStyle>,
    scalars: Vec<ScalarSite>,
}

enum Frame {
    Root { entries: Vec<YamlEntry>, seen: FxHashSet<String>, in_flow: bool },
    List { items: Vec<Value>, anchor: usize, in_flow: bool },
    Map { entries: Vec<(String, Value)>, seen: FxHashSet<String>, key: Option<String>, anchor: usize, in_flow: bool },
}

impl Frame {
    fn in_flow(&self) -> bool {
        match self {
            Self::Root { in_flow, .. } | Self::List { in_flow, .. } | Self::Map { in_flow, .. } => *in_flow,
        }
    }
}

impl<'y> Reader<'y> {
    pub(super) fn new(yaml: &'y str, numbers: Numbers) -> Self {
        let byte_of_char =
            if yaml.is_ascii() { Vec::new() } else { yaml.char_indices().map(|(byte, _)| byte).collect() };
        Self {
            yaml,
            numbers,
            byte_of_char,
            stack: Vec::new(),
            anchors: FxHashMap::default(),
            copied_weight: 0,
            documents: 0,
            root: None,
            key: None,
            started: None,
            written_end: 0,
            style: None,
            scalars: Vec::new(),
        }
    }

    pub(super) fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), YamlError> {
        let range = self.written_range(span);
        let at = span.start;
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 { Err(error(at, "it contains more than one document")) } else { Ok(()) }
            }
            Event::Scalar(text, style, anchor, tag) => {
                let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                let range = if is_block { self.with_block_header(range) } else { range };
                self.note_written(&range);
                self.scalar(&text, style, anchor, tag.as_deref(), range, at)
            }
            Event::Alias(id) => {
                self.note_written(&range);
                let value = self.expand_alias(id, at)?;
                self.complete(value, None, 0, at)
            }
            Event::SequenceStart(anchor, _) => {
                let in_flow = self.note_start(&range) == Some(b'[');
                self.push(Frame::List { items: Vec::new(), anchor, in_flow }, at)
            }
            Event::MappingStart(anchor, _) => {
                let in_flow = self.note_start(&range) == Some(b'{');
                let seen = FxHashSet::default();
                if self.stack.is_empty() {
                    self.started = None;
                    self.push(Frame::Root { entries: Vec::new(), seen, in_flow }, at)
                } else {
                    self.push(Frame::Map { entries: Vec::new(), seen, key: None, anchor, in_flow }, at)
                }
            }
            Event::SequenceEnd | Event::MappingEnd => {
                self.note_written(&range);
                match self.stack.pop() {
                    Some(Frame::List { items, anchor, .. }) => self.complete(Value::List(items), None, anchor, at),
                    Some(Frame::Map { entries, anchor, .. }) => self.complete(Value::Map(entries), None, anchor, at),
                    Some(Frame::Root { entries, in_flow, .. }) => {
                        self.root = Some(Document::Mapping(Mapping { entries, in_flow }));
                        Ok(())
                    }
                    None => Ok(()),
                }
            }
        }
    }

    pub(super) fn finish(self) -> Document {
        self.root.unwrap_or(Document::Empty)
    }

    /// Extends the open entry by a range. Implied values have an empty range and no position.
    fn note_written(&mut self, range: &Range<usize>) {
        if !range.is_empty() {
            self.started.get_or_insert(range.start);
            self.written_end = self.written_end.max(range.end);
        }
    }

    /// Extends the open entry by the start of a list or mapping, and returns its first byte.
    fn note_start(&mut self, range: &Range<usize>) -> Option<u8> {
        self.started.get_or_insert(range.start);
        self.written_end = self.written_end.max(range.end);
        self.yaml.as_bytes().get(range.start).copied()
    }

    fn push(&mut self, frame: Frame, at: Marker) -> Result<(), YamlError> {
        if self.stack.len() >= MAX_DEPTH {
            return Err(error(at, "it is nested too deeply"));
        }
        self.stack.push(frame);
        Ok(())
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        range: Range<usize>,
        at: Marker,
    ) -> Result<(), YamlError> {
        let value = scalar_value(text, style, tag).ok_or_else(|| error(at, "a value does not fit its tag"))?;
        let value = match value {
            Value::Int(_) | Value::Float(_) if self.numbers == Numbers::AsWritten => Value::Text(text.to_owned()),
            value => value,
        };
        let style = match style {
            ScalarStyle::Plain => QuoteStyle::Plain,
            ScalarStyle::SingleQuoted => QuoteStyle::SingleQuoted,
            ScalarStyle::DoubleQuoted => QuoteStyle::DoubleQuoted,
            ScalarStyle::Literal | ScalarStyle::Folded => QuoteStyle::Block,
        };
        let is_item = self.stack.len() > 1;
        let is_edited = |key: &str| is_item || key == "tags" || LinkType::from_name(key).is_some() || may_be_link(text);
        let below_edited = self.key.as_ref().is_some_and(|(key, _)| is_edited(key));
        let in_lists_only = self.stack.iter().skip(1).all(|frame| matches!(frame, Frame::List { .. }));
        if self.stack.len() == 1 && self.key.is_some() {
            self.style = Some(style);
        }
        if below_edited && in_lists_only && !range.is_empty() {
            let in_flow = self.stack.last().is_some_and(Frame::in_flow);
            self.scalars.push(ScalarSite { range, text: text.to_owned(), style, in_flow });
        }
        self.complete(value, Some(text), anchor, at)
    }

    /// Adds a complete value to the innermost open list or mapping.
    fn complete(
        &mut self,
        value: Value,
        scalar_text: Option<&str>,
        anchor: usize,
        at: Marker,
    ) -> Result<(), YamlError> {
        if anchor > 0 {
            // An anchored value may have anchors in it: measuring each costs no more than the limit, which counts them all.
            let (weight, _) = measure(&value);
            self.count_copy(weight, at)?;
            self.anchors.insert(anchor, value.clone());
        }
        // Keys are not resolved: `1.0` stays `1.0`.
        let key_text = |value: &Value| scalar_text.map_or_else(|| flow_text(value), str::to_owned);
        match self.stack.last_mut() {
            None => {
                self.root = match value {
                    Value::Null => None,
                    Value::List(_) => Some(Document::List),
                    _ => Some(Document::Scalar),
                };
            }
            Some(Frame::List { items, .. }) => items.push(value),
            Some(Frame::Map { entries, seen, key, .. }) => match key.take() {
                None => *key = Some(new_key(key_text(&value), seen, at)?),
                Some(key) => entries.push((key, value)),
            },
            Some(Frame::Root { entries, seen, .. }) => match self.key.take() {
                None => {
                    let start = self.started.take().unwrap_or(self.written_end);
                    self.key = Some((new_key(key_text(&value), seen, at)?, start..self.written_end.max(start)));
                }
                Some((key, key_range)) => {
                    let start = self.started.take().unwrap_or(key_range.end);
                    // The parser's span of a list without indentation starts after its first dash.
                    let before = self.yaml[key_range.end..start.max(key_range.end)].trim_end();
                    let behind_dash = matches!(value, Value::List(_)) && before.ends_with('-');
                    let start = if behind_dash { key_range.end + before.len() - 1 } else { start };
                    let value_range = start..end_with_empty_items(self.yaml, &value, self.written_end.max(start));
                    let scalars = std::mem::take(&mut self.scalars);
                    let style = self.style.take();
                    entries.push(YamlEntry { key, key_range, value, value_range, style, scalars });
                }
            },
        }
        Ok(())
    }

    fn expand_alias(&mut self, id: usize, at: Marker) -> Result<Value, YamlError> {
        let value = self.anchors.get(&id).ok_or_else(|| error(at, "an alias is inside its own anchor"))?;
        let (weight, depth) = measure(value);
        if self.stack.len() + depth > MAX_DEPTH {
            return Err(error(at, "it is nested too deeply"));
        }
        self.count_copy(weight, at)?;
        Ok(self.anchors[&id].clone())
    }

    fn count_copy(&mut self, weight: usize, at: Marker) -> Result<(), YamlError> {
        self.copied_weight += weight;
        let is_within = self.copied_weight <= MAX_COPIED_WEIGHT;
        if is_within { Ok(()) } else { Err(error(at, "its anchors and aliases expand to too much data")) }
    }

    /// The bytes of a span, without the white space and the comment that the parser includes after a quoted scalar or a
    /// bracket.
    fn written_range(&self, span: Span) -> Range<usize> {
        let (start, end) = (self.byte(span.start), self.byte(span.end));
        let source = self.yaml.as_bytes().get(start..end).unwrap_or_default();
        let length = match source.first() {
            Some(b'[' | b']' | b'{' | b'}') => 1,
            Some(b'"') => {
                let mut escaped = false;
                let closes = |byte: &u8| {
                    let closes = *byte == b'"' && !escaped;
                    escaped = *byte == b'\\' && !escaped;
                    closes
                };
                source[1..].iter().position(closes).map_or(source.len(), |at| at + 2)
            }
            Some(b'\'') => {
                let mut at = 1;
                while let Some(quote) = memchr::memchr(b'\'', &source[at..]) {
                    at += quote + 1;
                    if source.get(at) != Some(&b'\'') {
                        break;
                    }
                    at += 1;
                }
                at
            }
            _ => source.len(),
        };
        start..start + length
    }

    /// The range of a block scalar from its `|` or `>`: the parser's span starts at the first line of text.
    fn with_block_header(&self, range: Range<usize>) -> Range<usize> {
        let before = self.yaml.get(self.written_end..range.start).unwrap_or_default().trim_end();
        let line = before.rfind('\n').map_or(0, |at| at + 1);
        let header = before[line..].find(['|', '>']).map(|at| self.written_end + line + at);
        header.unwrap_or(range.start)..range.end
    }

    fn byte(&self, marker: Marker) -> usize {
        if self.byte_of_char.is_empty() {
            marker.index().min(self.yaml.len())
        } else {
            self.byte_of_char.get(marker.index()).copied().unwrap_or(self.yaml.len())
        }
    }
}

/// The end of a value, after dashes without an item, which the parser's spans omit.
fn end_with_empty_items(yaml: &str, value: &Value, mut end: usize) -> usize {
    if matches!(value, Value::List(items) if items.last() == Some(&Value::Null)) {
        while let Some(rest) = yaml[end..].trim_start().strip_prefix('-') {
            if !rest.is_empty() && !rest.starts_with(char::is_whitespace) {
                break;
            }
            end = yaml.len() - rest.len();
        }
    }
    end
}

/// The value of a scalar, or `None` if it does not match its tag.
fn scalar_value(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Option<Value> {
    let as_text = || Value::Text(text.to_owned());
    let Some(tag) = tag else {
        return Some(if style == ScalarStyle::Plain { resolve_plain(text) } else { as_text() });
    };
    let is_core = tag.is_yaml_core_schema();
    match (tag.suffix.as_str(), resolve_plain(text)) {
        ("int", value @ Value::Int(_)) | ("bool", value @ Value::Bool(_)) | ("null", value @ Value::Null)
            if is_core =>
        {
            Some(value)
        }
        ("float", value @ (Value::Int(_) | Value::Float(_))) if is_core => Some(value),
        // Too large for an integer, and tagged as a float.
        ("float", Value::Text(_)) if is_core && text.bytes().any(|b| b.is_ascii_digit()) => {
            text.parse().ok().filter(|number: &f64| number.is_finite()).map(Value::Float)
        }
        ("int" | "bool" | "null" | "float", _) if is_core => None,
        // `! x` and `!!str x` are text by the specification; other tags are unknown.
        (suffix, value) => {
            let is_text = is_core || suffix.is_empty() || style != ScalarStyle::Plain;
            Some(if is_text { as_text() } else { value })
        }
    }
}

fn new_key(key: String, seen: &mut FxHashSet<String>, at: Marker) -> Result<String, YamlError> {
    if seen.insert(key.clone()) { Ok(key) } else { Err(error(at, &format!("duplicate key {}", quoted(&key)))) }
}

/// A list or mapping used as a key, written on one line.
fn flow_text(value: &Value) -> String {
    match value {
        Value::List(items) => format!("[{}]", items.iter().map(flow_text).collect::<Vec<_>>().join(", ")),
        Value::Map(entries) => {
            let pairs: Vec<_> = entries.iter().map(|(key, value)| format!("{key}: {}", flow_text(value))).collect();
            format!("{{{}}}", pairs.join(", "))
        }
        scalar => scalar.to_plain_text().unwrap_or_default(),
    }
}

/// The weight of a value, see [`MAX_COPIED_WEIGHT`], and its depth. Recursion ends at [`MAX_DEPTH`].
fn measure(value: &Value) -> (usize, usize) {
    let sum = |(weight, depth): (usize, usize), (w, d): (usize, usize)| (weight + w, depth.max(d + 1));
    match value {
        Value::Text(text) => (16 + text.len(), 0),
        Value::List(items) => items.iter().map(measure).fold((16, 1), sum),
        Value::Map(entries) => entries
            .iter()
            .map(|(key, value)| {
                let (weight, depth) = measure(value);
                (weight + key.len() + 16, depth)
            })
            .fold((16, 1), sum),
        _ => (16, 0),
    }
}
