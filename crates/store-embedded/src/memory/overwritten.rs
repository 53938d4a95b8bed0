//! Whether somebody wrote over memory's file while it was open: a backup copied onto it, a sync of another machine's. What is
//! committed after that would be undone, or mixed with what is there now.
//!
//! The file itself changes when the log is moved into it, and then only. Another process may do that too, so a change that
//! was not our own is no proof, but a reason to look closely.

use std::path::Path;
use std::time::SystemTime;

use rusqlite::Connection;

use super::{log, opening};

/// What is known of the file since it was last looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// When it changed last, and its length. `None` where that cannot be told.
    stamp: Option<(SystemTime, u64)>,
    /// The newest change in memory's log.
    head: i64,
}

impl Seen {
    /// As it is now, with a transaction's own change.
    pub(super) fn now(file: &Path, head: i64) -> Self {
        let stamp = std::fs::metadata(file).and_then(|metadata| Ok((metadata.modified()?, metadata.len())));
        Self { stamp: stamp.ok(), head }
    }

    /// Why nothing more may be written, if that is so. Looks at every page where the file changed by no doing of ours.
    pub(super) fn fault(&self, file: &Path) -> rusqlite::Result<Option<String>> {
        if Self::now(file, self.head).stamp == self.stamp {
            return Ok(None);
        }
        // A connection of its own, which has nothing of the file in its cache yet.
        let fresh = opening::reader(file)?;
        let found = match findings(&fresh) {
            Ok((finding, _)) if finding != "ok" => finding,
            Ok((_, head)) if head < self.head => {
                format!("it ends at change {head}, and change {} was there", self.head)
            }
            Ok(_) => return Ok(None),
            Err(error) => error.to_string(),
        };
        Ok(Some(found))
    }
}

fn findings(db: &Connection) -> rusqlite::Result<(String, i64)> {
    let finding = db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    Ok((finding, log::head(db)?.0))
}
