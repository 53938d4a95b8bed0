//! One pass over a body's Markdown: links, headings, running text.
//!
//! What Markdown has no word for is done here: `%%comments%%`, dollars that are prices rather than formulas, and the text
//! of HTML blocks, which is read by a pass of its own.

use std::ops::Range;

use pulldown_cmark::{Event, LinkType as MarkdownLink, OffsetIter, Options, Parser, Tag, TagEnd};

use super::comments::Comments;
use super::html::{self, RawElements};
use super::link_site::LinkSite;
use super::open_link::OpenLink;
use super::tags;

const OPTIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_FOOTNOTES)
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS)
    .union(Options::ENABLE_MATH)
    .union(Options::ENABLE_WIKILINKS);

/// Pictures in pictures may be nested without end; so many of them get a label.
const MAX_LABELS: usize = 8;

/// What a body's Markdown says. Ranges are those of the body.
#[derive(Debug, Default)]
pub(super) struct Markdown {
    pub(super) sites: Vec<LinkSite>,
    /// Headings that stand in no quote, list or other block.
    pub(super) headings: Vec<Heading>,
    /// The names of tags, without `#`.
    pub(super) tags: Vec<Range<usize>>,
}

/// A heading at the top level.
#[derive(Debug)]
pub(super) struct Heading {
    pub(super) level: u8,
    pub(super) text: String,
    pub(super) range: Range<usize>,
    /// Whether it stands in a comment.
    pub(super) hidden: bool,
}

/// Reads a body.
pub(super) fn read(body: &str) -> Markdown {
    let mut pass = Pass::new(body);
    pass.run(Parser::new_ext(body, OPTIONS).into_offset_iter(), 0);
    pass.finish()
}

struct Pass<'b> {
    body: &'b str,
    depth: usize,
    in_code: bool,
    /// Whether the body is the text of an HTML block. What still looks like HTML there is not read once more.
    is_within_html: bool,
    /// The heading being read, with the depth it stands at.
    heading: Option<(Heading, usize)>,
    links: Vec<OpenLink<'b>>,
    /// Running text whose end may still be extended: the parser hands out `#a_b` in three pieces.
    running: Range<usize>,
    /// The lines of the HTML block being read.
    html: Option<Vec<Range<usize>>>,
    raw_elements: RawElements,
    comments: Comments<'b>,
    found: Markdown,
}

impl<'b> Pass<'b> {
    fn new(body: &'b str) -> Self {
        Self {
            body,
            depth: 0,
            in_code: false,
            is_within_html: false,
            heading: None,
            links: Vec::new(),
            running: 0..0,
            html: None,
            raw_elements: RawElements::default(),
            comments: Comments::new(body),
            found: Markdown::default(),
        }
    }

    /// Takes all events of a parser over the part of the body that starts at `offset`.
    fn run(&mut self, mut events: OffsetIter<'b>, offset: usize) {
        while let Some((event, range)) = events.next() {
            let range = range.start + offset..range.end + offset;
            let closes_link = matches!(event, Event::End(TagEnd::Link | TagEnd::Image));
            if let Some(link) = self.links.last_mut().filter(|_| !closes_link) {
                link.content_end = link.content_end.max(range.end);
            }
            match event {
                Event::Start(tag) => self.start(tag, &range, |label, url| definition(&events, label, url, offset)),
                Event::End(tag) => self.end(tag, range),
                Event::Html(_) => {
                    if let Some(lines) = &mut self.html {
                        lines.push(range);
                    }
                }
                Event::InlineHtml(tag) => self.raw_elements.tag(&tag, &range),
                Event::Text(_) if self.in_code || self.html.is_some() => {}
                Event::Text(text) => self.text(&text, &range),
                Event::InlineMath(_) if self.is_price(&range) => {
                    // Without formulas this goes one level deep and no further.
                    let without_math = OPTIONS.difference(Options::ENABLE_MATH);
                    let part = Parser::new_ext(&self.body[range.clone()], without_math);
                    self.run(part.into_offset_iter(), range.start);
                }
                Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => self.shown(&text),
                Event::SoftBreak | Event::HardBreak => self.shown(" "),
                _ => {}
            }
        }
    }

    /// Whether something in dollars is two prices: a formula does not end in front of a digit.
    fn is_price(&self, range: &Range<usize>) -> bool {
        self.body.as_bytes().get(range.end).is_some_and(u8::is_ascii_digit)
    }

    fn start(&mut self, tag: Tag<'b>, range: &Range<usize>, definition: impl Fn(&str, &str) -> Option<Range<usize>>) {
        if !is_inline(&tag) {
            self.comments.next_block();
            self.raw_elements.next_block();
        }
        let is_image = matches!(tag, Tag::Image { .. });
        match tag {
            Tag::CodeBlock(_) => self.in_code = true,
            Tag::HtmlBlock => self.html = Some(Vec::new()),
            Tag::Heading { level, .. } => {
                let heading = Heading { level: level as u8, text: String::new(), range: range.clone(), hidden: false };
                self.heading = Some((heading, self.depth));
            }
            Tag::Link { link_type, dest_url, id, .. } | Tag::Image { link_type, dest_url, id, .. } => {
                let is_reference =
                    matches!(link_type, MarkdownLink::Reference | MarkdownLink::Collapsed | MarkdownLink::Shortcut);
                self.links.push(OpenLink {
                    kind: link_type,
                    is_image,
                    definition: if is_reference { definition(&id, &dest_url) } else { None },
                    url: dest_url,
                    label: String::new(),
                    content_end: range.start + 1 + usize::from(is_image),
                });
            }
            _ => {}
        }
        self.depth += 1;
    }

    fn end(&mut self, tag: TagEnd, range: Range<usize>) {
        self.depth = self.depth.saturating_sub(1);
        match tag {
            TagEnd::CodeBlock => self.in_code = false,
            TagEnd::HtmlBlock => {
                let lines = self.html.take().unwrap_or_default();
                if !self.is_within_html {
                    self.html_text(&lines);
                }
            }
            TagEnd::Heading(_) => {
                if let Some((heading, 0)) = self.heading.take() {
                    self.found.headings.push(Heading { text: heading.text.trim().to_owned(), ..heading });
                }
            }
            TagEnd::Link | TagEnd::Image => {
                let Some(link) = self.links.pop() else { return };
                if let Some(around) = self.links.last_mut() {
                    around.content_end = around.content_end.max(range.end);
                }
                self.found.sites.extend(link.close(self.body, range));
            }
            _ => {}
        }
    }

    /// Reads the text of an HTML block. Links whose target runs through a tag are none.
    fn html_text(&mut self, lines: &[Range<usize>]) {
        let Some(text) = html::running_text(self.body, lines) else { return };
        let start = lines.first().map_or(0, |line| line.start);
        let mut pass = Pass { is_within_html: true, ..Pass::new(&text) };
        pass.run(Parser::new_ext(&text, OPTIONS).into_offset_iter(), 0);
        let within = pass.finish();
        for site in within.sites {
            let mut site = site.shifted(start);
            if text[site.target_range.start - start..site.target_range.end - start]
                == self.body[site.target_range.clone()]
            {
                site.link.label = site.link.label.map(|label| label.split_whitespace().collect::<Vec<_>>().join(" "));
                self.found.sites.push(site);
            }
        }
        self.found.tags.extend(within.tags.into_iter().map(|tag| start + tag.start..start + tag.end));
    }

    fn text(&mut self, text: &str, range: &Range<usize>) {
        self.shown(text);
        if !self.links.is_empty() {
            return;
        }
        self.comments.text(range);
        if self.running.end == range.start {
            self.running.end = range.end;
        } else {
            self.close_running_text();
            self.running = range.clone();
        }
    }

    /// Adds to whatever shows text: the heading and the links around it.
    fn shown(&mut self, text: &str) {
        if let Some((heading, _)) = &mut self.heading {
            heading.text.push_str(text);
        }
        for link in self.links.iter_mut().take(MAX_LABELS) {
            link.label.push_str(text);
        }
    }

    fn close_running_text(&mut self) {
        self.found.tags.extend(tags::inline_tags(self.body, self.running.clone()));
    }

    fn finish(mut self) -> Markdown {
        self.close_running_text();
        let (comments, raw_elements) = (self.comments, self.raw_elements);
        let is_hidden = |at: usize| comments.hide(at) || raw_elements.hide(at);
        self.found.sites.retain(|site| !is_hidden(site.range.start));
        self.found.tags.retain(|tag| !is_hidden(tag.start));
        for heading in &mut self.found.headings {
            heading.hidden = comments.hide(heading.range.start);
        }
        self.found
    }
}

/// Where the definition stands that a reference with this label and destination goes back to.
fn definition(events: &OffsetIter<'_>, label: &str, url: &str, offset: usize) -> Option<Range<usize>> {
    let definitions = events.reference_definitions();
    let by_url = || definitions.iter().map(|(_, found)| found).find(|found| &*found.dest == url);
    let span = &definitions.get(label).or_else(by_url)?.span;
    Some(span.start + offset..span.end + offset)
}

fn is_inline(tag: &Tag<'_>) -> bool {
    matches!(tag, Tag::Emphasis | Tag::Strong | Tag::Strikethrough | Tag::Link { .. } | Tag::Image { .. })
}

#[cfg(test)]
mod tests {
    use crate::model::LinkSyntax;
    use crate::parse::{link_sites, parse};

    /// Each link as `kind target#fragment|label @bytes of the target`, kind being `[[`, `![[` or `](`.
    fn check(text: &str, expected: &[&str]) {
        let shown: Vec<_> = link_sites(text)
            .iter()
            .map(|site| {
                let link = &site.link;
                let kind = match link.syntax {
                    LinkSyntax::Wiki => "[[",
                    LinkSyntax::Embed => "![[",
                    LinkSyntax::Markdown => "](",
                    LinkSyntax::Frontmatter => "---",
                };
                let fragment = link.fragment.as_ref().map(|it| format!("#{it}")).unwrap_or_default();
                let label = link.label.as_ref().map(|it| format!("|{it}")).unwrap_or_default();
                format!("{kind} {}{fragment}{label} @{}", link.target, &text[site.target_range.clone()])
            })
            .collect();
        assert_eq!(shown, expected, "{text:?}");
    }

    #[test]
    fn wikilinks_are_found_wherever_text_runs() {
        check("[[a]] and [[b|c]]", &["[[ a @a", "[[ b|c @b"]);
        check("![[e.png|200]] ![[n#h]]", &["![[ e.png|200 @e.png", "![[ n#h @n"]);
        check("- [[a]]\n> [!note] [[b]]\n\n# [[c]]\n", &["[[ a @a", "[[ b @b", "[[ c @c"]);
        check("|x|\n|-|\n|[[a\\|b]]|\n", &["[[ a|b @a"]);
        check("text[^1]\n\n[^1]: see [[a]]\n", &["[[ a @a"]);
        check("- [ ] do [[a]]", &["[[ a @a"]);
        check("**[[a]]** ~~[[b]]~~ *x [[c]]*", &["[[ a @a", "[[ b @b", "[[ c @c"]);
        check("[[ 日本 語 #見出し|表示]]。[[x\\y]]", &["[[ 日本 語#見出し|表示 @日本 語", "[[ x/y @x\\y"]);
        check("\u{FEFF}[[a]]", &["[[ a @a"]);
        check("---\nreferences: f\n---\n[[a]]", &["--- f @f", "[[ a @a"]);
        check("[[a_b*c*]] [[A & B]]", &["[[ a_b*c* @a_b*c*", "[[ A & B @A & B"]);
    }

    #[test]
    fn what_only_looks_like_a_wikilink_is_none() {
        for text in [
            "`[[a]]`",
            "```\n[[a]]\n```",
            "    [[a]]",
            "<!-- [[a]] -->",
            "x <!-- [[a]] --> y",
            "$[[a]]$",
            "$$\n[[a]]\n$$",
            "\\[[a]]",
            "[[]]",
            "[[#here]]",
            "[[a\nb]]",
            "[[a",
            "%%[[a]]%%",
            "x %%[[a]] y%% z",
            "%%\n\n[[a]]\n\n- [[b]]\n\n%%\n",
        ] {
            check(text, &[]);
        }
        check("100%% [[a]]\n\n50%% [[b]]", &["[[ a @a", "[[ b @b"]);
        check("`%%` [[a]] `%%`", &["[[ a @a"]);
        check("from $5 for [[a]]/$6 each", &["[[ a @a"]);
    }

    #[test]
    fn markdown_links_count_when_they_lead_to_a_note() {
        check("[t](a.md)", &["]( a.md|t @a.md"]);
        check("[*t* `c`](<my note.md#h> 'title')", &["]( my note.md#h|t c @my note.md"]);
        check("[t](my%20note.MD?q#a%20b)", &["]( my note.MD#a b|t @my%20note.MD"]);
        check("[t](../x/a(1).markdown)", &["]( ../x/a(1).markdown|t @../x/a(1).markdown"]);
        check("![p](a.md) [](/r.md)", &["]( a.md|p @a.md", "]( /r.md @/r.md"]);
        check("[![i](x.png)](a.md)", &["]( a.md|i @a.md"]);
        check("[a \\] b](c.md)", &["]( c.md|a ] b @c.md"]);
        check("[t](a\\_b.md#x)", &["]( a_b.md#x|t @a\\_b.md#x"]);
        check("> [t](\n> a.md)", &["]( a.md|t @a.md"]);
        check("[t](https://x.org/a.md) [u](a.png) [v](#h) <https://x.org/b.md> [w](//x/a.md)", &[]);
        check("`[t](a.md)` \\[t](a.md)", &[]);
    }

    #[test]
    fn reference_links_point_into_their_definition() {
        check("[t][R] and [r]\n\n[r]: <a b.md> 'T'\n", &["]( a b.md|t @a b.md", "]( a b.md|r @a b.md"]);
        check("[t][a \\] b]\n\n[a \\] b]:\n  c.md#h\n", &["]( c.md#h|t @c.md"]);
        check("[[w]]\n\n[w]: w.md 'made by an editor'\n", &["[[ w @w"]);
    }

    fn check_tags(text: &str, expected: &[&str]) {
        let parsed = parse(text);
        assert_eq!(parsed.tags.iter().map(|tag| tag.name.as_str()).collect::<Vec<_>>(), expected, "{text:?}");
    }

    #[test]
    fn tags_stand_in_running_text() {
        check_tags("#a #b_c_d\n#e\n- #f\n> #g\n", &["a", "b_c_d", "e", "f", "g"]);
        check_tags("---\ntags: [x]\n---\n#X #y", &["x", "y"]);
        check_tags("# Title #t\n## #u\n", &["t", "u"]);
        check_tags("(#a) [#b] \"#c\" *#d* **#e** _#f_ ~~#g~~ |#h", &["a", "b", "c", "d", "e", "f", "g", "h"]);
        check_tags("「#タグ」と、#二つ", &["タグ", "二つ"]);
        check_tags("|a|b|\n|-|-|\n|#c|(#d)|\n\n>#e\n\n<b>#f</b>", &["c", "d", "e", "f"]);
        for text in [
            "`#a`",
            "```\n#a\n```",
            "\\#a",
            "https://x.org/#a",
            "[[x #a]]",
            "[x](#a)",
            "[x](y.md \" #a\")",
            "<i title=' #a'>",
            "<!-- #a -->",
            "$x #a$",
            "%% #a %%",
            "&#35;a",
            "&#123;",
            "#",
            "a#b",
            "a_#b_",
            "foo/#b",
            "\\##a",
            "[x](#a b)",
            "\\[[#a]]",
            "## Title {#a}",
            "<https://x.org/?#a>",
        ] {
            check_tags(text, &[]);
        }
    }

    #[test]
    fn the_first_top_level_heading_is_kept() {
        for (text, expected) in [
            ("x\n\n# A *b*\n# C", Some("A b")),
            ("A\n===\n", Some("A")),
            ("## A\n", None),
            ("> # A\n\n```\n# B\n```\n", None),
            ("%%\n# A\n%%\n# B\n", Some("B")),
        ] {
            assert_eq!(parse(text).first_heading.as_deref(), expected, "{text:?}");
        }
    }
}
