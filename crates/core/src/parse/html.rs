//! HTML inside Markdown: finds its running text. Tags, comments and code are not; everything between them is.
//!
//! The Markdown parser does not parse HTML blocks, but they contain links and tags: after a comment, in `<details>`, in the
//! cells of a table. So markup is replaced by blanks of the same length, and the rest is read as a paragraph.

use std::ops::Range;

use memchr::memmem;

use super::covers;

/// Elements that contain no running text.
const RAW_ELEMENTS: [&str; 4] = ["code", "pre", "script", "style"];

/// Replaces white space at the start of lines: a blank line would end the paragraph, an indented one would start code.
/// Punctuation, so that a tag or emphasis may follow it.
const LINE_START: u8 = b',';

/// The running text of an HTML block; every byte keeps its position.
///
/// `lines` are the ranges of the block in `body`; the gaps between them are markers of a surrounding quote or list.
/// `None` if the text contains no link or tag.
pub(super) fn running_text(body: &str, lines: &[Range<usize>]) -> Option<String> {
    let block = lines.first()?.start..lines.last()?.end;
    let mut text = body.as_bytes()[block.clone()].to_vec();
    for pair in lines.windows(2) {
        blank(&mut text[pair[0].end - block.start..pair[1].start - block.start]);
    }
    let mut at = 0;
    while let Some(start) = memchr::memchr(b'<', &text[at..]).map(|found| at + found) {
        at = markup_end(&text, start).unwrap_or(start + 1);
        if at > start + 1 {
            blank(&mut text[start..at]);
        }
    }
    memchr::memchr2(b'[', b'#', &text)?;
    let mut at_line_start = true;
    for byte in &mut text {
        if at_line_start && matches!(byte, b' ' | b'\t') {
            *byte = LINE_START;
        }
        at_line_start = matches!(byte, b'\n' | b'\r');
    }
    Some(String::from_utf8(text).expect("markup starts and ends with ASCII, or at the end of the block"))
}

/// The comments and raw elements of an HTML block, in order.
pub(super) fn hidden_parts(body: &str, lines: &[Range<usize>]) -> Vec<Range<usize>> {
    let (Some(first), Some(last)) = (lines.first(), lines.last()) else { return Vec::new() };
    let html = &body.as_bytes()[..last.end];
    let mut hidden = Vec::new();
    let mut at = first.start;
    while let Some(start) = memchr::memchr(b'<', &html[at..]).map(|found| at + found) {
        at = markup_end(html, start).unwrap_or(start + 1);
        let is_tag = html.get(start + 1).is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'/');
        if at > start + 1 && !(is_tag && raw_tag(&html[start..]).is_none()) {
            hidden.push(start..at);
        }
    }
    hidden
}

/// Pairs the tags of raw elements within a paragraph: `a <code>[[b]]</code>`.
#[derive(Default)]
pub(super) struct RawElements {
    open: Option<(&'static str, usize)>,
    found: Vec<Range<usize>>,
}

impl RawElements {
    /// Starts the next paragraph, heading, list item or cell. An element that is not closed hides nothing.
    pub(super) fn next_block(&mut self) {
        self.open = None;
    }

    /// Adds a tag or comment from running text.
    pub(super) fn tag(&mut self, tag: &str, range: &Range<usize>) {
        let Some((name, is_closing)) = raw_tag(tag.as_bytes()) else { return };
        match self.open {
            None if !is_closing => self.open = Some((name, range.start)),
            Some((open, start)) if is_closing && open == name => {
                self.found.push(start..range.end);
                self.open = None;
            }
            _ => {}
        }
    }

    /// Whether a position is in a raw element. Valid once all tags were added.
    pub(super) fn hide(&self, at: usize) -> bool {
        covers(&self.found, at)
    }
}

/// The end of the markup that starts with the `<` at `start`, including the content of raw elements. `None` if it is not
/// markup. Markup that is never closed ends with the block, as in a browser: no byte is read twice.
fn markup_end(html: &[u8], start: usize) -> Option<usize> {
    let rest = &html[start..];
    let behind = |from: usize, mark: &[u8]| {
        memmem::find(&html[start + from..], mark).map_or(html.len(), |at| start + from + at + mark.len())
    };
    if rest.starts_with(b"<!--") {
        // `<!-->` is a complete comment.
        return Some(behind(2, b"-->"));
    }
    if rest.starts_with(b"<![CDATA[") {
        return Some(behind(9, b"]]>"));
    }
    if rest.starts_with(b"<?") {
        return Some(behind(2, b"?>"));
    }
    let name_at = if rest.starts_with(b"</") || rest.starts_with(b"<!") { 2 } else { 1 };
    let is_link_destination = html[..start].ends_with(b"](");
    if is_link_destination || !rest.get(name_at).is_some_and(u8::is_ascii_alphabetic) {
        return None;
    }
    let end = tag_end(html, start);
    match raw_tag(rest) {
        Some((name, false)) => Some(closing_tag(html, end, name).map_or(html.len(), |at| tag_end(html, at))),
        _ => Some(end),
    }
}

/// The position after the `>` of a tag; one in a quoted value does not count.
fn tag_end(html: &[u8], start: usize) -> usize {
    let mut quote = None;
    let mut after_equals = false;
    for (at, byte) in html.iter().enumerate().skip(start) {
        match (quote, byte) {
            (Some(open), byte) if open == *byte => quote = None,
            (Some(_), _) => {}
            (None, b'>') => return at + 1,
            (None, b'"' | b'\'') if after_equals => quote = Some(*byte),
            (None, _) => {}
        }
        after_equals = *byte == b'=' || after_equals && byte.is_ascii_whitespace();
    }
    html.len()
}

fn closing_tag(html: &[u8], from: usize, name: &str) -> Option<usize> {
    let mut candidates = memmem::find_iter(&html[from..], b"</").map(|at| from + at);
    candidates.find(|at| raw_tag(&html[*at..]) == Some((name, true)))
}

/// The raw element whose tag this starts with, and whether the tag is a closing one.
fn raw_tag(html: &[u8]) -> Option<(&'static str, bool)> {
    let is_closing = html.starts_with(b"</");
    let rest = html.get(1 + usize::from(is_closing)..)?;
    let length = rest.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'-').unwrap_or(rest.len());
    let name = RAW_ELEMENTS.into_iter().find(|name| name.as_bytes().eq_ignore_ascii_case(&rest[..length]))?;
    Some((name, is_closing))
}

/// Replaces bytes by spaces, except line breaks.
fn blank(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().filter(|byte| !matches!(byte, b'\n' | b'\r')) {
        *byte = b' ';
    }
}

#[cfg(test)]
mod tests {
    use crate::parse::{link_sites, parse, rewrite_targets};

    /// Targets of links, then tags, in one line; every link must lead to the bytes of its target.
    fn check(text: &str, expected: &str) {
        for site in link_sites(text) {
            assert_eq!(&text[site.target_range.clone()], site.link.target, "{text:?}");
        }
        let parsed = parse(text);
        let links = parsed.links.iter().map(|link| link.target.clone());
        let found: Vec<_> = links.chain(parsed.tags.iter().map(|tag| format!("#{}", tag.name))).collect();
        assert_eq!(found.join(" "), expected, "{text:?}");
    }

    #[test]
    fn text_beside_a_comment_is_parsed() {
        check("<!-- todo --> see [[a]] #tagged", "a #tagged");
        check("- <!-- x --> [[a]]\n- <!-- #no [[b]] --> #yes", "a #yes");
        check("<!-- one\n[[no]]\n\n#no\n--> [[b]] #yes", "b #yes");
        check("> <!-- one\n> [[no]]\n> --> [b](b.md)\n", "b.md");
        check("[[a]] <!-- [[no]] --> [[b]]", "a b");
        check("<!-- x --> [[a]] <!-- [[no]] --> [[b]] <!-- [[no]]", "a b");
        check("<!--> [[a]]", "a");
        check("<!-- a > b -- [[no]] --> [[b]]", "b");
        check("<!-- x -->\r\n<!-- y\r\n--> [[a]]\r\n", "a");
        check("<!-- x --> `[[no]]` $[[no]]$ %%[[no]]%% \\[[no]] \\#no", "");
    }

    #[test]
    fn text_of_an_html_block_is_parsed() {
        check("<details>\n<summary>S #t</summary>\n[[a]] #t3\n</details>", "a #t #t3");
        check("<div>\n[[a|b]] ![[c#d]] [e](f.md)\n</div>", "a c f.md");
        check("<table>\n  <tr>\n      <td>[[a]]</td>\n\t\t<td>#b</td>\n  </tr>\n</table>", "a #b");
        check("<td>[[a]]</td>", "a");
        check("- x\n\n  <div\n  title='> [[no]]'>[[a]]\n  </div>\n", "a");
        check("<div>\n# [[a]]\n      [[b]]\n- [[c]]\n</div>\n\n[[d]]", "a b c d");
        check("<p>日本 [[日本語]]「#タグ」</p>", "日本語 #タグ");
        check("<div>\n[a <b>x</b>](b.md) 1 < 2 [[c]]\n</div>", "b.md c");
        check("%%\n\n<div>[[no]]</div>\n\n%%\n\n<div>[[a]]</div>", "a");
    }

    #[test]
    fn html_tags_code_and_scripts_are_not_text() {
        for text in [
            "<div title=\"[[no]] #no\" id='#no'>\n</div>",
            "<div data-x = '>' [[no]]>",
            "<pre>\n[[no]]\n\n#no\n</pre>",
            "<div><code>[[no]]</code>\n<PRE class=x>#no</PRE></div>",
            "<script>\nlet a = [[no]]; // </scripts>\n#no\n</script>",
            "<style>\n.a { color: #fff }\n #no\n</style>",
            "<div>\n<code>\n[[no]]",
            "<?php [[no]] > ?>",
            "<!DOCTYPE [[no]]>",
            "<![CDATA[ > [[no]] ]]>",
            "<div\n[[no]]",
            "x <code>[[no]] #no</code> y",
            "<div>[[a <b>x</b>]]</div>",
        ] {
            check(text, "");
        }
        check("<pre>[[no]]</pre> [[a]]", "a");
        check("x <code>no</code> [[a]] <code> [[b]]\n\n[[c]] </code>", "a b c");
    }

    #[test]
    fn links_in_html_can_be_rewritten() {
        let text = "<details>\n\t[[ a #h|b]] [t](<a.md#h>) <!-- [[a]] -->\n</details>\n> <!-- x\n> --> [[a]]\n";
        let rewritten = rewrite_targets(text, |_| Some("é ü.md".to_owned()));
        let expected =
            "<details>\n\t[[ é ü.md #h|b]] [t](<é ü.md#h>) <!-- [[a]] -->\n</details>\n> <!-- x\n> --> [[é ü.md]]\n";
        assert_eq!((rewritten.text.as_str(), rewritten.refused.len()), (expected, 0));
        let refused = rewrite_targets("<p>[[a]]</p>", |_| Some("<b>".to_owned()));
        assert_eq!((refused.text.as_str(), refused.refused.len()), ("<p>[[a]]</p>", 1));
    }

    #[test]
    fn a_label_in_html_is_its_visible_text() {
        let parsed = parse("<div>\n[a  <b>x</b> y](b.md)\n</div>");
        assert_eq!(parsed.links[0].label.as_deref(), Some("a x y"));
    }
}
