//! Words that make a text hard to understand, each with the plain word: kept out of docs, of comments, of the names of functions
//! and tests, and of strings that users see.

use super::{files, markdown_files, rust_files, without_tests};

/// A word or phrase in lower case, and what to write instead.
const WORDS: [(&str, &str); 37] = [
    ("whoever", "the actor: the client, the owner process, the caller"),
    ("whomever", "the actor: the client, the owner process, the caller"),
    ("nobody", "the actor: no client, no other process"),
    ("somebody", "the actor: a client, another process, a person"),
    ("anybody", "everyone, any client"),
    ("anew", "again; rebuild, recreate"),
    ("mend", "fix, repair"),
    ("mended", "fixed, repaired"),
    ("spoiled", "corrupt, damaged"),
    ("said of", "about"),
    ("spoken of", "mentioned, linked"),
    ("unheard of", "unused"),
    ("slip", "typing error"),
    ("slips", "typing errors"),
    ("let in", "accept"),
    ("lets in", "accepts"),
    ("let go", "release, close"),
    ("gone wrong", "failed"),
    ("went wrong", "failed"),
    ("take for", "treat as"),
    ("taken for", "treated as"),
    ("taken in", "accepted, imported, indexed"),
    ("held back", "blocked, rejected"),
    ("put right", "fix"),
    ("worth nothing", "invalid"),
    ("in two minds", "ambiguous"),
    ("beforehand", "before"),
    ("whereof", "of which"),
    ("thereof", "of it"),
    ("carried out", "applied, run"),
    ("carries out", "applies, runs"),
    ("carry out", "apply, run"),
    ("looked at again", "checked again"),
    ("of its own making", "that it created"),
    ("for good", "permanently"),
    ("said no", "refused, failed"),
    ("tells no tales", "reveals no internals"),
];

/// Comments that say nothing about the field or function below them.
const EMPTY_COMMENTS: [&str; 8] = [
    "What it is.",
    "What it does.",
    "What is there.",
    "What was there.",
    "What was done.",
    "What to do.",
    "What happened.",
    "Which.",
];

/// Markdown that people read.
const CLEAN_DOCS: [&str; 7] =
    ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs", "crates/embed/assets"];

/// Folders of Rust files that users run.
const CLEAN_RUST: [&str; 10] = [
    "crates/cli/src",
    "crates/core/src",
    "crates/embed/src",
    "crates/layout/src",
    "crates/own-folder/src",
    "crates/server/src",
    "crates/store-embedded/src",
    "crates/store-postgres/src",
    "crates/tools/src",
    "crates/vault/src",
];

#[test]
fn docs_use_plain_words() {
    report(markdown_files(&CLEAN_DOCS).into_iter().flat_map(|(path, text)| findings(&path, numbered_lines(&text))));
}

#[test]
fn user_facing_strings_use_plain_words() {
    let is_shipped = |path: &str| !path.ends_with("tests.rs") && !path.ends_with("_test.rs");
    let files = rust_files(&CLEAN_RUST).into_iter().filter(|(path, _)| is_shipped(path));
    report(files.flat_map(|(path, text)| findings(&path, string_literals(without_tests(&text)))));
}

#[test]
fn comments_use_plain_words() {
    let files = rust_files(&["crates", "xtask", "fuzz"]).into_iter();
    report(files.flat_map(|(path, text)| findings(&path, comment_lines(&text))));
}

#[test]
fn comments_name_their_subject() {
    let files = rust_files(&["crates", "xtask", "fuzz"]).into_iter();
    report(files.flat_map(|(path, text)| {
        let is_empty = |comment: &str| EMPTY_COMMENTS.contains(&comment.trim_start_matches('/').trim());
        let empty = comment_lines(&text).into_iter().filter(|(_, comment)| is_empty(comment));
        empty.map(|(line, comment)| format!("{path}:{line}: {comment}; name the subject")).collect::<Vec<_>>()
    }));
}

#[test]
fn web_page_uses_plain_words() {
    let sources = ["ts", "tsx", "html"].into_iter().flat_map(|extension| files(&["web/src"], extension));
    report(sources.flat_map(|(path, text)| findings(&path, numbered_lines(&text))));
}

#[test]
fn function_and_test_names_use_plain_words() {
    let files = rust_files(&["crates", "xtask", "fuzz"]).into_iter();
    report(files.flat_map(|(path, text)| findings(&path, function_names(&text))));
}

fn report(findings: impl Iterator<Item = String>) {
    let findings: Vec<String> = findings.collect();
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

/// The words of the list in numbered texts, as `path:line: word; write …`.
fn findings(path: &str, texts: Vec<(usize, String)>) -> Vec<String> {
    let found = |text: &str| WORDS.iter().filter(|(word, _)| has_word(text, word)).collect::<Vec<_>>();
    texts
        .into_iter()
        .flat_map(|(line, text)| {
            let told = |(word, plain): &&(&str, &str)| format!("{path}:{line}: \"{word}\"; write instead: {plain}");
            found(&text.to_lowercase()).iter().map(told).collect::<Vec<_>>()
        })
        .collect()
}

/// Whether a phrase stands in a text by itself. Parts of identifiers (`lets_nobody_in`) do not count.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

fn numbered_lines(text: &str) -> Vec<(usize, String)> {
    text.lines().enumerate().map(|(at, line)| (at + 1, line.to_owned())).collect()
}

fn comment_lines(source: &str) -> Vec<(usize, String)> {
    let numbered = source.lines().enumerate().map(|(at, line)| (at + 1, line.trim_start()));
    numbered.filter(|(_, line)| line.starts_with("//")).map(|(at, line)| (at, line.to_owned())).collect()
}

/// The names of functions, tests included, as words.
fn function_names(source: &str) -> Vec<(usize, String)> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let name = |line: &str| {
        let (before, rest) = line.split_once("fn ")?;
        let name: String = rest.chars().take_while(|c| is_part(*c)).collect();
        let is_definition = !name.is_empty() && !before.ends_with(is_part) && !before.contains(['"', '/']);
        is_definition.then(|| name.replace('_', " "))
    };
    source.lines().enumerate().filter_map(|(at, line)| Some((at + 1, name(line)?))).collect()
}

/// The string literals of a Rust source, each with the line on which it starts. Continued lines are joined.
fn string_literals(source: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find(['"', '\'', '/', 'r']) {
        let (before, here) = rest.split_at(at);
        let raw = here.strip_prefix('r').filter(|_| !before.ends_with(|c: char| c.is_alphanumeric() || c == '_'));
        let skipped = match here.as_bytes() {
            [b'/', b'/', ..] => here.find('\n').unwrap_or(here.len()),
            [b'\'', b'\\', _, rest @ ..] => rest.iter().position(|byte| *byte == b'\'').map_or(here.len(), |at| at + 4),
            [b'\'', ..] => char_literal(here),
            [b'"', ..] => {
                let length = literal_length(&here[1..]);
                found.push((line_of(source, here), joined(&here[1..=length])));
                length + 2
            }
            _ => match raw.and_then(raw_literal) {
                Some((text, length)) => {
                    found.push((line_of(source, here), text.to_owned()));
                    length + 1
                }
                None => 1,
            },
        };
        rest = here.get(skipped..).unwrap_or_default();
    }
    found
}

/// How long `'x'` is; a lifetime is passed over by its first character.
fn char_literal(here: &str) -> usize {
    let mut characters = here[1..].char_indices().skip(1);
    match characters.next() {
        Some((at, '\'')) => at + 2,
        _ => 1,
    }
}

/// The length of a literal up to its closing quote.
fn literal_length(text: &str) -> usize {
    let mut is_escaped = false;
    text.find(|c| {
        let ends = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends
    })
    .unwrap_or(text.len())
}

/// The text of `#"…"#` behind an `r`, and its whole length.
fn raw_literal(text: &str) -> Option<(&str, usize)> {
    let hashes = text.len() - text.trim_start_matches('#').len();
    let inside = text[hashes..].strip_prefix('"')?;
    let end = inside.find(&format!("\"{}", "#".repeat(hashes)))?;
    Some((&inside[..end], 2 * hashes + end + 2))
}

fn joined(literal: &str) -> String {
    literal.split("\\\n").map(str::trim_start).collect()
}

fn line_of(source: &str, here: &str) -> usize {
    source[..source.len() - here.len()].matches('\n').count() + 1
}

#[test]
fn words_are_found_by_themselves_only() {
    assert!(has_word("let nobody in", "nobody"));
    assert!(!has_word("lets_nobody_in", "nobody"));
    assert!(!has_word("amend it, recommended", "mend"));
    assert!(has_word("it has gone wrong.", "gone wrong"));
}

#[test]
fn function_names_are_found_as_words() {
    let source = "    pub(crate) async fn lets_nobody_in(x: X) {\n// fn no\nlet x = \"fn no()\";\nfn two<T>()";
    assert_eq!(function_names(source), [(1, "lets nobody in".to_owned()), (4, "two".to_owned())]);
}

#[test]
fn string_literals_are_found_between_code_and_comments() {
    let source = "let a = \"one\"; // \"no\"\nlet b = '\"'; let c: &'static str = r#\"two \"x\"\"#;\nf('\\'', \"th\\\n   ree \\\"q\\\"\");\nvar\"four\"";
    let expected = [(1, "one"), (2, "two \"x\""), (3, "three \\\"q\\\""), (5, "four")];
    assert_eq!(string_literals(source), expected.map(|(line, text)| (line, text.to_owned())));
}
