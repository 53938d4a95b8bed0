//! Sources and histories that would take all time or memory, and ignore files that lead elsewhere.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quipu_core::model::VaultPath;
use quipu_core::ports::{SourceStatus, SourcedNote, Sources, SystemClock};
use quipu_core::staleness::NOT_READ;
use quipu_vault::{FolderSources, GitOptions};

use crate::sources::{TestRepository, git_that, parse};

fn with_patience(desk: &TestRepository, milliseconds: u64) -> FolderSources {
    let patience = Duration::from_millis(milliseconds);
    FolderSources::new(desk.root(), Arc::new(SystemClock)).with_git(GitOptions { patience, ..GitOptions::default() })
}

/// A file without content, which takes no space on the disk.
fn write_sparse(file: &Path, bytes: u64) {
    std::fs::File::create(file).unwrap().set_len(bytes).unwrap();
}

fn make_pipe(file: &Path) {
    let made = std::process::Command::new("mkfifo").arg(file).status().unwrap();
    assert!(made.success());
}

#[test]
fn ignore_files_that_are_pipes_or_links_are_not_opened() {
    let desk = TestRepository::with_vault("repo/docs");
    std::fs::rename(desk.root().join(".git"), desk.root().join("repo/.git")).unwrap();
    let vault = desk.root().join("repo/docs");
    desk.steps(
        "write outside *.rs\nwrite .gitignore *\nwrite repo/.git/info/exclude x*\nwrite repo/docs/.gitignore y*\n\
         write repo/docs/doc.md d\nwrite repo/docs/linked/a.rs 1\nwrite repo/docs/piped/a.rs 1\nwrite repo/docs/piped/x.rs 1\n\
         write repo/docs/piped/y.rs 1",
    );
    std::os::unix::fs::symlink(desk.root().join("outside"), vault.join("linked/.gitignore")).unwrap();
    make_pipe(&vault.join("piped/.gitignore"));
    make_pipe(&vault.join(".ignore"));
    let (sender, named) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let sources = FolderSources::new(&vault, Arc::new(SystemClock));
        sender.send(sources.versions(&parse(&["linked", "piped", "**"])))
    });
    let named = named.recv_timeout(Duration::from_secs(30)).expect("a pipe was opened");
    let paths: Vec<&str> = named.iter().map(|version| version.path.as_str()).collect();
    // `linked/.gitignore` is a file to compare like any other; the pipes are none.
    assert_eq!(paths, [".gitignore", "doc.md", "linked/.gitignore", "linked/a.rs", "piped/a.rs"]);
}

#[test]
fn git_that_dies_is_not_treated_as_the_end_of_the_history() {
    let mut desk = TestRepository::new();
    desk.steps("write doc.md d\nwrite a.rs 1\ncommit 1");
    for day in 2..60 {
        desk.steps(&format!("write other.rs {day}\ncommit {day}"));
    }
    desk.steps("write a.rs 2\ncommit 60");
    for dies in ["exit 3", "git \"$@\" | head -c 1000; kill -9 $$"] {
        let program = git_that(&desk, &format!("case \" $* \" in *' log '*) {dies};; esac"));
        desk.sources = FolderSources::new(desk.root(), Arc::new(SystemClock))
            .with_git(GitOptions { program, ..GitOptions::default() });
        for refs in [&["a.rs"][..], &["a.rs", "never.rs"]] {
            let traced = desk.trace(refs, &[]);
            let sources = &traced[..refs.len()];
            assert!(sources.iter().all(|source| !source.ends_with(": same") && !source.contains("day")), "{traced:?}");
            assert!(traced.iter().any(|line| line.contains("cannot be read to its end")), "{dies}: {traced:?}");
        }
    }
    git_that(&desk, "");
    assert_eq!(desk.trace(&["a.rs"], &[]), ["a.rs: changed day 60"], "the next call tries again");
}

#[test]
fn sparse_source_of_a_terabyte_is_unknown_and_delays_nothing() {
    for desk in [TestRepository::without_git(""), TestRepository::new()] {
        desk.steps("write doc.md d\nwrite a.rs 1");
        if desk.root().join(".git").exists() {
            desk.steps("commit 1");
        }
        write_sparse(&desk.root().join("big.bin"), 1 << 40);
        let started = Instant::now();
        let remembered = desk.remember(&["a.rs", "big.bin"]);
        assert!(remembered.iter().any(|version| version.path == "big.bin" && version.hash == NOT_READ));
        let traced = desk.trace(&["a.rs", "big.bin"], &remembered);
        assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
        assert_eq!(traced[..2], ["a.rs: same", "big.bin: unknown"]);
        assert_eq!(traced[2], "cannot compare \"big.bin\": a file with more than 256 MiB is not read");
    }
}

#[test]
fn sources_that_take_longer_than_one_call_are_read_by_the_next_ones() {
    const FILES: usize = 40;
    let mut desk = TestRepository::new();
    desk.steps("write doc.md d\nwrite src/a.rs 1");
    for n in 0..FILES {
        write_sparse(&desk.root().join(format!("src/{n}.bin")), 17 << 20);
    }
    desk.steps("commit 1");
    desk.sources = with_patience(&desk, 400);
    let mut calls = 1;
    let mut traced = desk.trace(&["src"], &[]);
    while traced.len() != FILES + 1 || !traced.iter().all(|line| line.ends_with(": same")) {
        assert!(calls < 200, "{traced:?}");
        calls += 1;
        traced = desk.trace(&["src"], &[]);
    }
    assert!(calls > 1, "the files are too small for this test");
}

/// A change of a file that is not among the first would otherwise leave the page fresh.
#[test]
fn sources_with_more_files_than_are_checked_are_unknown() {
    let desk = TestRepository::without_git("");
    for n in 0..2001 {
        desk.steps(&format!("write src/{n}.rs 1"));
    }
    let path = VaultPath::parse("doc.md").unwrap();
    let refs = parse(&["src"]);
    let remembered = desk.sources.versions(&refs);
    desk.steps("write src/999.rs 2");
    let traced = desk.sources.trace(&[SourcedNote { path: &path, refs, remembered: &remembered }]);
    assert!(traced.warnings[0].contains("more than 2000 files"), "{:?}", traced.warnings);
    let all = traced.notes[0].iter().find(|source| source.path == "src").expect("the reference itself");
    assert_eq!(all.status, SourceStatus::Unknown);
}

#[test]
fn patterns_of_all_notes_share_one_search_with_a_time_limit() {
    let desk = TestRepository::without_git("");
    for n in 0..3000 {
        desk.steps(&format!("write src/{}/{n}.rs 1", n % 100));
    }
    let path = VaultPath::parse("doc.md").unwrap();
    let note = |n: usize| SourcedNote { path: &path, refs: parse(&[&format!("**/x{n}*.rs")]), remembered: &[] };
    let notes: Vec<SourcedNote<'_>> = (0..5000).map(note).collect();
    let sources = with_patience(&desk, 300);
    let started = Instant::now();
    let traced = sources.trace(&notes);
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    assert!(traced.warnings[0].starts_with("cannot look at all files of "), "{:?}", traced.warnings);
    assert_eq!(traced.notes.last().unwrap()[0].status, SourceStatus::Unknown);
    assert_eq!(traced.notes[0][0].status, SourceStatus::NeverSeen);
}
