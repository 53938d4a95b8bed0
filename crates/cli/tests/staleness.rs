//! Real documentation and its real history: which pages lag behind their sources, against labels that were taken from the
//! original repositories. The history is rebuilt from the times of each file's first and last commit.
//!
//! The data is not in the repository. `QUIPU_DATA` names the folder it was unpacked to; without it nothing is compared.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "a test that reads its data")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use quipu_testkit::real_data;
use serde_json::Value;

/// A page, and the label of each of its sources.
type Labels = BTreeMap<String, BTreeMap<String, String>>;

#[test]
fn stale_japanese_translations_match_the_labels() {
    let Some(set) = set("k8s-en-ja") else { return };
    let counts = compare(&set);
    assert_eq!(counts, BTreeMap::from([("fresh", 374), ("stale", 171), ("untracked", 27)]));
}

#[test]
fn stale_design_pages_match_the_labels() {
    let Some(set) = set("ubp-docs") else { return };
    let counts = compare(&set);
    assert!(counts["stale"] > 0 && counts["fresh"] > 0 && counts["untracked"] > 0, "{counts:?}");
}

/// Builds the history, asks the program, and compares page by page. Gives how many pages are at each level.
fn compare(set: &Path) -> BTreeMap<&'static str, usize> {
    let labels = labels(set);
    let folder = tempfile::tempdir().unwrap();
    build(folder.path(), set, &labels);
    let output =
        Command::new(env!("CARGO_BIN_EXE_quipu")).args(["stale", "--json"]).arg(folder.path()).output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["warnings"], serde_json::json!([]));
    let refs = |page: &Value| -> BTreeSet<String> {
        page["refs"].as_array().unwrap().iter().map(|source| source["path"].as_str().unwrap().to_owned()).collect()
    };
    let stale: BTreeMap<&str, BTreeSet<String>> =
        answer["pages"].as_array().unwrap().iter().map(|page| (page["path"].as_str().unwrap(), refs(page))).collect();
    let unseen: BTreeSet<&str> =
        answer["never_seen"].as_array().unwrap().iter().map(|missing| missing["path"].as_str().unwrap()).collect();
    let mut counts = BTreeMap::new();
    for (page, sources) in &labels {
        let labelled = |label: &str| -> BTreeSet<String> {
            sources.iter().filter(|(_, other)| *other == label).map(|(path, _)| path.clone()).collect()
        };
        let expected: BTreeSet<String> = labelled("stale");
        assert_eq!(stale.get(page.as_str()).cloned().unwrap_or_default(), expected, "{page}");
        // A source that was never in the history: unknown.
        let is_unseen = !labelled("source_missing").is_empty();
        assert_eq!(unseen.contains(page.as_str()), is_unseen, "{page}");
        let level = if !expected.is_empty() {
            "stale"
        } else if is_unseen {
            "untracked"
        } else {
            "fresh"
        };
        *counts.entry(level).or_default() += 1;
    }
    assert_eq!(answer["counts"]["fresh"].as_u64(), counts.get("fresh").map(|count| *count as u64));
    counts
}

fn set(name: &str) -> Option<PathBuf> {
    let set = real_data()?.join(format!("vault-{name}/vault-{name}"));
    if !set.is_dir() {
        quipu_testkit::skip(&format!("QUIPU_DATA has no vault-{name}"));
        return None;
    }
    Some(set)
}

fn rows(file: &Path) -> (Vec<String>, Vec<Vec<String>>) {
    let text = std::fs::read_to_string(file).unwrap();
    let mut lines = text.lines().map(|line| line.split('\t').map(str::to_owned).collect::<Vec<_>>());
    (lines.next().unwrap(), lines.collect())
}

fn labels(set: &Path) -> Labels {
    let (_, rows) = rows(&set.join("staleness.tsv"));
    let mut labels = Labels::new();
    for row in rows {
        labels
            .entry(row[0].clone())
            .or_default()
            .insert(row[1].trim_end_matches('/').to_owned(), row.last().unwrap().clone());
    }
    labels
}

/// Every file as it was first and as it was last, at those times, in one stream to git.
fn build(folder: &Path, set: &Path, labels: &Labels) {
    let (_, history) = rows(&set.join("history.tsv"));
    let first: BTreeMap<&str, i64> = history.iter().map(|row| (row[0].as_str(), row[2].parse().unwrap())).collect();
    let (columns, staleness) = rows(&set.join("staleness.tsv"));
    let column = |name: &str| columns.iter().position(|column| column == name).unwrap();
    let mut commits: BTreeMap<i64, BTreeMap<String, String>> = BTreeMap::new();
    let mut put = |path: &str, last: i64, text: &str| {
        // Of some sources only the last commit is known.
        let begun = first.get(path).copied().unwrap_or(0).min(last);
        if begun < last {
            commits.entry(begun).or_default().insert(path.to_owned(), format!("{text}At first.\n"));
        }
        commits.entry(last).or_default().insert(path.to_owned(), format!("{text}At last.\n"));
    };
    let mut taken_back = Vec::new();
    for row in &staleness {
        let refs: Vec<&str> = labels[&row[0]].keys().map(String::as_str).collect();
        let page = format!("---\nsource_refs: {}\n---\n", serde_json::to_string(&refs).unwrap());
        let page_last: i64 = row[column("doc_last_commit")].parse().unwrap();
        put(&row[0], page_last, &page);
        if let Ok(last) = row[column("source_last_commit")].parse() {
            // Changed since, and fresh all the same: the change was taken back. Two pages of the Kubernetes docs are so.
            if last > page_last && row.last().unwrap() == "fresh" {
                taken_back.push((row[1].clone(), first[row[1].as_str()], page_last + 1, last));
                continue;
            }
            // A source may be a page itself, of another language for one: then it is put as that.
            if !labels.contains_key(&row[1]) {
                put(&row[1], last, "");
            }
        }
    }
    for (path, begun, changed, back) in taken_back {
        for (time, text) in [(begun, "At last.\n"), (changed, "Tried.\n"), (back, "At last.\n")] {
            commits.entry(time).or_default().insert(path.clone(), text.to_owned());
        }
    }
    let mut stream = String::new();
    for (time, files) in &commits {
        stream += &format!("commit refs/heads/main\ncommitter t <t@example.com> {time} +0000\ndata 1\nx\n");
        for (path, text) in files {
            stream += &format!("M 100644 inline {path}\ndata {}\n{text}\n", text.len());
        }
    }
    let git = |arguments: &[&str], input: &str| {
        let mut child = Command::new("git").current_dir(folder).args(arguments).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success(), "git {arguments:?}");
    };
    git(&["init", "-q", "-b", "main"], "");
    git(&["fast-import", "--quiet"], &stream);
    git(&["reset", "-q", "--hard", "main"], "");
}
