//! Random edits of the notes of real vaults against models in plain text: what an edit does not name keeps every byte, and
//! every heading elsewhere stays a heading.

#![expect(clippy::disallowed_methods, reason = "the notes of real vaults are read here")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use quipu_testkit::generate::Random;
use quipu_testkit::real_data;

use super::*;

/// Notes of each vault that are edited, and edits of each note.
const NOTES: usize = 150;
const EDITS: usize = 6;

/// Successful edits of each kind, at least: fewer would test too little.
const LEAST: usize = 80;

/// Edits that were made, by op.
type Done = BTreeMap<&'static str, usize>;

/// The bytes after an edit, if it can be made, which is then counted.
fn applied(bytes: &[u8], edit: &Edit, done: &mut Done) -> Option<Vec<u8>> {
    let applied = apply_edits(bytes, std::slice::from_ref(edit)).ok()?;
    *done.entry(edit.name()).or_default() += 1;
    Some(applied.bytes)
}

#[test]
fn edits_of_real_notes_match_plain_text_models() {
    let Some(data) = real_data() else { return };
    let mut random = Random(15);
    let mut done = Done::new();
    for vault in std::fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path()) {
        let mut notes = Vec::new();
        collect(&vault, &mut notes);
        notes.sort();
        for _ in 0..NOTES.min(notes.len()) {
            let path = &notes[random.below(notes.len())];
            let mut bytes = std::fs::read(path).unwrap();
            for _ in 0..EDITS {
                bytes = check_one(&bytes, &mut random, path, &mut done);
                check_frontmatter(&bytes, &mut random, path, &mut done);
            }
            check_list(&bytes, &mut random, path);
        }
    }
    assert_eq!(done.len(), 11, "one op or more was never applied: {done:?}");
    assert!(done.values().all(|count| *count >= LEAST), "{done:?}");
}

fn collect(folder: &Path, notes: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect(&path, notes);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            notes.push(path);
        }
    }
}

fn check_one(bytes: &[u8], random: &mut Random, path: &Path, done: &mut Done) -> Vec<u8> {
    let text = parse::same_length_text(bytes).into_owned();
    let headings = parse::outline(&text);
    let one = |random: &mut Random| (!headings.is_empty()).then(|| headings[random.below(headings.len())].clone());
    let new = format!("A new line {}.\nAnd another.", random.below(1000));
    let mut apply = |edit: Edit| applied(bytes, &edit, done);
    // Few notes have tasks.
    let tasks = parse::tasks(&text);
    let op = if !tasks.is_empty() && random.below(2) == 0 { 6 } else { random.below(8) };
    match (op, one(random)) {
        (0, _) => {
            let after = apply(Edit::Append { text: new.clone() }).expect("append always fits");
            inserted(bytes, &after, bytes.len(), &new, path);
            after
        }
        (1, _) => {
            let after = apply(Edit::Prepend { text: new.clone() }).expect("prepend always fits");
            inserted(bytes, &after, parse::text_start(bytes), &new, path);
            after
        }
        (2 | 3, Some(heading)) => {
            let position = [Position::Before, Position::Start, Position::End, Position::After][random.below(4)];
            let edit = Edit::Insert { heading: heading.text.clone(), position, text: new.clone() };
            let Some(after) = apply(edit) else { return bytes.to_vec() };
            let range = heading.range.start..heading.range.end.max(heading.text_start);
            let at = common_prefix(bytes, &after).min(range.end);
            assert!(at + 1 >= range.start, "{}: {position:?} of {:?}", path.display(), heading.text);
            inserted_somewhere(bytes, &after, &new, path);
            assert_eq!(texts(&after), texts(bytes), "{}: {position:?} of {:?}", path.display(), heading.text);
            after
        }
        (4, Some(heading)) => {
            let Some(after) = apply(Edit::DeleteSection { heading: heading.text.clone() }) else {
                return bytes.to_vec();
            };
            let without = [&bytes[..heading.range.start], &bytes[heading.range.end..]].concat();
            assert!(after == without || lines(&after) == lines(&without), "{}", path.display());
            after
        }
        (5, Some(heading)) => {
            let edit = Edit::ReplaceSection { heading: heading.text.clone(), text: new.clone() };
            let Some(after) = apply(edit) else { return bytes.to_vec() };
            assert!(after.starts_with(&bytes[..heading.text_start]), "{}", path.display());
            assert!(after.ends_with(&bytes[heading.range.end..]), "{}", path.display());
            let middle = &after[heading.text_start..after.len() - (bytes.len() - heading.range.end)];
            assert_eq!(lines(middle), lines(new.as_bytes()), "{}", path.display());
            after
        }
        (6, _) => {
            if tasks.is_empty() {
                return bytes.to_vec();
            }
            let task = &tasks[random.below(tasks.len())];
            let edit = Edit::SetTask { text: task.text.clone(), done: !task.done };
            let Some(after) = apply(edit) else { return bytes.to_vec() };
            let differ = bytes.iter().zip(&after).filter(|(a, b)| a != b).count();
            assert_eq!((differ, after.len()), (1, bytes.len()), "{}", path.display());
            after
        }
        _ => check_replace(bytes, &text, random, path, &mut apply),
    }
}

/// A property, and a word replaced wherever it occurs.
fn check_replace(
    bytes: &[u8],
    text: &str,
    random: &mut Random,
    path: &Path,
    apply: &mut impl FnMut(Edit) -> Option<Vec<u8>>,
) -> Vec<u8> {
    let body = parse::text_start(bytes);
    let Some(after) = apply(Edit::SetProperty { key: "status".into(), value: crate::model::Value::Int(7) }) else {
        return bytes.to_vec();
    };
    assert!(after.ends_with(&bytes[body..]), "{}", path.display());
    let words: Vec<&str> = text[body..].split_whitespace().collect();
    if words.is_empty() {
        return after;
    }
    let word = words[random.below(words.len())];
    let count = text[body..].matches(word).count();
    let Some(replaced) = apply(Edit::Replace { old: word.to_owned(), new: "ω".into(), count }) else {
        assert!(text.contains('\u{1a}'), "{}: {word:?} occurs {count} times", path.display());
        return after;
    };
    let model = [&bytes[..body], text[body..].replace(word, "ω").as_bytes()].concat();
    assert!(replaced == model || text.contains('\u{1a}'), "{}: {word:?}", path.display());
    replaced
}

/// A frontmatter edit changes the lines of its key alone; the body and every other line keep their bytes.
fn check_frontmatter(bytes: &[u8], random: &mut Random, path: &Path, done: &mut Done) {
    let text = parse::same_length_text(bytes).into_owned();
    let properties = parse::parse(&text).properties;
    let keys: Vec<&String> = properties.iter().map(|(key, _)| key).collect();
    let tags = parse::frontmatter_tags_of(&text);
    let (edit, key) = match random.below(4) {
        0 if !keys.is_empty() => {
            let key = keys[random.below(keys.len())];
            (Edit::RemoveProperty { key: key.clone() }, key.as_str())
        }
        1 => (Edit::AddTags { tags: vec!["model-test".into()] }, "tags"),
        2 if !tags.is_empty() => (Edit::RemoveTags { tags: tags.into_iter().take(1).collect() }, "tags"),
        _ => (Edit::SetProperty { key: "model_test".into(), value: crate::model::Value::Int(7) }, "model_test"),
    };
    let Some(after) = applied(bytes, &edit, done) else { return };
    check_effect(&parse::same_length_text(&after), &edit, path);
    let body = parse::text_start(bytes);
    assert!(after.ends_with(&bytes[body..]), "{}: {edit:?}", path.display());
    let [old, new] = [&bytes[..body], &after[..after.len() - (bytes.len() - body)]];
    let [old_lines, new_lines] = [old, new].map(|part| part.split_inclusive(|byte| *byte == b'\n').collect::<Vec<_>>());
    let prefix = old_lines.iter().zip(&new_lines).take_while(|(a, b)| a == b).count();
    let rest = old_lines.len().min(new_lines.len()) - prefix;
    let suffix = old_lines.iter().rev().zip(new_lines.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    // One run of lines: that of the key, or new ones.
    let removed = &old_lines[prefix..old_lines.len() - suffix];
    let names = |line: &[u8]| {
        let line = String::from_utf8_lossy(line);
        let is_key = !line.starts_with([' ', '\t', '-', '#', ']', '}', '\r', '\n']) && line.contains(':');
        is_key.then(|| line.split(':').next().unwrap_or_default().trim_matches(['"', '\'', ' ']).to_lowercase())
    };
    let others: Vec<String> =
        removed.iter().filter_map(|line| names(line)).filter(|name| *name != key.to_lowercase()).collect();
    let is_tag = |name: &String| key == "tags" && name == "tag";
    assert!(others.iter().all(is_tag), "{}: {edit:?} changed {others:?}", path.display());
}

/// A reader of the note finds what the edit set or added, and not what it removed.
fn check_effect(after: &str, edit: &Edit, path: &Path) {
    let parsed = parse::parse(after);
    let property = |wanted: &str| parsed.properties.iter().find(|(key, _)| key == wanted).map(|(_, value)| value);
    let has_tag = |wanted: &String| {
        let wanted = Tag::new(wanted).folded;
        parse::frontmatter_tags_of(after).iter().any(|tag| Tag::new(tag).folded == wanted)
    };
    let is_made = match edit {
        Edit::SetProperty { key, value } => property(key) == Some(value),
        Edit::RemoveProperty { key } => property(key).is_none(),
        Edit::AddTags { tags } => tags.iter().all(has_tag),
        Edit::RemoveTags { tags } => !tags.iter().any(has_tag),
        other => panic!("{other:?} is no edit of the frontmatter"),
    };
    assert!(is_made, "{}: {edit:?}", path.display());
}

/// A list of edits does what its edits do one after the other, and nothing if one of them fails.
fn check_list(bytes: &[u8], random: &mut Random, path: &Path) {
    let text = parse::same_length_text(bytes).into_owned();
    let headings = parse::outline(&text);
    let mut edits = vec![
        Edit::AddTags { tags: vec!["listed".into()] },
        Edit::SetProperty { key: "listed".into(), value: crate::model::Value::Bool(true) },
        Edit::Append { text: "listed".into() },
        Edit::RemoveTags { tags: vec!["LISTED".into()] },
        Edit::RemoveProperty { key: "listed".into() },
    ];
    if !headings.is_empty() {
        let heading = headings[random.below(headings.len())].text.clone();
        edits.insert(random.below(edits.len()), Edit::Insert { heading, position: Position::End, text: "x".into() });
    }
    let one_by_one = edits.iter().try_fold(bytes.to_vec(), |bytes, edit| {
        apply_edits(&bytes, std::slice::from_ref(edit)).map(|applied| applied.bytes)
    });
    match (apply_edits(bytes, &edits), one_by_one) {
        (Ok(listed), Ok(single)) => assert_eq!(listed.bytes, single, "{}", path.display()),
        (Err(_), Err(_)) => {}
        (listed, single) => panic!("{}: {} and {}", path.display(), listed.is_ok(), single.is_ok()),
    }
}

/// The text was inserted at a position, with line breaks around it at most.
fn inserted(before: &[u8], after: &[u8], at: usize, new: &str, path: &Path) {
    assert!(after.starts_with(&before[..at]) && after.ends_with(&before[at..]), "{}", path.display());
    assert_eq!(lines(&after[at..after.len() - (before.len() - at)]), lines(new.as_bytes()), "{}", path.display());
}

/// The text was inserted at any position, with line breaks around it at most.
fn inserted_somewhere(before: &[u8], after: &[u8], new: &str, path: &Path) {
    let added = after.len() - before.len();
    let prefix = common_prefix(before, after);
    let is_insertion = (0..=prefix)
        .rev()
        .take(added + 4)
        .any(|at| after.ends_with(&before[at..]) && lines(&after[at..at + added]) == lines(new.as_bytes()));
    assert!(
        is_insertion,
        "{}: {:?}",
        path.display(),
        String::from_utf8_lossy(&after[prefix..(prefix + added).min(after.len())])
    );
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn texts(bytes: &[u8]) -> Vec<(u8, String)> {
    parse::outline(&parse::same_length_text(bytes)).into_iter().map(|heading| (heading.level, heading.text)).collect()
}

/// The lines that are not blank.
fn lines(bytes: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(bytes).lines().map(str::to_owned).filter(|line| !line.trim().is_empty()).collect()
}
