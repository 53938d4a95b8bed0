//! Which requests were carried out, and where: a name in a folder for each, with the path inside.
//!
//! Nothing here is synced. Who asks again outlived the writer's process, so the machine is still running.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use quipu_core::RequestKey;
use quipu_core::model::VaultPath;
use quipu_core::ports::{Clock, SystemClock};

use crate::beneath::{Dir, is_no_folder};

const FOLDER: &str = "requests";

/// Far above any path.
const MAX_BYTES: u64 = 64 << 10;

/// Old ones are looked for once in so many writes.
const MANY: u64 = 64;

static WRITES: AtomicU64 = AtomicU64::new(0);

/// Remembers a request.
pub(crate) fn remember(own: &Dir, request: RequestKey, place: &str) -> io::Result<()> {
    own.make_private_folder(FOLDER)?;
    let folder = own.open(FOLDER)?;
    let name = request.to_string();
    folder.remove_file(&name)?;
    folder.create_private_file(&name)?.write_all(place.as_bytes())?;
    if WRITES.fetch_add(1, Ordering::Relaxed).is_multiple_of(MANY) {
        forget_old(&folder);
    }
    Ok(())
}

/// Where a request left its first file.
pub(crate) fn recall(own: &Dir, request: RequestKey) -> io::Result<Option<VaultPath>> {
    let folder = match own.open(FOLDER) {
        Err(error) if is_no_folder(&error) => return Ok(None),
        other => other?,
    };
    let mut place = String::new();
    match folder.open_file(request.to_string()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?.take(MAX_BYTES).read_to_string(&mut place)?,
    };
    Ok(VaultPath::parse(&place).ok())
}

/// What cannot be removed now is removed later, or stays: it is a few bytes.
fn forget_old(folder: &Dir) {
    let old_ns = SystemClock.now_ns() - RequestKey::REMEMBERED_NS;
    for (name, _) in folder.entries().unwrap_or_default() {
        let Some(name) = name.to_str().filter(|name| name.parse::<RequestKey>().is_ok()) else { continue };
        if folder.see(name).is_ok_and(|seen| seen.is_some_and(|seen| seen.stat.modified_ns < old_ns)) {
            let _ = folder.remove_file(name);
        }
    }
}
