//! YAML text to values, with the byte ranges that editing needs.
//!
//! Built straight from parser events: nothing is recursive, and depth, aliases and repeated keys are refused while
//! reading, before they cost anything.

mod reader;

use std::ops::Range;

use saphyr_parser::{Marker, Parser, ScanError};

use self::reader::Reader;
use super::scalar::Style;
use crate::model::Value;

/// Frontmatter is a header; whatever is larger is not one.
const MAX_BYTES: usize = 1 << 20;

/// What becomes of plain numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::parse) enum Numbers {
    /// `3.10` is the number 3.1.
    Resolved,
    /// `3.10` is that text.
    AsWritten,
}

/// What a YAML text holds.
#[derive(Debug)]
pub(in crate::parse) enum Document {
    Empty,
    Mapping(Mapping),
    /// Valid YAML that cannot be frontmatter.
    Scalar,
    List,
}

/// The top-level mapping.
#[derive(Debug)]
pub(in crate::parse) struct Mapping {
    pub(in crate::parse) entries: Vec<Entry>,
    /// Written in braces.
    pub(in crate::parse) in_flow: bool,
}

/// One top-level key.
#[derive(Debug)]
pub(in crate::parse) struct Entry {
    pub(in crate::parse) key: String,
    pub(in crate::parse) key_range: Range<usize>,
    pub(in crate::parse) value: Value,
    /// From the value's first to its last byte; empty, behind the key, where nothing is written.
    pub(in crate::parse) value_range: Range<usize>,
    /// How the value was written, where it is a scalar.
    pub(in crate::parse) style: Option<Style>,
    /// The scalars of the value and of the lists in it, kept only under `tags` and the name of a link type.
    pub(in crate::parse) scalars: Vec<ScalarSite>,
}

/// A scalar and where it stands.
#[derive(Debug, Clone)]
pub(in crate::parse) struct ScalarSite {
    pub(in crate::parse) range: Range<usize>,
    pub(in crate::parse) text: String,
    pub(in crate::parse) style: Style,
    pub(in crate::parse) in_flow: bool,
}

/// Why a text is not YAML, or not such as we read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::parse) struct YamlError {
    /// From 1, within the YAML.
    pub(in crate::parse) line: usize,
    pub(in crate::parse) reason: String,
}

/// Reads a text that should hold one document.
pub(in crate::parse) fn read(yaml: &str, numbers: Numbers) -> Result<Document, YamlError> {
    if yaml.len() > MAX_BYTES {
        return Err(YamlError { line: 1, reason: format!("it is larger than {MAX_BYTES} bytes") });
    }
    let mut reader = Reader::new(yaml, numbers);
    for event in Parser::new_from_str(yaml) {
        let (event, span) = event?;
        reader.take(event, span)?;
    }
    Ok(reader.finish())
}

fn error(at: Marker, reason: &str) -> YamlError {
    YamlError { line: at.line(), reason: reason.to_owned() }
}

impl From<ScanError> for YamlError {
    fn from(error: ScanError) -> Self {
        Self { line: error.marker().line(), reason: error.info().to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(yaml: &str) -> Vec<Entry> {
        match read(yaml, Numbers::Resolved) {
            Ok(Document::Mapping(mapping)) => mapping.entries,
            other => panic!("{yaml:?} is {other:?}"),
        }
    }

    #[test]
    fn every_top_level_key_and_value_knows_its_bytes() {
        for (yaml, expected) in [
            ("a: b\n", vec![("a", "b")]),
            ("é: ü # ö\n\"x\": 'y' # z\n", vec![("é", "ü"), ("\"x\"", "'y'")]),
            ("a:\nb: [1, 2] # c\n", vec![("a", ""), ("b", "[1, 2]")]),
            ("a:\n  - 1\n  - x: 2 # c\n\n# d\nb: 3", vec![("a", "- 1\n  - x: 2"), ("b", "3")]),
            ("a:\n- 1\n- 2\nb: {c: d}\n", vec![("a", "- 1\n- 2"), ("b", "{c: d}")]),
            ("a: x\r\n  y\r\nb:\r\n  c: d\r\n", vec![("a", "x\r\n  y"), ("b", "c: d")]),
            ("{a: b, c: [d]}", vec![("a", "b"), ("c", "[d]")]),
            ("a:\n  -\nb: 1\n", vec![("a", "-"), ("b", "1")]),
            ("a: |\n  x\n\n# c\nb: >- # d\n\n  y\n", vec![("a", "|\n  x\n\n"), ("b", ">- # d\n\n  y\n")]),
            ("a: |\nb: 1", vec![("a", "|\n"), ("b", "1")]),
        ] {
            let found = entries(yaml);
            let found: Vec<_> =
                found.iter().map(|entry| (&yaml[entry.key_range.clone()], &yaml[entry.value_range.clone()])).collect();
            assert_eq!(found, expected, "{yaml:?}");
        }
    }

    #[test]
    fn what_is_broken_or_out_of_bounds_is_refused_with_its_line() {
        let bomb = (0..9).fold("a: &a0 [x, x]\n".to_owned(), |yaml, n| {
            let aliases = vec![format!("*a{n}"); 9].join(", ");
            yaml + &format!("b{n}: &a{} [{aliases}]\n", n + 1)
        });
        let long_bomb = format!("a: &a {}\nb: [{}]", "x".repeat(10_000), vec!["*a"; 1000].join(","));
        for (yaml, line) in [
            ("a: 1\nb: 2\na: 3\n", 3),
            ("a:\n  x: 1\n  x: 2\n", 3),
            ("title: foo: bar\n", 1),
            ("a:\n\t- b\n", 2),
            ("a: @x", 1),
            ("a: 1\n--- \nb: 2", 2),
            ("up: [[A]], [[B]]", 1),
            ("a: !!int x", 1),
            (&bomb, 6),
            (&long_bomb, 2),
            (&format!("a: {}", "[".repeat(3000)), 1),
            (&format!("a:\n{}x", "- ".repeat(3000)), 2),
            (&"a: b\n".repeat(300_000), 1),
        ] {
            let error = read(yaml, Numbers::Resolved).expect_err(&yaml[..yaml.len().min(80)]);
            assert_eq!(error.line, line, "{error:?} in {:?}", &yaml[..yaml.len().min(80)]);
        }
    }

    #[test]
    fn a_tag_says_what_a_number_is() {
        let values: Vec<_> = entries("a: !!str 1.0\nb: !!float 1\nc: !!float 99999999999999999999\n")
            .into_iter()
            .map(|entry| entry.value)
            .collect();
        assert_eq!(values, [Value::Text("1.0".into()), Value::Int(1), Value::Float(1e20)]);
    }

    #[test]
    fn keys_become_text_and_aliases_their_values() {
        let found: Vec<_> =
            entries("1.0: a\n? [x, y]\n: b\nc: &c {d: 1}\ne: *c\n").into_iter().map(|e| (e.key, e.value)).collect();
        let map = Value::Map(vec![("d".into(), Value::Int(1))]);
        assert_eq!(
            found,
            [
                ("1.0".into(), Value::Text("a".into())),
                ("[x, y]".into(), Value::Text("b".into())),
                ("c".into(), map.clone()),
                ("e".into(), map),
            ]
        );
    }
}
