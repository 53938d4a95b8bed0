//! What a watcher tells, with kernel events and by polling.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use crate::home::{Home, create, path, replace};
use quipu_core::ports::VaultFiles;
use quipu_vault::{FolderVault, WatchEvent, WatchOptions, Watcher, watch};

struct Watched {
    home: Home,
    vault: Arc<FolderVault>,
    events: Receiver<WatchEvent>,
    _watcher: Watcher,
}

/// Far more than is ever needed; a test that passes does not wait for it.
const PATIENCE: Duration = Duration::from_secs(20);

fn both(files: &[(&str, &str)], check: impl Fn(&Watched)) {
    for force_poll in [false, true] {
        check(&watched(Home::new(files), "", force_poll));
    }
}

fn watched(home: Home, below: &str, force_poll: bool) -> Watched {
    let vault = Arc::new(FolderVault::open(&home.at(below), quipu_vault::VaultOptions::default()).unwrap());
    let (sender, events) = mpsc::channel();
    let options = WatchOptions { force_poll, poll_every: Duration::from_millis(20), ..WatchOptions::default() };
    let watcher = watch(&vault, options, move |event| drop(sender.send(event))).unwrap();
    Watched { home, vault, events, _watcher: watcher }
}

impl Watched {
    /// Waits until looking at all reported paths has found these notes changed, gone or new.
    fn expect(&self, wanted: &[&str]) {
        let mut missing: BTreeSet<String> = wanted.iter().map(|text| (*text).to_owned()).collect();
        let deadline = Instant::now() + PATIENCE;
        while !missing.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left) {
                Ok(WatchEvent::Changed(paths)) => {
                    assert!(paths.is_sorted() && !paths.is_empty());
                    for told in paths {
                        let below = format!("{told}/");
                        missing.retain(|path| *path != told.as_str() && !path.starts_with(&below));
                    }
                }
                Ok(WatchEvent::Rescan) => return,
                Ok(WatchEvent::Warning(text)) => panic!("{text}"),
                Err(_) => panic!("no report of {missing:?}"),
            }
        }
    }

    fn expect_rescan(&self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.events.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(WatchEvent::Rescan) => return,
                Ok(_) => {}
                Err(_) => panic!("no rescan"),
            }
        }
    }

    /// Nothing was reported except `sentinel`, which is saved now.
    fn expect_nothing_before(&self, sentinel: &str) {
        self.home.save(sentinel, "sentinel");
        match self.events.recv_timeout(PATIENCE).unwrap() {
            WatchEvent::Changed(paths) => assert_eq!(paths, [path(sentinel)]),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn created_changed_renamed_and_deleted_notes_are_reported() {
    both(&[("sub/a.md", "1")], |watched| {
        watched.home.save("sub/b.md", "new");
        watched.expect(&["sub/b.md"]);
        watched.home.save("sub/a.md", "22");
        watched.expect(&["sub/a.md"]);
        std::fs::rename(watched.home.at("sub/a.md"), watched.home.at("c.md")).unwrap();
        watched.expect(&["sub/a.md", "c.md"]);
        std::fs::remove_file(watched.home.at("c.md")).unwrap();
        watched.expect(&["c.md"]);
    });
}

#[test]
fn save_through_a_temporary_file_is_reported_as_the_note() {
    both(&[("a.md", "1")], |watched| {
        watched.home.save("a.md~", "two");
        watched.home.save(".a.md.swp", "x");
        std::fs::rename(watched.home.at("a.md~"), watched.home.at("a.md")).unwrap();
        watched.expect(&["a.md"]);
    });
}

#[test]
fn own_writes_are_reported_once_without_temporary_names() {
    both(&[("a.md", "1")], |watched| {
        watched.vault.apply(&[replace("a.md", "1", "2"), create("new/n.md", "n")]).unwrap();
        let mut told = BTreeSet::new();
        let deadline = Instant::now() + PATIENCE;
        while !(told.contains("a.md") && (told.contains("new") || told.contains("new/n.md"))) {
            match watched.events.recv_timeout(deadline.saturating_duration_since(Instant::now())).unwrap() {
                WatchEvent::Changed(paths) => told.extend(paths.iter().map(ToString::to_string)),
                other => panic!("{other:?}"),
            }
        }
        told.retain(|path| !["a.md", "new", "new/n.md"].contains(&path.as_str()));
        assert_eq!(told, BTreeSet::new());
    });
}

#[test]
fn new_folder_is_reported_and_watched() {
    both(&[("a.md", "")], |watched| {
        watched.home.save("new/deep/er/x.md", "1");
        watched.expect(&["new/deep/er/x.md"]);
        watched.home.save("new/deep/er/y.md", "1");
        watched.expect(&["new/deep/er/y.md"]);
    });
}

#[test]
fn moved_folders_are_reported_and_stay_watched() {
    both(&[("f/g/a.md", "1"), ("z.md", "")], |watched| {
        let elsewhere = tempfile::tempdir_in(std::env::temp_dir()).unwrap();
        std::fs::rename(watched.home.at("f"), watched.home.at("moved")).unwrap();
        watched.expect(&["f/g/a.md", "moved/g/a.md"]);
        watched.home.save("moved/g/a.md", "22");
        watched.expect(&["moved/g/a.md"]);
        std::fs::rename(watched.home.at("moved"), elsewhere.path().join("out")).unwrap();
        watched.expect(&["moved/g/a.md"]);
        std::fs::write(elsewhere.path().join("out/g/a.md"), "333").unwrap();
        std::fs::rename(elsewhere.path().join("out"), watched.home.at("back")).unwrap();
        watched.expect(&["back/g/a.md"]);
        watched.home.save("back/g/a.md", "4444");
        watched.expect(&["back/g/a.md"]);
        // Gone and made again under the same name: another folder, which needs its own watch.
        std::fs::remove_dir_all(watched.home.at("back")).unwrap();
        watched.home.save("back/g/a.md", "55555");
        watched.expect(&["back/g/a.md"]);
        watched.home.save("back/g/a.md", "666666");
        watched.expect(&["back/g/a.md"]);
    });
}

#[test]
fn thousand_concurrent_files_are_all_reported() {
    both(&[], |watched| {
        let names: Vec<String> = (0..1000).map(|n| format!("f{}/n{n}.md", n % 10)).collect();
        for name in &names {
            watched.home.save(name, "x");
        }
        watched.expect(&names.iter().map(String::as_str).collect::<Vec<_>>());
    });
}

#[test]
fn other_files_are_not_reported() {
    both(
        &[(".gitignore", "ignored/\n"), (".git/HEAD", ""), ("ignored/i.md", ""), ("node_modules/n.md", "")],
        |watched| {
            for noise in [
                ".git/HEAD",
                ".obsidian/x.md",
                ".quipu/x.md",
                "ignored/i.md",
                "node_modules/n.md",
                "picture.png",
                ".x.md",
            ] {
                watched.home.save(noise, "noise");
            }
            watched.vault.list().unwrap();
            watched.expect_nothing_before("sentinel.md");
        },
    );
}

#[test]
fn changed_gitignore_causes_a_rescan_and_changes_what_is_watched() {
    let watched = watched(Home::new(&[(".gitignore", "drafts/\n"), ("drafts/d.md", "1")]), "", false);
    watched.home.save(".gitignore", "\n");
    watched.expect_rescan();
    watched.home.save("drafts/d.md", "22");
    watched.expect(&["drafts/d.md"]);
}

#[test]
fn note_behind_symlinks_is_reported_under_each_path() {
    let home = Home::new(&[("real/a.md", "1")]);
    symlink("real", home.at("folder")).unwrap();
    symlink("real/a.md", home.at("link.md")).unwrap();
    let watched = watched(home, "", false);
    watched.home.save("real/a.md", "22");
    watched.expect(&["real/a.md", "folder/a.md", "link.md"]);
    std::fs::remove_file(watched.home.at("folder")).unwrap();
    watched.expect(&["folder"]);
    watched.home.save("real/a.md", "333");
    watched.expect(&["real/a.md"]);
}

#[test]
fn symlinks_whose_target_appears_or_disappears_are_reported() {
    let home = Home::new(&[("z.md", ""), ("rdir/a.md", "1")]);
    symlink("later/on/target.md", home.at("link.md")).unwrap();
    symlink("rdir", home.at("ldir")).unwrap();
    let watched = watched(home, "", false);
    // A link that leads nowhere, whose target appears some folders down.
    watched.home.save("later/on/target.md", "1");
    watched.expect(&["later/on/target.md", "link.md"]);
    watched.home.save("later/on/target.md", "22");
    watched.expect(&["later/on/target.md", "link.md"]);
    for text in ["333", "4444"] {
        // A folder behind a link that is removed and made again.
        std::fs::remove_dir_all(watched.home.at("rdir")).unwrap();
        watched.expect(&["rdir/a.md", "ldir/a.md"]);
        watched.home.save("rdir/a.md", text);
        watched.expect(&["rdir/a.md", "ldir/a.md"]);
        watched.home.save("rdir/sub/b.md", text);
        watched.expect(&["rdir/sub/b.md", "ldir/sub/b.md"]);
        // The same of the folders above a linked file.
        std::fs::rename(watched.home.at("later"), watched.home.at("away")).unwrap();
        watched.expect(&["later/on/target.md", "link.md"]);
        std::fs::rename(watched.home.at("away"), watched.home.at("later")).unwrap();
        watched.expect(&["later/on/target.md", "link.md"]);
        watched.home.save("later/on/target.md", text);
        watched.expect(&["later/on/target.md", "link.md"]);
    }
}

#[test]
fn symlinks_into_excluded_folders_are_reported() {
    for folder in ["ignored", ".hidden", "node_modules"] {
        let below = |path: &str| format!("{folder}/{path}");
        let home =
            Home::new(&[("z.md", ""), (".gitignore", "ignored/\n"), (&below("a.md"), "1"), (&below("sub/b.md"), "1")]);
        symlink(below("a.md"), home.at("link.md")).unwrap();
        symlink(below("sub"), home.at("ldir")).unwrap();
        symlink(home.at(&below("later.md")), home.at("later.md")).unwrap();
        let watched = watched(home, "", false);
        for text in ["22", "333"] {
            watched.home.save(&below("a.md"), text);
            watched.expect(&["link.md"]);
            watched.home.save(&below("sub/b.md"), text);
            watched.expect(&["ldir/b.md"]);
            watched.home.save(&below("later.md"), text);
            watched.expect(&["later.md"]);
            std::fs::remove_dir_all(watched.home.at(folder)).unwrap();
            watched.expect(&["link.md", "ldir", "later.md"]);
            watched.home.save(&below("sub/b.md"), text);
            watched.expect(&["ldir/b.md"]);
        }
        // The folder itself stays left out.
        watched.home.save(&below("other.md"), "x");
        watched.expect_nothing_before("z.md");
    }
}

#[test]
fn removed_vault_is_a_warning_and_is_listed_again_when_restored() {
    for force_poll in [false, true] {
        let watched = watched(Home::new(&[("vault/a.md", "1")]), "vault", force_poll);
        std::fs::rename(watched.home.at("vault"), watched.home.at("away")).unwrap();
        let first = watched.events.recv_timeout(PATIENCE).unwrap();
        assert!(matches!(first, WatchEvent::Warning(_)), "{first:?}");
        std::fs::rename(watched.home.at("away"), watched.home.at("vault")).unwrap();
        watched.expect_rescan();
        watched.home.save("vault/a.md", "22");
        watched.expect(&["a.md"]);
    }
}

#[test]
fn overflow_of_events_causes_a_rescan() {
    let home = Home::new(&[]);
    let vault = Arc::new(home.open());
    let (sender, events) = mpsc::channel();
    let options = WatchOptions { max_paths: 5, ..WatchOptions::default() };
    let _watcher = watch(&vault, options, move |event| drop(sender.send(event))).unwrap();
    for n in 0..50 {
        home.save(&format!("{n}.md"), "x");
    }
    assert!(events.into_iter().any(|event| event == WatchEvent::Rescan));
}

#[test]
fn saved_file_is_reported_within_the_budget() {
    let watched = watched(Home::new(&[("a.md", "1")]), "", false);
    let mut times: Vec<Duration> = (0..9)
        .map(|n| {
            let start = Instant::now();
            watched.home.save("a.md", &"x".repeat(n));
            watched.expect(&["a.md"]);
            start.elapsed()
        })
        .collect();
    times.sort();
    assert!(times[4] < Duration::from_millis(200), "{times:?}");
}

#[test]
fn a_dropped_watcher_is_silent() {
    for force_poll in [false, true] {
        let Watched { home, vault, events, _watcher } = watched(Home::new(&[("a.md", "1")]), "", force_poll);
        drop(_watcher);
        home.save("a.md", "22");
        assert_eq!(events.recv(), Err(mpsc::RecvError), "its thread is over");
        assert_eq!(Arc::strong_count(&vault), 1, "and has let go of the vault");
    }
}
