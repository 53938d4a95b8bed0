//! Edits frontmatter, changing only the lines of the edited keys.
//!
//! No YAML serializer keeps comments, order and quotes, so none is used. The result is parsed again: if it is not exactly as
//! requested, the edit is refused.

use super::frontmatter::{self, Block};
use super::frontmatter_lines::{self as lines, NewValue};
use super::scalar;
use super::tags::frontmatter_tags;
use super::yaml::{self, Document, Mapping, Numbers};
use crate::model::Value;

/// One change of a top-level key.
#[derive(Debug, Clone, PartialEq)]
pub enum FrontmatterEdit {
    /// Sets `title`.
    Title(String),
    /// Sets `tags`.
    Tags(Vec<String>),
    /// Sets any key.
    Set(String, Value),
    /// Removes a key, if it exists.
    Remove(String),
}

/// Why frontmatter was not edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpliceError {
    /// The present frontmatter is invalid.
    #[error("{0}; correct it first")]
    Invalid(String),
    /// Its YAML cannot be edited line by line.
    #[error("cannot edit the frontmatter: {0}; simplify its YAML")]
    Unsupported(&'static str),
}

/// Edits the frontmatter of a file's bytes, or creates it. All other bytes stay, and so does a key that already has the
/// value.
pub fn splice_frontmatter(text: &[u8], edits: &[FrontmatterEdit]) -> Result<Vec<u8>, SpliceError> {
    edits.iter().try_fold(text.to_vec(), |text, edit| match edit {
        FrontmatterEdit::Title(title) => set(text, "title", &NewValue::Text(title)),
        FrontmatterEdit::Tags(tags) => set(text, "tags", &NewValue::Tags(tags)),
        FrontmatterEdit::Set(key, value) => set_value(text, key, value),
        FrontmatterEdit::Remove(key) => remove(text, key),
    })
}

impl NewValue<'_> {
    /// Whether a value of the key reads as the new value.
    fn equals(&self, key: &str, value: &Value) -> bool {
        match self {
            Self::Text(text) if key == "title" => {
                value.as_text() == Some(text) || frontmatter::title(value).as_deref() == Some(text)
            }
            Self::List(items) if key == "tags" => has_tags(value, items),
            Self::Tags(items) => has_tags(value, items),
            Self::Text(_) | Self::List(_) | Self::Written(..) => *value == self.value(),
        }
    }

    /// The value that reading returns.
    fn value(&self) -> Value {
        match self {
            Self::Text(text) => Value::Text((*text).to_owned()),
            Self::List(items) | Self::Tags(items) => Value::List(items.iter().cloned().map(Value::Text).collect()),
            Self::Written(_, value) => (*value).clone(),
        }
    }
}

fn has_tags(value: &Value, tags: &[String]) -> bool {
    let bare = |tag: &String| tag.trim_start_matches('#').to_owned();
    frontmatter_tags(value).iter().map(bare).eq(tags.iter().map(bare))
}

/// The present frontmatter: none, or valid.
fn read(text: &[u8], numbers: Numbers) -> Result<(Option<Block>, Mapping), SpliceError> {
    let none = Mapping { entries: Vec::new(), in_flow: false };
    let Some(block) = frontmatter::find(text) else { return Ok((None, none)) };
    let yaml = std::str::from_utf8(&text[block.yaml.clone()])
        .map_err(|_| SpliceError::Invalid("the frontmatter is not UTF-8".to_owned()))?;
    match yaml::read(yaml, numbers) {
        Ok(Document::Mapping(mapping)) => Ok((Some(block), mapping)),
        Ok(Document::Empty) => Ok((Some(block), none)),
        // Text between two horizontal rules is not frontmatter.
        Ok(Document::Scalar) => Ok((None, none)),
        Ok(Document::List) => Err(SpliceError::Invalid("the frontmatter is a list, not keys and values".to_owned())),
        Err(error) => Err(SpliceError::Invalid(frontmatter::describe(&error))),
    }
}

/// Sets a key to any value: text and lists of text in the style of the old value, other values on one line.
fn set_value(text: Vec<u8>, key: &str, value: &Value) -> Result<Vec<u8>, SpliceError> {
    let texts = |items: &[Value]| items.iter().map(|item| item.as_text().map(str::to_owned)).collect();
    let list: Option<Vec<String>> = if let Value::List(items) = value { texts(items) } else { None };
    match (value, list) {
        (Value::Text(date), _) if scalar::is_date(date) => set(text, key, &NewValue::Written(date.clone(), value)),
        (Value::Text(new), _) => set(text, key, &NewValue::Text(new)),
        (_, Some(items)) => set(text, key, &NewValue::List(&items)),
        _ => set(text, key, &NewValue::Written(scalar::write_flow(value), value)),
    }
}

fn set(text: Vec<u8>, key: &str, new: &NewValue<'_>) -> Result<Vec<u8>, SpliceError> {
    // Names are compared as written: the title `3.10` is not the number 3.1.
    let is_name = matches!(key, "title" | "tags");
    let (_, present) = read(&text, if is_name { Numbers::AsWritten } else { Numbers::Resolved })?;
    if present.entries.iter().any(|entry| entry.key == key && new.equals(key, &entry.value)) {
        return Ok(text);
    }
    let (block, mapping) = read(&text, Numbers::Resolved)?;
    let edited = match (block, mapping.entries.iter().find(|entry| entry.key == key)) {
        (Some(block), Some(entry)) => lines::replace(&text, &block, &mapping, entry, new)?,
        (Some(block), None) => lines::append(&text, &block, &mapping, key, new)?,
        (None, _) => lines::create(&text, key, new),
    };
    let mut expected: Vec<_> = mapping.entries.iter().map(|entry| (entry.key.as_str(), &entry.value)).collect();
    let value = match new {
        NewValue::Tags(tags) => value_of_tags(&edited, tags)?,
        _ => new.value(),
    };
    match expected.iter_mut().find(|(name, _)| *name == key) {
        Some((_, old)) => *old = &value,
        None => expected.push((key, &value)),
    }
    verify(edited, &expected)
}

/// The value of `tags` in the result, if it has exactly these tags: an item that stays may be a number.
fn value_of_tags(edited: &[u8], tags: &[String]) -> Result<Value, SpliceError> {
    let value = |numbers| -> Option<Value> {
        let (_, mapping) = read(edited, numbers).ok()?;
        mapping.entries.into_iter().find(|entry| entry.key == "tags").map(|entry| entry.value)
    };
    let is_expected = value(Numbers::AsWritten).is_some_and(|value| has_tags(&value, tags));
    let value = value(Numbers::Resolved).filter(|_| is_expected);
    value.ok_or(SpliceError::Unsupported("the tags would not read back"))
}

fn remove(text: Vec<u8>, key: &str) -> Result<Vec<u8>, SpliceError> {
    let (block, mapping) = read(&text, Numbers::Resolved)?;
    let (Some(block), Some(entry)) = (block, mapping.entries.iter().find(|entry| entry.key == key)) else {
        return Ok(text);
    };
    let edited = lines::remove(&text, &block, &mapping, entry)?;
    let expected: Vec<_> = mapping
        .entries
        .iter()
        .filter(|entry| entry.key != key)
        .map(|entry| (entry.key.as_str(), &entry.value))
        .collect();
    verify(edited, &expected)
}

/// Parses the result and compares it with the expected entries.
fn verify(edited: Vec<u8>, expected: &[(&str, &Value)]) -> Result<Vec<u8>, SpliceError> {
    let entries = match read(&edited, Numbers::Resolved) {
        Ok((Some(_), mapping)) => mapping.entries,
        _ => return Err(SpliceError::Unsupported("the result would not be valid")),
    };
    let same = entries.iter().map(|entry| (entry.key.as_str(), &entry.value)).eq(expected.iter().copied());
    if same { Ok(edited) } else { Err(SpliceError::Unsupported("another key would change with it")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn title(text: &str) -> FrontmatterEdit {
        FrontmatterEdit::Title(text.to_owned())
    }

    fn tags(items: &[&str]) -> FrontmatterEdit {
        FrontmatterEdit::Tags(items.iter().map(ToString::to_string).collect())
    }

    fn check(before: &str, edit: FrontmatterEdit, after: &str) {
        let spliced = splice_frontmatter(before.as_bytes(), &[edit]).map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(spliced.as_deref(), Ok(after), "{before:?}");
    }

    #[test]
    fn only_the_value_changes() {
        check("---\ntitle: Old  # why\nx: 1\n---\nbody", title("New"), "---\ntitle: New  # why\nx: 1\n---\nbody");
        check("---\ntitle:   'Old'\n---\n", title("It's"), "---\ntitle:   'It''s'\n---\n");
        check("---\n\"title\": \"Old\" # c\n---\n", title("a: b"), "---\n\"title\": \"a: b\" # c\n---\n");
        check("---\ntitle: # c\nx: 1\n---\n", title("New"), "---\ntitle: New # c\nx: 1\n---\n");
        check("---\ntitle:\n---\n", title("2024"), "---\ntitle: \"2024\"\n---\n");
        check("---\r\ntitle: Old\r\n---\r\nb\r\n", title("New"), "---\r\ntitle: New\r\n---\r\nb\r\n");
        check("---\ntitle: |\n  Old\n  text\n\n# c\nx: 1\n---\n", title("New"), "---\ntitle: New\n\n# c\nx: 1\n---\n");
        check("---\ntitle: Old\n  text # c\nx: 1\n---\n", title("New"), "---\ntitle: New # c\nx: 1\n---\n");
        check("---\ntitle: # c\n  - a\n  - b\nx: 1\n---\n", title("New"), "---\ntitle: New # c\nx: 1\n---\n");
        check("---\na: é\ntitle: ö\n---\n", title("ü"), "---\na: é\ntitle: ü\n---\n");
    }

    #[test]
    fn a_list_keeps_its_style() {
        check("---\ntags: [a,  b] # c\n---\n", tags(&["a", "x, y"]), "---\ntags: [a, \"x, y\"] # c\n---\n");
        check("---\ntags: # c\n- a\n- b\n# d\nx: 1\n---\n", tags(&["z"]), "---\ntags: # c\n- z\n# d\nx: 1\n---\n");
        check("---\ntags:\n    - a\n---\n", tags(&["b", "c"]), "---\ntags:\n    - b\n    - c\n---\n");
        check("---\ntags:\n  - a\n  -\nx: 1\n---\n", tags(&["b"]), "---\ntags:\n  - b\nx: 1\n---\n");
        check("---\ntags: a, b # c\nx: 1\n---\n", tags(&["z"]), "---\ntags: # c\n  - z\nx: 1\n---\n");
        check("---\ntags:\nx: 1\n---\n", tags(&["z"]), "---\ntags:\n  - z\nx: 1\n---\n");
        check("---\ntags: [a,\n  b] # c\nx: 1\n---\n", tags(&["z"]), "---\ntags: # c\n  - z\nx: 1\n---\n");
        check("---\ntags:\n  - a\nx: 1\n---\n", tags(&[]), "---\ntags: []\nx: 1\n---\n");
        check("---\ntags: []\n---\n", tags(&["#a"]), "---\ntags: [\"#a\"]\n---\n");
        check("---\ntitle: 3.10\n---\n", title("3.1"), "---\ntitle: \"3.1\"\n---\n");
        check("---\ntag: a\n---\n", tags(&["b"]), "---\ntag: a\ntags:\n  - b\n---\n");
        check("---\ntag: a\ntags: [b]\n---\n", tags(&["c"]), "---\ntag: a\ntags: [c]\n---\n");
    }

    #[test]
    fn tags_that_stay_keep_their_bytes() {
        let list = "---\ntags: [ 'a b',\"c\" , '#d', 007 ] # why\n---\n";
        check(list, tags(&["a b", "c", "d", "007", "e"]), &list.replace("007 ]", "007, e ]"));
        check(list, tags(&["a b", "d", "007"]), "---\ntags: ['a b', '#d', 007] # why\n---\n");
        let lines = "---\ntags: [\n  \"a\", # one\n  b,\n]\n---\n";
        check(lines, tags(&["a", "b", "c: d"]), "---\ntags: [\n  \"a\", # one\n  b, \"c: d\",\n]\n---\n");
        let below = "---\ntags:\n  - \"a\"\n  - '#b'\n  - 2024\n---\n";
        check(below, tags(&["a", "b", "2024", "c"]), &below.replace("2024\n", "2024\n  - c\n"));
        check("---\ntags: [ ]\n---\n", tags(&["a", "b"]), "---\ntags: [a, b ]\n---\n");
    }

    #[test]
    fn comments_inside_a_list_stay() {
        let list = "---\ntags:\n  # the first\n  - a # why a\n  # the second\n  - b   # why b\n  - c\nx: 1\n---\n";
        check(
            list,
            tags(&["a", "c", "d"]),
            "---\ntags:\n  # the first\n  - a # why a\n  # the second\n  # why b\n  - c\n  - d\nx: 1\n---\n",
        );
        check(
            list,
            tags(&["z"]),
            "---\ntags:\n  # the first\n  - z\n  # why a\n  # the second\n  # why b\nx: 1\n---\n",
        );
        check(list, tags(&[]), "---\ntags: []\n  # the first\n  # why a\n  # the second\n  # why b\nx: 1\n---\n");
        check(
            "---\ntags: [a, # why\n  b] # c\nx: 1\n---\n",
            tags(&["z"]),
            "---\ntags: # c\n  # why\n  - z\nx: 1\n---\n",
        );
        check("---\ntags: [a, # why\n  b] # c\nx: 1\n---\n", tags(&[]), "---\ntags: [] # c\n  # why\nx: 1\n---\n");
        check(
            "---\ntags:\n- '#a' # why\n- 2024 # y\n---\n",
            tags(&["2024", "a"]),
            "---\ntags:\n# why\n- 2024 # y\n- a\n---\n",
        );
        check("---\r\ntags:\r\n  - a # w\r\n---\r\n", tags(&["b"]), "---\r\ntags:\r\n  - b\r\n  # w\r\n---\r\n");
    }

    #[test]
    fn missing_keys_are_appended() {
        check("---\nx: 1 # c\n---\nbody", title("T"), "---\nx: 1 # c\ntitle: T\n---\nbody");
        check("---\n  x: 1\n---\n", tags(&["a"]), "---\n  x: 1\n  tags:\n    - a\n---\n");
        check("---\n---\nbody", title("T"), "---\ntitle: T\n---\nbody");
        check("---\r\n...\r\nb", tags(&["a"]), "---\r\ntags:\r\n  - a\r\n...\r\nb");
        check("body", title("T"), "---\ntitle: T\n---\nbody");
        check("", tags(&["a"]), "---\ntags:\n  - a\n---\n");
        check("a\r\nb", title("T"), "---\r\ntitle: T\r\n---\r\na\r\nb");
        check("\u{FEFF}body", title("T"), "\u{FEFF}---\ntitle: T\n---\nbody");
        check("---\nprose\n---\nmore", title("T"), "---\ntitle: T\n---\n---\nprose\n---\nmore");
    }

    #[test]
    fn a_key_can_be_removed_with_its_lines() {
        let remove = |key: &str| FrontmatterEdit::Remove(key.to_owned());
        check("---\na: 1\n# c\ntags:\n  - x\n\nb: 2\n---\n", remove("tags"), "---\na: 1\n# c\n\nb: 2\n---\n");
        check("---\ntitle: T\n---\nb", remove("title"), "---\n---\nb");
        check("---\na: 1\n---\nb", remove("title"), "---\na: 1\n---\nb");
        check("b", remove("title"), "b");
    }

    #[test]
    fn a_key_with_the_value_is_unchanged() {
        for (text, edit) in [
            ("---\ntitle: 'T' # c\n---\n", title("T")),
            ("---\ntitle: 2024\n---\n", title("2024")),
            ("---\ntitle: 3.10\n---\n", title("3.10")),
            ("---\ntags: [007, a]\n---\n", tags(&["007", "a"])),
            ("---\ntags: a, b\n---\n", tags(&["a", "b"])),
            ("---\ntags: ['#a', b]\n---\n", tags(&["a", "b"])),
            ("---\ntags:\n---\n", tags(&[])),
        ] {
            check(text, edit, text);
        }
    }

    #[test]
    fn unsafe_edits_are_refused() {
        for (text, message) in [
            ("---\na: b: c\n---\n", "the frontmatter is not valid YAML (line 2: "),
            ("---\n- a\n---\n", "the frontmatter is a list"),
            ("---\n{title: a}\n---\n", "cannot edit the frontmatter: "),
            ("---\n? title\n: a\n---\n", "cannot edit the frontmatter: "),
            ("---\ntitle: &a\n  - x\nb: *a\n---\n", "cannot edit the frontmatter: "),
        ] {
            let error = splice_frontmatter(text.as_bytes(), &[title("T")]).expect_err(text);
            assert!(error.to_string().starts_with(message), "{error}");
        }
        assert!(splice_frontmatter(b"---\na: \xFF\n---\n", &[title("T")]).is_err());
        let broken_body = splice_frontmatter(b"---\ntitle: a\n---\n\xFF", &[title("T")]).unwrap();
        assert_eq!(broken_body, b"---\ntitle: T\n---\n\xFF");
    }
}
