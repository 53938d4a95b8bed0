//! What the docs name exists: paths, tests and error messages.

use std::fs;

use super::{markdown_files, rust_files};
use crate::shell;

const DOCS: [&str; 6] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs"];

/// Folders at the root: a word in backticks that starts with one of them is a path.
const ROOTS: [&str; 7] = ["crates/", "xtask/", "scripts/", "docs/", "examples/", "tests/", ".github/"];

#[test]
fn linked_files_exist() {
    for (path, text) in markdown_files(&DOCS) {
        let folder = shell::root().join(&path).parent().expect("a file is in a folder").to_owned();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            let is_local = !link.is_empty() && !link.contains("://");
            assert!(!is_local || folder.join(link).exists(), "{path} links to {link}, which does not exist");
        }
    }
}

#[test]
fn named_paths_exist() {
    for (path, text) in markdown_files(&DOCS) {
        let named = in_backticks(&text).filter(|name| ROOTS.iter().any(|root| name.starts_with(root)));
        for name in named.filter(|name| !name.contains(['<', '*', ' ', '(', '{'])) {
            assert!(shell::root().join(name).exists(), "{path} names `{name}`, which does not exist");
        }
    }
}

/// The paths in ARCHITECTURE.md, and the hops that each may have.
const PATHS: [(&str, usize); 5] = [
    ("## From a saved file to the index", 8),
    ("### Read over stdio, in the owner process", 9),
    ("### Write over HTTP, in a process that does not own the vault", 12),
    ("### Write to a note, from the tool to the file", 7),
    ("## Servers on a PostgreSQL database", 2),
];

/// A row of a table of steps.
struct Step<'p> {
    function: &'p str,
    body: String,
    /// Calls that lead here from the first row.
    hops: usize,
}

/// The tables of steps name a file and a function in it. The step before calls it in its body, or the step that the row names
/// (`via step N`); a call that cannot be seen there is said to be `via` what makes it. The length of each path is limited.
#[test]
fn steps_in_architecture_call_each_other() {
    let page = fs::read_to_string(shell::root().join("ARCHITECTURE.md")).unwrap();
    for (heading, max_hops) in PATHS {
        let section = page.split(&format!("\n{heading}\n")).nth(1).unwrap_or_else(|| panic!("no heading {heading}"));
        let rows = section.lines().take_while(|line| !line.starts_with('#')).filter(|line| {
            let number = line.strip_prefix("| ");
            number.is_some_and(|number| number.starts_with(char::is_numeric))
        });
        let mut steps: Vec<Step<'_>> = Vec::new();
        for row in rows {
            let step = step_after(&steps, row).unwrap_or_else(|error| panic!("{heading}: {error}"));
            steps.push(step);
        }
        let hops = steps.iter().map(|step| step.hops).max().unwrap_or(0);
        assert!(hops > 0, "no steps below {heading}");
        assert!(hops <= max_hops, "{heading}: {hops} hops; at most {max_hops}");
    }
}

/// A middleware of the HTTP server is a step that no call in the source shows.
#[test]
fn http_middleware_is_in_the_path_of_a_write() {
    let page = fs::read_to_string(shell::root().join("ARCHITECTURE.md")).unwrap();
    let section = page.split("\n### Write over HTTP").nth(1).expect("the heading of the table");
    let section = section.split("\n#").next().unwrap_or_default();
    let layers: Vec<String> = rust_files(&["crates/server/src/http", "crates/server/src/mcp"])
        .iter()
        .flat_map(|(path, text)| middleware(path, super::without_tests(text)))
        .collect();
    assert!(layers.len() >= 3, "only {layers:?}");
    for layer in layers {
        assert!(section.contains(&layer), "no step of the write over HTTP is {layer}; ARCHITECTURE.md has to count it");
    }
}

/// The middleware that a file of the server installs, each as the cells of its step: `file` | `function`.
fn middleware(path: &str, source: &str) -> Vec<String> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder).trim_start_matches("crates/");
    let named =
        source.split("from_fn_with_state(").skip(1).filter_map(|rest| rest.split_once("))").map(|(args, _)| args));
    let cells = |args: &str| {
        let (module, function) = args.rsplit(", ").next()?.split_once("::")?;
        Some(format!("`{folder}/{module}.rs` | `{function}`"))
    };
    named.map(|args| cells(args).unwrap_or_else(|| format!("from_fn_with_state({args})"))).collect()
}

#[test]
fn middleware_is_found_by_module_and_function() {
    let source =
        "a.layer(from_fn_with_state(guard.clone(), request_guard::enter)).layer(from_fn_with_state(a, other));";
    let found = ["`server/src/http/request_guard.rs` | `enter`", "from_fn_with_state(a, other)"];
    assert_eq!(middleware("crates/server/src/http/mod.rs", source), found);
}

/// Reads a row. The error is a function that does not exist or that its caller does not call.
fn step_after<'p>(steps: &[Step<'p>], row: &'p str) -> Result<Step<'p>, String> {
    let mut named = in_backticks(row);
    let (Some(file), Some(function)) = (named.next(), named.next()) else {
        return Err(format!("no file and function in {row}"));
    };
    let source = fs::read_to_string(shell::root().join("crates").join(file)).map_err(|e| format!("{file}: {e}"))?;
    let body = body_of(&source, function).ok_or_else(|| format!("{file} has no function {function}"))?.to_owned();
    let via = row.split_once("| via ").map(|(_, via)| via);
    let number = via.and_then(|via| via.strip_prefix("step ")?.split(|c: char| !c.is_numeric()).next()?.parse().ok());
    let caller = number.map_or(steps.last(), |number: usize| steps.get(number.checked_sub(1)?));
    if let Some(caller) = caller
        && (via.is_none() || number.is_some())
        && !calls(&caller.body, function)
    {
        return Err(format!("{} does not call {function}", caller.function));
    }
    Ok(Step { function, body, hops: caller.map_or(0, |caller| caller.hops + 1) })
}

/// Whether a body calls a function or method of this name; `(tool.run)(…)` calls one that a field holds.
fn calls(body: &str, function: &str) -> bool {
    let name = function.rsplit("::").next().unwrap_or(function);
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    body.match_indices(name).any(|(at, _)| {
        let rest = &body[at + name.len()..];
        !body[..at].ends_with(is_part) && ["(", ")(", "::<"].iter().any(|open| rest.starts_with(open))
    })
}

/// The body of a function, or of a method of the type that is named before it. Formatted code ends it at its indentation.
fn body_of<'a>(source: &'a str, function: &str) -> Option<&'a str> {
    let (owner, name) = function.rsplit_once("::").unwrap_or(("", function));
    let is_owner = |line: &str| line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == owner);
    let mut in_owner = owner.is_empty();
    let mut at = 0;
    for line in source.split_inclusive('\n') {
        if !owner.is_empty() && (line.starts_with("impl") || line.contains("trait ") && !line.starts_with(' ')) {
            in_owner = is_owner(line);
        }
        let is_named = ["(", "<"].iter().any(|open| line.contains(&format!("fn {name}{open}")));
        if in_owner && is_named {
            let indentation = line.len() - line.trim_start().len();
            let end = source[at..].find(&format!("\n{}}}\n", " ".repeat(indentation)));
            let whole = &source[at..end.map_or(source.len(), |end| at + end)];
            // Without the signature, which has the function's own name. A declaration has no body.
            return Some(whole.split_once("{\n").map_or("", |(_, body)| body));
        }
        at += line.len();
    }
    None
}

/// Functions that ARCHITECTURE.md names elsewhere.
#[test]
fn functions_named_in_architecture_exist() {
    let sources = super::product_files();
    let page = fs::read_to_string(shell::root().join("ARCHITECTURE.md")).unwrap();
    let is_function = |name: &&str| {
        let words = name.split_once("::");
        words.is_some_and(|(owner, name)| {
            owner.starts_with(char::is_uppercase) && name.chars().all(|c| c.is_lowercase() || c == '_')
        })
    };
    let mut checked = 0;
    for function in in_backticks(&page).filter(is_function) {
        let exists = sources.iter().any(|(_, text)| body_of(text, function).is_some());
        assert!(exists, "ARCHITECTURE.md names {function}, which does not exist");
        checked += 1;
    }
    assert!(checked >= 25, "ARCHITECTURE.md names {checked} functions");
}

#[test]
fn bodies_are_found_by_type_and_name() {
    let source = "fn go() {\n    a();\n}\nimpl Other {\n    fn go() {}\n}\nimpl Port for Own {\n    fn go<T>(\n    ) {\n        b();\n    }\n}\n";
    assert_eq!(body_of(source, "go").map(str::trim), Some("a();"));
    assert_eq!(body_of(source, "Own::go").map(str::trim), Some("b();"));
    assert_eq!(body_of(source, "Wrong::go"), None);
}

#[test]
fn calls_are_found_by_whole_names() {
    assert!(calls("self.go(1)", "Own::go") && calls("(tool.go)(1)", "go") && calls("go::<u8>(1)", "go"));
    assert!(!calls("let_go(1)", "go") && !calls("going(1)", "go") && !calls("// go, then", "go"));
}

#[test]
fn steps_without_a_call_are_reported() {
    let step = |body: &str, hops| Step { function: "first", body: body.to_owned(), hops };
    let row = |via: &str| format!("| 3 | `core/src/index/publish.rs` | `publish` | {via} |");
    let hops = |steps: &[Step<'_>], row: &str| step_after(steps, row).map(|step| step.hops);
    let steps = [step("publish()", 1), step("other()", 2)];
    assert_eq!(hops(&steps, &row("via step 1: links")), Ok(2));
    assert_eq!(hops(&steps, &row("via a callback: links")), Ok(3));
    assert_eq!(hops(&steps, &row("via step 2: links")), Err("first does not call publish".to_owned()));
    assert_eq!(hops(&steps, &row("links")), Err("first does not call publish".to_owned()));
    assert!(hops(&steps, "| 3 | `core/src/index/publish.rs` | `no_such` | links |").is_err());
}

/// The table of limits in CONTRIBUTING.md names each file with a limit, or a folder above it.
#[test]
fn files_with_limits_are_in_contributing() {
    let page = fs::read_to_string(shell::root().join("CONTRIBUTING.md")).unwrap();
    let table = page.split("\n## Where limits are set\n").nth(1).expect("the heading of the table");
    let table = table.split("\n## ").next().unwrap_or_default();
    let named: Vec<&str> = in_backticks(table).filter(|name| name.starts_with("crates/")).collect();
    let mut checked = 0;
    for (path, text) in super::product_files().into_iter().filter(|(path, _)| !path.contains("test")) {
        if super::without_tests(&text).contains("const MAX_") {
            let is_named = |name: &&str| path == **name || name.ends_with('/') && path.starts_with(*name);
            assert!(named.iter().any(is_named), "{path} has a limit; CONTRIBUTING.md does not say where it is set");
            checked += 1;
        }
    }
    assert!(checked >= 100, "{checked} files with limits");
}

/// The last column of the tables of attacks names tests: functions, files by the end of their path without `src/`, or
/// scripts in `tests/explorer`. The table of campaigns names commands instead.
#[test]
fn tests_named_in_security_exist() {
    let sources = rust_files(&["crates"]);
    let page = fs::read_to_string(shell::root().join("SECURITY.md")).unwrap();
    let attacks = page.split("## Tested attacks").nth(1).expect("the heading of the tables");
    let (campaigns, attacks) = attacks.split_once("\n### ").expect("the first table of attacks");
    assert!(campaigns.contains("| campaign | command |"));
    let mut checked = 0;
    for row in attacks.lines().filter(|line| line.starts_with("| ") && !line.ends_with("| test |")) {
        let tests = row.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default();
        for name in in_backticks(tests) {
            let is_there = if name.ends_with(".rs") {
                let end = format!("/{name}");
                sources.iter().any(|(path, _)| path.ends_with(&end) || path.replace("/src/", "/").ends_with(&end))
            } else if name.ends_with(".mjs") {
                shell::root().join("tests/explorer").join(name).exists()
            } else if name.contains('/') {
                shell::root().join("crates").join(name).exists()
            } else {
                let function = format!("fn {name}(");
                sources.iter().any(|(_, text)| text.contains(&function))
            };
            assert!(
                is_there,
                "SECURITY.md names the test `{name}`, which does not exist; name the test that replaced it"
            );
            checked += 1;
        }
    }
    assert!(checked >= 60, "SECURITY.md names {checked} tests");
}

/// A cell of docs/troubleshooting.md that is one phrase in backticks is a message; `…` stands for what varies.
#[test]
fn messages_in_troubleshooting_exist() {
    let sources: String = super::product_files().into_iter().map(|(_, text)| text).collect();
    let sources = sources.split("\\\n").map(str::trim_start).collect::<String>();
    let page = fs::read_to_string(shell::root().join("docs/troubleshooting.md")).unwrap();
    let cells = page.lines().filter(|line| line.starts_with('|')).flat_map(|line| line.split('|').map(str::trim));
    let mut checked = 0;
    for message in cells.filter_map(|cell| cell.strip_prefix('`')?.strip_suffix('`')) {
        if message.contains('`') || !message.contains(' ') {
            continue;
        }
        for part in message.split('…').map(str::trim) {
            assert!(
                sources.contains(part),
                "docs/troubleshooting.md has the message `{message}`, but no source file has `{part}`; update the page"
            );
        }
        checked += 1;
    }
    assert!(checked >= 40, "docs/troubleshooting.md has {checked} messages");
}

fn in_backticks(text: &str) -> impl Iterator<Item = &str> {
    // Fenced blocks are an even number of empty spans, so the odd pieces are still the spans.
    text.split('`').skip(1).step_by(2).filter(|span| !span.is_empty() && !span.contains('\n'))
}
