//! The headings, tasks and inline tags of a text with their positions, for reading and editing a part of it.

use std::ops::Range;

use super::{frontmatter, markdown, sections};
use crate::model::Tag;

/// A heading at the top level, and its section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutlineHeading {
    pub text: String,
    /// Its text as written, without the signs that make it a heading.
    pub written: String,
    /// 1 to 6.
    pub level: u8,
    /// Line of the file, from 1.
    pub line: usize,
    /// The section in bytes: from the start of the heading's line to the next heading of this level or a higher one.
    pub range: Range<usize>,
    /// Where the text below the heading starts.
    pub text_start: usize,
    /// Where the first subsection starts, or the section ends.
    pub own_end: usize,
}

/// A task list item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskItem {
    /// The rest of its first line.
    pub text: String,
    /// The character between the brackets.
    pub state: char,
    /// Whether it is finished or cancelled.
    pub done: bool,
    /// Line of the file, from 1.
    pub line: usize,
    /// The position of the character between the brackets.
    pub mark: Range<usize>,
}

/// The headings of a text at the top level, in order. Those in code, quotes, lists and comments do not count.
pub fn outline(text: &str) -> Vec<OutlineHeading> {
    let (_, body_start) = frontmatter::read(text);
    let body = &text[body_start..];
    let mut lines = LineCounter::new(text);
    let headings = markdown::read(body).headings.into_iter().filter(|heading| !heading.hidden);
    let mut found: Vec<OutlineHeading> = headings
        .map(|heading| {
            let start = body_start + sections::line_start(body, heading.range.start);
            let text_start = body_start + line_end(body, heading.range.end);
            let written = text[start..text_start].trim();
            let is_signed = written.starts_with('#');
            let written = if is_signed { written.trim_matches('#').trim().to_owned() } else { heading.text.clone() };
            let line = lines.line_of(start);
            let range = start..text.len();
            OutlineHeading {
                text: heading.text,
                written,
                level: heading.level,
                line,
                range,
                text_start,
                own_end: text.len(),
            }
        })
        .collect();
    // The start of the last heading of each level, from the end of the text.
    let mut next = [text.len(); 7];
    let mut following = text.len();
    for heading in found.iter_mut().rev() {
        let level = usize::from(heading.level).min(6);
        heading.range.end = next[..=level].iter().copied().min().unwrap_or(text.len());
        heading.own_end = following;
        next[level] = heading.range.start;
        following = heading.range.start;
    }
    found
}

/// The position after the line break of a heading, which the parser's range may include.
fn line_end(body: &str, end: usize) -> usize {
    match (body[..end].ends_with('\n'), body[..end].ends_with('\r'), body[end..].starts_with('\n')) {
        (true, _, _) | (_, true, false) => end,
        (_, true, true) => end + 1,
        _ => memchr::memchr(b'\n', &body.as_bytes()[end..]).map_or(body.len(), |at| end + at + 1),
    }
}

/// The task list items of a text, in order.
pub fn tasks(text: &str) -> Vec<TaskItem> {
    let (_, body_start) = frontmatter::read(text);
    let mut lines = LineCounter::new(text);
    let mut tasks = markdown::read(&text[body_start..]).tasks;
    tasks.sort_by_key(|task| task.at);
    let item = |task: markdown::Task| {
        let at = body_start + task.at;
        let mark = at + 1..at + 1 + task.state.len_utf8();
        let rest = text[mark.end..].lines().next().unwrap_or_default();
        let text = rest.get(1..).unwrap_or_default().trim().to_owned();
        TaskItem { text, state: task.state, done: task.is_done(), line: lines.line_of(at), mark }
    };
    tasks.into_iter().map(item).collect()
}

/// The `#tags` in the body, with their names' positions in the text.
pub fn inline_tags(text: &str) -> Vec<(Tag, Range<usize>)> {
    let (_, body_start) = frontmatter::read(text);
    let body = &text[body_start..];
    let mut tags = markdown::read(body).tags;
    tags.sort_by_key(|tag| tag.start);
    tags.into_iter().map(|tag| (Tag::new(&body[tag.clone()]), body_start + tag.start..body_start + tag.end)).collect()
}

/// The line of a position, from 1.
pub fn line_of(text: &[u8], at: usize) -> usize {
    1 + memchr::memchr_iter(b'\n', &text[..at]).count()
}

/// Counts lines up to growing positions, each byte once.
struct LineCounter<'t> {
    text: &'t str,
    passed: usize,
    line: usize,
}

impl<'t> LineCounter<'t> {
    fn new(text: &'t str) -> Self {
        Self { text, passed: 0, line: 1 }
    }

    fn line_of(&mut self, at: usize) -> usize {
        self.line += memchr::memchr_iter(b'\n', &self.text.as_bytes()[self.passed..at]).count();
        self.passed = at;
        self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_ends_at_the_next_heading_of_its_level_or_higher() {
        let text =
            "---\nx: 1\n---\n# A\na\n## B ##\nb\n### **C** d\nc\n```\n## no\n```\n%%\n## hidden\n%%\n\nE\n---\ne\n# F";
        let shown: Vec<String> = outline(text)
            .iter()
            .map(|h| format!("{}{} {}:{}|{}", h.level, h.line, h.text, &text[h.text_start..h.own_end], h.range.end))
            .collect();
        let at = |part: &str| text.find(part).unwrap();
        let expected = [
            format!("14 A:a\n|{}", at("# F")),
            format!("26 B:b\n|{}", at("E\n---")),
            format!("38 C d:c\n```\n## no\n```\n%%\n## hidden\n%%\n\n|{}", at("E\n---")),
            format!("217 E:e\n|{}", at("# F")),
            format!("120 F:|{}", text.len()),
        ];
        assert_eq!(shown, expected);
        assert_eq!(outline(text)[2].written, "**C** d");
    }

    #[test]
    fn tasks_have_their_lines_and_marks() {
        let text =
            "x\n- [ ] one [[a]]\n  * [X] two\r\n- [-] no\n1. [é] ü\n```\n- [ ] code\n```\n- [/](a.md)\n- [[b]] c\n";
        let found: Vec<_> = tasks(text).into_iter().map(|task| (task.text, task.state, task.done, task.line)).collect();
        let expected =
            [("one [[a]]", ' ', false, 2), ("two", 'X', true, 3), ("no", '-', true, 4), ("ü", 'é', false, 5)];
        assert_eq!(found, expected.map(|(text, state, done, line)| (text.to_owned(), state, done, line)));
        assert!(tasks(text).into_iter().all(|task| text[task.mark.clone()] == task.state.to_string()));
    }
}
