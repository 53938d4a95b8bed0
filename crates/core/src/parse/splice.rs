//! Edits of frontmatter that touch only the lines of the changed keys.
//!
//! No serializer keeps comments, order and quotes, so none is used. The outcome is read again and compared: where it does
//! not say exactly what was asked, nothing is changed.

use super::frontmatter::{self, Block};
use super::scalar::{self, Style};
use super::tags::frontmatter_tags;
use super::yaml::{self, Document, Entry, Mapping};
use crate::model::Value;

/// One change of a top-level key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrontmatterEdit {
    /// Sets `title`.
    Title(String),
    /// Sets `tags`. A note that has its tags under `tag` keeps that key.
    Tags(Vec<String>),
    /// Removes a key, if it is there.
    Remove(String),
}

/// Why frontmatter was not edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpliceError {
    /// What is there cannot be read, so nothing can be known of what an edit would do.
    #[error("{0}; repair it first")]
    Broken(String),
    /// It is written in a way that cannot be edited line by line.
    #[error("the frontmatter cannot be edited without rewriting it: {0}")]
    Unsupported(&'static str),
}

/// Edits the frontmatter of a file's bytes, making one where there is none. Every other byte stays as it is, and a key that
/// already says what it should is left alone.
pub fn splice_frontmatter(text: &[u8], edits: &[FrontmatterEdit]) -> Result<Vec<u8>, SpliceError> {
    edits.iter().try_fold(text.to_vec(), |text, edit| match edit {
        FrontmatterEdit::Title(title) => set(text, "title", &NewValue::Text(title)),
        FrontmatterEdit::Tags(tags) => {
            let (_, mapping) = read(&text)?;
            let has = |key: &str| mapping.entries.iter().any(|entry| entry.key == key);
            match (has("tags"), has("tag")) {
                (false, true) => set(text, "tag", &NewValue::List(tags)),
                (true, true) => remove(set(text, "tags", &NewValue::List(tags))?, "tag"),
                _ => set(text, "tags", &NewValue::List(tags)),
            }
        }
        FrontmatterEdit::Remove(key) => remove(text, key),
    })
}

/// The text of a new note. Title and tags go into frontmatter, which is made only when there is something to say; content
/// that brings its own frontmatter keeps it. The content itself is written exactly as given.
pub fn new_note_text(title: Option<&str>, tags: &[String], content: &str) -> Result<String, SpliceError> {
    let title = title.map(|title| FrontmatterEdit::Title(title.to_owned()));
    let tags = (!tags.is_empty()).then(|| FrontmatterEdit::Tags(tags.to_vec()));
    let edits: Vec<_> = title.into_iter().chain(tags).collect();
    let bytes = splice_frontmatter(content.as_bytes(), &edits)?;
    Ok(String::from_utf8(bytes).expect("only text was put into text"))
}

enum NewValue<'v> {
    Text(&'v str),
    List(&'v [String]),
}

impl NewValue<'_> {
    /// Whether the note would be read the same.
    fn is_said_by(&self, key: &str, value: &Value) -> bool {
        match self {
            Self::Text(text) if key == "title" => {
                value.as_text() == Some(text) || frontmatter::title(value).as_deref() == Some(text)
            }
            Self::Text(text) => value.as_text() == Some(text),
            Self::List(items) => {
                let said = frontmatter_tags(value);
                said.iter().map(|tag| tag.trim_start_matches('#')).eq(items.iter().map(String::as_str))
            }
        }
    }

    /// What reading gives once it is written.
    fn value(&self) -> Value {
        match self {
            Self::Text(text) => Value::Text((*text).to_owned()),
            Self::List(items) => Value::List(items.iter().cloned().map(Value::Text).collect()),
        }
    }
}

/// The frontmatter as it is: none, or one that can be read.
fn read(text: &[u8]) -> Result<(Option<Block>, Mapping), SpliceError> {
    let none = Mapping { entries: Vec::new(), in_flow: false };
    let Some(block) = frontmatter::find(text) else { return Ok((None, none)) };
    let yaml = std::str::from_utf8(&text[block.yaml.clone()])
        .map_err(|_| SpliceError::Broken("the frontmatter is not UTF-8".to_owned()))?;
    match yaml::read(yaml) {
        Ok(Document::Mapping(mapping)) => Ok((Some(block), mapping)),
        Ok(Document::Empty) => Ok((Some(block), none)),
        // A rule, prose and another rule: never meant to be frontmatter.
        Ok(Document::Scalar) => Ok((None, none)),
        Ok(Document::List) => Err(SpliceError::Broken("the frontmatter is a list, not keys and values".to_owned())),
        Err(error) => Err(SpliceError::Broken(frontmatter::describe(&error))),
    }
}

fn set(text: Vec<u8>, key: &str, new: &NewValue<'_>) -> Result<Vec<u8>, SpliceError> {
    let (block, mapping) = read(&text)?;
    let edited = match (block, mapping.entries.iter().find(|entry| entry.key == key)) {
        (_, Some(entry)) if new.is_said_by(key, &entry.value) => return Ok(text),
        (Some(block), Some(entry)) => replace(&text, &block, &mapping, entry, new)?,
        (Some(block), None) => append(&text, &block, &mapping, key, new)?,
        (None, _) => create(&text, key, new),
    };
    let mut expected: Vec<_> = mapping.entries.iter().map(|entry| (entry.key.as_str(), &entry.value)).collect();
    let value = new.value();
    match expected.iter_mut().find(|(name, _)| *name == key) {
        Some((_, old)) => *old = &value,
        None => expected.push((key, &value)),
    }
    verify(edited, &expected)
}

fn remove(text: Vec<u8>, key: &str) -> Result<Vec<u8>, SpliceError> {
    let (block, mapping) = read(&text)?;
    let (Some(block), Some(entry)) = (block, mapping.entries.iter().find(|entry| entry.key == key)) else {
        return Ok(text);
    };
    let lines = Lines::of(&text, &block, &mapping, entry)?;
    let edited = [&text[..lines.start], &text[lines.end..]].concat();
    let expected: Vec<_> = mapping
        .entries
        .iter()
        .filter(|entry| entry.key != key)
        .map(|entry| (entry.key.as_str(), &entry.value))
        .collect();
    verify(edited, &expected)
}

/// Reads the outcome and compares it with what it should say.
fn verify(edited: Vec<u8>, expected: &[(&str, &Value)]) -> Result<Vec<u8>, SpliceError> {
    let says = match read(&edited) {
        Ok((Some(_), mapping)) => mapping.entries,
        _ => return Err(SpliceError::Unsupported("it would no longer be valid")),
    };
    let same = says.iter().map(|entry| (entry.key.as_str(), &entry.value)).eq(expected.iter().copied());
    if same { Ok(edited) } else { Err(SpliceError::Unsupported("another key would change with it")) }
}

/// The lines of one entry in the file, in bytes.
struct Lines {
    start: usize,
    /// Behind the colon.
    colon_end: usize,
    /// The end of the line with the colon, before its line break.
    first_line_end: usize,
    value: std::ops::Range<usize>,
    /// Behind the line break of the last line.
    end: usize,
}

impl Lines {
    fn of(text: &[u8], block: &Block, mapping: &Mapping, entry: &Entry) -> Result<Self, SpliceError> {
        let offset = block.yaml.start;
        let key_start = offset + entry.key_range.start;
        let key_end = offset + entry.key_range.end;
        let start = text[..key_start].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let alone = text[start..key_start].iter().all(|byte| *byte == b' ');
        if mapping.in_flow || !alone {
            return Err(SpliceError::Unsupported("the key does not stand at the start of its line"));
        }
        let colon = text[key_end..].iter().position(|byte| !matches!(byte, b' ' | b'\t'));
        let colon_end = match colon.map(|at| key_end + at) {
            Some(at) if text[at] == b':' => at + 1,
            _ => return Err(SpliceError::Unsupported("the key is not followed by a colon")),
        };
        let value_range = offset + entry.value_range.start..offset + entry.value_range.end;
        let written = text[value_range.clone()].trim_ascii_end().len();
        let value = if written == 0 { colon_end..colon_end } else { value_range.start..value_range.start + written };
        let (first_line_end, _) = line_end(text, colon_end);
        let (_, end) = line_end(text, value.end);
        Ok(Self { start, colon_end, first_line_end, value, end })
    }

    fn starts_behind_colon(&self) -> bool {
        self.value.start <= self.first_line_end
    }
}

/// The end of the line that holds `at`, before and behind its line break.
fn line_end(text: &[u8], at: usize) -> (usize, usize) {
    let next = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |found| at + found + 1);
    let line = text[at..next].strip_suffix(b"\n").unwrap_or(&text[at..next]);
    (at + line.strip_suffix(b"\r").unwrap_or(line).len(), next)
}

fn replace(
    text: &[u8],
    block: &Block,
    mapping: &Mapping,
    entry: &Entry,
    new: &NewValue<'_>,
) -> Result<Vec<u8>, SpliceError> {
    let lines = Lines::of(text, block, mapping, entry)?;
    let is_one_line = lines.starts_behind_colon() && lines.value.end <= lines.first_line_end;
    let has_value = !lines.value.is_empty();
    let was_flow = matches!(text.get(lines.value.start), Some(b'[' | b'{')) && entry.style.is_none();
    let newline = newline(text);
    let inline = match new {
        NewValue::Text(title) => Some(scalar::write(title, entry.style.unwrap_or(Style::Plain), false)),
        NewValue::List(items) => (items.is_empty() || was_flow && is_one_line).then(|| flow_list(items)),
    };
    let pieces: [&[u8]; 5] = match (&inline, new) {
        // Only the value's own bytes.
        (Some(inline), _) if is_one_line && has_value => {
            [&text[..lines.value.start], inline.as_bytes(), &text[lines.value.end..], b"", b""]
        }
        (Some(inline), _) if lines.starts_behind_colon() => {
            [&text[..lines.colon_end], b" ", inline.as_bytes(), &text[lines.value.end..], b""]
        }
        // The key's line keeps its comment; the lines of the old value go.
        (Some(inline), _) => {
            let comment = &text[lines.colon_end..value_line_start(text, &lines)];
            [&text[..lines.colon_end], b" ", inline.as_bytes(), comment, &text[lines.end..]]
        }
        (None, NewValue::List(items)) if lines.starts_behind_colon() => {
            let (rest_end, next) = line_end(text, lines.value.end);
            let block_list = block_list(items, &" ".repeat(entry_indent(text, &lines) + 2), newline);
            let rest = &text[lines.value.end..rest_end];
            return Ok(
                [&text[..lines.colon_end], rest, newline.as_bytes(), block_list.as_bytes(), &text[next..]].concat()
            );
        }
        (None, NewValue::List(items)) => {
            let from = value_line_start(text, &lines);
            let indent = text[from..].iter().take_while(|byte| **byte == b' ').count();
            let indent = if matches!(entry.value, Value::List(_)) { indent } else { entry_indent(text, &lines) + 2 };
            let block_list = block_list(items, &" ".repeat(indent), newline);
            return Ok([&text[..from], block_list.as_bytes(), &text[lines.end..]].concat());
        }
        (None, NewValue::Text(_)) => return Err(SpliceError::Unsupported("a text has no lines")),
    };
    Ok(pieces.concat())
}

/// Where the first line of a value starts that does not stand behind its key.
fn value_line_start(text: &[u8], lines: &Lines) -> usize {
    text[..lines.value.start].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

fn entry_indent(text: &[u8], lines: &Lines) -> usize {
    text[lines.start..].iter().take_while(|byte| **byte == b' ').count()
}

fn append(
    text: &[u8],
    block: &Block,
    mapping: &Mapping,
    key: &str,
    new: &NewValue<'_>,
) -> Result<Vec<u8>, SpliceError> {
    if mapping.in_flow {
        return Err(SpliceError::Unsupported("it is written in braces"));
    }
    let indent = match mapping.entries.first() {
        Some(first) => entry_indent(text, &Lines::of(text, block, mapping, first)?),
        None => 0,
    };
    let entry = new_entry(key, new, indent, newline(text));
    Ok([&text[..block.yaml.end], entry.as_bytes(), &text[block.yaml.end..]].concat())
}

fn create(text: &[u8], key: &str, new: &NewValue<'_>) -> Vec<u8> {
    let newline = newline(text);
    let start = frontmatter::content_start(text);
    let block = format!("---{newline}{}---{newline}", new_entry(key, new, 0, newline));
    [&text[..start], block.as_bytes(), &text[start..]].concat()
}

fn new_entry(key: &str, new: &NewValue<'_>, indent: usize, newline: &str) -> String {
    let margin = " ".repeat(indent);
    match new {
        NewValue::Text(text) => format!("{margin}{key}: {}{newline}", scalar::write(text, Style::Plain, false)),
        NewValue::List([]) => format!("{margin}{key}: []{newline}"),
        NewValue::List(items) => {
            format!("{margin}{key}:{newline}{}", block_list(items, &" ".repeat(indent + 2), newline))
        }
    }
}

fn flow_list(items: &[String]) -> String {
    let items: Vec<_> = items.iter().map(|item| scalar::write(item, Style::Plain, true)).collect();
    format!("[{}]", items.join(", "))
}

fn block_list(items: &[String], margin: &str, newline: &str) -> String {
    items.iter().map(|item| format!("{margin}- {}{newline}", scalar::write(item, Style::Plain, false))).collect()
}

/// The line break of the file's first line.
fn newline(text: &[u8]) -> &'static str {
    match memchr::memchr(b'\n', text) {
        Some(at) if at > 0 && text[at - 1] == b'\r' => "\r\n",
        _ => "\n",
    }
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
        check("---\ntag: a\n---\n", tags(&["b"]), "---\ntag:\n  - b\n---\n");
        check("---\ntag: a\ntags: [b]\n---\n", tags(&["c"]), "---\ntags: [c]\n---\n");
    }

    #[test]
    fn what_is_missing_is_added_at_the_end_or_made() {
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
    fn a_key_that_says_it_already_is_left_alone() {
        for (text, edit) in [
            ("---\ntitle: 'T' # c\n---\n", title("T")),
            ("---\ntitle: 2024\n---\n", title("2024")),
            ("---\ntags: a, b\n---\n", tags(&["a", "b"])),
            ("---\ntags: ['#a', b]\n---\n", tags(&["a", "b"])),
            ("---\ntags:\n---\n", tags(&[])),
        ] {
            check(text, edit, text);
        }
    }

    #[test]
    fn what_cannot_be_edited_safely_is_refused() {
        for (text, message) in [
            ("---\na: b: c\n---\n", "the frontmatter is not valid YAML (line 2: "),
            ("---\n- a\n---\n", "the frontmatter is a list"),
            ("---\n{title: a}\n---\n", "the frontmatter cannot be edited without rewriting it"),
            ("---\n? title\n: a\n---\n", "the frontmatter cannot be edited without rewriting it"),
            ("---\ntitle: &a\n  - x\nb: *a\n---\n", "the frontmatter cannot be edited without rewriting it"),
        ] {
            let error = splice_frontmatter(text.as_bytes(), &[title("T")]).expect_err(text);
            assert!(error.to_string().starts_with(message), "{error}");
        }
        assert!(splice_frontmatter(b"---\na: \xFF\n---\n", &[title("T")]).is_err());
        let broken_body = splice_frontmatter(b"---\ntitle: a\n---\n\xFF", &[title("T")]).unwrap();
        assert_eq!(broken_body, b"---\ntitle: T\n---\n\xFF");
    }

    #[test]
    fn a_new_note_has_frontmatter_only_when_there_is_something_to_say() {
        let some = ["a".to_owned()];
        for (title, tags, content, expected) in [
            (None, &[][..], "text", "text"),
            (Some("T"), &some[..], "text", "---\ntitle: T\ntags:\n  - a\n---\ntext"),
            (Some("T"), &[][..], "---\nx: 1\n---\ntext\n", "---\nx: 1\ntitle: T\n---\ntext\n"),
            (None, &some[..], "", "---\ntags:\n  - a\n---\n"),
        ] {
            assert_eq!(new_note_text(title, tags, content).as_deref(), Ok(expected));
        }
        assert!(new_note_text(Some("T"), &[], "---\na: b: c\n---\n").is_err());
    }
}
