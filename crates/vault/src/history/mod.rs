//! The history of the notes in `.quipu/history.jsonl`: one line for each write, oldest first.
//!
//! A write adds its line after its files are in place and before it is marked as done; the journal has the line too. So
//! recovery adds it to a write that took place, and removes it from one that is undone. The last line counts only with its
//! end: an interrupted append is overwritten by the next one.
//!
//! A file that is no history is renamed and reported. It never prevents a write.

mod line;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

use quipu_core::model::{VaultPath, Warning};
use quipu_core::ports::{Clock, LoggedFile, LoggedWrite, NamePeriod, OUTSIDE, SystemClock, WriteFilter, WriteNumber};

use crate::dir::{Dir, Metadata, if_exists, is_no_folder, is_passing};
use crate::failpoint;
use crate::folder::join;
use crate::folder_vault::FolderVault;
use crate::own_folder::OWN_FOLDER;
use crate::trash::{self, TrashBatch};
use crate::write_lock::WriteLock;
use crate::written;
pub(crate) use line::HistoryLine;

const NAME: &str = "history.jsonl";
const NEW_NAME: &str = "history.jsonl.new";

/// A larger file is cut to its newer half before the next line is added: some ten thousand writes.
const MAX_BYTES: u64 = 16 << 20;
/// Far above what an append can reach.
const MAX_READ: u64 = 8 * MAX_BYTES;
/// Files of one batch that another program changed. A checkout may change any number.
const MAX_OUTSIDE: usize = 1000;

/// The file as last read.
#[derive(Debug, Default)]
pub(crate) struct History {
    file: Option<(u64, u64)>,
    /// The end of the last complete line.
    end: u64,
    /// The start of the last line that is a write.
    last_start: u64,
    last_line: Vec<u8>,
    /// Complete lines that are no writes.
    damaged: usize,
    /// It can be neither read nor renamed, so nothing is recorded.
    is_unusable: bool,
    writes: Vec<LoggedWrite>,
    /// The indexes of the writes of each path, in lower case.
    by_id: HashMap<String, Vec<usize>>,
}

impl History {
    /// The number and the time of the next write. Times increase, whatever the clock does.
    fn next(&self) -> (WriteNumber, i64) {
        let now_ns = SystemClock.now_ns();
        match self.writes.last() {
            Some(last) => (WriteNumber(last.number.0 + 1), now_ns.max(last.at_ns + 1)),
            None => (WriteNumber(1), now_ns),
        }
    }

    #[cfg(test)]
    pub(crate) fn damaged(&self) -> usize {
        self.damaged
    }

    /// The last entry about a file at a path.
    fn last_about(&self, path: &VaultPath) -> Option<(&LoggedWrite, &LoggedFile)> {
        let writes = self.by_id.get(path.note_id().as_str())?.iter().rev().map(|index| &self.writes[*index]);
        let entries = writes.flat_map(|write| write.files.iter().map(move |file| (write, file)));
        entries.into_iter().find(|(_, file)| file.paths().any(|other| other == path))
    }

    fn select(&self, filter: &WriteFilter) -> Vec<LoggedWrite> {
        let all = || 0..self.writes.len();
        let indexes: Box<dyn Iterator<Item = usize>> = match &filter.id {
            Some(id) => Box::new(self.by_id.get(id.as_str()).into_iter().flatten().rev().copied()),
            None => Box::new(all().rev()),
        };
        let writes = indexes.map(|index| &self.writes[index]);
        writes.filter(|write| filter.admits(write)).take(filter.limit).cloned().collect()
    }

    /// Reads what was added since the last time.
    fn refresh(&mut self, own: &Dir) -> io::Result<()> {
        let Some(file) = if_exists(own.open_file(NAME))? else {
            *self = Self::default();
            return Ok(());
        };
        let metadata = Metadata::of(&file)?;
        if metadata.stat.size > MAX_READ {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is too large for a history"));
        }
        if self.file != Some(metadata.id()) || !self.is_continued_by(&file) {
            *self = Self { file: Some(metadata.id()), ..Self::default() };
        }
        let mut bytes = Vec::new();
        (&file).seek(SeekFrom::Start(self.end))?;
        (&file).take(MAX_READ).read_to_end(&mut bytes)?;
        for line in bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")) {
            self.end += line.len() as u64;
            line.clone_into(&mut self.last_line);
            let last = self.writes.last().map_or(WriteNumber(0), |write| write.number);
            match HistoryLine::parse(line).filter(|write| write.number > last && has_successor(write)) {
                Some(write) => {
                    self.last_start = self.end - line.len() as u64;
                    self.push(write);
                }
                None => self.damaged += 1,
            }
        }
        if self.writes.is_empty() && self.end > MAX_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "none of its lines is an entry"));
        }
        Ok(())
    }

    /// Whether the file still has the last line that was read: an undone write removes one.
    fn is_continued_by(&self, file: &File) -> bool {
        let mut line = vec![0; self.last_line.len()];
        let start = self.end.saturating_sub(line.len() as u64);
        file.read_exact_at(&mut line, start).is_ok() && line == self.last_line
    }

    fn push(&mut self, write: LoggedWrite) {
        let index = self.writes.len();
        for path in write.files.iter().flat_map(LoggedFile::paths) {
            let indexes = self.by_id.entry(path.note_id().to_string()).or_default();
            if indexes.last() != Some(&index) {
                indexes.push(index);
            }
        }
        self.writes.push(write);
    }

    /// Adds a line, unless it is there already.
    fn append(&mut self, own: &Dir, line: &HistoryLine, is_durable: bool) -> io::Result<()> {
        if self.is_unusable || self.writes.last().is_some_and(|last| last.number >= line.number()) {
            return Ok(());
        }
        if self.end > MAX_BYTES {
            self.drop_older_half(own)?;
        }
        failpoint::hit("history")?;
        let (file, is_new) = match if_exists(own.open_file_to_write(NAME))? {
            Some(file) => (file, false),
            None => (own.create_own_file(NAME)?, true),
        };
        file.set_len(self.end)?;
        let bytes = line.to_bytes();
        let (first, rest) = bytes.split_at(bytes.len() / 2);
        file.write_all_at(first, self.end)?;
        failpoint::hit("history, the rest")?;
        file.write_all_at(rest, self.end + first.len() as u64)?;
        if is_durable {
            file.sync_data()?;
        }
        if is_new { own.sync() } else { Ok(()) }
    }

    /// Removes the line of the last write if it is this one's, with damaged lines after it.
    fn remove(&mut self, own: &Dir, number: WriteNumber) -> io::Result<()> {
        if self.writes.last().is_none_or(|last| last.number != number) {
            return Ok(());
        }
        failpoint::hit("remove from history")?;
        let file = own.open_file_to_write(NAME)?;
        file.set_len(self.last_start)?;
        file.sync_all()
    }

    fn drop_older_half(&mut self, own: &Dir) -> io::Result<()> {
        let mut bytes = 0;
        let newer = self.writes.iter().rev().take_while(|write| {
            bytes += HistoryLine::from(*write).to_bytes().len() as u64;
            bytes <= MAX_BYTES / 2
        });
        let start = self.writes.len().saturating_sub(newer.count().max(1));
        let kept = self.writes.split_off(start);
        self.rewrite(own, &kept)
    }

    /// Replaces the file by these writes.
    fn rewrite(&mut self, own: &Dir, writes: &[LoggedWrite]) -> io::Result<()> {
        if self.is_unusable {
            return Ok(());
        }
        own.remove_file(NEW_NAME)?;
        let file = own.create_own_file(NEW_NAME)?;
        let lines: Vec<u8> = writes.iter().flat_map(|write| HistoryLine::from(write).to_bytes()).collect();
        file.write_all_at(&lines, 0)?;
        file.sync_all()?;
        own.rename(NEW_NAME, NAME)?;
        own.sync()?;
        self.refresh(own)
    }
}

/// Whether a write can follow this one: a number or a time at the end of its range was not written by this program.
fn has_successor(write: &LoggedWrite) -> bool {
    const END: i64 = i64::MAX / 2;
    write.number.0 < END && write.at_ns < END
}

/// Runs `work` on the history as it is now, under the lock of writers. A file that is no history is renamed first. One that
/// cannot be read at the moment fails the call: all that was recorded would be lost.
fn with<T>(vault: &FolderVault, own: &Dir, work: impl FnOnce(&mut History) -> io::Result<T>) -> io::Result<T> {
    let mut history = vault.history.lock();
    let mut read = history.refresh(own);
    match read {
        Err(error) if is_passing(&error) => return Err(error),
        Err(ref error) if error.kind() != io::ErrorKind::PermissionDenied => {
            let refused = format!("history.refused-{}.jsonl", trash::timestamp(SystemClock.now_ns()));
            if own.rename(NAME, &refused).is_ok() {
                read = history.refresh(own);
                let message = format!("this was {NAME}, which could not be read; a new history was started");
                notice(vault, &refused, &message);
            }
        }
        Ok(()) | Err(_) => {}
    }
    report(vault, &mut history, read);
    work(&mut history)
}

/// Reports what is wrong with the file.
fn report(vault: &FolderVault, history: &mut History, read: io::Result<()>) {
    if let Err(error) = read {
        *history = History { is_unusable: true, ..History::default() };
        notice(vault, NAME, &format!("the history of notes cannot be read ({error}), and changes are not recorded"));
    }
    if history.damaged > 0 {
        let count = history.damaged;
        notice(vault, NAME, &format!("{count} line(s) of the history of notes are damaged and ignored"));
    }
}

fn notice(vault: &FolderVault, name: &str, message: &str) {
    vault.notices.lock().insert(Warning { path: join(OWN_FOLDER, name), message: message.to_owned() });
}

/// The number and the time of the write that is about to begin.
pub(crate) fn next(vault: &FolderVault, own: &Dir) -> io::Result<(WriteNumber, i64)> {
    with(vault, own, |history| Ok(history.next()))
}

/// Adds the line of a write that took place, unless it is there already. Durable when this returns.
pub(crate) fn append(vault: &FolderVault, own: &Dir, line: &HistoryLine) -> io::Result<()> {
    with(vault, own, |history| history.append(own, line, true))
}

/// Removes the line of a write that is undone.
pub(crate) fn remove(vault: &FolderVault, own: &Dir, number: WriteNumber) -> io::Result<()> {
    with(vault, own, |history| history.remove(own, number))
}

/// The writes that match, newest first.
pub(crate) fn writes(vault: &FolderVault, filter: &WriteFilter) -> io::Result<Vec<LoggedWrite>> {
    match vault.open_root()?.open(OWN_FOLDER) {
        Err(error) if is_no_folder(&error) => Ok(Vec::new()),
        Err(error) => Err(error),
        Ok(own) => {
            let mut history = vault.history.lock();
            let read = history.refresh(&own);
            report(vault, &mut history, read);
            Ok(history.select(filter))
        }
    }
}

/// Records what another program did. Not synced: after a power cut the files tell it again.
pub(crate) fn record_outside(vault: &FolderVault, lock: &WriteLock<'_>, files: &[LoggedFile]) -> io::Result<()> {
    with(vault, &lock.own, |history| {
        let (number, at_ns) = history.next();
        let trash = TrashBatch::new(&lock.root, at_ns)?;
        let mut news = Vec::new();
        for file in files {
            let is_news = file.is_news(history.last_about(&file.path), at_ns);
            let kept = written::follow_outside(vault, &lock.root, file, (&trash, is_news));
            news.extend(is_news.then(|| LoggedFile { kept, ..file.clone() }));
        }
        let mut files = news;
        if files.is_empty() {
            return Ok(());
        }
        let unlisted = files.len().saturating_sub(MAX_OUTSIDE);
        files.truncate(MAX_OUTSIDE);
        let write = LoggedWrite { number, at_ns, by: OUTSIDE.to_owned(), files, unlisted };
        history.append(&lock.own, &(&write).into(), false)
    })
}

/// The versions in the trash that belong to a note, and those that belong to others.
pub(crate) fn kept_of(vault: &FolderVault, own: &Dir, names: &[NamePeriod]) -> io::Result<(Vec<String>, Vec<String>)> {
    with(vault, own, |history| {
        let (mut note, mut others) = (Vec::new(), Vec::new());
        for write in &history.writes {
            for file in &write.files {
                let is_note = names.iter().any(|name| name.covers_entry(write, file));
                if is_note { &mut note } else { &mut others }.extend(file.kept.clone());
            }
        }
        Ok((note, others))
    })
}

/// Removes the entries of a note.
pub(crate) fn forget(vault: &FolderVault, own: &Dir, names: &[NamePeriod]) -> io::Result<()> {
    with(vault, own, |history| {
        let mut writes = history.writes.clone();
        for write in &mut writes {
            let before = write.files.len();
            let copy = write.clone();
            write.files.retain(|file| !names.iter().any(|name| name.covers_entry(&copy, file)));
            write.unlisted += before - write.files.len();
        }
        history.rewrite(own, &writes)
    })
}

/// Removes the writes before a time, except the last, whose number is the last one given.
pub(crate) fn prune(vault: &FolderVault, own: &Dir, before_ns: i64) -> io::Result<()> {
    with(vault, own, |history| {
        let last = history.writes.last().map(|write| write.number);
        let is_kept = |write: &&LoggedWrite| write.at_ns >= before_ns || Some(write.number) == last;
        let kept: Vec<LoggedWrite> = history.writes.iter().filter(is_kept).cloned().collect();
        if kept.len() == history.writes.len() { Ok(()) } else { history.rewrite(own, &kept) }
    })
}
