//! Consistent copies of memory while others write: one read transaction writes a new file, which is checked and then renamed.

#![expect(clippy::disallowed_methods, reason = "puts memory's own copy in place")]

use std::fs::{File, Metadata};
use std::io::{self, Seek};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
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
    // Without links, which SQLite refuses in the path of a new file.
    let real = folder.canonicalize().map_err(|error| failed(error.into()))?;
    let mut name = to.file_name().unwrap_or_default().to_owned();
    name.push(".unfinished");
    let unfinished = real.join(name);
    let outcome = UnfinishedCopy::create(&unfinished).map_err(|error| failed(error.into())).and_then(|new| {
        vacuum(db, &new).map_err(failed)?;
        match new.finish().map_err(failed)?.first() {
            Some(finding) => Err(BackupError::Unsound(finding.clone())),
            None => put_in_place(&new, to, &RENAME_METHODS),
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

/// The copy while it is written. SQLite opens files by their path, and in a folder that others may write another account may have put
/// a link or a file there since: the path must lead to the file that was created.
struct UnfinishedCopy {
    path: PathBuf,
    file: File,
}

impl UnfinishedCopy {
    /// Replaces what an interrupted copy left.
    fn create(path: &Path) -> io::Result<Self> {
        remove_if_there(path)?;
        Ok(Self { path: path.to_owned(), file: create_private(path)? })
    }

    /// Fails unless a path leads to this file, and not through a link.
    fn check_at(&self, path: &Path) -> io::Result<()> {
        let id = |metadata: Metadata| (metadata.dev(), metadata.ino());
        if id(path.symlink_metadata()?) == id(self.file.metadata()?) {
            return Ok(());
        }
        let message = "another program put another file in its place; choose a folder that only you can write";
        Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
    }

    /// Starts the history of the copy, checks its content, and syncs it. Returns findings.
    fn finish(&self) -> Result<Vec<String>, Box<dyn std::error::Error + Send + Sync>> {
        self.check_at(&self.path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let copy = Connection::open_with_flags(&self.path, flags)?;
        // The connection has the file open that was there a moment ago.
        self.check_at(&self.path)?;
        // No other process uses the copy yet, and an unfinished one is written again.
        copy.pragma_update(None, "journal_mode", "OFF")?;
        file_guard::begin_history(&copy)?;
        let findings = copy
            .prepare("PRAGMA quick_check(1)")?
            .query_map([], |row| row.get::<_, String>(0))?
            .collect::<Result<Vec<_>, _>>()?;
        self.file.sync_all()?;
        Ok(findings.into_iter().filter(|finding| finding != "ok").collect())
    }
}

/// Writes the content of a database to the new file. SQLite fails if a link or a file with content is there.
fn vacuum(db: &Connection, to: &UnfinishedCopy) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let name = to.path.to_str().ok_or("the path is not UTF-8, which SQLite needs")?;
    db.execute("VACUUM INTO ?1", [name])?;
    Ok(())
}

/// Gives a file another name; fails if that name exists.
type RenameMethod = fn(&UnfinishedCopy, &Path) -> io::Result<()>;

/// Best first. Not every file system has the first two: FAT, for one, has no hard links. A copy is last, since a kill during
/// it leaves an incomplete file.
const RENAME_METHODS: [RenameMethod; 3] = [rename_to_free, link, copy_to_free];

/// Renames the finished copy by the first method that works. A file of that name that was created meanwhile stays.
fn put_in_place(from: &UnfinishedCopy, to: &Path, methods: &[RenameMethod]) -> Result<(), BackupError> {
    let failed = |error: io::Error| BackupError::Failed { file: to.to_owned(), source: error.into() };
    from.check_at(&from.path).map_err(failed)?;
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
    outcome.map_err(failed)
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn rename_to_free(from: &UnfinishedCopy, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    renameat_with(CWD, &from.path, CWD, to, RenameFlags::NOREPLACE)?;
    Ok(())
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn rename_to_free(_from: &UnfinishedCopy, _to: &Path) -> io::Result<()> {
    // A plain rename would replace an existing file.
    Err(io::ErrorKind::Unsupported.into())
}

fn link(from: &UnfinishedCopy, to: &Path) -> io::Result<()> {
    std::fs::hard_link(&from.path, to)
}

fn copy_to_free(from: &UnfinishedCopy, to: &Path) -> io::Result<()> {
    let mut target = create_private(to)?;
    let mut source = &from.file;
    let copied = source.rewind().and_then(|()| io::copy(&mut source, &mut target));
    let outcome = copied.and_then(|_| target.sync_all());
    if outcome.is_err() {
        // The incomplete copy; the error of the copy is the one to return.
        let _ = std::fs::remove_file(to);
    }
    outcome
}

/// Creates a file that only its owner can read.
fn create_private(file: &Path) -> io::Result<File> {
    File::options().read(true).write(true).create_new(true).mode(0o600).open(file)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A method that the file system does not have.
    fn lacking(_: &UnfinishedCopy, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn new_file(path: &Path, text: &str) -> UnfinishedCopy {
        let new = UnfinishedCopy::create(path).unwrap();
        std::fs::write(path, text).unwrap();
        new
    }

    #[test]
    fn copy_is_renamed_by_the_first_method_that_works() {
        for methods in [RENAME_METHODS, [lacking, link, copy_to_free], [lacking, lacking, copy_to_free]] {
            let home = tempfile::tempdir().unwrap();
            let (from, to) = (home.path().join("from"), home.path().join("to"));
            put_in_place(&new_file(&from, "whole"), &to, &methods).unwrap();
            assert_eq!(std::fs::read(&to).unwrap(), b"whole");

            let taken = home.path().join("taken");
            std::fs::write(&taken, "theirs").unwrap();
            let refused = put_in_place(&new_file(&from, "another"), &taken, &methods).unwrap_err();
            assert!(matches!(refused, BackupError::Exists(_)), "{refused}");
            assert_eq!(std::fs::read(&taken).unwrap(), b"theirs");
        }
    }

    #[test]
    fn failed_copy_leaves_no_file() {
        let home = tempfile::tempdir().unwrap();
        let (from, to) = (home.path().join("from"), home.path().join("to"));
        let new = new_file(&from, "x");
        std::fs::remove_file(&from).unwrap();
        let failed = put_in_place(&new, &to, &[rename_to_free, link]).unwrap_err();
        assert!(matches!(failed, BackupError::Failed { .. }), "{failed}");
        assert!(!to.exists());
    }

    #[test]
    fn file_that_was_put_in_the_place_of_the_copy_is_not_written() {
        let home = tempfile::tempdir().unwrap();
        let (from, to, theirs) = (home.path().join("from"), home.path().join("to"), home.path().join("theirs.db"));
        let db = Connection::open(home.path().join("memory.db")).unwrap();
        db.execute_batch("CREATE TABLE a (b)").unwrap();
        db.execute("VACUUM INTO ?1", [theirs.to_str().unwrap()]).unwrap();
        let before = std::fs::read(&theirs).unwrap();
        let swaps: [fn(&Path, &Path); 2] = [
            |theirs, at| std::os::unix::fs::symlink(theirs, at).unwrap(),
            |theirs, at| std::fs::hard_link(theirs, at).unwrap(),
        ];
        for swap in swaps {
            let new = UnfinishedCopy::create(&from).unwrap();
            vacuum(&db, &new).unwrap();
            std::fs::remove_file(&from).unwrap();
            swap(&theirs, &from);
            let refused = new.finish().unwrap_err().to_string();
            assert!(refused.contains("another file in its place"), "{refused}");
            let failed = put_in_place(&new, &to, &[rename_to_free]).unwrap_err();
            assert!(failed.to_string().contains("another file in its place"), "{failed}");
            assert!(std::fs::read(&theirs).unwrap() == before);
        }
    }

    #[test]
    fn folder_of_copies_that_a_crash_left_unshared_is_shared_later() {
        use std::os::unix::fs::PermissionsExt;

        let home = tempfile::tempdir().unwrap();
        let set = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        let backups = home.path().join("backups");
        quipu_own_folder::create_private(&backups).unwrap();
        set(home.path(), 0o2770);
        let own = OwnFolder::open(home.path()).unwrap();
        own.tighten(&|name| name == "backups").unwrap();
        assert_eq!(backups.metadata().unwrap().mode() & 0o777, 0o700);
        own.folder("backups").unwrap();
        assert_eq!(backups.metadata().unwrap().mode() & 0o7777, 0o2770);
    }
}
