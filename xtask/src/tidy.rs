//! The walls of the house, checked: which crate may depend on what, and which file may name what.
//!
//! `cargo test` runs this. A rule that a compiler or a lint can hold is not here.

mod docs;
mod type_names;
mod words;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::shell::{self, cargo};

/// What a crate must not be built on, directly or not.
const WALLS: [(&str, &[&str]); 9] = [
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
fn no_crate_is_built_on_what_its_room_forbids() {
    for (name, forbidden) in WALLS {
        let built_on = dependencies(name);
        assert!(built_on.contains(name), "cargo tree listed nothing for {name}");
        for other in forbidden.iter().chain(&["quipu-testkit"]) {
            assert!(
                !built_on.contains(*other),
                "{name} is built on {other}; `cargo tree -p {name} -e normal -i {other}`"
            );
        }
    }
}

/// The listing form on purpose: `cargo tree -i` exits well when it finds nothing and badly for a name it does not know.
fn dependencies(name: &str) -> BTreeSet<String> {
    let tree = shell::output(&mut cargo(&[
        "tree",
        "--locked",
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
fn only_its_own_room_names_a_library() {
    for (library, rooms) in [
        ("rmcp", &["crates/server/src/mcp"][..]),
        ("rusqlite", &["crates/store-"][..]),
        ("tokio_postgres", &["crates/store-"][..]),
        ("tantivy", &["crates/store-"][..]),
        ("ureq", &["crates/embed/src/remote", "crates/server/src/http/oauth"]),
        ("axum", &["crates/server/src/http", "crates/server/src/mcp", "crates/server/src/web"]),
    ] {
        for (path, text) in product_files() {
            let may = rooms.iter().any(|room| path.starts_with(room));
            let names = text.lines().any(|line| !is_comment(line) && line.contains(&format!("{library}::")));
            assert!(may || !names, "{path} names {library}");
        }
    }
}

/// Commands stand on the rest, and nothing of the rest on them.
#[test]
fn nothing_but_the_program_names_its_commands() {
    for (path, text) in rust_files(&["crates/cli/src"]) {
        let may = path.starts_with("crates/cli/src/commands/") || path == "crates/cli/src/main.rs";
        assert!(may || !text.contains("crate::commands"), "{path} names a command");
    }
}

#[test]
fn every_file_says_what_it_is_for() {
    for (path, text) in rust_files(&["crates", "xtask", "fuzz"]) {
        assert!(text.starts_with("//!"), "{path} does not start with a `//!` line");
    }
}

#[test]
fn the_domain_promises_no_wire_shape() {
    for (path, text) in rust_files(&["crates/core/src"]) {
        for word in ["Serialize", "Deserialize"] {
            assert!(!text.contains(word), "{path} has {word}");
        }
    }
}

#[test]
fn no_test_is_set_aside() {
    // Put together here, so that this file does not find itself.
    let forbidden = ["#[", "ignore"].concat();
    for (path, text) in rust_files(&["crates", "xtask"]) {
        assert!(!text.contains(&forbidden), "{path} has {forbidden}");
    }
}

#[test]
fn no_file_knows_the_machine_it_was_written_on() {
    let folders = ["/work/", "/tmp/", "/root/", "/home/"].map(|folder| format!("\"{folder}"));
    for (path, text) in product_files() {
        let shipped = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in shipped.lines().enumerate() {
            let found = folders.iter().find(|folder| line.contains(folder.as_str()));
            assert!(found.is_none() || is_comment(line), "{path}:{}: {line}", number + 1);
        }
    }
}

#[test]
fn every_tool_has_the_file_of_its_name() {
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

/// The same for Markdown; a name may also be that of a file.
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
