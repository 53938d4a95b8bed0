//! Finds what an edit is about: a heading, a text, a task. Where that fails, the error lists what it may have meant.

use std::fmt::Write as _;
use std::ops::Range;

use rustc_hash::FxHashSet;

use crate::model::{Tag, fold};
use crate::parse::{self, OutlineHeading, TaskItem};
use crate::quote::quoted;

/// Candidates in one message.
const MAX_CANDIDATES: usize = 8;

/// Lines that are compared with a text that is not there, and how similar they must be.
const MAX_COMPARED: usize = 5_000;
const MIN_SIMILARITY: f64 = 0.5;

/// What is wrong with an edit, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditProblem(pub(super) String);

impl std::fmt::Display for EditProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The heading with this text, or with this path of headings: `A > B`. Of several equal ones, `A > B (line 12)`.
pub fn heading(text: &str, wanted: &str) -> Result<OutlineHeading, EditProblem> {
    heading_or(text, wanted, ["", ""])
}

/// Like [`heading`], for an edit, whose errors name the edits that need no heading.
pub(super) fn heading_to_edit(text: &str, wanted: &str) -> Result<OutlineHeading, EditProblem> {
    heading_or(text, wanted, ["; use append or replace", ", or use replace"])
}

/// `instead` ends the errors for a note without headings and for several matches.
fn heading_or(text: &str, wanted: &str, instead: [&str; 2]) -> Result<OutlineHeading, EditProblem> {
    let headings = parse::outline(text);
    let paths = paths(&headings);
    let parts: Vec<WantedHeading> = wanted.split(" > ").map(WantedHeading::new).collect();
    let whole = [WantedHeading::new(wanted)];
    let matching = |parts: &[WantedHeading]| -> Vec<usize> {
        let is_match = |index: &usize| path_matches(&headings, &paths[*index], parts);
        (0..headings.len()).filter(is_match).collect()
    };
    let mut found = matching(&whole);
    if found.is_empty() {
        found = matching(&parts);
    }
    if let Some((wanted, line)) = with_line(wanted).filter(|_| found.is_empty()) {
        let at_line = |index: usize| headings[index].line == line;
        let parts: Vec<WantedHeading> = wanted.split(" > ").map(WantedHeading::new).collect();
        found = [&[WantedHeading::new(wanted)][..], &parts].into_iter().flat_map(matching).collect();
        found.sort_unstable();
        found.dedup();
        if found.iter().any(|index| at_line(*index)) {
            found.retain(|index| at_line(*index));
        }
    }
    // Of headings that differ only in case, the one that is spelled like this.
    let is_spelled = |index: &usize| [&headings[*index].text, &headings[*index].written].contains(&&wanted.to_owned());
    if let [one] = found.iter().copied().filter(is_spelled).collect::<Vec<_>>()[..] {
        found = vec![one];
    }
    let named = |index: &usize| {
        let path: Vec<&str> = paths[*index].iter().map(|at| headings[*at].text.as_str()).collect();
        (headings[*index].line, path.join(" > "))
    };
    match found[..] {
        [one] => Ok(headings[one].clone()),
        [] if headings.is_empty() => {
            Err(EditProblem(format!("no heading is {}: the note has no headings{}", quoted(wanted), instead[0])))
        }
        [] => {
            let near = nearest(wanted, headings.iter().map(|heading| heading.text.as_str()), 0.0);
            let near = listed(near.iter().map(named), headings.len());
            Err(EditProblem(format!("no heading is {}; the note has {near}", quoted(wanted))))
        }
        ref several => {
            let candidates = listed(several.iter().map(named), several.len());
            let first = &headings[several[0]];
            let are_on_one_level = several.iter().all(|index| headings[*index].level == first.level);
            let signed = quoted(&format!("{} {}", "#".repeat(first.level.into()), first.text));
            let level = if are_on_one_level { String::new() } else { format!(", its level, as {signed}") };
            let line = quoted(&format!("{} (line {})", first.text, first.line));
            Err(EditProblem(format!(
                "{} headings are {}: {candidates}; give the path of headings above it, as \"A > B\"{level}, or its line, as \
                 {line}{}",
                several.len(),
                quoted(wanted),
                instead[1]
            )))
        }
    }
}

/// A wanted heading without its line, as errors list it: `Notes (line 12)`.
fn with_line(wanted: &str) -> Option<(&str, usize)> {
    let (heading, line) = wanted.trim_end().strip_suffix(')')?.rsplit_once(" (line ")?;
    Some((heading, line.parse().ok()?))
}

/// One heading of a wanted path.
struct WantedHeading {
    name: String,
    /// `name` without `#` signs at its start, and how many there are; `None` if there are none.
    unsigned: Option<(String, usize)>,
}

impl WantedHeading {
    fn new(part: &str) -> Self {
        let name = normal(part);
        let signs = name.bytes().take_while(|byte| *byte == b'#').count();
        let unsigned = (signs > 0).then(|| (name[signs..].trim().to_owned(), signs));
        Self { name, unsigned }
    }

    fn is(&self, heading: &OutlineHeading) -> bool {
        let says = |name: &str| normal(&heading.text) == name || normal(&heading.written) == name;
        says(&self.name)
            || self.unsigned.as_ref().is_some_and(|(name, level)| usize::from(heading.level) == *level && says(name))
    }
}

/// For each heading the headings above it, and itself last.
fn paths(headings: &[OutlineHeading]) -> Vec<Vec<usize>> {
    let mut open: Vec<usize> = Vec::new();
    let path = |(index, heading): (usize, &OutlineHeading)| {
        open.retain(|above| headings[*above].level < heading.level);
        open.push(index);
        open.clone()
    };
    headings.iter().enumerate().map(path).collect()
}

/// Whether the last wanted name is the heading's, and the others are above it in this order.
fn path_matches(headings: &[OutlineHeading], path: &[usize], wanted: &[WantedHeading]) -> bool {
    let (Some((last, above)), Some((own, parents))) = (wanted.split_last(), path.split_last()) else { return false };
    let mut parents = parents.iter();
    last.is(&headings[*own]) && above.iter().all(|name| parents.any(|parent| name.is(&headings[*parent])))
}

/// The task with this text, or whose text contains it. Of several, the one that is not in the wanted state yet.
pub(crate) fn task(text: &str, wanted: &str, done: bool) -> Result<TaskItem, EditProblem> {
    let tasks = parse::tasks(text);
    let whole = normal(wanted);
    // As errors list a task, and as it is written in the note.
    let bare = normal(without_checkbox(wanted));
    let matching = |is_match: &dyn Fn(&str) -> bool| -> Vec<&TaskItem> {
        tasks.iter().filter(|task| is_match(&normal(&task.text))).collect()
    };
    let mut found = matching(&|text| text == whole);
    if found.is_empty() {
        found = matching(&|text| text == bare);
    }
    if found.is_empty()
        && let Some(start) = bare.strip_suffix('…')
    {
        found = matching(&|text| text.starts_with(start));
    }
    if found.is_empty() {
        found = matching(&|text| text.contains(&bare));
    }
    let named = |task: &&TaskItem| (task.line, format!("[{}] {}", task.state, task.text));
    let to_change: Vec<&TaskItem> = found.iter().copied().filter(|task| task.done != done).collect();
    match (&found[..], &to_change[..]) {
        ([one], _) | (_, [one]) => Ok((*one).clone()),
        ([], _) if tasks.is_empty() => Err(EditProblem("the note has no tasks (`- [ ] text`)".to_owned())),
        ([], _) => {
            let near = nearest(wanted, tasks.iter().map(|task| task.text.as_str()), 0.0);
            let near = listed(near.iter().map(|index| named(&&tasks[*index])), tasks.len());
            Err(EditProblem(format!("no task is {}; the note has {near}", quoted(wanted))))
        }
        (several, _) => {
            let candidates = listed(several.iter().map(named), several.len());
            let are_equal = several.iter().all(|task| normal(&task.text) == normal(&several[0].text));
            let next = match are_equal {
                true => "their texts are equal: use replace with the lines around one",
                false => "give the whole text of one",
            };
            Err(EditProblem(format!("{} tasks match {}: {candidates}; {next}", several.len(), quoted(wanted))))
        }
    }
}

/// A task's text without `- [ ] ` before it.
fn without_checkbox(text: &str) -> &str {
    let trimmed = text.trim_start();
    let number = trimmed.trim_start_matches(|c: char| c.is_ascii_digit());
    let unmarked = trimmed.strip_prefix(['-', '*', '+']).or_else(|| number.strip_prefix(['.', ')']));
    let from_box = unmarked.unwrap_or(trimmed).trim_start();
    let mut chars = from_box.chars();
    let is_box = chars.next() == Some('[') && chars.next().is_some() && chars.next() == Some(']');
    if is_box { chars.as_str() } else { text }
}

/// The error for a text that does not occur as often as it should.
pub(super) fn wrong_count(
    bytes: &[u8],
    body_start: usize,
    old: &str,
    found: &[Range<usize>],
    count: usize,
) -> EditProblem {
    let line_at = |at: usize| {
        let start = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |at| at + 1);
        let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |end| at + end);
        String::from_utf8_lossy(&bytes[start..end]).trim().to_owned()
    };
    let quoted_old = quoted(old);
    if !found.is_empty() {
        let places = found.iter().map(|range| (parse::line_of(bytes, range.start), line_at(range.start)));
        let places = listed(places, found.len());
        return EditProblem(format!(
            "the text {quoted_old} occurs {} times, and `count` is {count}: {places}; give more of the text around it, or \
             `count` {}",
            found.len(),
            found.len()
        ));
    }
    if let Some(at) = memchr::memmem::find(&bytes[..body_start], old.as_bytes()) {
        let line = parse::line_of(bytes, at);
        return EditProblem(format!(
            "the text {quoted_old} occurs only in the frontmatter, in line {line}; use set_property or remove_property"
        ));
    }
    let body = String::from_utf8_lossy(&bytes[body_start..]);
    let first_line = parse::line_of(bytes, body_start);
    let lines: Vec<&str> = body.lines().take(MAX_COMPARED).collect();
    let sought = old.lines().find(|line| !line.trim().is_empty()).unwrap_or(old);
    let near = nearest(sought, lines.iter().copied(), MIN_SIMILARITY);
    let mut message = format!("the text {quoted_old} does not occur below the frontmatter");
    if near.is_empty() {
        message.push_str("; read the note again and copy the text exactly");
    } else {
        let near = listed(near.iter().take(3).map(|index| (first_line + index, lines[*index].trim().to_owned())), 0);
        let _ = write!(message, "; similar: {near}; copy the text exactly");
    }
    EditProblem(message)
}

/// The warning for a property that is not there.
pub(super) fn missing_property(text: &str, key: &str) -> String {
    let names: Vec<String> = parse::parse(text).properties.iter().take(20).map(|(name, _)| quoted(name)).collect();
    let present = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    format!("there is no property {} to remove; the properties are: {present}", quoted(key))
}

/// The warning for new tags that editors do not recognize.
pub(super) fn tags_with_space(tags: &[String]) -> Option<String> {
    let tag = tags.iter().map(|tag| tag.trim()).find(|tag| tag.contains(char::is_whitespace))?;
    let joined = tag.split_whitespace().collect::<Vec<_>>().join("-");
    Some(format!("the tag {} has white space, which many editors do not allow; {} works", quoted(tag), quoted(&joined)))
}

/// The warning for removed tags that the body still has.
pub(super) fn inline_tags_left(text: &str, removed: &FxHashSet<String>) -> Option<String> {
    let left = parse::inline_tags(text).into_iter().filter(|(tag, _)| removed.contains(&tag.folded));
    let line = |at: usize| parse::line_of(text.as_bytes(), at);
    let place = |(tag, at): (Tag, Range<usize>)| format!("#{} in line {}", tag.name, line(at.start));
    let mut places: Vec<String> = left.take(MAX_CANDIDATES + 1).map(place).collect();
    let more = if places.len() > MAX_CANDIDATES { " and more" } else { "" };
    places.truncate(MAX_CANDIDATES);
    let shown = places.join(", ");
    let remove = "only the frontmatter was changed; remove these with replace";
    (!places.is_empty()).then(|| format!("the text still has {shown}{more}; {remove}"))
}

/// Compared without regard to case, Unicode form and the amount of white space.
fn normal(text: &str) -> String {
    fold(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The most similar texts, best first.
fn nearest<'t>(wanted: &str, texts: impl Iterator<Item = &'t str>, least: f64) -> Vec<usize> {
    // Longer texts are compared by their beginning: the cost grows with the product of the lengths.
    let short = |text: &str| fold(text.trim()).chars().take(120).collect::<String>();
    let wanted = short(wanted);
    let mut scored: Vec<(f64, usize)> = texts
        .enumerate()
        .map(|(index, text)| {
            let text = short(text);
            let contains = !text.is_empty() && (wanted.contains(&text) || text.contains(&wanted));
            (if contains { 1.0 } else { strsim::normalized_damerau_levenshtein(&wanted, &text) }, index)
        })
        .filter(|(score, _)| *score >= least)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    scored.into_iter().take(MAX_CANDIDATES).map(|(_, index)| index).collect()
}

/// `line 3 "text", line 9 "text" and 4 more`.
fn listed(candidates: impl Iterator<Item = (usize, String)>, total: usize) -> String {
    const MAX_CHARS: usize = 60;
    let short = |text: String| match text.char_indices().nth(MAX_CHARS) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    };
    let shown: Vec<String> =
        candidates.take(MAX_CANDIDATES).map(|(line, text)| format!("line {line} {}", quoted(&short(text)))).collect();
    let more = total.saturating_sub(shown.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}
