//! The applied requests: a file for each, named by its key, which contains the path of its first change.
//!
//! Nothing here is synced: a client that retries has outlived the writer's process, so the machine is still running.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use quipu_core::RequestKey;
use quipu_core::model::VaultPath;
use quipu_core::ports::{Clock, SystemClock};

use crate::dir::{Dir, if_exists, is_no_folder};

const FOLDER: &str = "requests";

/// Far above any path.
const MAX_BYTES: u64 = 64 << 10;

/// Old requests are removed once in so many writes.
const CLEANUP_INTERVAL: u64 = 64;

static WRITES: AtomicU64 = AtomicU64::new(0);

/// Records a request as applied.
pub(crate) fn record(own: &Dir, request: RequestKey, path: &str) -> io::Result<()> {
    own.create_private_folder(FOLDER)?;
    let folder = own.open(FOLDER)?;
    let name = request.to_string();
    folder.remove_file(&name)?;
    folder.create_private_file(&name)?.write_all(path.as_bytes())?;
    if WRITES.fetch_add(1, Ordering::Relaxed).is_multiple_of(CLEANUP_INTERVAL) {
        remove_old(&folder);
    }
    Ok(())
}

/// The path of a request's first change, if the request was applied.
pub(crate) fn find(own: &Dir, request: RequestKey) -> io::Result<Option<VaultPath>> {
    let folder = match own.open(FOLDER) {
        Err(error) if is_no_folder(&error) => return Ok(None),
        other => other?,
    };
    let Some(file) = if_exists(folder.open_file(request.to_string()))? else { return Ok(None) };
    let mut path = String::new();
    file.take(MAX_BYTES).read_to_string(&mut path)?;
    Ok(VaultPath::parse(&path).ok())
}

/// Removes the requests whose first change was at one of these paths: a path may contain the text that is redacted.
pub(crate) fn forget(own: &Dir, paths: &[&VaultPath]) -> io::Result<()> {
    let folder = match own.open(FOLDER) {
        Err(error) if is_no_folder(&error) => return Ok(()),
        other => other?,
    };
    for (name, _) in folder.entries()? {
        let Some((name, key)) = name.to_str().and_then(|name| Some((name, name.parse().ok()?))) else { continue };
        if find(own, key)?.is_some_and(|path| paths.contains(&&path)) {
            folder.remove_file(name)?;
        }
    }
    Ok(())
}

/// Ignores errors: the next cleanup tries again, and a file is a few bytes.
fn remove_old(folder: &Dir) {
    let old_ns = SystemClock.now_ns() - RequestKey::REMEMBERED_NS;
    for (name, _) in folder.entries().unwrap_or_default() {
        let Some(name) = name.to_str().filter(|name| name.parse::<RequestKey>().is_ok()) else { continue };
        if folder.metadata(name).is_ok_and(|found| found.is_some_and(|file| file.stat.modified_ns < old_ns)) {
            let _ = folder.remove_file(name);
        }
    }
}
