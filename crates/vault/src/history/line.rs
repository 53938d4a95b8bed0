//! One write as a line of the history, and as part of the journal.

use std::fmt::Write as _;

use quipu_core::model::{ContentHash, VaultPath};
use quipu_core::ports::{LoggedFile, LoggedVersion, LoggedWrite, NoteAction, WriteNumber};
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::file::MAX_ENTRIES;
use crate::trash;

/// One write. Unknown fields are ignored, so that a later version may add some.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HistoryLine {
    #[serde(rename = "n")]
    number: i64,
    #[serde(rename = "at")]
    at_ns: i64,
    by: String,
    #[serde(deserialize_with = "bounded")]
    files: Vec<FileLine>,
    #[serde(default, skip_serializing_if = "is_zero")]
    unlisted: usize,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct FileLine {
    #[serde(rename = "do")]
    action: String,
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    old: Option<VersionLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    new: Option<VersionLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kept: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct VersionLine {
    hash: String,
    chars: u64,
    #[serde(rename = "at")]
    modified_ns: i64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Fails for more files than a history has entries: as values they take many times the memory of the text.
fn bounded<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<FileLine>, D::Error> {
    struct Files;
    impl<'de> Visitor<'de> for Files {
        type Value = Vec<FileLine>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a list of files")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut files = Vec::new();
            while let Some(file) = list.next_element()? {
                if files.len() == MAX_ENTRIES {
                    return Err(A::Error::custom("too many files"));
                }
                files.push(file);
            }
            Ok(files)
        }
    }
    deserializer.deserialize_seq(Files)
}

/// More files of one write than a vault can have.
const MAX_UNLISTED: usize = 1 << 32;

impl HistoryLine {
    pub(crate) fn number(&self) -> WriteNumber {
        WriteNumber(self.number)
    }

    /// The line with its end.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).expect("a line has text keys");
        line.push(b'\n');
        line
    }

    /// The line without the files that `is_closed` holds of, which it only counts, and the line of those, if there are any.
    pub(crate) fn split(&self, is_closed: impl Fn(&LoggedFile) -> bool) -> (Self, Option<Self>) {
        let is_closed = |file: &FileLine| file.clone().parse().is_none_or(|file| is_closed(&file));
        let (closed, open): (Vec<_>, Vec<_>) = self.files.iter().cloned().partition(is_closed);
        let unlisted = self.unlisted + closed.len();
        let closed = (!closed.is_empty()).then(|| Self { files: closed, unlisted: 0, ..self.clone() });
        (Self { files: open, unlisted, ..self.clone() }, closed)
    }

    /// `None` for a line that Quipu did not write.
    pub(crate) fn parse(line: &[u8]) -> Option<LoggedWrite> {
        let Self { number, at_ns, by, files, unlisted } = serde_json::from_slice(line).ok()?;
        // Numbers that Quipu never writes come from another program, and could overflow.
        if at_ns < 0 || unlisted > MAX_UNLISTED {
            return None;
        }
        let files = files.into_iter().map(FileLine::parse).collect::<Option<_>>()?;
        Some(LoggedWrite { number: WriteNumber(number), at_ns, by, files, unlisted })
    }
}

impl From<&LoggedWrite> for HistoryLine {
    fn from(write: &LoggedWrite) -> Self {
        let LoggedWrite { number, at_ns, by, files, unlisted } = write;
        let files = files.iter().map(FileLine::from).collect();
        Self { number: number.0, at_ns: *at_ns, by: by.clone(), files, unlisted: *unlisted }
    }
}

impl FileLine {
    fn parse(self) -> Option<LoggedFile> {
        let version =
            |line: Option<VersionLine>| line.map(VersionLine::parse).map_or(Some(None), |found| found.map(Some));
        let file = LoggedFile {
            action: NoteAction::from_name(&self.action)?,
            path: VaultPath::parse(&self.path).ok()?,
            from: self.from.map(|from| VaultPath::parse(&from)).transpose().ok()?,
            before: version(self.old)?,
            after: version(self.new)?,
            kept: None,
        };
        // A line that another program added may name the version of another note.
        let kept = self.kept.filter(|kept| trash::note_of(kept).as_ref() == Some(file.old_path()));
        Some(LoggedFile { kept, ..file })
    }
}

impl From<&LoggedFile> for FileLine {
    fn from(file: &LoggedFile) -> Self {
        Self {
            action: file.action.name().to_owned(),
            path: file.path.to_string(),
            from: file.from.as_ref().map(ToString::to_string),
            old: file.before.as_ref().map(VersionLine::from),
            new: file.after.as_ref().map(VersionLine::from),
            kept: file.kept.clone(),
        }
    }
}

impl VersionLine {
    fn parse(self) -> Option<LoggedVersion> {
        let hash = blake3::Hash::from_hex(&self.hash).ok()?;
        Some(LoggedVersion { hash: ContentHash(*hash.as_bytes()), chars: self.chars, modified_ns: self.modified_ns })
    }
}

impl From<&LoggedVersion> for VersionLine {
    fn from(version: &LoggedVersion) -> Self {
        let hash = version.hash.0.iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        Self { hash, chars: version.chars, modified_ns: version.modified_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_impossible_numbers_are_skipped() {
        let line = |at: &str, unlisted: &str| {
            format!(r#"{{"n":1,"at":{at},"by":"x","files":[],"unlisted":{unlisted}}}"#).into_bytes()
        };
        assert!(HistoryLine::parse(&line("1", "2")).is_some());
        assert!(HistoryLine::parse(&line("-9223372036854775808", "0")).is_none());
        assert!(HistoryLine::parse(&line("1", "18446744073709551615")).is_none());
    }
}
