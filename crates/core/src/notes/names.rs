//! Names for new files: which ones every system can hold, and which folder on disk a path means.

use super::NoteError;
use crate::Knowledge;
use crate::index::IndexError;
use crate::model::{PathError, VaultPath};

/// What Windows takes for devices, with any extension.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];

/// Why a file or folder of this name could not be copied to every system; `None` for a name that all can hold.
pub(super) fn unportable(name: &str) -> Option<String> {
    if let Some(character) = name.chars().find(|character| r#"<>:"|?*"#.contains(*character)) {
        return Some(format!("`{character}` cannot be in a file name on other systems"));
    }
    if name.ends_with(['.', ' ']) {
        return Some("on other systems a file name cannot end with a dot or a space".to_owned());
    }
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_lowercase();
    let port = stem.strip_prefix("com").or_else(|| stem.strip_prefix("lpt"));
    let is_port = port.is_some_and(|rest| matches!(rest, "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9"));
    (is_port || DEVICES.contains(&stem.as_str())).then(|| format!("`{stem}` is the name of a device on other systems"))
}

impl Knowledge {
    /// Where a new note with an id goes: in the folders that are there, whatever case the id spells them in; new folders as
    /// spelled; the file's name in lower case.
    pub(super) fn place_for(&self, id: &str) -> Result<VaultPath, NoteError> {
        let place = self.spelled_place(id)?;
        // Each part by itself: a capital sigma at the end of a name becomes the final one, even before the extension.
        let lowercased: String = place.file_name().split_inclusive('.').map(str::to_lowercase).collect();
        let folder = place.folder();
        let path = if folder.is_empty() { lowercased } else { format!("{folder}/{lowercased}") };
        VaultPath::parse(&path).map_err(|error| NoteError::bad_path(id, error))
    }

    /// Like [`Self::place_for`], with the file's name as spelled.
    pub(super) fn spelled_place(&self, id: &str) -> Result<VaultPath, NoteError> {
        // People have such files; an agent that asks for one means a home folder or a drive.
        let is_drive = matches!(id.as_bytes(), [letter, b':'] if letter.is_ascii_alphabetic());
        if id.starts_with('~') || is_drive {
            return Err(NoteError::bad_path(id, PathError::Absolute));
        }
        let asked = VaultPath::parse(id).map_err(|error| NoteError::bad_path(id, error))?;
        let name = asked.file_name();
        let (mut place, mut is_there) = (String::new(), true);
        for part in asked.folder().split('/').filter(|part| !part.is_empty()) {
            let spelled = if place.is_empty() { part.to_owned() } else { format!("{place}/{part}") };
            let found = if is_there { self.folder_at(id, &spelled)? } else { None };
            is_there = found.is_some();
            place = match found {
                Some(folder) => folder.to_string(),
                None => portable(id, part).map(|()| spelled)?,
            };
        }
        portable(id, name)?;
        let path = if place.is_empty() { name.to_owned() } else { format!("{place}/{name}") };
        VaultPath::parse(&path).map_err(|error| NoteError::bad_path(id, error))
    }

    /// The folder, or whatever else is at a path in any case; the one spelled just so where there are several.
    pub(super) fn folder_at(&self, id: &str, spelled: &str) -> Result<Option<VaultPath>, NoteError> {
        let path = VaultPath::parse(spelled).map_err(|error| NoteError::bad_path(id, error))?;
        let mut found = self.vault.find_any_case(&path).map_err(IndexError::from)?;
        match found.first() {
            Some(first) if found.len() > 1 && *first != path => {
                Err(NoteError::Ambiguous { id: id.to_owned(), matches: found })
            }
            Some(_) => Ok(Some(found.swap_remove(0))),
            None => Ok(None),
        }
    }
}

fn portable(id: &str, name: &str) -> Result<(), NoteError> {
    unportable(name).map_or(Ok(()), |reason| Err(NoteError::bad_id(id, reason)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_another_system_cannot_hold_are_found() {
        for name in
            ["a:b.md", "what?.md", "a*b", "a|b", "<a>", "say \"hi\".md", "end.", "end ", "CON", "nul.md", "com1.x.md"]
        {
            assert!(unportable(name).is_some(), "{name}");
        }
        for name in ["a.md", "console.md", "com10.md", "null.md", "…md", "a & b (c), v1.2 #3.md", "lpt.md", ".md"] {
            assert_eq!(unportable(name), None, "{name}");
        }
    }
}
