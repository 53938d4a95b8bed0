//! One pass over the Markdown of a body: links, headings, tags.
//!
//! Also handles what the Markdown parser does not: `%%comments%%`, dollars that are prices instead of formulas, and the text
//! of HTML blocks, which gets its own pass.

use std::ops::Range;

use pulldown_cmark::{Event, LinkType as MarkdownLink, OffsetIter, Options, Parser, Tag, TagEnd};

use super::comments::Comments;
use super::html::{self, RawElements};
use super::link_site::LinkSite;
use super::open_link::OpenLink;
use super::{MAX_HEADINGS, MAX_LINKS, MAX_PARSED_BYTES, covers, shortcode, tags};

const OPTIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_FOOTNOTES)
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS)
    .union(Options::ENABLE_MATH)
    .union(Options::ENABLE_WIKILINKS);

/// Images may be nested without limit; so many of them get a label.
const MAX_LABELS: usize = 8;

/// So many occurrences of tags are read; most of them are duplicates.
const MAX_TAG_PLACES: usize = 1_000_000;

/// The parts of a body. Ranges are relative to the body.
#[derive(Debug, Default)]
pub(super) struct Markdown {
    pub(super) sites: Vec<LinkSite>,
    /// Headings at the top level: not in a quote, list or other block.
    pub(super) headings: Vec<ParsedHeading>,
    /// The ranges of tag names, without `#`.
    pub(super) tags: Vec<Range<usize>>,
    pub(super) tasks: Vec<Task>,
}

/// A task list item.
#[derive(Debug)]
pub(super) struct Task {
    /// Where its `[ ]` or `[x]` starts.
    pub(super) at: usize,
    /// The character between the brackets.
    pub(super) state: char,
}

impl Task {
    /// Whether it is finished or cancelled. In any other state, such as `/` for begun, it is open.
    pub(super) fn is_done(&self) -> bool {
        matches!(self.state, 'x' | 'X' | '-')
    }

    /// The task of a list item in a state that only Obsidian and its plugins know: any character.
    fn in_own_state(body: &str, item: usize) -> Option<Self> {
        let item = body[item..].trim_start_matches(' ');
        let number = item.trim_start_matches(|c: char| c.is_ascii_digit());
        let content = item.strip_prefix(['-', '*', '+']).or_else(|| number.strip_prefix(['.', ')']))?;
        let from_box = content.trim_start_matches(' ');
        let state = from_box.strip_prefix('[')?.chars().next()?;
        let is_own = !state.is_whitespace() && !['x', 'X', '[', ']'].contains(&state);
        let rest = from_box[1 + state.len_utf8()..].strip_prefix(']')?;
        // More spaces make it code.
        let is_task = is_own && rest.starts_with([' ', '\t']) && (1..=4).contains(&(content.len() - from_box.len()));
        is_task.then(|| Self { at: from_box.as_ptr() as usize - body.as_ptr() as usize, state })
    }
}

/// A heading at the top level.
#[derive(Debug)]
pub(super) struct ParsedHeading {
    pub(super) level: u8,
    pub(super) text: String,
    pub(super) range: Range<usize>,
    /// Whether it is in a comment.
    pub(super) hidden: bool,
}

/// Which links are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WantedParts {
    /// Links to notes.
    Notes,
    /// Markdown links and images with a relative path to another file.
    OtherFiles,
}

/// The part of a body that is parsed. The parser takes up to a hundred times the length of a paragraph.
pub(super) fn parsed_part(body: &str) -> &str {
    if body.len() <= MAX_PARSED_BYTES {
        return body;
    }
    let part = &body[..body.floor_char_boundary(MAX_PARSED_BYTES)];
    part.rfind('\n').map_or(part, |end| &part[..=end])
}

/// Reads a body.
pub(super) fn read(body: &str) -> Markdown {
    let body = parsed_part(body);
    let shortcodes = shortcode::find(body);
    if shortcodes.is_empty() {
        return Pass::new(body, WantedParts::Notes).read();
    }
    let without = shortcode::without(body, &shortcodes);
    Pass { shortcodes, ..Pass::new(&without, WantedParts::Notes) }.read()
}

/// The relative links of a body to files that are not notes.
pub(super) fn other_file_sites(body: &str) -> Vec<LinkSite> {
    let body = parsed_part(body);
    let shortcodes = shortcode::find(body);
    let without = shortcode::without(body, &shortcodes);
    Pass::new(&without, WantedParts::OtherFiles).read().sites
}

struct Pass<'b> {
    body: &'b str,
    wanted: WantedParts,
    depth: usize,
    in_code: bool,
    /// Whether the body is the text of an HTML block; HTML in it is not parsed again.
    is_within_html: bool,
    /// The open heading, with its depth.
    heading: Option<(ParsedHeading, usize)>,
    links: Vec<OpenLink<'b>>,
    /// Running text whose end may still move: the parser returns `#a_b` in three pieces.
    running: Range<usize>,
    /// The lines of the open HTML block.
    html: Option<Vec<Range<usize>>>,
    raw_elements: RawElements,
    comments: Comments<'b>,
    /// Links that are blanked in the body.
    shortcodes: Vec<LinkSite>,
    /// Code, formulas and HTML in which a shortcode is not a link. In order; empty without shortcodes.
    literal: Vec<Range<usize>>,
    found: Markdown,
}

impl<'b> Pass<'b> {
    fn new(body: &'b str, wanted: WantedParts) -> Self {
        Self {
            body,
            wanted,
            depth: 0,
            in_code: false,
            is_within_html: false,
            heading: None,
            links: Vec::new(),
            running: 0..0,
            html: None,
            raw_elements: RawElements::default(),
            comments: Comments::new(body),
            shortcodes: Vec::new(),
            literal: Vec::new(),
            found: Markdown::default(),
        }
    }

    fn read(mut self) -> Markdown {
        self.run(Parser::new_ext(self.body, OPTIONS).into_offset_iter(), 0);
        self.finish()
    }

    /// Handles all events of a parser over the part of the body that starts at `offset`.
    fn run(&mut self, mut events: OffsetIter<'b>, offset: usize) {
        while let Some((event, range)) = events.next() {
            let range = range.start + offset..range.end + offset;
            if !self.shortcodes.is_empty() && is_literal(&event) {
                self.literal.push(range.clone());
            }
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
                    // Without formulas the recursion has one level.
                    let without_math = OPTIONS.difference(Options::ENABLE_MATH);
                    let part = Parser::new_ext(&self.body[range.clone()], without_math);
                    self.run(part.into_offset_iter(), range.start);
                }
                Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => self.shown(&text),
                Event::TaskListMarker(_) => {
                    let state = self.body[range.start..].chars().nth(1).unwrap_or(' ');
                    self.found.tasks.push(Task { at: range.start, state });
                }
                Event::SoftBreak | Event::HardBreak => self.shown(" "),
                _ => {}
            }
        }
    }

    /// Whether text between dollars is two prices: no digit follows a formula.
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
            Tag::Item => self.found.tasks.extend(Task::in_own_state(self.body, range.start)),
            Tag::HtmlBlock => self.html = Some(Vec::new()),
            Tag::Heading { level, .. } => {
                let heading =
                    ParsedHeading { level: level as u8, text: String::new(), range: range.clone(), hidden: false };
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
                if let Some((heading, 0)) = self.heading.take()
                    && self.found.headings.len() <= MAX_HEADINGS
                {
                    self.found.headings.push(ParsedHeading { text: heading.text.trim().to_owned(), ..heading });
                }
            }
            TagEnd::Link | TagEnd::Image => {
                let Some(link) = self.links.pop() else { return };
                if let Some(around) = self.links.last_mut() {
                    around.content_end = around.content_end.max(range.end);
                }
                self.add_links(link.close(self.body, range, self.wanted));
            }
            _ => {}
        }
    }

    /// Reads the text of an HTML block. A target that contains an HTML tag is not a link.
    fn html_text(&mut self, lines: &[Range<usize>]) {
        if !self.shortcodes.is_empty() {
            self.literal.extend(html::hidden_parts(self.body, lines));
        }
        let Some(text) = html::running_text(self.body, lines) else { return };
        let start = lines.first().map_or(0, |line| line.start);
        let within = Pass { is_within_html: true, ..Pass::new(&text, self.wanted) }.read();
        for site in within.sites {
            let mut site = site.shifted(start);
            if text[site.target_range.start - start..site.target_range.end - start]
                == self.body[site.target_range.clone()]
            {
                site.link.label = site.link.label.map(|label| label.split_whitespace().collect::<Vec<_>>().join(" "));
                self.add_links([site]);
            }
        }
        self.add_tags(within.tags.into_iter().map(|tag| start + tag.start..start + tag.end));
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

    /// Adds visible text to the open heading and the open links.
    fn shown(&mut self, text: &str) {
        if let Some((heading, _)) = &mut self.heading {
            heading.text.push_str(text);
        }
        for link in self.links.iter_mut().take(MAX_LABELS) {
            link.label.push_str(text);
        }
    }

    fn close_running_text(&mut self) {
        self.add_tags(tags::inline_tags(self.body, self.running.clone()));
    }

    /// Adds links, up to one more than the limit, so that the excess is known.
    fn add_links(&mut self, sites: impl IntoIterator<Item = LinkSite>) {
        let left = (MAX_LINKS + 1).saturating_sub(self.found.sites.len());
        self.found.sites.extend(sites.into_iter().take(left));
    }

    fn add_tags(&mut self, tags: impl IntoIterator<Item = Range<usize>>) {
        let left = MAX_TAG_PLACES.saturating_sub(self.found.tags.len());
        self.found.tags.extend(tags.into_iter().take(left));
    }

    fn add_shortcodes(&mut self) {
        if self.shortcodes.is_empty() {
            return;
        }
        let is_link = |site: &LinkSite| !site.link.target.is_empty() && !covers(&self.literal, site.range.start);
        let shortcodes: Vec<LinkSite> = self.shortcodes.drain(..).filter(is_link).collect();
        self.add_links(shortcodes);
        // All links are in the order of their ends.
        self.found.sites.sort_by_key(|site| site.range.end);
    }

    fn finish(mut self) -> Markdown {
        self.close_running_text();
        self.add_shortcodes();
        let (comments, raw_elements) = (self.comments, self.raw_elements);
        let is_hidden = |at: usize| comments.hide(at) || raw_elements.hide(at);
        self.found.sites.retain(|site| !is_hidden(site.range.start));
        self.found.tags.retain(|tag| !is_hidden(tag.start));
        self.found.tasks.retain(|task| !is_hidden(task.at));
        for heading in &mut self.found.headings {
            heading.hidden = comments.hide(heading.range.start);
        }
        self.found
    }
}

/// The range of the definition of a reference link.
fn definition(events: &OffsetIter<'_>, label: &str, url: &str, offset: usize) -> Option<Range<usize>> {
    let definitions = events.reference_definitions();
    let by_url = || definitions.iter().map(|(_, found)| found).find(|found| &*found.dest == url);
    let span = &definitions.get(label).or_else(by_url)?.span;
    Some(span.start + offset..span.end + offset)
}

/// Whether an event is literal text: code, a formula or a comment.
fn is_literal(event: &Event<'_>) -> bool {
    match event {
        Event::Start(Tag::CodeBlock(_)) | Event::Code(_) | Event::InlineMath(_) | Event::DisplayMath(_) => true,
        Event::InlineHtml(html) => html.starts_with("<!--"),
        _ => false,
    }
}

fn is_inline(tag: &Tag<'_>) -> bool {
    matches!(tag, Tag::Emphasis | Tag::Strong | Tag::Strikethrough | Tag::Link { .. } | Tag::Image { .. })
}
