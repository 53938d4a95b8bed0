//! What became of a note's sources, with git and without, case by case.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quipu_core::model::{SourceVersion, VaultPath};
use quipu_core::ports::{SourceStatus, SourcedNote, Sources, SystemClock};
use quipu_core::staleness::SourceRef;
use quipu_vault::{FolderSources, GitOptions};
use tempfile::TempDir;

const DAY_NS: i64 = 86_400_000_000_000;
/// Day 0 of every history here.
const START_S: i64 = 1_700_000_000;

/// A folder with a repository, and the vault in it.
pub(crate) struct TestRepository {
    folder: TempDir,
    pub(crate) sources: FolderSources,
}

impl TestRepository {
    /// A vault that is the repository.
    pub(crate) fn new() -> Self {
        Self::with_vault("")
    }

    /// A vault in a folder of the repository.
    pub(crate) fn with_vault(vault: &str) -> Self {
        let desk = Self::without_git(vault);
        desk.git(&["init", "-q", "-b", "main"], 0);
        desk
    }

    pub(crate) fn without_git(vault: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let vault = folder.path().join(vault);
        std::fs::create_dir_all(&vault).unwrap();
        let sources = FolderSources::new(&vault, Arc::new(SystemClock));
        Self { folder, sources }
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    /// Does some steps, one a line: `write PATH TEXT`, `delete PATH`, `move FROM TO`, `commit DAY`, `git ARGUMENTS`.
    pub(crate) fn steps(&self, steps: &str) -> &Self {
        for line in steps.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let words: Vec<&str> = line.split(' ').collect();
            let path = |at: usize| self.root().join(words[at]);
            match words[0] {
                "write" => {
                    std::fs::create_dir_all(path(1).parent().unwrap()).unwrap();
                    std::fs::write(path(1), words[2..].join(" ")).unwrap();
                }
                "delete" => std::fs::remove_file(path(1)).unwrap(),
                "move" => std::fs::rename(path(1), path(2)).unwrap(),
                "commit" => {
                    let day = words[1].parse().unwrap();
                    self.git(&["add", "-A"], day);
                    self.git(&["commit", "-q", "-m", "x"], day);
                }
                "git" => self.git(&words[2..], words[1].parse().unwrap()),
                other => panic!("{other}"),
            }
        }
        self
    }

    fn git(&self, arguments: &[&str], day: i64) {
        git(self.root(), arguments, day);
    }

    pub(crate) fn remember(&self, refs: &[&str]) -> Vec<SourceVersion> {
        self.sources.versions(&parse(refs))
    }

    /// What became of the sources of the note `doc.md`: `path: what`, and warnings last.
    pub(crate) fn trace(&self, refs: &[&str], remembered: &[SourceVersion]) -> Vec<String> {
        let path = VaultPath::parse("doc.md").unwrap();
        let note = SourcedNote { path: &path, refs: parse(refs), remembered };
        let traced = self.sources.trace(std::slice::from_ref(&note));
        let sources = traced.notes[0].iter().map(|source| format!("{}: {}", source.path, said(source.status)));
        sources.chain(traced.warnings).collect()
    }
}

fn git(folder: &Path, arguments: &[&str], day: i64) -> String {
    let time = format!("{} +0000", START_S + day * 86_400);
    let mut command = Command::new("git");
    command.current_dir(folder).args([
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example.com",
        "-c",
        "protocol.file.allow=always",
    ]);
    command.args(arguments).env("GIT_AUTHOR_DATE", &time).env("GIT_COMMITTER_DATE", &time);
    let output = command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

pub(crate) fn parse(refs: &[&str]) -> Vec<SourceRef> {
    refs.iter().map(|text| SourceRef::parse(text).unwrap()).collect()
}

fn said(status: SourceStatus) -> String {
    let day = |at_ns: i64| match (at_ns - START_S * 1_000_000_000) / DAY_NS {
        day @ 0..365 => format!("day {day}"),
        // Only a file's own time is later than the history of these tests.
        _ => "just now".to_owned(),
    };
    match status {
        SourceStatus::Same => "same".to_owned(),
        SourceStatus::Changed { at_ns } => format!("changed {}", day(at_ns)),
        SourceStatus::Deleted { at_ns } => at_ns.map_or("gone".to_owned(), |at_ns| format!("gone {}", day(at_ns))),
        SourceStatus::NeverSeen => "never seen".to_owned(),
        SourceStatus::Unknown => "unknown".to_owned(),
    }
}

#[test]
fn with_git_a_note_is_compared_with_the_commit_that_last_changed_it() {
    const BOTH: &str = "write doc.md d\nwrite a.rs 1\ncommit 1\n";
    for (what, steps, expected) in [
        ("nothing happened", "", "a.rs: same"),
        ("the source was committed later", "write a.rs 2\ncommit 5", "a.rs: changed day 5"),
        ("and again: the first change counts", "write a.rs 2\ncommit 5\nwrite a.rs 3\ncommit 9", "a.rs: changed day 5"),
        ("and back: it is what it was", "write a.rs 2\ncommit 5\nwrite a.rs 1\ncommit 6", "a.rs: same"),
        ("the note followed", "write a.rs 2\ncommit 5\nwrite doc.md e\ncommit 6", "a.rs: same"),
        ("both in one commit", "write a.rs 2\nwrite doc.md e\ncommit 6", "a.rs: same"),
        ("the source is being edited", "write a.rs 2", "a.rs: changed just now"),
        ("edited after a committed change", "write a.rs 2\ncommit 5\nwrite a.rs 3", "a.rs: changed day 5"),
        ("a committed change was taken back on disk", "write a.rs 2\ncommit 5\nwrite a.rs 1", "a.rs: same"),
        ("an unchanged file was saved again", "write a.rs 1", "a.rs: same"),
        ("staged, not committed", "write a.rs 2\ngit 2 add -A", "a.rs: changed just now"),
        ("deleted on disk", "delete a.rs", "a.rs: gone"),
        ("deleted and committed", "delete a.rs\ncommit 4", "a.rs: gone day 4"),
        ("deleted, then the note changed", "delete a.rs\ncommit 4\nwrite doc.md e\ncommit 5", "a.rs: gone day 4"),
        ("deleted and back", "delete a.rs\ncommit 4\nwrite a.rs 1\ncommit 5", "a.rs: same"),
        ("renamed away", "move a.rs b.rs\ncommit 4", "a.rs: gone day 4"),
        (
            "the note was only renamed",
            "write a.rs 2\ncommit 3\nmove doc.md x.md\ncommit 4\nmove x.md doc.md\ncommit 5",
            "a.rs: changed day 3",
        ),
    ] {
        let desk = TestRepository::new();
        desk.steps(BOTH).steps(steps);
        assert_eq!(desk.trace(&["a.rs"], &[]), [expected], "{what}");
    }
}

#[test]
fn note_with_uncommitted_edits_is_compared_with_the_index() {
    for (what, before, after, expected) in [
        ("a new note", "write a.rs 1\ncommit 1\nwrite doc.md d", "", "a.rs: same"),
        (
            "the source changes under it",
            "write a.rs 1\ncommit 1\nwrite doc.md d",
            "write a.rs 2",
            "a.rs: changed just now",
        ),
        (
            "an edited note has seen what was there",
            "write a.rs 1\nwrite doc.md d\ncommit 1\nwrite a.rs 2\ncommit 2\nwrite doc.md e",
            "",
            "a.rs: same",
        ),
        (
            "and not what comes",
            "write a.rs 1\nwrite doc.md d\ncommit 1\nwrite doc.md e",
            "write a.rs 2\ngit 3 commit -q -m x a.rs",
            "a.rs: changed just now",
        ),
        (
            "an ignored note",
            "write .gitignore doc.md\nwrite a.rs 1\nwrite doc.md d\ncommit 1",
            "delete a.rs",
            "a.rs: gone",
        ),
        (
            "an ignored source",
            "write .gitignore a.rs\nwrite doc.md d\nwrite a.rs 1\ncommit 1",
            "write a.rs 2",
            "a.rs: changed just now",
        ),
        (
            "an ignored source, untouched",
            "write .gitignore a.rs\nwrite doc.md d\nwrite a.rs 1\ncommit 1",
            "",
            "a.rs: same",
        ),
        ("a repository without commits", "write doc.md d\nwrite a.rs 1", "write a.rs 2", "a.rs: changed just now"),
    ] {
        let desk = TestRepository::new();
        desk.steps(before);
        let remembered = desk.remember(&["a.rs"]);
        desk.steps(after);
        assert_eq!(desk.trace(&["a.rs"], &remembered), [expected], "{what}");
    }
}

#[test]
fn no_program_that_the_repository_names_is_run() {
    let desk = TestRepository::new();
    let marks = TempDir::new().unwrap();
    let marking = |name: &str| format!("touch '{}'; cat", marks.path().join(name).display());
    desk.steps("write doc.md d\nwrite a.rs 1\nwrite b.rs 1\ncommit 1\nwrite b.rs 2\ncommit 2");
    let missing = git(desk.root(), &["rev-parse", "HEAD~1:b.rs"], 2);
    desk.steps("write .gitattributes *.rs filter=x diff=y");
    for (name, value) in [
        ("filter.x.clean", marking("clean")),
        ("filter.x.smudge", marking("smudge")),
        ("filter.x.process", marking("process")),
        ("diff.y.textconv", marking("textconv")),
        ("diff.y.command", marking("diff")),
        ("diff.external", marking("external")),
        ("core.fsmonitor", marking("fsmonitor")),
        ("core.fsmonitorHookVersion", "2".to_owned()),
        ("core.pager", marking("pager")),
        ("core.sshCommand", marking("ssh")),
        ("core.askPass", marking("askpass")),
        ("core.hooksPath", marks.path().display().to_string()),
        ("gpg.program", marking("gpg")),
        ("log.showSignature", "true".to_owned()),
        // A missing object would be fetched from the remote.
        ("extensions.partialClone", "evil".to_owned()),
        ("remote.evil.promisor", "true".to_owned()),
        ("remote.evil.url", format!("ext::{}", marking("remote"))),
        ("protocol.ext.allow", "always".to_owned()),
    ] {
        desk.git(&["config", name, &value], 2);
    }
    let object = desk.root().join(".git/objects").join(&missing[..2]).join(&missing[2..]);
    std::fs::remove_file(object).unwrap();
    std::fs::write(desk.root().join("a.rs"), "2").unwrap();
    assert_eq!(desk.trace(&["a.rs"], &[]), ["a.rs: changed just now"]);
    drop(desk.trace(&["b.rs"], &[]));
    let ran: Vec<_> = std::fs::read_dir(marks.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(ran.is_empty(), "the repository's programs were run: {ran:?}");
}

/// As Git LFS does with `lfs.extension.NAME.clean`.
#[test]
fn filter_of_the_user_is_not_run_since_it_may_run_what_the_repository_names() {
    let mut desk = TestRepository::new();
    let git_folder = desk.root().join(".git");
    desk.steps("write doc.md d\nwrite a.rs 1\nwrite .gitattributes *.rs filter=large\ncommit 1\nwrite a.rs 2");
    desk.git(&["config", "large.extension.x.clean", &format!("touch '{}'", git_folder.join("mark").display())], 1);
    let global = git_folder.join("global");
    let runs_it = "eval \"$(git config large.extension.x.clean)\"; cat";
    desk.git(&["config", "-f", global.to_str().unwrap(), "filter.large.clean", runs_it], 1);
    let program = git_that(&desk, &format!("export GIT_CONFIG_GLOBAL='{}'", global.display()));
    assert!(Command::new(&program).current_dir(desk.root()).args(["hash-object", "a.rs"]).status().unwrap().success());
    std::fs::remove_file(git_folder.join("mark")).expect("git itself runs it");
    desk.sources = FolderSources::new(desk.root(), Arc::new(SystemClock))
        .with_git(GitOptions { program, ..GitOptions::default() });
    drop(desk.trace(&["a.rs"], &[]));
    assert!(!git_folder.join("mark").exists(), "the command of the repository was run");
}

#[test]
fn file_that_git_stores_in_another_form_is_compared_without_its_filter() {
    // The pointer to `1`, as Git LFS writes it.
    let pointer = "version https://git-lfs.github.com/spec/v1\n\
                   oid sha256:6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b\nsize 1\n";
    let desk = TestRepository::new();
    desk.steps("write doc.md d\nwrite .gitattributes *.bin filter=lfs");
    std::fs::write(desk.root().join("a.bin"), pointer).unwrap();
    desk.steps("commit 1\nwrite a.bin 1");
    assert_eq!(desk.trace(&["a.bin"], &[]), ["a.bin: same"]);
    desk.steps("write a.bin 2");
    assert_eq!(desk.trace(&["a.bin"], &[]), ["a.bin: changed just now"]);

    // What another filter makes of it is unknown: the index has the baseline.
    let desk = TestRepository::new();
    desk.steps("write doc.md d\nwrite .gitattributes *.rs filter=secret\nwrite a.rs stored\nwrite b.rs 1\ncommit 1\nwrite a.rs 1");
    let remembered = desk.remember(&["a.rs", "b.rs"]);
    assert_eq!(desk.trace(&["a.rs", "b.rs"], &remembered), ["a.rs: same", "b.rs: same"]);
    desk.steps("write a.rs 2");
    assert_eq!(desk.trace(&["a.rs", "b.rs"], &remembered), ["a.rs: changed just now", "b.rs: same"]);
    desk.steps("write a.rs stored2\ncommit 5\nwrite a.rs 1");
    assert_eq!(desk.trace(&["a.rs", "b.rs"], &remembered), ["a.rs: changed day 5", "b.rs: same"]);
}

#[test]
fn without_git_the_index_has_the_baseline() {
    for (what, after, expected) in [
        ("nothing happened", "", &["a.rs: same", "src/b.rs: same", "typo.rs: never seen"][..]),
        ("changed", "write a.rs 2", &["a.rs: changed just now", "src/b.rs: same", "typo.rs: never seen"]),
        (
            "a new file in a folder",
            "write src/c.rs 1",
            &["a.rs: same", "src/b.rs: same", "src/c.rs: changed just now", "typo.rs: never seen"],
        ),
        ("gone", "delete src/b.rs", &["a.rs: same", "src/b.rs: gone", "typo.rs: never seen"]),
        ("the misspelt one appears", "write typo.rs 1", &["a.rs: same", "src/b.rs: same", "typo.rs: changed just now"]),
    ] {
        let desk = TestRepository::without_git("");
        desk.steps("write doc.md d\nwrite a.rs 1\nwrite src/b.rs 1");
        let refs = ["a.rs", "src/", "typo.rs"];
        let remembered = desk.remember(&refs);
        desk.steps(after);
        assert_eq!(desk.trace(&refs, &remembered), expected, "{what}");
    }
}

#[test]
fn folders_and_patterns_name_files() {
    const BASE: &str = "write doc.md d\nwrite src/a.rs 1\nwrite src/deep/b.rs 1\nwrite src/deep/c.ts 1\nwrite .gitignore out/\n\
                        write src/out/x.rs 1\nwrite app/[id]/page.tsx 1\ncommit 1\n";
    for (named, steps, expected) in [
        ("src", "", &["src/a.rs: same", "src/deep/b.rs: same", "src/deep/c.ts: same"][..]),
        ("src/**/*.rs", "write src/deep/b.rs 2\ncommit 3", &["src/a.rs: same", "src/deep/b.rs: changed day 3"]),
        ("src/*.rs", "write src/deep/b.rs 2\ncommit 3", &["src/a.rs: same"]),
        ("src/*.rs", "write src/new.rs 1\ncommit 3", &["src/a.rs: same", "src/new.rs: changed day 3"]),
        ("src/*.rs", "delete src/a.rs\ncommit 3", &["src/a.rs: gone day 3"]),
        ("src/deep/", "delete src/deep/b.rs", &["src/deep/b.rs: gone", "src/deep/c.ts: same"]),
        ("src/*.py", "", &["src/*.py: never seen"]),
        ("app/[id]/page.tsx", "write app/[id]/page.tsx 2\ncommit 4", &["app/[id]/page.tsx: changed day 4"]),
    ] {
        let desk = TestRepository::new();
        desk.steps(BASE).steps(steps);
        assert_eq!(desk.trace(&[named], &[]), expected, "{named} {steps}");
    }
}

#[test]
fn a_reference_is_looked_up_in_the_vault_and_then_in_the_repository() {
    let desk = TestRepository::with_vault("docs");
    desk.steps(
        "write docs/doc.md d\nwrite docs/near.rs 1\nwrite near.rs 1\nwrite src/far.rs 1\nwrite old.rs 1\ncommit 1",
    );
    desk.steps("write near.rs 2\nwrite src/far.rs 2\ndelete old.rs\ncommit 5");
    assert_eq!(
        desk.trace(&["near.rs", "src/far.rs", "old.rs"], &[]),
        ["near.rs: same", "old.rs: gone day 5", "src/far.rs: changed day 5"]
    );
}

#[test]
fn files_outside_the_vault_and_repository_are_never_read() {
    let outside = TempDir::new().unwrap();
    std::fs::write(outside.path().join("secret"), "s").unwrap();
    let desk = TestRepository::without_git("");
    desk.steps("write doc.md d\nwrite in/a.rs 1");
    std::os::unix::fs::symlink(outside.path(), desk.root().join("folder")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("secret"), desk.root().join("file")).unwrap();
    let refs = ["folder/secret", "folder/*", "file", "*/secret", "**"];
    let named: Vec<String> = desk.remember(&refs).into_iter().map(|version| version.path).collect();
    assert_eq!(named, ["doc.md", "file", "folder", "in/a.rs"], "links are named, as links");
    let remembered = desk.remember(&refs);
    std::fs::write(outside.path().join("secret"), "changed").unwrap();
    assert!(desk.trace(&refs[2..], &remembered).iter().all(|line| line.ends_with(": same")));
}

#[test]
fn baselines_are_right_for_every_shape_of_history() {
    // A change that came over a side branch, older than the note's and merged later.
    let desk = TestRepository::new();
    desk.steps(
        "write doc.md d\nwrite a.rs 1\ncommit 1\ngit 1 checkout -q -b side\nwrite a.rs 2\ncommit 2\ngit 2 checkout -q main\n\
         write doc.md e\ncommit 3\ngit 4 merge -q --no-ff -m m side",
    );
    assert_eq!(desk.trace(&["a.rs"], &[]), ["a.rs: changed day 2"]);

    // A merge that dropped the newer change of the note.
    let desk = TestRepository::new();
    desk.steps(
        "write doc.md d\nwrite a.rs 1\ncommit 1\ngit 1 checkout -q -b side\nwrite doc.md e\nwrite a.rs 2\ncommit 2\n\
         git 2 checkout -q main\nwrite x 1\ncommit 3\ngit 4 merge -q -s ours -m m side\nwrite a.rs 2\ncommit 5",
    );
    assert_eq!(desk.trace(&["a.rs"], &[]), ["a.rs: changed day 2"], "since the first commit, which the note is of");

    // Line endings that git keeps in another form.
    let desk = TestRepository::new();
    desk.steps(
        "write .gitattributes * text=auto\nwrite doc.md d\nwrite a.rs 1\ncommit 1\ngit 1 config core.autocrlf true",
    );
    std::fs::write(desk.root().join("a.rs"), "1\r\n").unwrap();
    desk.steps("write doc.md e\ncommit 2");
    std::fs::write(desk.root().join("a.rs"), "1\n").unwrap();
    assert_eq!(desk.trace(&["a.rs"], &[]), ["a.rs: same"]);
}

#[test]
fn clone_worktree_and_submodule_give_the_same_baselines() {
    let origin = TestRepository::new();
    origin.steps("write doc.md d\nwrite a.rs 1\ncommit 1\nwrite a.rs 2\ncommit 5\nwrite b 1\ncommit 6");
    let place = TempDir::new().unwrap();
    let url = format!("file://{}", origin.root().display());
    git(place.path(), &["clone", "-q", &url, "clone"], 7);
    git(origin.root(), &["worktree", "add", "-q", "--detach", place.path().join("worktree").to_str().unwrap()], 7);
    git(place.path(), &["init", "-q", "outer"], 7);
    git(&place.path().join("outer"), &["submodule", "--quiet", "add", &url, "inner"], 7);
    for vault in ["clone", "worktree", "outer/inner"] {
        assert_eq!(trace_in(&place.path().join(vault)), ["a.rs: changed day 5"], "{vault}");
    }
    git(place.path(), &["clone", "-q", "--depth", "1", &url, "shallow"], 7);
    let shallow = trace_in(&place.path().join("shallow"));
    assert_eq!(shallow[0], "a.rs: unknown");
    assert!(shallow[1].starts_with("this is a shallow clone:"), "{shallow:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn endless_files_of_a_repository_take_bounded_memory() {
    const CHANGED: &str = "write doc.md d\nwrite a.rs 1\ncommit 1\nwrite a.rs 2";
    for setting in ["core.attributesFile", "diff.orderFile"] {
        let desk = TestRepository::new();
        desk.steps(CHANGED);
        desk.git(&["config", setting, "/dev/zero"], 2);
        assert_eq!(desk.trace(&["a.rs"], &[]), ["a.rs: changed just now"], "{setting}");
    }
    let with_git = |desk: &mut TestRepository, first: &str| {
        let program = git_that(desk, first);
        desk.sources = FolderSources::new(desk.root(), Arc::new(SystemClock))
            .with_git(GitOptions { program, ..GitOptions::default() });
    };
    // Each command is limited as soon as it runs.
    let limit = "/proc/self/limits";
    let awaited = format!(
        "i=0; while grep -q '^Max data size *unlimited' {limit} && [ $i -lt 300 ]; do sleep 0.01; i=$((i+1)); done; \
         grep '^Max data size' {limit} >> .git/limits"
    );
    for (file, is_read) in [("info/attributes", true), ("shallow", false), ("packed-refs", false)] {
        let mut desk = TestRepository::new();
        desk.steps(CHANGED);
        let endless = desk.root().join(".git").join(file);
        std::fs::create_dir_all(endless.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &endless).unwrap();
        with_git(&mut desk, &awaited);
        let traced = desk.trace(&["a.rs"], &[]);
        let limits = std::fs::read_to_string(desk.root().join(".git/limits")).unwrap();
        assert!(limits.lines().all(|line| line.contains(" 1073741824 ")), "{limits}");
        let is_refused = traced.last().unwrap().contains("git failed; the server's log has the details");
        assert!(is_refused || !is_read, "{file}: {traced:?}");
    }
    let mut desk = TestRepository::new();
    desk.steps(CHANGED);
    with_git(&mut desk, "case \" $* \" in *' ls-tree '*) exec cat /dev/zero;; esac");
    let traced = desk.trace(&["a.rs"], &[]);
    assert!(traced.last().unwrap().contains("git failed; the server's log has the details"), "{traced:?}");
}

/// A program that goes before git: it hangs at one command, and leaves a child of its own hanging too.
fn hanging_git(desk: &TestRepository, command: &str) -> GitOptions {
    let marks = desk.root().join(".git");
    let hangs = "sleep 1000 & echo $! >";
    let program =
        git_that(desk, &format!("case \" $* \" in *\" {command} \"*) {hangs} {}/child; wait;; esac", marks.display()));
    GitOptions { program, patience: Duration::from_millis(700) }
}

/// A program that runs a line of a shell before git.
pub(crate) fn git_that(desk: &TestRepository, first: &str) -> PathBuf {
    let program = desk.root().join(".git/first");
    std::fs::write(&program, format!("#!/bin/sh\n{first}\nexec git \"$@\"\n")).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    program
}

#[test]
fn slow_git_yields_no_baseline_and_leaves_no_process() {
    for command in ["rev-parse", "log", "cat-file"] {
        let mut desk = TestRepository::new();
        desk.steps("write doc.md d\nwrite a.rs 1\nwrite b.rs 1\ncommit 1\nwrite a.rs 2\ncommit 2");
        // Read by the index only now: it has seen nothing but the changed file.
        let remembered = desk.remember(&["a.rs", "b.rs"]);
        let options = hanging_git(&desk, command);
        desk.sources = FolderSources::new(desk.root(), Arc::new(SystemClock)).with_git(options);
        let started = Instant::now();
        let traced = desk.trace(&["a.rs", "b.rs"], &remembered);
        assert!(started.elapsed() < Duration::from_secs(30), "{command}: {:?}", started.elapsed());
        assert_eq!(traced[..2], ["a.rs: unknown", "b.rs: unknown"], "{command}");
        let warning = if command == "log" {
            "are not checked: the git history is too long"
        } else {
            "cannot tell whether sources changed"
        };
        assert!(traced[2].contains(warning), "{command}: {traced:?}");
        // What was there when the index looked, and is not now, has changed whatever git would say.
        desk.steps("write b.rs 2");
        assert_eq!(desk.trace(&["a.rs", "b.rs"], &remembered)[1], "b.rs: changed just now", "{command}");
        drop(desk.sources);
        let child = std::fs::read_to_string(desk.folder.path().join(".git/child")).unwrap();
        let started = Instant::now();
        while !is_gone(child.trim()) {
            assert!(started.elapsed() < Duration::from_secs(10), "{command}: what git started is still there");
            std::thread::yield_now();
        }
        await_no_dead_children();
    }
}

/// Whether a process has ended. Its parent collects its status, so it may be a zombie for a moment.
fn is_gone(id: &str) -> bool {
    let state = || std::fs::read_to_string(format!("/proc/{id}/stat")).ok();
    state().is_none_or(|state| state.rsplit(") ").next().is_some_and(|rest| rest.starts_with(['Z', 'X'])))
}

/// Others may be between the end of a program and waiting for it.
fn await_no_dead_children() {
    let started = Instant::now();
    while !dead_children().is_empty() {
        assert!(started.elapsed() < Duration::from_secs(10), "{:?}", dead_children());
        std::thread::yield_now();
    }
}

/// Children of this process that ended and were not waited for.
fn dead_children() -> Vec<String> {
    let me = format!(" {} ", std::process::id());
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let stats = all.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    stats.filter(|stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with(&format!("Z{me}")))).collect()
}

#[test]
fn completely_read_history_leaves_no_zombie() {
    let desk = TestRepository::new();
    desk.steps("write doc.md d\nwrite a.rs 1\ncommit 1");
    assert_eq!(desk.trace(&["a.rs"], &[]), ["a.rs: same"]);
    await_no_dead_children();
}

fn trace_in(vault: &Path) -> Vec<String> {
    let sources = FolderSources::new(vault, Arc::new(SystemClock));
    let path = VaultPath::parse("doc.md").unwrap();
    let note = SourcedNote { path: &path, refs: parse(&["a.rs"]), remembered: &[] };
    let traced = sources.trace(&[note]);
    let lines = traced.notes[0].iter().map(|source| format!("{}: {}", source.path, said(source.status)));
    lines.chain(traced.warnings).collect()
}

#[test]
fn invalid_repositories_are_ignored() {
    let desk = TestRepository::without_git("");
    desk.steps("write doc.md d\nwrite a.rs 1\nwrite .git/HEAD nonsense");
    let remembered = desk.remember(&["a.rs"]);
    desk.steps("write a.rs 2");
    assert_eq!(desk.trace(&["a.rs"], &remembered), ["a.rs: changed just now"]);
}

#[test]
fn comparison_writes_nothing_and_sees_each_later_change() {
    let desk = TestRepository::new();
    desk.steps("write doc.md d\nwrite a.rs 1\ncommit 1");
    let index = || std::fs::metadata(desk.root().join(".git/index")).unwrap().modified().unwrap();
    let before = index();
    assert_eq!(desk.trace(&["a.rs"], &[]), ["a.rs: same"]);
    desk.steps("write a.rs 2");
    assert_eq!(desk.trace(&["a.rs"], &[]), ["a.rs: changed just now"]);
    desk.steps("write a.rs 1");
    assert_eq!(desk.trace(&["a.rs"], &[]), ["a.rs: same"]);
    assert_eq!(index(), before);
    desk.steps("write a.rs 2\ncommit 3");
    assert_eq!(desk.trace(&["a.rs"], &[]), ["a.rs: changed day 3"]);
}

#[test]
fn two_thousand_notes_take_seconds_and_one_of_them_milliseconds() {
    let desk = TestRepository::new();
    for n in 0..2000 {
        std::fs::write(desk.root().join(format!("doc{n}.md")), format!("{n}")).unwrap();
        std::fs::write(desk.root().join(format!("a{n}.rs")), "1").unwrap();
    }
    desk.steps("commit 1");
    for day in 2..50 {
        desk.steps(&format!("write a{day}.rs 2\nwrite doc{day}.md x\nwrite a{}.rs 2\ncommit {day}", day + 1000));
    }
    let paths: Vec<VaultPath> = (0..2000).map(|n| VaultPath::parse(&format!("doc{n}.md")).unwrap()).collect();
    let note = |n: usize| SourcedNote { path: &paths[n], refs: parse(&[&format!("a{n}.rs")]), remembered: &[] };
    let notes: Vec<SourcedNote<'_>> = (0..2000).map(note).collect();
    let start = Instant::now();
    let traced = desk.sources.trace(&notes);
    let all = start.elapsed();
    let changed = traced.notes.iter().filter(|sources| sources[0].status != SourceStatus::Same).count();
    assert_eq!((changed, traced.warnings.len()), (48, 0));
    let start = Instant::now();
    for n in 0..20 {
        desk.sources.trace(&[note(n)]);
    }
    let one = start.elapsed() / 20;
    // The times are those of a loaded machine; what is meant is ten times less.
    assert!(all < Duration::from_secs(20) && one < Duration::from_millis(200), "all {all:?}, one {one:?}");
    println!("2000 notes {all:?}, one {one:?}");
}
