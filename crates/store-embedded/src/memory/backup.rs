//! Copies of memory that are whole while others write: one reading transaction into a new file, looked over, then put in
//! place.

#![expect(clippy::disallowed_methods, reason = "puts memory's own copy in place")]

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::file_guard;
use crate::own_folder::OwnFolder;

/// Why there is no copy. A file of that name that was there before is as it was.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// There is a file of that name.
    #[error("{} is there already; name another file", .0.display())]
    Exists(PathBuf),
    /// There is no folder for it.
    #[error("there is no folder {} to write {} to; make it, or name another file", folder.display(), file.display())]
    NoFolder {
        /// The folder.
        folder: PathBuf,
        /// The copy.
        file: PathBuf,
    },
    /// The copy is not what it should be.
    #[error("the copy is not whole: {0}")]
    Unsound(String),
    /// It could not be read or written.
    #[error("cannot write {}: {source}", file.display())]
    Failed {
        /// The copy.
        file: PathBuf,
        /// What went wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Copies a database to a file that is not there yet.
pub(super) fn copy(db: &Connection, to: &Path) -> Result<(), BackupError> {
    let failed = |source: Box<dyn std::error::Error + Send + Sync>| BackupError::Failed { file: to.to_owned(), source };
    if to.symlink_metadata().is_ok() {
        return Err(BackupError::Exists(to.to_owned()));
    }
    let folder = match to.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        return Err(BackupError::NoFolder { folder: folder.to_owned(), file: to.to_owned() });
    }
    let mut unfinished = to.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let unfinished = PathBuf::from(unfinished);
    let outcome = write(db, &unfinished).and_then(|findings| match findings.first() {
        Some(finding) => Err(BackupError::Unsound(finding.clone())),
        None => {
            File::open(&unfinished).and_then(|file| file.sync_all()).map_err(|error| failed(error.into()))?;
            put_in_place(&unfinished, to, &WAYS)
        }
    });
    let removed = remove_if_there(&unfinished);
    outcome?;
    removed.map_err(|error| failed(error.into()))?;
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        // Some network file systems cannot sync a folder and need not.
        Err(error) if error.kind() != io::ErrorKind::InvalidInput => Err(failed(error.into())),
        _ => Ok(()),
    }
}

/// Gives a file another name; fails where there is a file of that name.
type Way = fn(&Path, &Path) -> io::Result<()>;

/// Best first. Not every file system knows the first two: FAT, and much of what is mounted from elsewhere, has no hard links.
/// A copy is last since a kill in the middle of it leaves a part under the name of the whole.
const WAYS: [Way; 3] = [rename_to_free, link, copy_to_free];

/// Gives the finished copy its name by the first way that works. A file of that name that has come up meanwhile stays.
fn put_in_place(from: &Path, to: &Path, ways: &[Way]) -> Result<(), BackupError> {
    let mut outcome = Ok(());
    for way in ways {
        outcome = way(from, to);
        match &outcome {
            Ok(()) => break,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(BackupError::Exists(to.to_owned()));
            }
            Err(_) => {}
        }
    }
    outcome.map_err(|error| BackupError::Failed { file: to.to_owned(), source: error.into() })
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn rename_to_free(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn rename_to_free(_from: &Path, _to: &Path) -> io::Result<()> {
    // A usual rename may replace what is there.
    Err(io::ErrorKind::Unsupported.into())
}

fn link(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::hard_link(from, to)
}

fn copy_to_free(from: &Path, to: &Path) -> io::Result<()> {
    let mut target = create_private(to)?;
    let copied = File::open(from).and_then(|mut source| io::copy(&mut source, &mut target));
    let outcome = copied.and_then(|_| target.sync_all());
    if outcome.is_err() {
        // It is ours, and not whole. That it could not be written is what is told.
        let _ = std::fs::remove_file(to);
    }
    outcome
}

/// Makes a file that only its owner may read.
fn create_private(file: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).mode(0o600).open(file)
}

fn remove_if_there(file: &Path) -> io::Result<()> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Copies a database beside itself before its schema changes, under a name that no earlier copy has.
pub(super) fn before_migration(db: &Connection, file: &Path, schema: i64) -> Result<(), BackupError> {
    let above = file.parent().unwrap_or(Path::new("."));
    let folder = above.join("backups");
    let failed = |error: io::Error| BackupError::Failed { file: folder.clone(), source: error.into() };
    OwnFolder::open(above).and_then(|above| above.folder("backups")).map_err(failed)?;
    for number in 1.. {
        let copy = folder.join(format!("memory-schema-{schema}-{number}.db"));
        match self::copy(db, &copy) {
            Err(BackupError::Exists(_)) => {}
            outcome => return outcome,
        }
    }
    Ok(())
}

fn write(db: &Connection, to: &Path) -> Result<Vec<String>, BackupError> {
    let failed = |source: rusqlite::Error| BackupError::Failed { file: to.to_owned(), source: source.into() };
    let name = to.to_str().ok_or_else(|| BackupError::Failed {
        file: to.to_owned(),
        source: "the path is not UTF-8, which SQLite needs".into(),
    })?;
    // Readable by its owner alone. SQLite takes an empty file for none.
    let make = || remove_if_there(to).and_then(|()| create_private(to)).map(drop);
    make().map_err(|error| BackupError::Failed { file: to.to_owned(), source: error.into() })?;
    db.execute("VACUUM INTO ?1", [name]).map_err(failed)?;
    let copy = Connection::open_with_flags(to, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(failed)?;
    // Nobody but this process knows the copy yet, and one that is not finished is made anew.
    copy.pragma_update(None, "journal_mode", "OFF").map_err(failed)?;
    file_guard::begin_history(&copy).map_err(failed)?;
    let findings = copy
        .prepare("PRAGMA quick_check(1)")
        .and_then(|mut check| check.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>())
        .map_err(failed)?;
    Ok(findings.into_iter().filter(|finding| finding != "ok").collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a file system says that lacks a way.
    fn lacking(_: &Path, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    #[test]
    fn a_copy_gets_its_name_by_what_the_file_system_can_do() {
        for ways in [WAYS, [lacking, link, copy_to_free], [lacking, lacking, copy_to_free]] {
            let home = tempfile::tempdir().unwrap();
            let (from, to) = (home.path().join("from"), home.path().join("to"));
            std::fs::write(&from, "whole").unwrap();
            put_in_place(&from, &to, &ways).unwrap();
            assert_eq!(std::fs::read(&to).unwrap(), b"whole");

            std::fs::write(&from, "another").unwrap();
            let taken = home.path().join("taken");
            std::fs::write(&taken, "theirs").unwrap();
            let refused = put_in_place(&from, &taken, &ways).unwrap_err();
            assert!(matches!(refused, BackupError::Exists(_)), "{refused}");
            assert_eq!(std::fs::read(&taken).unwrap(), b"theirs");
        }
    }

    #[test]
    fn what_could_not_be_copied_leaves_nothing() {
        let home = tempfile::tempdir().unwrap();
        let to = home.path().join("to");
        let failed = put_in_place(&home.path().join("nothing"), &to, &WAYS).unwrap_err();
        assert!(matches!(failed, BackupError::Failed { .. }), "{failed}");
        assert!(!to.exists());
    }
}
