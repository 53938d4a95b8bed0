//! Whether somebody wrote over memory's file while it was open: a backup copied onto it, a sync of another machine's. What is
//! committed after that would be undone, or mixed with what is there now.
//!
//! The file itself changes when the log is moved into it, and then only. Another process may do that too, so a change that
//! was not our own is no proof, but a reason to look closely.

use std::path::Path;
use std::time::SystemTime;

use rusqlite::{Connection, ErrorCode};

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
        self.judge(opening::reader(file).and_then(|fresh| look(&fresh)))
    }

    /// What a look at the file says of it. That it could not be looked at just now says nothing: what was acknowledged may
    /// well be there.
    fn judge(&self, looked: rusqlite::Result<Look>) -> rusqlite::Result<Option<String>> {
        match looked {
            Ok(Look::Damaged(finding)) => Ok(Some(finding)),
            Ok(Look::Whole { head }) if head < self.head => {
                Ok(Some(format!("it ends at change {head}, and change {} was there", self.head)))
            }
            Ok(Look::Whole { .. }) => Ok(None),
            Err(error) => match error.sqlite_error_code() {
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Ok(Some(error.to_string())),
                _ => Err(error),
            },
        }
    }
}

/// What was found in a file.
enum Look {
    Whole { head: i64 },
    Damaged(String),
}

fn look(db: &Connection) -> rusqlite::Result<Look> {
    let finding: String = db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if finding != "ok" {
        return Ok(Look::Damaged(finding));
    }
    let has_log: bool =
        db.query_row("SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'change')", [], |row| row.get(0))?;
    if !has_log {
        return Ok(Look::Damaged("it has no log of changes".to_owned()));
    }
    Ok(Look::Whole { head: log::head(db)?.0 })
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    const SEEN: Seen = Seen { stamp: None, head: 7 };

    #[test]
    fn only_what_is_found_in_the_file_says_that_it_was_written_over() {
        let error = |code| Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
        for (looked, is_overwritten) in [
            (Ok(Look::Whole { head: 6 }), true),
            (Ok(Look::Damaged("it has no log of changes".to_owned())), true),
            (error(ffi::SQLITE_CORRUPT), true),
            (error(ffi::SQLITE_NOTADB), true),
            (Ok(Look::Whole { head: 7 }), false),
            (Ok(Look::Whole { head: 8 }), false),
        ] {
            assert_eq!(SEEN.judge(looked).unwrap().is_some(), is_overwritten);
        }
        for code in [ffi::SQLITE_BUSY, ffi::SQLITE_IOERR_READ, ffi::SQLITE_NOMEM, ffi::SQLITE_CANTOPEN] {
            let told = SEEN.judge(error(code)).expect_err("it says nothing of the file");
            assert_eq!(told.sqlite_error().unwrap().extended_code, code);
        }
    }
}
