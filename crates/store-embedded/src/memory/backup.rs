//! Consistent copies of memory while others write: one read transaction writes a new file, which is checked and then renamed.

#![expect(clippy::disallowed_methods, reason = "puts memory's own copy in place")]

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::file_guard;
use quipu_own_folder::OwnFolder;

/// Why there is no copy. An existing file of that name is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The file exists.
    #[error("cannot write {}: it exists; choose another file name", .0.display())]
    Exists(PathBuf),
    /// The folder does not exist.
    #[error("cannot write {}: there is no folder {}; create it, or choose another file name", file.display(), folder.display())]
    NoFolder { folder: PathBuf, file: PathBuf },
    /// The check of the copy failed.
    #[error("the copy is corrupt: {0}; run `quipu doctor`")]
    Unsound(String),
    /// It could not be read or written.
    #[error("cannot write {}: {source}", file.display())]
    Failed { file: PathBuf, source: Box<dyn std::error::Error + Send + Sync> },
}

/// Copies a database to a new file.
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
            put_in_place(&unfinished, to, &RENAME_METHODS)
        }
    });
    let removed = remove_if_there(&unfinished);
    outcome?;
    removed.map_err(|error| failed(error.into()))?;
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        // Some network file systems cannot sync folders.
        Err(error) if error.kind() != io::ErrorKind::InvalidInput => Err(failed(error.into())),
        _ => Ok(()),
    }
}

/// Renames a file; fails if the new name exists.
type RenameMethod = fn(&Path, &Path) -> io::Result<()>;

/// Best first. Not every file system has the first two: FAT, for one, has no hard links. A copy is last, since a kill during
/// it leaves an incomplete file.
const RENAME_METHODS: [RenameMethod; 3] = [rename_to_free, link, copy_to_free];

/// Renames the finished copy by the first method that works. A file of that name that was created meanwhile stays.
fn put_in_place(from: &Path, to: &Path, methods: &[RenameMethod]) -> Result<(), BackupError> {
    let mut outcome = Ok(());
    for method in methods {
        outcome = method(from, to);
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
    // A plain rename would replace an existing file.
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
        // The incomplete copy; the error of the copy is the one to return.
        let _ = std::fs::remove_file(to);
    }
    outcome
}

/// Creates a file that only its owner can read.
fn create_private(file: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).mode(0o600).open(file)
}

fn remove_if_there(file: &Path) -> io::Result<()> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Copies a database to the folder `backups` beside it before a migration, under a new name.
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
    // Readable by its owner only. SQLite treats an empty file as a new one.
    let make = || remove_if_there(to).and_then(|()| create_private(to)).map(drop);
    make().map_err(|error| BackupError::Failed { file: to.to_owned(), source: error.into() })?;
    db.execute("VACUUM INTO ?1", [name]).map_err(failed)?;
    let copy = Connection::open_with_flags(to, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(failed)?;
    // No other process uses the copy yet, and an unfinished one is written again.
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

    /// A method that the file system does not have.
    fn lacking(_: &Path, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    #[test]
    fn copy_is_renamed_by_the_first_method_that_works() {
        for methods in [RENAME_METHODS, [lacking, link, copy_to_free], [lacking, lacking, copy_to_free]] {
            let home = tempfile::tempdir().unwrap();
            let (from, to) = (home.path().join("from"), home.path().join("to"));
            std::fs::write(&from, "whole").unwrap();
            put_in_place(&from, &to, &methods).unwrap();
            assert_eq!(std::fs::read(&to).unwrap(), b"whole");

            std::fs::write(&from, "another").unwrap();
            let taken = home.path().join("taken");
            std::fs::write(&taken, "theirs").unwrap();
            let refused = put_in_place(&from, &taken, &methods).unwrap_err();
            assert!(matches!(refused, BackupError::Exists(_)), "{refused}");
            assert_eq!(std::fs::read(&taken).unwrap(), b"theirs");
        }
    }

    #[test]
    fn failed_copy_leaves_no_file() {
        let home = tempfile::tempdir().unwrap();
        let to = home.path().join("to");
        let failed = put_in_place(&home.path().join("nothing"), &to, &RENAME_METHODS).unwrap_err();
        assert!(matches!(failed, BackupError::Failed { .. }), "{failed}");
        assert!(!to.exists());
    }
}
