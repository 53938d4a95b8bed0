//! Fails when the format on disk changes and [`FORMAT`] does not: an old index would then be read as a new one.
//!
//! For a new number, put the text that the test prints into a file of that number, and delete the old file.

use quipu_core::model::{
    ContentHash, FileStat, Link, LinkSyntax, LinkType, Note, Section, SourceVersion, Tag, TextCounts, Value, VaultPath,
};
use quipu_core::ports::PassageHash;

use crate::catalog::{FORMAT, SCHEMA};
use crate::vectors::{self, ListedPassage, decode, encode};
use crate::{row, text};

/// A note that uses every field.
fn sample() -> Note {
    let path = VaultPath::parse("Folder/Große Notiz.md").expect("a path of a vault");
    let link = |syntax, link_type| Link {
        syntax,
        target: "Other".to_owned(),
        fragment: Some("^block".to_owned()),
        label: None,
        link_type,
    };
    let syntaxes =
        [LinkSyntax::Wiki, LinkSyntax::Embed, LinkSyntax::Markdown, LinkSyntax::Frontmatter, LinkSyntax::Shortcode];
    Note {
        id: path.note_id(),
        path,
        stat: FileStat { modified_ns: 1, size: 2 },
        hash: ContentHash::of(b"sample"),
        title: "Titel".to_owned(),
        tags: vec![Tag::new("Rust/Async"), Tag::new("plain")],
        aliases: vec!["Zweitname".to_owned()],
        properties: vec![
            ("null".to_owned(), Value::Null),
            ("list".to_owned(), Value::List(vec![Value::Bool(true), Value::Int(-7), Value::Float(0.5)])),
            ("map".to_owned(), Value::Map(vec![("k".to_owned(), Value::Text("日本".to_owned()))])),
        ],
        links: syntaxes
            .map(|syntax| link(syntax, LinkType::References))
            .into_iter()
            .chain(LinkType::ALL.map(|link_type| link(LinkSyntax::Wiki, link_type)))
            .collect(),
        sections: vec![
            Section { heading: None, level: 0, range: 0..300, text_start: 3 },
            Section { heading: Some("Über".to_owned()), level: 2, range: 300..900, text_start: 310 },
        ],
        body_start: 3,
        counts: TextCounts { chars: 897, file_chars: 900, tasks_open: 2, tasks_done: 1 },
        warnings: vec!["odd".to_owned()],
        sources: vec![SourceVersion { path: "src/a.rs".to_owned(), hash: ContentHash::of(b"a") }],
    }
}

#[test]
fn index_format_changes_only_with_its_number() {
    let row = row::encode(&sample()).expect("the sample is a row");
    let hex: String = row.iter().map(|byte| format!("{byte:02x}")).collect();
    let passage = ListedPassage { section: 258, hash: PassageHash(*b"a passage's hash") };
    let passages = encode(&[passage, ListedPassage { section: 3, ..passage }]);
    assert_eq!(decode(&passages), Some(vec![passage, ListedPassage { section: 3, ..passage }]));
    assert_eq!(decode(&passages[1..]), None);
    let is = format!(
        "row\n{hex}\n\npassages\n{passages:?}\n\ntables\n{}\n\nfields\n{}\n\nwords\n{}\n",
        SCHEMA.trim(),
        text::schema_json(),
        text::words_of("Grüße, HTTPServer2 snake_case's 全文検索 🦀 naïve don't v1.2")
    );
    compare(&format!("{FORMAT}.txt"), &is);
}

#[test]
fn vector_format_changes_only_with_its_number() {
    compare(&format!("vectors-{}.txt", vectors::FORMAT), &format!("{}\n", vectors::SCHEMA.trim()));
}

fn compare(name: &str, is: &str) {
    let file = format!("{}/tests/format/{name}", env!("CARGO_MANIFEST_DIR"));
    #[expect(clippy::disallowed_methods, reason = "reads the test's own file")]
    let was = std::fs::read_to_string(&file).unwrap_or_default().replace("\r\n", "\n");
    assert!(is == was, "the format on disk differs from {name}: give the format a new number, with this file:\n{is}");
}
