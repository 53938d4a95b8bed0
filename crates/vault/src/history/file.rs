//! One file of the history: its lines as values, and how lines are added and removed.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

use quipu_core::ports::{LoggedFile, LoggedWrite, WriteNumber};
use rustix::fs::Mode;

use super::line::HistoryLine;
use crate::dir::{Dir, Metadata, if_exists};
use crate::failpoint;

/// A larger file is cut to its newer half before the next line is added: some ten thousand writes.
const MAX_BYTES: u64 = 16 << 20;
/// Above what an append can reach: a write that changes a hundred thousand notes adds less than the rest of this.
const MAX_READ: u64 = 4 * MAX_BYTES;
/// Writes and their files in memory. Lines that Quipu writes are too long for more of them to fit in the file.
pub(super) const MAX_ENTRIES: usize = 300_000;
/// The file as last read.
#[derive(Debug, Default)]
pub(super) struct HistoryFile {
    /// In `.quipu`.
    name: String,
    /// For this account only, even where a group shares the folder.
    is_private: bool,
    file: Option<(u64, u64)>,
    /// The end of the last complete line.
    end: u64,
    /// The start of the last line that is a write.
    last_start: u64,
    last_line: Vec<u8>,
    /// Complete lines that are no writes.
    pub(super) damaged: usize,
    /// It can be neither read nor renamed, so nothing is recorded.
    pub(super) is_unusable: bool,
    /// The file, as last seen, that is too large or no history: it is not read again.
    refused: Option<((u64, u64), u64)>,
    /// The number of writes and of their files.
    entries: usize,
    pub(super) writes: Vec<LoggedWrite>,
    /// The indexes of the writes of each path, in lower case.
    by_id: HashMap<String, Vec<usize>>,
}

impl HistoryFile {
    pub(super) fn new(name: String, is_private: bool) -> Self {
        Self { name, is_private, ..Self::default() }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Before the file is read.
    fn emptied(&self) -> Self {
        Self::new(self.name.clone(), self.is_private)
    }

    /// This log without its writes, for a file that can be neither read nor renamed.
    pub(super) fn unusable(&self) -> Self {
        Self { is_unusable: true, refused: self.refused, ..self.emptied() }
    }

    /// The numbers of the writes of a path, oldest first.
    pub(super) fn numbers_of(&self, id: &str) -> impl Iterator<Item = WriteNumber> {
        self.by_id.get(id).into_iter().flatten().map(|index| self.writes[*index].number)
    }

    pub(super) fn write(&self, number: WriteNumber) -> Option<&LoggedWrite> {
        let index = self.writes.binary_search_by_key(&number, |write| write.number).ok()?;
        self.writes.get(index)
    }

    /// Reads what was added since the last time.
    pub(super) fn refresh(&mut self, own: &Dir) -> io::Result<()> {
        let Some(file) = if_exists(own.open_file(&self.name))? else {
            *self = self.emptied();
            return Ok(());
        };
        let metadata = Metadata::of(&file)?;
        if self.is_private && metadata.owner.0 != rustix::process::geteuid().as_raw() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it belongs to another account"));
        }
        if self.is_private && metadata.mode & 0o077 != 0 {
            rustix::fs::fchmod(&file, Mode::from_raw_mode(0o600))?;
        }
        let stamp = (metadata.id(), metadata.stat.size);
        if metadata.stat.size > MAX_READ || self.refused == Some(stamp) {
            self.refused = Some(stamp);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is too large for a history"));
        }
        if self.file != Some(metadata.id()) || !self.is_continued_by(&file) {
            *self = Self { file: Some(metadata.id()), ..self.emptied() };
        }
        (&file).seek(SeekFrom::Start(self.end))?;
        let read = self.read_lines(BufReader::new((&file).take(MAX_READ)));
        if read.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::InvalidData) {
            self.refused = Some(stamp);
        }
        read
    }

    /// Reads line by line: the text of a file may take far less memory than its entries.
    fn read_lines(&mut self, mut lines: impl BufRead) -> io::Result<()> {
        let no_history = |why| Err(io::Error::new(io::ErrorKind::InvalidData, why));
        loop {
            let mut line = Vec::new();
            lines.read_until(b'\n', &mut line)?;
            if !line.ends_with(b"\n") {
                break;
            }
            let start = self.end;
            self.end += line.len() as u64;
            let last = self.writes.last().map_or(WriteNumber(0), |write| write.number);
            match HistoryLine::parse(&line).filter(|write| write.number > last && has_successor(write)) {
                Some(write) => {
                    self.last_start = start;
                    self.entries += 1 + write.files.len();
                    self.push(write);
                }
                None => self.damaged += 1,
            }
            self.last_line = line;
            if self.entries > MAX_ENTRIES {
                return no_history("it has more entries than a history can have");
            }
        }
        if self.writes.is_empty() && self.end > MAX_BYTES {
            return no_history("none of its lines is an entry");
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
    pub(super) fn append(&mut self, own: &Dir, line: &HistoryLine, is_durable: bool) -> io::Result<()> {
        if self.is_unusable || self.writes.last().is_some_and(|last| last.number >= line.number()) {
            return Ok(());
        }
        if self.end > MAX_BYTES {
            self.drop_older_half(own)?;
        }
        failpoint::hit("history")?;
        let (file, is_new) = match if_exists(own.open_file_to_write(&self.name))? {
            Some(file) => (file, false),
            None => (self.create(own, &self.name)?, true),
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
    pub(super) fn remove(&mut self, own: &Dir, number: WriteNumber) -> io::Result<()> {
        if self.writes.last().is_none_or(|last| last.number != number) {
            return Ok(());
        }
        failpoint::hit("remove from history")?;
        let file = own.open_file_to_write(&self.name)?;
        file.set_len(self.last_start)?;
        file.sync_all()
    }

    fn create(&self, own: &Dir, name: &str) -> io::Result<File> {
        if self.is_private { own.create_private_file(name) } else { own.create_own_file(name) }
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
    pub(super) fn rewrite(&mut self, own: &Dir, writes: &[LoggedWrite]) -> io::Result<()> {
        if self.is_unusable {
            return Ok(());
        }
        let new = format!("{}.new", self.name);
        own.remove_file(&new)?;
        let file = self.create(own, &new)?;
        let lines: Vec<u8> = writes.iter().flat_map(|write| HistoryLine::from(write).to_bytes()).collect();
        file.write_all_at(&lines, 0)?;
        file.sync_all()?;
        own.rename(&new, &self.name)?;
        own.sync()?;
        self.refresh(own)
    }
}

/// Whether a write can follow this one: a number or a time at the end of its range was not written by this program.
fn has_successor(write: &LoggedWrite) -> bool {
    const END: i64 = i64::MAX / 2;
    write.number.0 < END && write.at_ns < END
}
