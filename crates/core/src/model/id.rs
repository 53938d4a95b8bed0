//! Identifiers of a note: its path, the id for agents, the hash of its content, and its slot in a snapshot.

use std::fmt;
use std::sync::Arc;

use unicode_normalization::{UnicodeNormalization, is_nfc_quick};

/// A path inside the vault, exactly as on disk: `/` between parts, never absolute, never outside the root.
///
/// Only [`VaultPath::parse`] constructs it, so it needs no further checks.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VaultPath(Arc<str>);

/// Why a text is not a path inside the vault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The text is empty.
    #[error("the path is empty")]
    Empty,
    /// Starts with the file system's root, a drive or a home folder.
    #[error("the path is absolute; use a path relative to the vault's root")]
    Absolute,
    /// Has an empty, `.` or `..` part.
    #[error("the path has an empty, `.` or `..` part; it must stay inside the vault")]
    Escapes,
    /// Has a NUL, another control character or a backslash.
    #[error("the path has a control character or a backslash")]
    Character,
    /// A part, or the whole, is longer than file systems allow.
    #[error("the path is too long: at most 255 bytes per part and 4,000 in all")]
    TooLong,
}

impl VaultPath {
    /// The length of a path and of one of its parts, as the error [`PathError::TooLong`] says.
    pub const MAX_BYTES: usize = 4000;
    const MAX_PART_BYTES: usize = 255;

    /// Checks a path given by a person, an agent or a file system walk.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        if text.is_empty() {
            return Err(PathError::Empty);
        }
        // A home folder and a drive, but not files such as `~.md` and `1:1.md`.
        let is_home = text == "~" || text.starts_with("~/");
        let is_drive = matches!(text.as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
        if text.starts_with(['/', '\\']) || is_home || is_drive {
            return Err(PathError::Absolute);
        }
        if text.chars().any(|c| c.is_control() || c == '\\') {
            return Err(PathError::Character);
        }
        if text.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(PathError::Escapes);
        }
        if text.len() > Self::MAX_BYTES || text.split('/').any(|part| part.len() > Self::MAX_PART_BYTES) {
            return Err(PathError::TooLong);
        }
        Ok(Self(text.into()))
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path in lower case: the id of the file, unless a file that differs only in case has it.
    pub fn note_id(&self) -> NoteId {
        // Most paths of a big vault are in lower case, and a start asks for the id of every note. Without an early end, so that several
        // bytes are looked at in one step.
        let is_odd = |byte: u8| !byte.is_ascii() | byte.is_ascii_uppercase();
        if !self.0.bytes().fold(false, |odd, byte| odd | is_odd(byte)) {
            return NoteId(self.0.clone());
        }
        NoteId::new(&self.0)
    }

    /// The last part, extension included.
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// The last part without its extension.
    pub fn stem(&self) -> &str {
        let name = self.file_name();
        name.rfind('.').filter(|dot| *dot > 0).map_or(name, |dot| &name[..dot])
    }

    /// Its folder, without a trailing slash; empty at the root.
    pub fn folder(&self) -> &str {
        self.0.rfind('/').map_or("", |slash| &self.0[..slash])
    }

    /// The number of folders above it.
    pub fn depth(&self) -> usize {
        self.0.matches('/').count()
    }

    /// Whether it has the extension of a note: `md` or `markdown`, case ignored.
    pub fn is_markdown(&self) -> bool {
        self.file_name()
            .rsplit_once('.')
            .is_some_and(|(_, ext)| ext.eq_ignore_ascii_case("md") || ext.eq_ignore_ascii_case("markdown"))
    }
}

impl fmt::Display for VaultPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for VaultPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

/// The id of a note for agents: its path in lower case, or its exact path if another file has the lowercased one. A key,
/// not a file path.
///
/// Only [`NoteId::new`] lowercases.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NoteId(Arc<str>);

impl NoteId {
    /// The id for any spelling of it.
    pub fn new(text: &str) -> Self {
        Self(text.to_lowercase().into())
    }

    /// The id of a file whose lowercased path is the id of another file: its exact path.
    pub fn exact(path: &VaultPath) -> Self {
        Self(path.0.clone())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NoteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for NoteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

/// A note's slot in a snapshot and its row in a store. Small, dense, and reused once its note is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NoteKey(pub u32);

impl NoteKey {
    /// The slot as an index.
    pub fn slot(self) -> usize {
        self.0 as usize
    }

    /// The key of an allocated slot.
    pub(crate) fn of_slot(slot: usize) -> Self {
        Self(u32::try_from(slot).expect("slots are allocated as u32"))
    }
}

/// The BLAKE3 hash of a file's bytes: the version of a note.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContentHash(pub [u8; 32]);

impl ContentHash {
    /// Hashes a file's bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }
}

/// The version as clients see it: the first 16 hexadecimal digits.
impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..8].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..6].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The form in which names are compared: Unicode NFC, lowercased, with one small sigma.
///
/// Ids are lowercased only, since they must remain the path; names typed by people need both.
pub fn fold(text: &str) -> String {
    let lower = composed_lowercase(text);
    // The lower case of a capital sigma depends on the next character, so a name alone and the same name before an
    // extension or inside a longer word would differ.
    if lower.contains(FINAL_SIGMA) { lower.replace(FINAL_SIGMA, "σ") } else { lower }
}

/// A lowercased character in the form of [`fold`]: both forms of the small sigma become one.
pub(crate) fn one_sigma(c: char) -> char {
    if c == FINAL_SIGMA { 'σ' } else { c }
}

const FINAL_SIGMA: char = 'ς';

/// Unicode NFC, lowercased by the rules for whole words.
pub(crate) fn composed_lowercase(text: &str) -> String {
    if text.is_ascii() || is_nfc_quick(text.chars()) == unicode_normalization::IsNormalized::Yes {
        text.to_lowercase()
    } else {
        text.nfc().collect::<String>().to_lowercase()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_outside_the_vault_are_rejected() {
        for (text, error) in [
            ("", PathError::Empty),
            ("/etc/passwd", PathError::Absolute),
            ("~/notes.md", PathError::Absolute),
            ("C:/notes.md", PathError::Absolute),
            ("\\\\server\\share.md", PathError::Absolute),
            ("../a.md", PathError::Escapes),
            ("a/../../b.md", PathError::Escapes),
            ("a//b.md", PathError::Escapes),
            ("./a.md", PathError::Escapes),
            ("a/", PathError::Escapes),
            ("a\\..\\b.md", PathError::Character),
            ("a\0.md", PathError::Character),
            ("a\n.md", PathError::Character),
        ] {
            assert_eq!(VaultPath::parse(text), Err(error), "{text:?}");
        }
        assert_eq!(VaultPath::parse(&"x".repeat(256)), Err(PathError::TooLong));
        for text in ["~.md", "~draft/a.md", "1:1.md", "c: a note.md"] {
            assert_eq!(VaultPath::parse(text).map(|path| path.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn paths_have_folder_stem_and_depth() {
        let path = VaultPath::parse("Notes/Deep/Graph.Core.md").unwrap();
        assert_eq!(path.note_id().as_str(), "notes/deep/graph.core.md");
        assert_eq!(
            (path.folder(), path.file_name(), path.stem(), path.depth()),
            ("Notes/Deep", "Graph.Core.md", "Graph.Core", 2)
        );
        assert!(path.is_markdown());
        assert!(VaultPath::parse("a.MARKDOWN").unwrap().is_markdown());
        assert!(!VaultPath::parse("a.txt").unwrap().is_markdown());
        assert!(!VaultPath::parse("md").unwrap().is_markdown());
    }

    #[test]
    fn names_fold_across_case_and_normal_form() {
        assert_eq!(fold("Cafe\u{301}"), fold("CAFÉ"));
        assert_eq!(fold("か\u{3099}"), fold("が"));
        assert_eq!(fold("ΝΟΜΟΣ.md"), format!("{}.md", fold("ΝΟΜΟΣ")));
        assert!(fold("ΝΟΜΟΣΧΕΔΙΟ").starts_with(&fold("νομος")));
    }
}
