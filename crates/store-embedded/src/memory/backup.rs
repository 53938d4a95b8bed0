//! Copies of memory that are whole while others write: one reading transaction into a new file, looked over, then put in
//! place.

#![expect(clippy::disallowed_methods, reason = "puts memory's own copy in place")]

use std::fs::File;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

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
            // A hard link fails where a file of that name has come up meanwhile; a rename would replace it.
            std::fs::hard_link(&unfinished, to).map_err(|error| failed(error.into()))
        }
    });
    let removed = std::fs::remove_file(&unfinished);
    outcome?;
    removed.map_err(|error| failed(error.into()))?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|error| failed(error.into()))
}

/// Copies a database beside itself before its schema changes, unless that copy is there.
pub(super) fn before_migration(db: &Connection, file: &Path, schema: i64) -> Result<(), BackupError> {
    let folder = file.parent().unwrap_or(Path::new(".")).join("backups");
    let failed = |error: std::io::Error| BackupError::Failed { file: folder.clone(), source: error.into() };
    std::fs::create_dir_all(&folder).map_err(failed)?;
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
    match std::fs::remove_file(to) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(BackupError::Failed { file: to.to_owned(), source: error.into() }),
    }
    db.execute("VACUUM INTO ?1", [name]).map_err(failed)?;
    let copy = Connection::open_with_flags(to, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(failed)?;
    let findings = copy
        .prepare("PRAGMA quick_check(1)")
        .and_then(|mut check| check.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>())
        .map_err(failed)?;
    Ok(findings.into_iter().filter(|finding| finding != "ok").collect())
}
