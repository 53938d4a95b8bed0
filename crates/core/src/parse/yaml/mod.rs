//! Reads YAML into values, with the byte ranges that editing needs.
//!
//! Built from parser events without recursion; depth, aliases and duplicate keys are limited while reading, before they
//! cost memory.

mod reader;

use std::ops::Range;

use saphyr_parser::{Marker, Parser, ScanError};

use self::reader::Reader;
use super::scalar::QuoteStyle;
use crate::model::Value;

/// Larger text is not frontmatter.
const MAX_BYTES: usize = 1 << 20;

/// How plain numbers are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbers {
    /// `3.10` is the number 3.1.
    Resolved,
    /// `3.10` is that text.
    AsWritten,
}

/// The root of a YAML text.
#[derive(Debug)]
pub(super) enum Document {
    Empty,
    Mapping(Mapping),
    /// Valid YAML that cannot be frontmatter.
    Scalar,
    List,
}

/// The top-level mapping.
#[derive(Debug)]
pub(super) struct Mapping {
    pub(super) entries: Vec<YamlEntry>,
    /// Written in braces.
    pub(super) in_flow: bool,
}

/// One top-level key with its value.
#[derive(Debug)]
pub(super) struct YamlEntry {
    pub(super) key: String,
    pub(super) key_range: Range<usize>,
    pub(super) value: Value,
    /// From the value's first to its last byte; empty, after the key, if there is no value.
    pub(super) value_range: Range<usize>,
    /// The quoting of a scalar value.
    pub(super) style: Option<QuoteStyle>,
    /// The items of its lists; for `tags`, the names of link types and links also a value that is one scalar.
    pub(super) scalars: Vec<ScalarSite>,
}

/// A scalar and its position.
#[derive(Debug, Clone)]
pub(super) struct ScalarSite {
    pub(super) range: Range<usize>,
    pub(super) text: String,
    pub(super) style: QuoteStyle,
    pub(super) in_flow: bool,
}

/// Why a text is not YAML, or exceeds a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct YamlError {
    /// From 1, within the YAML.
    pub(super) line: usize,
    pub(super) reason: String,
}

/// Reads a text with at most one document.
pub(super) fn read(yaml: &str, numbers: Numbers) -> Result<Document, YamlError> {
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

    fn entries(yaml: &str) -> Vec<YamlEntry> {
        match read(yaml, Numbers::Resolved) {
            Ok(Document::Mapping(mapping)) => mapping.entries,
            other => panic!("{yaml:?} is {other:?}"),
        }
    }

    #[test]
    fn top_level_keys_and_values_have_their_ranges() {
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
    fn errors_have_their_line() {
        let bomb = (0..9).fold("a: &a0 [x, x]\n".to_owned(), |yaml, n| {
            let aliases = vec![format!("*a{n}"); 9].join(", ");
            yaml + &format!("b{n}: &a{} [{aliases}]\n", n + 1)
        });
        let nested_anchors = |depth: usize| {
            let opened: String = (1..=depth).map(|n| format!("[&a{n} ")).collect();
            format!("a: 1\nx: {opened}[{}]{}\n", vec!["b"; 4_000].join(","), "]".repeat(depth))
        };
        assert!(read(&nested_anchors(10), Numbers::Resolved).is_ok());
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
            (&nested_anchors(60), 2),
            (&format!("a: {}", "[".repeat(3000)), 1),
            (&format!("a:\n{}x", "- ".repeat(3000)), 2),
            (&"a: b\n".repeat(300_000), 1),
        ] {
            let error = read(yaml, Numbers::Resolved).expect_err(&yaml[..yaml.len().min(80)]);
            assert_eq!(error.line, line, "{error:?} in {:?}", &yaml[..yaml.len().min(80)]);
        }
    }

    #[test]
    fn tags_decide_the_type_of_numbers() {
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
