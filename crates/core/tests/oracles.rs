//! Real vaults and other people's parsers: what we read of thousands of files must agree with what they read.
//!
//! The data is not in the repository. `QUIPU_DATA` names the folder it was unpacked to; without it nothing is compared.
#![expect(clippy::disallowed_methods, reason = "a test that reads its data")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use quipu_core::model::{LinkSyntax, Value, fold};
use quipu_core::parse::{Parsed, parse};
use quipu_testkit::real_data;
use serde_json::Value as Json;

#[test]
fn every_file_of_every_vault_is_read_and_its_sections_cover_it() {
    let Some(data) = real_data() else { return };
    let mut files = 0;
    for vault in vaults(&data) {
        for path in markdown_files(&vault) {
            let text = read_text(&path);
            let parsed = parse(&text);
            let mut at = parsed.body_start;
            for section in &parsed.sections {
                assert_eq!(section.range.start, at, "{}", path.display());
                assert!(text.get(section.text_start..section.range.end).is_some(), "{}", path.display());
                at = section.range.end;
            }
            assert_eq!(at, text.len(), "{}", path.display());
            files += 1;
        }
    }
    assert!(files > 10_000, "only {files} files in {}", data.display());
}

#[test]
fn frontmatter_agrees_with_npm_yaml() {
    let Some(data) = real_data() else { return };
    let mut differences = Vec::new();
    let mut compared = 0;
    for oracle in files_below(&data.join("oracle-frontmatter"), "jsonl") {
        let vault_name = oracle.file_stem().unwrap().to_str().unwrap().to_owned();
        let vault = vault_folder(&data, &vault_name);
        for line in read_text(&oracle).lines() {
            let line: Json = serde_json::from_str(line).unwrap();
            let path = line["path"].as_str().unwrap();
            let parsed = parse(&read_text(&vault.join(path)));
            let is_broken = parsed.warnings.iter().any(|warning| warning.starts_with("the frontmatter"));
            let agrees =
                if line["ok"] == true { !is_broken && says_the_same(&parsed, &line["value"]) } else { is_broken };
            compared += 1;
            if !agrees {
                differences.push(format!(
                    "{vault_name}/{path}: {line}\n  we read {:?} {:?}",
                    parsed.properties, parsed.warnings
                ));
            }
        }
    }
    assert!(differences.is_empty(), "{} of {compared}:\n{}", differences.len(), differences.join("\n"));
    assert!(compared > 2000, "only {compared} compared");
}

#[test]
fn mappings_of_the_yaml_test_suite_are_read_right() {
    let Some(data) = real_data() else { return };
    let mut differences = Vec::new();
    let mut compared = 0;
    for line in read_text(&data.join("oracle-yaml/oracle-yaml/yaml-test-suite.jsonl")).lines() {
        let case: Json = serde_json::from_str(line).unwrap();
        let (id, yaml) = (case["id"].as_str().unwrap(), case["yaml"].as_str().unwrap());
        // A fence within would end the frontmatter.
        if yaml.lines().any(|line| line.starts_with("---") || line.starts_with("...")) {
            continue;
        }
        let json = case["json"].as_str().and_then(|json| serde_json::from_str::<Json>(json).ok());
        let parsed = parse(&format!("---\n{}{}---\n", yaml, if yaml.ends_with('\n') { "" } else { "\n" }));
        let is_broken = !parsed.warnings.is_empty();
        let agrees = match &json {
            _ if case["error"] == true => is_broken,
            Some(json @ Json::Object(_)) => !is_broken && says_the_same(&parsed, json),
            Some(Json::Null) | None => continue,
            // Lists and scalars are no frontmatter.
            Some(_) => is_broken,
        };
        compared += 1;
        if !agrees {
            differences.push(format!(
                "{id} {yaml:?}\n  json {json:?}\n  we read {:?} {:?}",
                parsed.properties, parsed.warnings
            ));
        }
    }
    assert!(differences.is_empty(), "{} of {compared}:\n{}", differences.len(), differences.join("\n"));
    assert!(compared > 150, "only {compared} compared");
}

#[test]
fn markdown_links_to_notes_agree_with_markdown_it() {
    let Some(data) = real_data() else { return };
    let mut differences = Vec::new();
    let mut compared = 0;
    for oracle in files_below(&data.join("oracle-mdlinks"), "tsv") {
        let vault_name = oracle.file_stem().unwrap().to_str().unwrap().to_owned();
        let vault = vault_folder(&data, &vault_name);
        let mut theirs: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in read_text(&oracle).lines().skip(1) {
            let columns: Vec<_> = line.split('\t').collect();
            let [file, _, destination, resolved] = columns[..] else { panic!("{line:?}") };
            // The oracle also finds notes without their extension; a Markdown link names the file.
            let written = destination.split(['#', '?']).next().unwrap_or_default().to_lowercase();
            let names_note = !resolved.is_empty() && (written.ends_with(".md") || written.ends_with(".markdown"));
            theirs.entry(file.to_owned()).or_default().extend(names_note.then(|| resolved.to_owned()));
        }
        for (file, theirs) in theirs {
            let parsed = parse(&read_text(&vault.join(&file)));
            let markdown = parsed.links.iter().filter(|link| link.syntax == LinkSyntax::Markdown);
            let ours: Vec<_> = markdown.filter_map(|link| resolve(&vault, &file, &link.target)).collect();
            // To markdown-it, `[[x]]` with a definition of `x` is a reference link in brackets.
            let is_wikilink = |path: &String| {
                let stem = path.strip_suffix(".md").unwrap_or(path);
                let mut wikilinks = parsed.links.iter().filter(|link| link.syntax != LinkSyntax::Markdown);
                wikilinks.any(|link| stem.ends_with(link.target.trim_start_matches(['.', '/'])))
            };
            compared += theirs.len();
            let mut only_theirs = theirs;
            let mut only_ours = ours;
            only_ours.retain(|path| match only_theirs.iter().position(|theirs| theirs == path) {
                Some(at) => {
                    only_theirs.remove(at);
                    false
                }
                None => true,
            });
            only_theirs.retain(|path| !is_wikilink(path));
            let agrees = only_ours.is_empty() && only_theirs.is_empty();
            if !agrees {
                differences
                    .push(format!("{vault_name}/{file}\n  only theirs {only_theirs:?}\n  only ours {only_ours:?}"));
            }
        }
    }
    assert!(differences.is_empty(), "{} of {compared}:\n{}", differences.len(), differences.join("\n"));
    assert!(compared > 100, "only {compared} compared");
}

/// Links that the others see and we do not, and why.
const NOT_LINKS: [(&str, &str, &str); 1] = [(
    "Test Data/comments_markdown_style.md",
    "Test Data/comments_html_style.md",
    "it stands in an Obsidian comment, between `%%` and `%%`",
)];

#[test]
fn every_link_that_two_other_readers_agree_on_is_found() {
    let Some(data) = real_data() else { return };
    let mut missing = Vec::new();
    let mut compared = 0;
    for oracle in files_below(&data.join("oracle-links"), "tsv") {
        let Some(name) = oracle.file_name().and_then(|name| name.to_str()?.strip_suffix(".consensus.tsv")) else {
            continue;
        };
        // `vault__folder__folder` is the part of a vault that the oracle saw.
        let mut parts = name.split("__");
        let vault = parts.next().map(|vault| vault_folder(&data, vault)).expect("a name has a first part");
        let root = parts.fold(vault, |folder, part| folder.join(part));
        let mut edges: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in read_text(&oracle).lines().skip(1) {
            let (source, target) = line.split_once('\t').expect("two columns");
            edges.entry(source.to_owned()).or_default().push(target.to_owned());
        }
        for (source, targets) in edges {
            let parsed = parse(&read_text(&root.join(&source)));
            let named: Vec<_> = parsed.links.iter().map(|link| stem(&link.target)).collect();
            compared += targets.len();
            let is_no_link = |target: &String| NOT_LINKS.iter().any(|(from, to, _)| (*from, *to) == (&source, target));
            let not_named = targets.iter().filter(|target| named.contains(&stem(target)) == is_no_link(target));
            missing.extend(not_named.map(|target| format!("{name}: {source} -> {target}")));
        }
    }
    assert!(missing.is_empty(), "{} of {compared}:\n{}", missing.len(), missing.join("\n"));
    assert!(compared > 25_000, "only {compared} compared");
}

/// The last part of a path without `.md`, in the form in which names are compared.
fn stem(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    fold(name.strip_suffix(".md").unwrap_or(name))
}

/// The file a relative path leads to, as the oracle resolved it: from the file's folder, or from the root.
fn resolve(vault: &Path, file: &str, target: &str) -> Option<String> {
    let folder = if target.starts_with('/') { "" } else { file.rsplit_once('/').map_or("", |(folder, _)| folder) };
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    let path = parts.join("/");
    vault.join(&path).is_file().then_some(path)
}

/// Whether title, tags and properties together say what the oracle's object says.
fn says_the_same(parsed: &Parsed, json: &Json) -> bool {
    let Json::Object(object) = json else { return json.is_null() && parsed.properties.is_empty() };
    let others: Vec<_> = object.iter().filter(|(key, _)| *key != "title" && *key != "tags").collect();
    let same_properties = others.len() == parsed.properties.len()
        && parsed.properties.iter().all(|(key, value)| object.get(key).is_some_and(|json| equal(value, json)));
    let title = object.get("title").and_then(|title| match title {
        Json::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Json::Number(number) => Some(number.to_string()),
        _ => None,
    });
    let tags: Vec<String> = match object.get("tags") {
        Some(Json::Array(items)) => items.iter().filter(|item| !item.is_null()).map(plain).collect(),
        Some(Json::String(text)) => text.split([',', ' ', '\n']).map(str::to_owned).collect(),
        Some(other) if !other.is_null() => vec![plain(other)],
        _ => Vec::new(),
    };
    let same_tags = tags
        .iter()
        .map(|tag| tag.trim().trim_start_matches('#').to_lowercase())
        .filter(|tag| !tag.is_empty())
        .all(|tag| parsed.tags.iter().any(|ours| ours.name.to_lowercase() == tag));
    same_properties && same_tags && parsed.title == title
}

fn plain(json: &Json) -> String {
    json.as_str().map_or_else(|| json.to_string(), str::to_owned)
}

fn equal(value: &Value, json: &Json) -> bool {
    match (value, json) {
        (Value::Null, Json::Null) => true,
        (Value::Bool(ours), Json::Bool(theirs)) => ours == theirs,
        (Value::Int(ours), Json::Number(theirs)) => theirs.as_f64() == Some(*ours as f64),
        (Value::Float(ours), Json::Number(theirs)) => theirs.as_f64() == Some(*ours),
        (Value::Text(ours), Json::String(theirs)) => ours == theirs,
        (Value::List(ours), Json::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| equal(ours, theirs))
        }
        (Value::Map(ours), Json::Object(theirs)) => {
            ours.len() == theirs.len()
                && ours.iter().all(|(key, value)| theirs.get(key).is_some_and(|json| equal(value, json)))
        }
        _ => false,
    }
}

fn vaults(data: &Path) -> Vec<PathBuf> {
    let names = folder_entries(data).into_iter().filter_map(|path| path.file_name()?.to_str().map(str::to_owned));
    let mut vaults: Vec<_> = names
        .filter(|name| name.starts_with("vault-"))
        .map(|name| data.join(&name).join(&name).join("vault"))
        .collect();
    vaults.sort();
    vaults
}

fn vault_folder(data: &Path, name: &str) -> PathBuf {
    data.join(format!("vault-{name}/vault-{name}/vault"))
}

fn markdown_files(folder: &Path) -> Vec<PathBuf> {
    files_below(folder, "md")
}

fn files_below(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in folder_entries(folder) {
        if path.is_dir() {
            found.extend(files_below(&path, extension));
        } else if path.extension().is_some_and(|it| it == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn folder_entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.expect("a folder that was opened can be listed").path()).collect()
}

fn read_text(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    String::from_utf8_lossy(&bytes).into_owned()
}
