//! Layering, checked: which crate may depend on what, and which file may name what.
//!
//! `cargo test` runs this. Rules that the compiler or a lint can check are not here.

mod docs;
mod type_names;
mod words;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::shell::{self, cargo};

/// Crates that a crate must not depend on, directly or through others.
const FORBIDDEN_DEPENDENCIES: [(&str, &[&str]); 9] = [
    ("quipu-core", &["rusqlite", "tantivy", "rmcp", "axum", "notify", "tokio", "serde", "serde_json", "ureq"]),
    (
        "quipu-tools",
        &[
            "rusqlite",
            "tantivy",
            "rmcp",
            "axum",
            "notify",
            "tokio",
            "ureq",
            "quipu-vault",
            "quipu-store-embedded",
            "quipu-embed",
        ],
    ),
    ("quipu-layout", &["serde", "tokio", "quipu-core", "getrandom"]),
    ("quipu-vault", &["rusqlite", "tantivy", "rmcp", "axum", "tokio", "quipu-tools", "quipu-store-embedded"]),
    ("quipu-store-embedded", &["rmcp", "axum", "notify", "tokio", "quipu-tools", "quipu-vault"]),
    (
        "quipu-store-postgres",
        &["rusqlite", "tantivy", "rmcp", "axum", "notify", "quipu-tools", "quipu-vault", "quipu-store-embedded"],
    ),
    (
        "quipu-embed",
        &[
            "rusqlite",
            "tantivy",
            "rmcp",
            "axum",
            "notify",
            "tokio",
            "quipu-tools",
            "quipu-vault",
            "quipu-store-embedded",
        ],
    ),
    // Only the composition root, in the program, names concrete stores.
    (
        "quipu-server",
        &[
            "rusqlite",
            "tokio-postgres",
            "tantivy",
            "notify",
            "clap",
            "quipu-vault",
            "quipu-store-embedded",
            "quipu-store-postgres",
            "quipu-embed",
        ],
    ),
    ("quipu", &["quipu-testkit"]),
];

#[test]
fn crates_do_not_depend_on_forbidden_crates() {
    for (name, forbidden) in FORBIDDEN_DEPENDENCIES {
        let used = dependencies(name);
        assert!(used.contains(name), "cargo tree listed nothing for {name}");
        for other in forbidden.iter().chain(&["quipu-testkit"]) {
            assert!(!used.contains(*other), "{name} depends on {other}; `cargo tree -p {name} -e normal -i {other}`");
        }
    }
}

/// Lists all dependencies: `cargo tree -i` succeeds when it finds nothing and fails for a name it does not know.
fn dependencies(name: &str) -> BTreeSet<String> {
    let tree = shell::output(&mut cargo(&[
        "tree",
        "--locked",
        "--all-features",
        "--package",
        name,
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ]));
    let first_word = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
    tree.unwrap().lines().map(first_word).collect()
}

#[test]
fn libraries_are_used_only_in_their_modules() {
    for (library, modules) in [
        ("rmcp", &["crates/server/src/mcp"][..]),
        ("rusqlite", &["crates/store-"][..]),
        ("tokio_postgres", &["crates/store-"][..]),
        ("tantivy", &["crates/store-"][..]),
        ("ureq", &["crates/embed/src/remote", "crates/server/src/http/oauth"]),
        ("axum", &["crates/server/src/http", "crates/server/src/mcp", "crates/server/src/web"]),
        // Only the composition root opens the backends, except for the administration of a database and tests. Settings name
        // the kinds of providers.
        (
            "quipu_embed",
            &[
                "crates/cli/src/compose",
                "crates/cli/src/config",
                "crates/cli/src/trust.rs",
                "crates/cli/src/commands/trust.rs",
                "crates/tools/src/testing.rs",
            ],
        ),
        ("quipu_vault", &["crates/cli/src/compose"]),
        ("quipu_store_embedded", &["crates/cli/src/compose", "crates/cli/src/exchange/tests.rs"]),
        (
            "quipu_store_postgres",
            &[
                "crates/cli/src/compose",
                "crates/cli/src/commands/database",
                "crates/cli/src/commands/db.rs",
                "crates/cli/src/commands/graph.rs",
            ],
        ),
    ] {
        for (path, text) in product_files() {
            let may = modules.iter().any(|module| path.starts_with(module));
            let names =
                without_tests(&text).lines().any(|line| !is_comment(line) && line.contains(&format!("{library}::")));
            assert!(may || !names, "{path} uses {library}");
        }
    }
}

/// Commands use the other modules; no other module uses a command.
#[test]
fn only_main_uses_commands() {
    for (path, text) in rust_files(&["crates/cli/src"]) {
        let may = path.starts_with("crates/cli/src/commands/") || path == "crates/cli/src/main.rs";
        assert!(may || !text.contains("crate::commands"), "{path} names a command");
    }
}

#[test]
fn every_file_states_its_purpose() {
    for (path, text) in rust_files(&["crates", "xtask", "fuzz"]) {
        assert!(text.starts_with("//!"), "{path} does not start with a `//!` line");
    }
}

#[test]
fn domain_types_are_not_serializable() {
    for (path, text) in rust_files(&["crates/core/src"]) {
        for word in ["Serialize", "Deserialize"] {
            assert!(!text.contains(word), "{path} has {word}");
        }
    }
}

#[test]
fn no_test_is_ignored() {
    // Joined here, so that this file does not contain it.
    let forbidden = ["#[", "ignore"].concat();
    for (path, text) in rust_files(&["crates", "xtask"]) {
        assert!(!text.contains(&forbidden), "{path} has {forbidden}");
    }
}

#[test]
fn no_file_names_a_folder_of_this_machine() {
    let folders = ["/work/", "/tmp/", "/root/", "/home/"].map(|folder| format!("\"{folder}"));
    for (path, text) in product_files() {
        let shipped = without_tests(&text);
        for (number, line) in shipped.lines().enumerate() {
            let found = folders.iter().find(|folder| line.contains(folder.as_str()));
            assert!(found.is_none() || is_comment(line), "{path}:{}: {line}", number + 1);
        }
    }
}

#[test]
fn every_tool_has_a_file_of_its_name() {
    let page = fs::read_to_string(shell::root().join("docs/tools.md")).unwrap();
    let mut toolset = "";
    let mut tools = 0;
    for line in page.lines() {
        if let Some(name) = line.strip_prefix("## ") {
            toolset = name;
        }
        if let Some(name) = line.strip_prefix("### `") {
            let file = format!("crates/tools/src/{toolset}/{}.rs", name.trim_end_matches('`'));
            assert!(shell::root().join(&file).is_file(), "there is no {file}");
            tools += 1;
        }
    }
    assert!(tools >= 15, "docs/tools.md lists {tools} tools");
}

/// The most lines of a function, and of a file without its tests.
const MOST_LINES: (usize, usize) = (80, 600);

#[test]
fn functions_and_files_are_short() {
    for (path, text) in product_files().into_iter().filter(|(path, _)| !path.contains("test")) {
        let source = without_tests(&text);
        let lines = source.lines().count();
        assert!(lines <= MOST_LINES.1, "{path} has {lines} lines; split it, at most {} are allowed", MOST_LINES.1);
        let long = function_lengths(source).into_iter().find(|(_, length)| *length > MOST_LINES.0);
        assert!(long.is_none(), "{path}:{long:?}: (line, length); at most {} lines are allowed", MOST_LINES.0);
    }
}

/// Where each function starts, and its lines. Formatted code ends it at its indentation: with a brace, a declaration with `;`.
fn function_lengths(source: &str) -> Vec<(usize, usize)> {
    let lines: Vec<&str> = source.lines().collect();
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let is_start = |line: &str| {
        let words = line.trim_start().split(' ');
        let mut words = words.skip_while(|word| word.starts_with("pub") || ["const", "async", "unsafe"].contains(word));
        words.next() == Some("fn")
    };
    let length = |at: usize| {
        let is_end = |line: &&str| {
            let is_own = indentation(line) == indentation(lines[at]);
            is_own && (line.trim_start() == "}" || line.ends_with(';') || line.ends_with("{}"))
        };
        lines[at..].iter().position(is_end).map_or(1, |lines| lines + 1)
    };
    (0..lines.len()).filter(|at| is_start(lines[*at])).map(|at| (at + 1, length(at))).collect()
}

#[test]
fn lengths_of_functions_are_counted() {
    let source = "pub(crate) async fn one(\n    a: u8,\n) {\n    a;\n}\n\ntrait T {\n    fn two(&self);\n    fn three() {\n        x();\n    }\n}\n";
    assert_eq!(function_lengths(source), [(1, 5), (8, 1), (9, 3)]);
}

/// A source up to its tests.
fn without_tests(source: &str) -> &str {
    source.split("\nmod tests {").next().unwrap_or_default()
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

fn product_files() -> Vec<(String, String)> {
    let mut files = rust_files(&["crates"]);
    files.retain(|(path, _)| path.contains("/src/") && !path.starts_with("crates/testkit"));
    files
}

/// Every Rust file below some folders: its path from the root, and its text.
fn rust_files(folders: &[&str]) -> Vec<(String, String)> {
    files(folders, "rs")
}

/// Every Markdown file below some folders, or named itself: its path from the root, and its text.
fn markdown_files(names: &[&str]) -> Vec<(String, String)> {
    files(names, "md")
}

fn files(names: &[&str], extension: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for name in names {
        collect(&shell::root().join(name), extension, &mut found);
    }
    assert!(!found.is_empty(), "no files below {names:?} in {:?}", env::current_dir());
    found.sort();
    let named = |path: PathBuf| {
        let name = path.strip_prefix(shell::root()).unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&path).unwrap();
        (name, text)
    };
    found.into_iter().map(named).collect()
}

fn collect(path: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    if path.is_dir() && !path.ends_with("target") {
        for entry in fs::read_dir(path).unwrap() {
            collect(&entry.unwrap().path(), extension, found);
        }
    } else if path.extension().is_some_and(|its| its == extension) {
        found.push(path.to_owned());
    }
}
