//! The history of the notes in `.quipu/history.jsonl`: one line for each write, oldest first.
//!
//! A write adds its line after its files are in place and before it is marked as done; the journal has the line too. So
//! recovery adds it to a write that took place, and removes it from one that is undone. The last line counts only with its
//! end: an interrupted append is overwritten by the next one.
//!
//! Where a group shares `.quipu`, files that the group cannot read are in a file of the account that wrote them, under the number
//! of the same write, and the line that the group can read only counts them.
//!
//! A file that is no history is renamed and reported. It never prevents a write.

mod file;
mod line;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io;

use quipu_core::model::Warning;
use quipu_core::ports::{Clock, LoggedFile, LoggedWrite, NamePeriod, OUTSIDE, SystemClock, WriteFilter, WriteNumber};

use crate::dir::{Dir, Metadata, is_no_folder, is_passing};
use crate::folder::join;
use crate::folder_vault::FolderVault;
use crate::kept_file::is_closed_to;
use crate::own_folder::OWN_FOLDER;
use crate::trash::{self, TrashBatch};
use crate::write_lock::WriteLock;
use crate::written;
use file::HistoryFile;
pub(crate) use line::HistoryLine;

const STEM: &str = "history";
/// Files of one batch that another program changed. A checkout may change any number.
const MAX_OUTSIDE: usize = 1000;

/// The files as last read.
#[derive(Debug)]
pub(crate) struct History {
    shared: HistoryFile,
    /// Readable by this account alone.
    private: HistoryFile,
}

impl Default for History {
    fn default() -> Self {
        let private = format!("{STEM}-{}.jsonl", rustix::process::geteuid().as_raw());
        Self { shared: HistoryFile::new(format!("{STEM}.jsonl"), false), private: HistoryFile::new(private, true) }
    }
}

impl History {
    fn files(&mut self) -> [&mut HistoryFile; 2] {
        [&mut self.shared, &mut self.private]
    }

    /// The number and the time of the next write. Times increase, whatever the clock does.
    fn next(&self) -> (WriteNumber, i64) {
        let now_ns = SystemClock.now_ns();
        let last = [&self.shared, &self.private].into_iter().filter_map(|file| file.writes.last());
        last.fold((WriteNumber(1), now_ns), |(number, at_ns), last| {
            (number.max(WriteNumber(last.number.0 + 1)), at_ns.max(last.at_ns + 1))
        })
    }

    #[cfg(test)]
    pub(crate) fn damaged(&self) -> usize {
        self.shared.damaged
    }

    /// The writes that match, newest first.
    fn select(&self, filter: &WriteFilter) -> impl Iterator<Item = Cow<'_, LoggedWrite>> {
        let numbers: Box<dyn Iterator<Item = WriteNumber>> = match &filter.id {
            Some(id) => {
                let numbers = [&self.shared, &self.private].into_iter().flat_map(|file| file.numbers_of(id.as_str()));
                Box::new(numbers.collect::<BTreeSet<_>>().into_iter().rev())
            }
            None => Box::new(self.shared.writes.iter().rev().map(|write| write.number)),
        };
        let writes = numbers.filter_map(|number| self.whole(number));
        writes.filter(|write| filter.admits(write)).take(filter.limit)
    }

    /// A write with the files that only this account can see.
    fn whole(&self, number: WriteNumber) -> Option<Cow<'_, LoggedWrite>> {
        let write = self.shared.write(number)?;
        let Some(private) = self.private.write(number).filter(|private| private.at_ns == write.at_ns) else {
            return Some(Cow::Borrowed(write));
        };
        let mut whole = write.clone();
        whole.files.extend(private.files.iter().cloned());
        whole.unlisted = whole.unlisted.saturating_sub(private.files.len());
        Some(Cow::Owned(whole))
    }

    /// Whether what another program did to a file is to be recorded.
    fn is_news(&self, file: &LoggedFile, now_ns: i64) -> bool {
        let filter = WriteFilter { id: Some(file.path.note_id()), ..WriteFilter::default() };
        for write in self.select(&filter) {
            if let Some(last) = write.files.iter().find(|last| last.paths().any(|path| *path == file.path)) {
                return file.is_news(Some((&write, last)), now_ns);
            }
        }
        file.is_news(None, now_ns)
    }

    /// Adds a line, unless it is there already.
    fn append(&mut self, vault: &FolderVault, own: &Dir, line: &HistoryLine, is_durable: bool) -> io::Result<()> {
        if !own.is_shared()? {
            return self.shared.append(own, line, is_durable);
        }
        let (root, group) = (vault.open_root()?, Metadata::of(own)?.owner.1);
        let (open, closed) = line.split(|file| is_closed_to(&root, group, file));
        if let Some(closed) = closed {
            self.private.append(own, &closed, is_durable)?;
        }
        self.shared.append(own, &open, is_durable)
    }
}

/// Runs `work` on the history as it is now, under the lock of writers. A file that is no history is renamed first. One that
/// cannot be read at the moment fails the call: all that was recorded would be lost.
fn with<T>(vault: &FolderVault, own: &Dir, work: impl FnOnce(&mut History) -> io::Result<T>) -> io::Result<T> {
    let mut history = vault.history.lock();
    for file in history.files() {
        let mut read = file.refresh(own);
        match read {
            Err(error) if is_passing(&error) => return Err(error),
            Err(ref error) if error.kind() != io::ErrorKind::PermissionDenied => {
                let refused = format!("{STEM}.refused-{}.jsonl", trash::timestamp(SystemClock.now_ns()));
                if own.rename(file.name(), &refused).is_ok() {
                    read = file.refresh(own);
                    let message =
                        format!("this was {}, which could not be read; a new history was started", file.name());
                    notice(vault, &refused, &message);
                }
            }
            Ok(()) | Err(_) => {}
        }
        report(vault, file, read);
    }
    work(&mut history)
}

/// Reports what is wrong with the file.
fn report(vault: &FolderVault, file: &mut HistoryFile, read: io::Result<()>) {
    if let Err(error) = read {
        *file = file.unusable();
        let message = format!("the history of notes cannot be read ({error}), and changes are not recorded");
        notice(vault, file.name(), &message);
    }
    if file.damaged > 0 {
        let message = format!("{} line(s) of the history of notes are damaged and ignored", file.damaged);
        notice(vault, file.name(), &message);
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
    with(vault, own, |history| history.append(vault, own, line, true))
}

/// Removes the line of a write that is undone.
pub(crate) fn remove(vault: &FolderVault, own: &Dir, number: WriteNumber) -> io::Result<()> {
    with(vault, own, |history| history.files().into_iter().try_for_each(|file| file.remove(own, number)))
}

/// The writes that match, newest first.
pub(crate) fn writes(vault: &FolderVault, filter: &WriteFilter) -> io::Result<Vec<LoggedWrite>> {
    match vault.open_root()?.open(OWN_FOLDER) {
        Err(error) if is_no_folder(&error) => Ok(Vec::new()),
        Err(error) => Err(error),
        Ok(own) => {
            let mut history = vault.history.lock();
            for file in history.files() {
                let read = file.refresh(&own);
                report(vault, file, read);
            }
            Ok(history.select(filter).map(Cow::into_owned).collect())
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
            let is_news = history.is_news(file, at_ns);
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
        history.append(vault, &lock.own, &(&write).into(), false)
    })
}

/// The versions in the trash that belong to a note, and those that belong to others.
pub(crate) fn kept_of(vault: &FolderVault, own: &Dir, names: &[NamePeriod]) -> io::Result<(Vec<String>, Vec<String>)> {
    with(vault, own, |history| {
        let (mut note, mut others) = (Vec::new(), Vec::new());
        for write in history.files().into_iter().flat_map(|file| &file.writes) {
            for file in &write.files {
                let is_note = names.iter().any(|name| name.covers_entry(write, file));
                if is_note { &mut note } else { &mut others }.extend(file.kept.clone());
            }
        }
        Ok((note, others))
    })
}

/// Changes the recorded writes.
pub(crate) fn rewrite(vault: &FolderVault, own: &Dir, mut change: impl FnMut(&mut LoggedWrite)) -> io::Result<()> {
    with(vault, own, |history| {
        for file in history.files().into_iter().filter(|file| !file.writes.is_empty()) {
            let mut writes = file.writes.clone();
            writes.iter_mut().for_each(&mut change);
            file.rewrite(own, &writes)?;
        }
        Ok(())
    })
}

/// Removes the writes before a time, except the last, whose number is the last one given.
pub(crate) fn prune(vault: &FolderVault, own: &Dir, before_ns: i64) -> io::Result<()> {
    with(vault, own, |history| {
        for file in history.files() {
            let last = file.writes.last().map(|write| write.number);
            let is_kept = |write: &&LoggedWrite| write.at_ns >= before_ns || Some(write.number) == last;
            let kept: Vec<LoggedWrite> = file.writes.iter().filter(is_kept).cloned().collect();
            if kept.len() < file.writes.len() {
                file.rewrite(own, &kept)?;
            }
        }
        Ok(())
    })
}
