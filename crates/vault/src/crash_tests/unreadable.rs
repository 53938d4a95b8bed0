//! Errors of the file system while a vault is listed or watched.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use quipu_core::ports::VaultFiles;

use super::{home, open, path};
use crate::failpoint::fault::with_hook;
use crate::{WatchEvent, WatchOptions, watch};

#[test]
fn vault_with_more_folders_than_watches_is_polled_with_a_warning() {
    let home = home();
    let vault = Arc::new(open(home.path()));
    let (sender, events) = std::sync::mpsc::channel();
    let options = WatchOptions { poll_every: Duration::from_millis(20), ..WatchOptions::default() };
    let full = |step: &str| match step {
        "watch" => Err(io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error())),
        _ => Ok(()),
    };
    let watcher = with_hook(full, || watch(&vault, options, move |event| drop(sender.send(event)))).unwrap();
    std::fs::write(home.path().join("a.md"), "edited by hand").unwrap();
    let patience = Duration::from_secs(20);
    match events.recv_timeout(patience).unwrap() {
        WatchEvent::Warning(text) => assert!(text.contains("max_user_watches"), "{text}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(events.recv_timeout(patience).unwrap(), WatchEvent::Changed(vec![path("a.md")]));
    drop(watcher);
}

#[test]
fn unreadable_gitignore_is_ignored_with_a_warning() {
    let home = home();
    std::fs::write(home.path().join(".gitignore"), "a.md\n").unwrap();
    std::fs::write(home.path().join("d/.gitignore"), "e.md\n").unwrap();
    let vault = open(home.path());
    let unreadable = |step: &str| match step {
        "read rules" => Err(io::ErrorKind::PermissionDenied.into()),
        _ => Ok(()),
    };
    let (listing, below) =
        with_hook(unreadable, || (vault.list().unwrap(), open(home.path()).list_below(&path("d")).unwrap())).unwrap();
    assert!(listing.files.iter().any(|file| file.path.as_str() == "a.md"));
    assert!(listing.warnings.iter().any(|warning| warning.path == ".gitignore"), "{:?}", listing.warnings);
    assert_eq!(below.files.len(), 1);
    assert_eq!(below.warnings.iter().map(|warning| warning.path.as_str()).collect::<Vec<_>>(), ["d/.gitignore"]);
    let exhausted = |step: &str| match step {
        "read rules" => Err(io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error())),
        _ => Ok(()),
    };
    // Not an error of the file: notes that it excludes must not appear.
    with_hook(exhausted, || open(home.path()).list().unwrap_err()).unwrap();
}

#[test]
fn unreadable_folder_is_not_reported_as_empty() {
    let home = home();
    let vault = open(home.path());
    let locked = |step: &str| match step {
        "read a folder" => Err(io::ErrorKind::PermissionDenied.into()),
        _ => Ok(()),
    };
    // Fail points are per thread, so the walk has to stay on this one.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().unwrap();
    let listing = with_hook(locked, || pool.install(|| vault.list_below(&path("d")).unwrap())).unwrap();
    assert!(listing.files.is_empty() && listing.is_unread(&path("d/e.md")) && !listing.is_unread(&path("de.md")));
    assert!(listing.warnings[0].to_string().starts_with("\"d\": the folder cannot be read"), "{:?}", listing.warnings);
    assert!(!vault.list_below(&path("d")).unwrap().is_unread(&path("d/e.md")));
}
