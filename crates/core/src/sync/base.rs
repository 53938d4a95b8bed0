//! The base: the versions that folder and graph had in common, kept as lines of text that are appended.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::io;

use super::decide::SyncVersion;
use super::plan::Side;
use crate::model::{ContentHash, VaultPath};

/// The first line.
const HEADER: &str = "quipu sync 1";

/// The versions that both sides had when they were last in sync.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Base {
    pub(super) notes: BTreeMap<VaultPath, Entry>,
    position: i64,
}

/// The recorded state of a note.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Entry {
    version: SyncVersion,
    /// A write of which it is not known whether it was made: the side, and its version afterwards.
    writing: Option<(Side, SyncVersion)>,
}

/// A change of the base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BaseChange {
    /// Both sides have this version.
    InSync(VaultPath, ContentHash),
    /// Neither side has the note, or it is no longer synchronised.
    Gone(VaultPath),
    /// A side is about to get this version. Recorded before the write: a run that is killed cannot tell whether it was made.
    Writing(VaultPath, Side, SyncVersion),
    /// That write was refused.
    NotWritten(VaultPath),
    /// Every change of the graph up to this number of its feed was compared.
    Position(i64),
}

/// Where the base is kept.
pub trait BaseLog {
    /// The base as recorded.
    fn base(&self) -> &Base;

    /// Records changes: what is about to be written before the write, all else after the writes that it describes.
    fn record(&mut self, changes: &[BaseChange]) -> io::Result<()>;
}

impl Base {
    /// Reads lines. Reading ends at an incomplete or invalid line, which a kill may leave at the end; `is_whole` says whether
    /// there was none. What is missing only makes the next comparison more careful.
    pub fn parse(text: &str) -> (Self, bool) {
        let mut base = Self::default();
        let mut lines = text.split_inclusive('\n');
        let is_ours = lines.next().is_some_and(|line| line.strip_suffix('\n') == Some(HEADER));
        let is_whole = is_ours && lines.all(|line| line.strip_suffix('\n').is_some_and(|line| base.read(line)));
        (base, is_whole)
    }

    /// The shortest text that reads as this base.
    pub fn to_text(&self) -> String {
        let mut text = format!("{HEADER}\n");
        for (path, entry) in &self.notes {
            let version = entry.version.map(|version| BaseChange::InSync(path.clone(), version));
            let writing = entry.writing.map(|(side, version)| BaseChange::Writing(path.clone(), side, version));
            version.iter().chain(&writing).for_each(|change| write_line(&mut text, change));
        }
        write_line(&mut text, &BaseChange::Position(self.position));
        text
    }

    /// The text to append for changes.
    pub fn lines(changes: &[BaseChange]) -> String {
        let mut text = String::new();
        changes.iter().for_each(|change| write_line(&mut text, change));
        text
    }

    /// Applies changes in memory.
    pub fn apply(&mut self, changes: &[BaseChange]) {
        for change in changes {
            match change {
                BaseChange::InSync(path, version) => {
                    self.notes.insert(path.clone(), Entry { version: Some(*version), writing: None });
                }
                BaseChange::Gone(path) => _ = self.notes.remove(path),
                BaseChange::Writing(path, side, version) => {
                    self.notes.entry(path.clone()).or_default().writing = Some((*side, *version));
                }
                BaseChange::NotWritten(path) => match self.notes.get_mut(path) {
                    Some(entry) if entry.version.is_some() => entry.writing = None,
                    _ => _ = self.notes.remove(path),
                },
                BaseChange::Position(position) => self.position = *position,
            }
        }
    }

    /// The version that both sides had, given what they have now. After a write of which it is not known whether it was made,
    /// that is what the written side has, if it is the version before or after; otherwise it is unknown.
    pub(super) fn version(&self, path: &VaultPath, folder: SyncVersion, graph: SyncVersion) -> SyncVersion {
        let entry = self.notes.get(path)?;
        let Some((side, after)) = entry.writing else { return entry.version };
        let now = if side == Side::Folder { folder } else { graph };
        if now == after || now == entry.version { now } else { None }
    }

    /// Whether exactly this version is recorded, and no write.
    pub(super) fn records(&self, path: &VaultPath, version: SyncVersion) -> bool {
        self.notes.get(path).copied().unwrap_or_default() == Entry { version, writing: None }
    }

    /// Whether nothing is known of any note.
    pub fn is_empty(&self) -> bool {
        self.notes.is_empty()
    }

    /// The number of notes.
    pub fn len(&self) -> usize {
        self.notes.len()
    }

    /// The number of the graph's feed up to which every change was compared.
    pub fn position(&self) -> i64 {
        self.position
    }

    fn read(&mut self, line: &str) -> bool {
        let Some((what, rest)) = line.split_once(' ') else { return false };
        let path = || VaultPath::parse(rest).ok();
        let change = match what {
            "@" => rest.parse().ok().map(BaseChange::Position),
            "-" => path().map(BaseChange::Gone),
            "!" => path().map(BaseChange::NotWritten),
            "folder" => read_writing(Side::Folder, rest),
            "graph" => read_writing(Side::Graph, rest),
            hash => from_hex(hash).zip(path()).map(|(version, path)| BaseChange::InSync(path, version)),
        };
        change.map(|change| self.apply(&[change])).is_some()
    }
}

fn write_line(text: &mut String, change: &BaseChange) {
    // Writing to a string cannot fail. A path has no line end: it has no control characters.
    let _ = match change {
        BaseChange::InSync(path, version) => writeln!(text, "{} {path}", Hex(*version)),
        BaseChange::Gone(path) => writeln!(text, "- {path}"),
        BaseChange::NotWritten(path) => writeln!(text, "! {path}"),
        BaseChange::Writing(path, side, version) => {
            let side = if *side == Side::Folder { "folder" } else { "graph" };
            match version {
                Some(version) => writeln!(text, "{side} {} {path}", Hex(*version)),
                None => writeln!(text, "{side} - {path}"),
            }
        }
        BaseChange::Position(position) => writeln!(text, "@ {position}"),
    };
}

fn read_writing(side: Side, rest: &str) -> Option<BaseChange> {
    let (version, path) = rest.split_once(' ')?;
    let version = if version == "-" { None } else { Some(from_hex(version)?) };
    Some(BaseChange::Writing(VaultPath::parse(path).ok()?, side, version))
}

/// All digits of a hash.
struct Hex(ContentHash);

impl fmt::Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

fn from_hex(text: &str) -> Option<ContentHash> {
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    let mut hash = [0; 32];
    for (place, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[place * 2..place * 2 + 2], 16).ok()?;
    }
    Some(ContentHash(hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> VaultPath {
        VaultPath::parse(text).unwrap()
    }

    #[test]
    fn base_reads_back_from_its_text_and_from_appended_lines() {
        let changes = [
            BaseChange::InSync(path("a b/ü.md"), ContentHash::of(b"1")),
            BaseChange::InSync(path("- c.md"), ContentHash::of(b"2")),
            BaseChange::InSync(path("d.md"), ContentHash::of(b"3")),
            BaseChange::Gone(path("d.md")),
            BaseChange::Writing(path("- c.md"), Side::Graph, None),
            BaseChange::Writing(path("e e.md"), Side::Folder, Some(ContentHash::of(b"4"))),
            BaseChange::Writing(path("f.md"), Side::Folder, None),
            BaseChange::NotWritten(path("f.md")),
            BaseChange::Position(7),
        ];
        let mut base = Base::default();
        base.apply(&changes);
        assert_eq!((base.len(), base.position()), (3, 7));
        let appended = Base::default().to_text() + &Base::lines(&changes);
        assert_eq!(Base::parse(&appended), (base.clone(), true));
        assert_eq!(Base::parse(&base.to_text()), (base, true));
    }

    #[test]
    fn version_is_unknown_after_a_write_that_may_have_been_made() {
        let [old, new, other] = [1, 2, 3].map(|number| Some(ContentHash([number; 32])));
        let note = path("a.md");
        let mut base = Base::default();
        base.apply(&[BaseChange::InSync(note.clone(), ContentHash([1; 32]))]);
        assert_eq!(base.version(&note, other, new), old);
        base.apply(&[BaseChange::Writing(note.clone(), Side::Graph, new)]);
        assert_eq!(base.version(&note, other, new), new, "it was made");
        assert_eq!(base.version(&note, new, old), old, "it was not made");
        assert_eq!(base.version(&note, old, other), None, "the graph changed, before it or afterwards");
        base.apply(&[BaseChange::NotWritten(note.clone())]);
        assert_eq!(base.version(&note, other, new), old);
    }

    #[test]
    fn text_that_was_cut_anywhere_reads_as_an_earlier_base() {
        let mut base = Base::default();
        let mut text = base.to_text();
        let mut earlier = vec![base.clone()];
        for number in 0..20_u8 {
            let change = BaseChange::InSync(path(&format!("note {}.md", number % 7)), ContentHash([number; 32]));
            base.apply(std::slice::from_ref(&change));
            text += &Base::lines(&[change]);
            earlier.push(base.clone());
        }
        for cut in 0..text.len() {
            assert!(earlier.contains(&Base::parse(&text[..cut]).0), "cut at {cut}");
        }
        assert_eq!(Base::parse("another program's file\n"), (Base::default(), false));
    }
}
