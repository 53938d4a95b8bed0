//! The name under which the folder's version of a note is kept in a conflict.

use crate::model::VaultPath;

/// The longest name of a file, in bytes.
const LONGEST_NAME: usize = 255;

/// `plan (conflict 2026-11-18 ada).md`, beside the note; from the second on with a number. A long name is shortened.
pub(super) fn copy_name(note: &VaultPath, label: &str, number: usize) -> Option<VaultPath> {
    let (name, stem) = (note.file_name(), note.stem());
    let extension = &name[stem.len()..];
    let suffix = match number {
        1 => format!(" (conflict {label}){extension}"),
        number => format!(" (conflict {label} {number}){extension}"),
    };
    let room = LONGEST_NAME.saturating_sub(suffix.len());
    let end = (0..=stem.len().min(room)).rev().find(|end| stem.is_char_boundary(*end))?;
    let folder = if note.folder().is_empty() { String::new() } else { format!("{}/", note.folder()) };
    VaultPath::parse(&format!("{folder}{}{suffix}", &stem[..end])).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_is_a_note_that_sorts_beside_the_original() {
        let name = |note: &str, number| {
            let note = VaultPath::parse(note).unwrap();
            let copy = copy_name(&note, "2026-11-18 ada", number).unwrap();
            assert!(copy.is_markdown() && copy.folder() == note.folder());
            copy.to_string()
        };
        assert_eq!(name("a/plan.md", 1), "a/plan (conflict 2026-11-18 ada).md");
        assert_eq!(name("plan.v2.markdown", 2), "plan.v2 (conflict 2026-11-18 ada 2).markdown");
        let mut names = [name("a/plan.md", 1), "a/plan.md".to_owned(), "a/play.md".to_owned(), "a/plain.md".to_owned()];
        names.sort();
        assert_eq!(names[1..3], ["a/plan (conflict 2026-11-18 ada).md", "a/plan.md"]);
        let long = name(&format!("{}.md", "文".repeat(84)), 1);
        assert!(long.len() <= LONGEST_NAME && long.ends_with("文 (conflict 2026-11-18 ada).md"), "{long}");
    }
}
