//! Words that make a text hard to understand, each with the plain word: kept out of docs, of comments, of the names of functions
//! and tests, and of strings that users see.

use super::{files, markdown_files, rust_files, without_tests};

/// A word or phrase in lower case, and what to write instead.
const WORDS: [(&str, &str); 49] = [
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
    ("none twice", "without duplicates"),
    ("lead to nothing", "have no target"),
    ("leads to nothing", "has no target"),
    ("in silence", "without a warning"),
    ("top of the vault", "the vault's root folder"),
    ("told apart", "distinguished"),
    ("told otherwise", "by default, unless set"),
    ("told of", "warned about, shown"),
    ("is told", "gets, is notified of, is reported"),
    ("are told", "get, are notified of, are reported"),
    ("was told", "was shown, got"),
    ("were told", "were shown, got"),
];

/// Comments that say nothing about the field or function below them.
const EMPTY_COMMENTS: [&str; 9] = [
    "What it is.",
    "What it does.",
    "What is there.",
    "What was there.",
    "What was done.",
    "What to do.",
    "What happened.",
    "Every one.",
    "Why not.",
];

/// How comments start that only repeat the name below them, and the most words that follow: `Its id.`, `Which file.`, `The
/// cause.`
const LABELS: [(&str, usize); 5] = [("Its", 2), ("Which", 2), ("The", 1), ("A", 1), ("An", 1)];

/// How a doc comment starts that can be read only beside the item before it, which rustdoc shows elsewhere, if at all.
const DEPENDENT_STARTS: [&str; 4] = ["The same ", "Of ", "Those ", "That of "];

/// Longer names of functions and tests are sentences.
const LONGEST_NAME: usize = 75;

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
        let comments = comment_lines(&text);
        let is_line = |line: usize| comments.iter().any(|(other, _)| *other == line);
        // Of a comment of several lines, one may be as short.
        let stands_alone = |line: usize| !is_line(line - 1) && !is_line(line + 1);
        let empty = comments.clone().into_iter().filter(|(line, comment)| is_empty(comment) && stands_alone(*line));
        empty.map(|(line, comment)| format!("{path}:{line}: {comment}; name the subject")).collect::<Vec<_>>()
    }));
}

#[test]
fn doc_comments_stand_alone() {
    let files = rust_files(&["crates", "xtask", "fuzz"]).into_iter();
    report(files.flat_map(|(path, text)| {
        let dependent = dependent_starts(&text).into_iter();
        dependent.map(|(line, comment)| format!("{path}:{line}: {comment}; name the subject")).collect::<Vec<_>>()
    }));
}

/// The doc comments whose first line refers to another item.
fn dependent_starts(source: &str) -> Vec<(usize, String)> {
    let text = |line: &str| line.trim_start().strip_prefix("///").or(line.strip_prefix("//!")).map(str::to_owned);
    let mut is_inside = false;
    let mut found = Vec::new();
    for (at, line) in source.lines().enumerate() {
        let comment = text(line);
        let starts = |comment: &&String| DEPENDENT_STARTS.iter().any(|start| comment.trim_start().starts_with(start));
        found.extend(comment.as_ref().filter(|_| !is_inside).filter(starts).map(|_| (at + 1, line.trim().to_owned())));
        is_inside = comment.is_some();
    }
    found
}

/// Whether a comment says nothing about what it is on.
fn is_empty(comment: &str) -> bool {
    let comment = comment.trim_start_matches('/').trim();
    let label = comment.strip_suffix('.').map(|label| label.split(' ').collect::<Vec<_>>());
    let is_label = label.is_some_and(|words| {
        let is_plain = words.iter().all(|word| word.chars().all(char::is_alphabetic));
        let starts = |(first, most): &(&str, usize)| words[0] == *first && words.len() <= most + 1;
        is_plain && LABELS.iter().any(starts)
    });
    is_label || EMPTY_COMMENTS.contains(&comment)
}

/// Fields and variants of these crates may be without a comment: their names and types say what they are, or need one with a
/// reason. The lint `missing_docs` would require one on each.
#[test]
fn public_items_are_documented() {
    let folders = ["crates/core/src", "crates/store-embedded/src", "crates/vault/src"];
    let files = rust_files(&folders).into_iter().filter(|(path, _)| !path.contains("test"));
    report(files.flat_map(|(path, text)| {
        let items = undocumented(without_tests(&text));
        items.into_iter().map(|(line, item)| format!("{path}:{line}: {item} has no comment")).collect::<Vec<_>>()
    }));
}

/// The public items, and the methods of public traits, without a comment above them and their attributes.
fn undocumented(source: &str) -> Vec<(usize, String)> {
    const KINDS: [&str; 8] = ["fn", "const", "unsafe", "struct", "enum", "trait", "type", "static"];
    let lines: Vec<&str> = source.lines().collect();
    let mut in_trait = false;
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let item = line.trim_start().strip_prefix("pub ").map(|item| item.split(' ').next().unwrap_or_default());
        let is_public = item.is_some_and(|kind| KINDS.contains(&kind));
        if is_public || in_trait && line.starts_with("    fn ") {
            let above = lines[..at].iter().rev().map(|line| line.trim());
            let mut own = above.take_while(|line| !line.is_empty() && !line.ends_with(['{', '}', ';']));
            if !own.any(|line| line.starts_with("///")) {
                found.push((at + 1, line.trim().to_owned()));
            }
        }
        in_trait = line.starts_with("pub trait ") || in_trait && !line.starts_with('}');
    }
    found
}

#[test]
fn function_and_test_names_are_short() {
    let files = rust_files(&["crates", "xtask", "fuzz"]).into_iter();
    report(files.flat_map(|(path, text)| {
        let long = function_names(&text).into_iter().filter(|(_, name)| name.len() > LONGEST_NAME);
        long.map(|(line, name)| format!("{path}:{line}: {name}: at most {LONGEST_NAME} characters")).collect::<Vec<_>>()
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
fn labels_are_empty_comments() {
    assert!(["/// Its id.", "// Which open file.", "/// The cause.", "/// Every one."].into_iter().all(is_empty));
    let full = [
        "/// Its id in the log.",
        "/// The owner process.",
        "/// `Its` id.",
        "/// A note that was deleted.",
        "/// Its id",
    ];
    assert!(!full.into_iter().any(is_empty));
}

#[test]
fn doc_comments_about_the_item_before_are_found() {
    let source = "//! The same for memory.\n\n/// Reads.\nfn a() {}\n    /// The same without a lock.\n    fn b() {}\n\
                  /// Offers.\n/// Of two, the first.\nfn c() {}\n// Of no item.\n/// Of the file.\nfn d() {}\n";
    let found: Vec<usize> = dependent_starts(source).into_iter().map(|(line, _)| line).collect();
    assert_eq!(found, [1, 5, 11]);
}

#[test]
fn undocumented_items_are_found() {
    let source = "/// Yes.\n#[derive(A)]\npub struct Own {\n    pub field: u8,\n}\n\npub fn no() {}\n\n/// Yes.\n\
                  pub trait Port {\n    fn no(&self);\n\n    /// Yes.\n    fn yes(&self);\n}\n\nimpl Own {\n    fn yes() {}\n}\n";
    let found: Vec<usize> = undocumented(source).into_iter().map(|(line, _)| line).collect();
    assert_eq!(found, [7, 11]);
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
