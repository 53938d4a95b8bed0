//! Which files are notes: a walk, a single path, git and the `ignore` crate must agree.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::home::{Home, listed, path, tree};
use proptest::prelude::*;
use quipu_core::ports::VaultFiles;
use quipu_vault::{FolderVault, OpenError, VaultOptions};

#[test]
fn only_markdown_files_that_are_not_hidden_or_ignored_are_notes() {
    let home = Home::new(&[
        ("a.md", ""),
        ("B.MARKDOWN", ""),
        ("c.txt", ""),
        ("md", ""),
        (".hidden.md", ""),
        (".obsidian/x.md", ""),
        (".quipu/x.md", ""),
        (".git/x.md", ""),
        ("node_modules/pkg/readme.md", ""),
        ("deep/node_modules/x.md", ""),
        ("deep/er/d.md", ""),
        ("build/out.md", ""),
        ("build/keep/k.md", ""),
        ("deep/build/b.md", ""),
        ("logs/x.log.md", ""),
        ("logs/important.log.md", ""),
        (".gitignore", "\u{feff}/build/*\r\n!/build/keep/\n*.log.md\n[broken\n"),
        ("logs/.gitignore", "!important.log.md\n"),
    ]);
    let vault = home.open();
    assert_eq!(
        listed(&vault),
        ["B.MARKDOWN", "a.md", "build/keep/k.md", "deep/build/b.md", "deep/er/d.md", "logs/important.log.md"]
    );
    check_single_paths(&vault, home.folder.path());
}

#[test]
fn gitignore_files_above_the_vault_apply_up_to_the_repository_root() {
    let home = Home::new(&[
        (".gitignore", "beyond.md\n"),
        ("repo/.git/info/exclude", "private.md\n"),
        ("repo/.gitignore", "secret.md\n/docs/anchored.md\n"),
        ("repo/docs/a.md", ""),
        ("repo/docs/beyond.md", ""),
        ("repo/docs/secret.md", ""),
        ("repo/docs/anchored.md", ""),
        ("repo/docs/private.md", ""),
    ]);
    let vault = FolderVault::open(&home.at("repo/docs"), VaultOptions::default()).unwrap();
    assert_eq!(listed(&vault), ["a.md", "beyond.md"]);
    check_single_paths(&vault, &home.at("repo/docs"));

    home.save("repo/docs/.git/HEAD", "");
    let vault = FolderVault::open(&home.at("repo/docs"), VaultOptions::default()).unwrap();
    assert_eq!(listed(&vault).len(), 5, "a vault that is a repository itself looks no further up");
}

#[test]
fn changed_gitignore_applies_at_once() {
    let home = Home::new(&[("a.md", ""), ("b.md", "")]);
    let vault = home.open();
    for (patterns, notes) in [("", 2), ("a.md", 1), ("b.md", 1), ("*", 0)] {
        home.save(".gitignore", patterns);
        assert_eq!(listed(&vault).len(), notes, "{patterns}");
        check_single_paths(&vault, home.folder.path());
    }
}

#[test]
fn include_and_exclude_are_globs_from_the_root() {
    let home = Home::new(&[("a.md", ""), ("notes/b.md", ""), ("notes/old/c.md", ""), ("drafts/d.md", "")]);
    let with = |include: &[&str], exclude: &[&str]| {
        let own = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        let options = VaultOptions { include: own(include), exclude: own(exclude), read_only: false };
        let vault = FolderVault::open(home.folder.path(), options).unwrap();
        check_single_paths(&vault, home.folder.path());
        listed(&vault)
    };
    assert_eq!(with(&["*.md"], &[]), ["a.md"]);
    assert_eq!(with(&["notes"], &[]), ["notes/b.md", "notes/old/c.md"]);
    assert_eq!(with(&["/notes/"], &["**/old"]), ["notes/b.md"]);
    assert_eq!(with(&["notes/*.md", "drafts/**"], &[]), ["drafts/d.md", "notes/b.md"]);
    assert_eq!(with(&[], &["notes/**", "a.md"]), ["drafts/d.md"]);

    let options = VaultOptions { exclude: vec!["a{b".to_owned()], ..VaultOptions::default() };
    let error = FolderVault::open(home.folder.path(), options).unwrap_err();
    assert!(error.to_string().contains("a{b"), "{error}");
}

#[test]
fn links_inside_the_vault_are_followed_and_others_get_a_warning() {
    let home = Home::new(&[("real/a.md", "a"), (".hidden/h.md", "h"), (".quipu/trash/t.md", "t")]);
    let outside = Home::new(&[("o.md", "o"), ("sub/p.md", "p")]);
    symlink("real", home.at("inside")).unwrap();
    symlink(home.at("real/a.md"), home.at("absolute.md")).unwrap();
    symlink(outside.at("o.md"), home.at("out.md")).unwrap();
    symlink(outside.folder.path(), home.at("outside")).unwrap();
    symlink(outside.at("o.md"), home.at("picture.png")).unwrap();
    symlink("..", home.at("real/up")).unwrap();
    symlink("self.md", home.at("self.md")).unwrap();
    symlink("nowhere.md", home.at("dead.md")).unwrap();
    symlink(".quipu/trash", home.at("trash")).unwrap();
    symlink(".hidden/h.md", home.at("shown.md")).unwrap();
    let vault = home.open();
    assert_eq!(listed(&vault), ["absolute.md", "inside/a.md", "real/a.md", "shown.md"]);
    let warned: Vec<String> = vault.list().unwrap().warnings.into_iter().map(|warning| warning.path).collect();
    assert_eq!(warned, ["dead.md", "inside/up", "out.md", "outside", "real/up", "self.md", "trash"]);
    for at in ["out.md", "outside/o.md", "outside/sub/p.md", "real/up/real/a.md", "self.md", "trash/t.md"] {
        assert!(vault.read(&path(at)).unwrap().is_none(), "{at}");
        assert!(vault.list_below(&path(at)).unwrap().files.is_empty(), "{at}");
    }
    assert_eq!(vault.read(&path("inside/a.md")).unwrap().unwrap().bytes, b"a");
    assert_eq!(vault.find_any_case(&path("OUTSIDE/O.md")).unwrap(), [], "what lies outside is not looked at");
}

#[test]
fn invalid_names_get_a_warning_and_other_files_are_listed() {
    let home = Home::new(&[("a.md", "")]);
    let odd = OsStr::from_bytes(b"caf\xe9.md");
    std::fs::write(home.folder.path().join(odd), "").unwrap();
    std::fs::write(home.folder.path().join(OsStr::from_bytes(b"caf\xe9.txt")), "").unwrap();
    std::fs::create_dir(home.folder.path().join(OsStr::from_bytes(b"d\xff"))).unwrap();
    std::fs::write(home.at("back\\slash.md"), "").unwrap();
    let listing = home.open().list().unwrap();
    assert_eq!(listing.files.len(), 1);
    let warned: Vec<&str> = listing.warnings.iter().map(|warning| warning.path.as_str()).collect();
    assert_eq!(warned, ["back\\slash.md", "caf\u{fffd}.md", "d\u{fffd}"]);
}

#[test]
fn opening_a_missing_folder_or_a_file_names_the_cause() {
    let home = Home::new(&[("a.md", "")]);
    let open = |at: &str| FolderVault::open(&home.at(at), VaultOptions::default()).unwrap_err();
    assert!(matches!(open("missing"), OpenError::Missing { .. }));
    assert!(matches!(open("a.md"), OpenError::NotAFolder { .. }));
}

const FOLDERS: [&str; 6] = ["", "a", "b", "a/b", "a/c", "a/b/a"];
const NAMES: [&str; 4] = ["x.md", "y.md", "a.md", "x.tmp.md"];
const PATTERNS: [&str; 20] = [
    "x.md",
    "!x.md",
    "/x.md",
    "a",
    "a/",
    "/a",
    "!a/",
    "b/",
    "/b/*",
    "!/b/x.md",
    "a/b",
    "a/**",
    "**/b",
    "**/b/*.md",
    "*.tmp.md",
    "!*.tmp.md",
    "a/*/x.md",
    "*",
    "!*/",
    "# a.md",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn walk_single_paths_git_and_the_ignore_crate_agree(
        ignores in proptest::collection::btree_map(0..FOLDERS.len(), proptest::collection::vec(0..PATTERNS.len(), 1..5), 0..4),
    ) {
        let home = Home::new(&[]);
        for folder in FOLDERS {
            for name in NAMES {
                home.save(Path::new(folder).join(name).to_str().unwrap(), "");
            }
        }
        for (folder, patterns) in &ignores {
            let lines: Vec<&str> = patterns.iter().map(|pattern| PATTERNS[*pattern]).collect();
            home.save(Path::new(FOLDERS[*folder]).join(".gitignore").to_str().unwrap(), &lines.join("\n"));
        }
        let vault = home.open();
        check_single_paths(&vault, home.folder.path());
        let notes = listed(&vault);
        prop_assert_eq!(&notes, &listed_by_ignore_crate(home.folder.path()));
        if let Some(by_git) = listed_by_git(home.folder.path()) {
            prop_assert_eq!(&notes, &by_git);
        }
    }
}

/// Checks that every single file and folder gives the same result as the walk.
fn check_single_paths(vault: &FolderVault, root: &Path) {
    let listing = vault.list().unwrap();
    for (entry, _) in tree(root) {
        let at = path(entry.trim_end_matches('/'));
        let is_note = listing.files.iter().any(|file| file.path == at);
        assert_eq!(vault.read(&at).map(|content| content.is_some()).unwrap(), is_note, "{at}");
        let below: Vec<_> = listing
            .files
            .iter()
            .filter(|file| file.path == at || file.path.as_str().starts_with(&format!("{at}/")))
            .cloned()
            .collect();
        assert_eq!(vault.list_below(&at).unwrap().files, below, "{at}");
    }
}

fn listed_by_ignore_crate(root: &Path) -> Vec<String> {
    let walk = ignore::WalkBuilder::new(root).require_git(false).git_global(false).ignore(false).parents(false).build();
    let files: BTreeSet<String> = walk
        .map(Result::unwrap)
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
        .map(|entry| entry.path().strip_prefix(root).unwrap().to_str().unwrap().to_owned())
        .collect();
    files.into_iter().collect()
}

/// `None` if git is not installed.
fn listed_by_git(root: &Path) -> Option<Vec<String>> {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        command.arg("-C").arg(root).args(arguments).output().ok().filter(|output| output.status.success())
    };
    git(&["init", "-q"])?;
    let output = git(&["ls-files", "-z", "--others", "--exclude-standard"])?;
    let files: BTreeSet<String> = String::from_utf8(output.stdout)
        .unwrap()
        .split_terminator('\0')
        .filter(|file| file.ends_with(".md"))
        .map(str::to_owned)
        .collect();
    Some(files.into_iter().collect())
}

#[test]
fn links_to_folders_full_of_links_do_not_multiply() {
    let home = Home::new(&[]);
    for n in 0..40 {
        home.save(&format!("d{n}/n.md"), "");
        symlink(format!("../d{}", n + 1), home.at(&format!("d{n}/x"))).unwrap();
        symlink(format!("../d{}", n + 1), home.at(&format!("d{n}/y"))).unwrap();
    }
    let vault = home.open();
    let listing = vault.list().unwrap();
    // Each folder by its own path and by the two links to it; the first folder has no links.
    assert_eq!(listing.files.len(), 40 + 2 * 39);
    assert!(
        listing
            .warnings
            .iter()
            .any(|warning| warning.path == "d0/x/x" && warning.message.contains("only one symbolic link"))
    );
    // Single paths give the same result.
    assert!(vault.read(&path("d0/x/n.md")).unwrap().is_some());
    assert!(vault.read(&path("d0/x/x/n.md")).unwrap().is_none());
    assert!(vault.list_below(&path("d0/x/x")).unwrap().files.is_empty());
}
