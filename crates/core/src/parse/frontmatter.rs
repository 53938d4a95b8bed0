//! Frontmatter: finds the block, and reads the note's metadata from its YAML.

use std::ops::Range;

use super::link_site::{LinkSite, TargetForm};
use super::scalar::{QuoteStyle, resolve_plain};
use super::yaml::{self, Document, Numbers, ScalarSite, YamlEntry, YamlError};
use super::{markdown, tags, wikilink};
use crate::model::{DocType, Link, LinkSyntax, LinkType, Value};
use crate::quote::quoted;
use crate::staleness::unusable_refs;

/// The byte order mark that some editors write. It is preserved, and not part of the content.
pub(super) const BYTE_ORDER_MARK: &str = "\u{FEFF}";

/// The lines between the fences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    /// The YAML, from the line after the opening fence to the start of the closing one.
    pub(super) yaml: Range<usize>,
    /// The start of the line after the closing fence.
    pub(super) body_start: usize,
}

/// Finds the block: `---` on the first line, up to a line `---` or `...`. Takes bytes, since the body may not be UTF-8.
pub(super) fn find(text: &[u8]) -> Option<Block> {
    let start = content_start(text);
    let yaml_start = next_line(text, start);
    if text[start..yaml_start].trim_ascii_end() != b"---" {
        return None;
    }
    let mut line = yaml_start;
    while line < text.len() {
        let next = next_line(text, line);
        if matches!(text[line..next].trim_ascii_end(), b"---" | b"...") {
            return Some(Block { yaml: yaml_start..line, body_start: next });
        }
        line = next;
    }
    None
}

/// The start of the content, after a byte order mark.
pub(super) fn content_start(text: &[u8]) -> usize {
    if text.starts_with(BYTE_ORDER_MARK.as_bytes()) { BYTE_ORDER_MARK.len() } else { 0 }
}

/// The start of the next line.
pub(super) fn next_line(text: &[u8], at: usize) -> usize {
    memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |found| at + found + 1)
}

/// The metadata in frontmatter.
#[derive(Debug, Default)]
pub(super) struct Frontmatter {
    pub(super) title: Option<String>,
    pub(super) tags: Vec<String>,
    pub(super) aliases: Vec<String>,
    pub(super) properties: Vec<(String, Value)>,
    pub(super) sites: Vec<LinkSite>,
    pub(super) warnings: Vec<String>,
}

/// Reads the frontmatter of a text, and the start of the body. Frontmatter that is not valid is part of the body.
pub(super) fn read(text: &str) -> (Frontmatter, usize) {
    let whole = content_start(text.as_bytes());
    let Some(block) = find(text.as_bytes()) else { return (Frontmatter::default(), whole) };
    let unread = |warning: String| (Frontmatter { warnings: vec![warning], ..Frontmatter::default() }, whole);
    let yaml = &text[block.yaml.clone()];
    match yaml::read(yaml, Numbers::Resolved) {
        Ok(Document::Mapping(mapping)) => (interpret(mapping.entries, yaml, block.yaml.start), block.body_start),
        Ok(Document::Empty) => (Frontmatter::default(), block.body_start),
        Ok(Document::Scalar | Document::List) => {
            unread("the frontmatter is not a mapping of `key: value` lines; it is treated as text".to_owned())
        }
        Err(error) => unread(format!("{}; it is treated as text", describe(&error))),
    }
}

/// The tags in the frontmatter of a text, as written.
pub fn frontmatter_tags_of(text: &str) -> Vec<String> {
    read(text).0.tags
}

/// A file's bytes with a new text. The frontmatter stays, unless the new text has its own, which replaces it. Empty
/// frontmatter in the new text is dropped.
pub fn with_new_text(bytes: &[u8], text: &str) -> Vec<u8> {
    let own = find(text.as_bytes()).map(|block| (yaml::read(&text[block.yaml.clone()], Numbers::Resolved), block));
    let kept = text_start(bytes);
    let text = match own {
        _ if kept == content_start(bytes) => text,
        Some((Ok(Document::Mapping(_)), _)) => return text.as_bytes().to_vec(),
        Some((Ok(Document::Empty), block)) => &text[block.body_start..],
        _ => text,
    };
    let ends_line = kept == content_start(bytes) || bytes[..kept].ends_with(b"\n");
    let line_end = if ends_line { "" } else { newline(bytes) };
    [&bytes[..kept], line_end.as_bytes(), text.as_bytes()].concat()
}

/// The line break of the file's first line.
pub(crate) fn newline(text: &[u8]) -> &'static str {
    match memchr::memchr(b'\n', text) {
        Some(at) if at > 0 && text[at - 1] == b'\r' => "\r\n",
        _ => "\n",
    }
}

/// The start of a file's text, after the frontmatter and the blank lines that follow it. Counts bytes of the file, which
/// differ from those of the decoded text if the file is not UTF-8.
pub fn text_start(bytes: &[u8]) -> usize {
    let whole = content_start(bytes);
    let Some(block) = find(bytes) else { return whole };
    match yaml::read(&String::from_utf8_lossy(&bytes[block.yaml]), Numbers::Resolved) {
        Ok(Document::Mapping(_) | Document::Empty) => {
            let body = &bytes[block.body_start..];
            let blank = body.iter().take_while(|byte| matches!(byte, b'\n' | b'\r')).count();
            block.body_start + blank
        }
        Ok(Document::Scalar | Document::List) | Err(_) => whole,
    }
}

/// Where a text above all others goes: as [`text_start`], and below frontmatter that is not valid, with what is wrong with it.
/// An error if the frontmatter has no end.
pub(crate) fn top_of_text(bytes: &[u8]) -> Result<(usize, Option<String>), &'static str> {
    let start = text_start(bytes);
    let Some(block) = find(bytes) else {
        return if is_open_frontmatter(bytes) {
            Err("the frontmatter has no closing `---` line; add one with replace")
        } else {
            Ok((start, None))
        };
    };
    let problem = match yaml::read(&String::from_utf8_lossy(&bytes[block.yaml]), Numbers::Resolved) {
        Ok(Document::Mapping(_) | Document::Empty | Document::Scalar) => return Ok((start, None)),
        Ok(Document::List) => "the frontmatter is a list, not keys and values".to_owned(),
        Err(error) => describe(&error),
    };
    let body = &bytes[block.body_start..];
    let blank = body.iter().take_while(|byte| matches!(byte, b'\n' | b'\r')).count();
    Ok((block.body_start + blank, Some(problem)))
}

/// Whether a text starts with a fence and a line `key: value`, and no fence follows. A rule above text is no frontmatter.
fn is_open_frontmatter(bytes: &[u8]) -> bool {
    let start = content_start(bytes);
    let first = next_line(bytes, start);
    let second = String::from_utf8_lossy(&bytes[first..next_line(bytes, first)]);
    let is_key = |key: &str| !key.is_empty() && !key.contains([' ', '`', '*', '[', '<', '|']);
    bytes[start..first].trim_ascii_end() == b"---"
        && second.split_once(':').is_some_and(|(key, value)| is_key(key) && (value.starts_with([' ', '\n', '\r'])))
}

/// The error message, with the line of the file.
pub(super) fn describe(error: &YamlError) -> String {
    format!("the frontmatter is not valid YAML (line {}: {})", error.line + 1, error.reason)
}

fn interpret(entries: Vec<YamlEntry>, yaml: &str, yaml_start: usize) -> Frontmatter {
    let mut read = Frontmatter::default();
    let names = names_as_written(&entries, yaml);
    for (index, YamlEntry { key, value, scalars, .. }) in entries.into_iter().enumerate() {
        let name = names.get(index).map_or(&value, |entry| &entry.value);
        let mut may_have_links = true;
        match key.as_str() {
            "title" => {
                read.title = title(name);
                continue;
            }
            "tags" => {
                read.tags.extend(tags::frontmatter_tags(name));
                continue;
            }
            "aliases" | "alias" => {
                read.aliases.extend(aliases(name));
                may_have_links = false;
            }
            "doc_type" => read.warnings.extend(doc_type_warning(&value)),
            "source_refs" => read.warnings.extend(unusable_refs(&value)),
            _ => {}
        }
        if may_have_links {
            let link_type = LinkType::from_name(&key);
            let sites = scalars.into_iter().filter_map(|scalar| link_site(scalar, link_type));
            read.sites.extend(sites.map(|site| site.shifted(yaml_start)));
        }
        read.properties.push((key, value));
    }
    read
}

/// The entries with numbers as written, for keys that are names: the title `3.10` is not `3.1`. Empty if these keys have no
/// number, which saves reading the YAML twice.
fn names_as_written(entries: &[YamlEntry], yaml: &str) -> Vec<YamlEntry> {
    let is_number = |value: &Value| matches!(value, Value::Int(_) | Value::Float(_));
    let has_number = |value: &Value| matches!(value, Value::List(items) if items.iter().any(is_number));
    let names = entries.iter().filter(|entry| matches!(entry.key.as_str(), "title" | "tags" | "aliases" | "alias"));
    if !names.map(|entry| &entry.value).any(|value| is_number(value) || has_number(value)) {
        return Vec::new();
    }
    match yaml::read(yaml, Numbers::AsWritten) {
        Ok(Document::Mapping(mapping)) => mapping.entries,
        // Text weighs more than numbers, so aliases may exceed their limit.
        _ => Vec::new(),
    }
}

/// A valid title: a text that is not empty, or a number.
pub(super) fn title(value: &Value) -> Option<String> {
    let text = match value {
        Value::Text(_) | Value::Int(_) | Value::Float(_) => value.to_plain_text()?,
        _ => return None,
    };
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn aliases(value: &Value) -> Vec<String> {
    let items = match value {
        Value::List(items) => items.as_slice(),
        one => std::slice::from_ref(one),
    };
    let texts = items.iter().filter_map(Value::to_plain_text).map(|text| text.trim().to_owned());
    texts.filter(|text| !text.is_empty()).collect()
}

fn doc_type_warning(value: &Value) -> Option<String> {
    let known = value == &Value::Null || value.as_text().and_then(DocType::from_name).is_some();
    let given = value.to_plain_text().unwrap_or_else(|| "a list or mapping".to_owned());
    let all = DocType::ALL.map(DocType::name).join(", ");
    (!known).then(|| format!("unknown doc_type {} counts as `other`; the known types are {all}", quoted(&given)))
}

/// Whether a scalar may be a link under any key: `"[[x]]"` or `"[x](x.md)"`. Text with links in it is text.
pub(super) fn may_be_link(scalar: &str) -> bool {
    let trimmed = scalar.trim();
    trimmed.starts_with("[[") && trimmed.ends_with("]]") || trimmed.starts_with('[') && trimmed.ends_with(')')
}

/// A link from a scalar: under any key `"[[x]]"` and `"[x](x.md)"`; under a link type's key also `x`, and the `x` of an
/// unquoted `[[x]]`, which is a nested list in YAML.
fn link_site(scalar: ScalarSite, link_type: Option<LinkType>) -> Option<LinkSite> {
    let ScalarSite { range, text, style, in_flow } = scalar;
    let found = written_link(&text, style, link_type.is_some())?;
    let target = found.target_range;
    // Without escapes or folded lines, the file has the text verbatim after the quote.
    let quote = usize::from(matches!(style, QuoteStyle::SingleQuoted | QuoteStyle::DoubleQuoted));
    let is_verbatim = style != QuoteStyle::Block && text.len() + 2 * quote == range.len();
    let target_range =
        if is_verbatim { range.start + quote + target.start..range.start + quote + target.end } else { range.clone() };
    let own_type = found.link.link_type;
    Some(LinkSite {
        link: Link { link_type: link_type.unwrap_or(own_type), ..found.link },
        range: range.clone(),
        target_range,
        form: TargetForm::Yaml { scalar: range, text, target, inner: Box::new(found.form), style, in_flow },
    })
}

/// The link that a scalar is, with its position in the scalar's text.
fn written_link(text: &str, style: QuoteStyle, is_named: bool) -> Option<LinkSite> {
    let trimmed = text.trim();
    let start = text.len() - text.trim_start().len();
    if trimmed.starts_with('[') && trimmed.ends_with(')') {
        let sites = markdown::read(trimmed).sites;
        let [site] = <[LinkSite; 1]>::try_from(sites).ok()?;
        return (site.range == (0..trimmed.len())).then(|| site.shifted(start));
    }
    let is_url = trimmed.contains("://") || trimmed.starts_with("mailto:");
    let is_nothing = style == QuoteStyle::Plain && matches!(resolve_plain(text), Value::Null | Value::Bool(_));
    if is_url || is_nothing {
        return None;
    }
    let in_brackets = trimmed.strip_prefix("[[").and_then(|inner| inner.strip_suffix("]]"));
    let inner = match in_brackets.filter(|inner| !inner.contains(['[', ']'])) {
        Some(inner) => inner,
        None if is_named => in_brackets.unwrap_or(trimmed),
        None => return None,
    };
    let inner_start = inner.as_ptr() as usize - text.as_ptr() as usize;
    let read = wikilink::read(inner, LinkSyntax::Frontmatter)?;
    let target_range = inner_start + read.target_range.start..inner_start + read.target_range.end;
    Some(LinkSite { link: read.link, range: 0..text.len(), target_range, form: TargetForm::Wiki })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{link_sites, parse};

    #[test]
    fn frontmatter_is_found_only_at_the_start() {
        for (text, expected) in [
            ("---\na: 1\n---\nbody", Some((4..9, 13))),
            ("---\n---\n", Some((4..4, 8))),
            ("---  \na: 1\n...\nbody", Some((6..11, 15))),
            ("---\r\na: 1\r\n---\r\nbody", Some((5..11, 16))),
            ("\u{FEFF}---\na: 1\n---", Some((7..12, 15))),
            ("---\na: 1\n --- \n---", Some((4..15, 18))),
            ("\n---\na: 1\n---\n", None),
            (" ---\na: 1\n---\n", None),
            ("----\na: 1\n---\n", None),
            ("---\na: 1\n", None),
            ("---", None),
            ("", None),
        ] {
            let found = find(text.as_bytes()).map(|block| (block.yaml, block.body_start));
            assert_eq!(found, expected, "{text:?}");
        }
    }

    #[test]
    fn a_new_text_keeps_the_frontmatter_unless_it_has_its_own() {
        for (before, text, after) in [
            ("---\ntitle: T\n---\n\nold", "new", "---\ntitle: T\n---\n\nnew"),
            ("---\ntitle: T\n---", "new", "---\ntitle: T\n---\nnew"),
            ("---\r\ntitle: T\r\n---", "new", "---\r\ntitle: T\r\n---\r\nnew"),
            ("---\ntitle: T\n---\nold", "---\n---\nfresh", "---\ntitle: T\n---\nfresh"),
            ("---\ntitle: T\n---\nold", "---\ntitle: U\n---\nnew", "---\ntitle: U\n---\nnew"),
            ("---\ntitle: T\n---\nold", "---\nprose\n---\n", "---\ntitle: T\n---\n---\nprose\n---\n"),
            ("old", "---\n---\nfresh", "---\n---\nfresh"),
            ("\u{FEFF}old", "new", "\u{FEFF}new"),
            ("\u{FEFF}---\ntitle: T\n---", "new", "\u{FEFF}---\ntitle: T\n---\nnew"),
        ] {
            let written = with_new_text(before.as_bytes(), text);
            assert_eq!(String::from_utf8(written).unwrap(), after, "{before:?} with {text:?}");
        }
    }

    /// The parts as `title; tags; aliases; keys of properties`.
    fn check(yaml: &str, expected: &str) {
        let text = format!("---\n{yaml}\n---\nbody");
        let parsed = parse(&text);
        let tags: Vec<_> = parsed.tags.iter().map(|tag| tag.name.as_str()).collect();
        let keys: Vec<_> = parsed.properties.iter().map(|(key, _)| key.as_str()).collect();
        let title = parsed.title.as_deref().unwrap_or("-");
        let shown = format!("{title}; {}; {}; {}", tags.join(","), parsed.aliases.join(","), keys.join(","));
        assert_eq!(shown, expected, "{yaml:?}");
        assert_eq!((&text[parsed.body_start..], parsed.warnings.len()), ("body", 0), "{yaml:?}");
    }

    #[test]
    fn title_tags_and_aliases_are_read_leniently() {
        check("title: T\ntags: [a, '#b', 3, true, ~]\nx: 1", "T; a,b,3,true; ; x");
        check("title: 2024", "2024; ; ; ");
        check("title: 3.10", "3.10; ; ; ");
        check("title: 007\ntags: [1.20, 0x1F, 2024-01-01, 1e3]", "007; 1.20,0x1F,2024-01-01,1e3; ; ");
        check("tags: 1.0\nalias: 3.10\naliases: [0o17, +1, 1.50]", "-; 1.0; 3.10,0o17,+1,1.50; alias,aliases");
        check("x: &x 3.10\ntitle: *x\ntags: [*x]", "3.10; 3.10; ; x");
        check("title: ' '", "-; ; ; ");
        check("title: [x]", "-; ; ; ");
        check("title: true", "-; ; ; ");
        check("title:", "-; ; ; ");
        check("tags: a, b  #c", "-; a,b; ; ");
        check("tags: 'a, b  #c'", "-; a,b,c; ; ");
        check("tags:\n- y\n- on\n- Y", "-; y,on; ; ");
        check("tag: a\ntags: [b]", "-; b; ; tag");
        check("tag: a", "-; ; ; tag");
        check("aliases: [x, y z]\nalias: One, Two", "-; ; x,y z,One, Two; aliases,alias");
        check("", "-; ; ; ");
        check("# only a comment", "-; ; ; ");
        check("doc_type: spec", "-; ; ; doc_type");
    }

    #[test]
    fn numbers_in_properties_are_resolved() {
        let parsed = parse("---\ntitle: 3.10\nversion: 1.20\nalias: 3.10\nbig: 99999999999999999999\n---\n");
        let expected = [
            ("version", Value::Float(1.2)),
            ("alias", Value::Float(3.1)),
            ("big", Value::Text("99999999999999999999".into())),
        ];
        assert_eq!(parsed.properties, expected.map(|(key, value)| (key.to_owned(), value)));
    }

    #[test]
    fn invalid_frontmatter_is_text_with_a_warning() {
        for (text, warning) in [
            ("---\na: 1\na: 2\n---\nx", "the frontmatter is not valid YAML (line 3: duplicate key \"a\")"),
            ("---\ntitle: foo: bar\n---\n", "the frontmatter is not valid YAML (line 2: "),
            ("---\na:\n\t- b\n---\n", "the frontmatter is not valid YAML (line 3: "),
            ("---\nJust prose.\n---\n", "the frontmatter is not a mapping of `key: value` lines"),
            ("---\n- a\n---\n", "the frontmatter is not a mapping of `key: value` lines"),
        ] {
            let parsed = parse(text);
            assert_eq!((parsed.body_start, parsed.warnings.len()), (0, 1), "{text:?}");
            assert!(parsed.warnings[0].starts_with(warning), "{:?}", parsed.warnings);
        }
        let unknown = parse("---\ndoc_type: poem\n---\n");
        assert!(unknown.warnings[0].starts_with("unknown doc_type \"poem\""), "{:?}", unknown.warnings);
    }

    /// Each link as `type target#fragment|label @bytes of the target`.
    fn check_links(yaml: &str, expected: &[&str]) {
        let text = format!("---\n{yaml}\n---\n");
        let shown: Vec<_> = link_sites(&text)
            .iter()
            .map(|site| {
                let link = &site.link;
                let fragment = link.fragment.as_ref().map(|it| format!("#{it}")).unwrap_or_default();
                let label = link.label.as_ref().map(|it| format!("|{it}")).unwrap_or_default();
                let bytes = &text[site.target_range.clone()];
                format!("{} {}{fragment}{label} @{bytes}", link.link_type.name(), link.target)
            })
            .collect();
        assert_eq!(shown, expected, "{yaml:?}");
    }

    #[test]
    fn lists_under_a_link_type_are_links() {
        check_links("references: a", &["references a @a"]);
        check_links("depends_on: [a b, \"[[c#d|e]]\"]", &["depends_on a b @a b", "depends_on c#d|e @c"]);
        check_links("implements: [[Föö]]", &["implements Föö @Föö"]);
        check_links(
            "extends:\n  - [[a]]\n  - '[[b]]'\n  - c.md",
            &["extends a @a", "extends b @b", "extends c.md @c.md"],
        );
        check_links("conflicts_with: [2024, '', ~, true, {x: y}]", &["conflicts_with 2024 @2024"]);
        check_links("references: [https://x.org/a, mailto:a@b.c]", &[]);
        check_links("references: \"a\\u0062c\"", &["references abc @\"a\\u0062c\""]);
        check_links("up: [[a]]\nnested: {references: b}", &[]);
    }

    #[test]
    fn links_in_quotes_are_links_under_any_key() {
        check_links("up: \"[[a]]\"", &["references a @a"]);
        check_links("up: '[[a/b#h|depends_on]]' # c", &["depends_on a/b#h @a/b"]);
        check_links("see: ['[[a]]', plain, \"[x](b.md#h)\"]", &["references a @a", "references b.md#h|x @b.md"]);
        check_links("see:\n  - \"[x](<b c.md>)\"\n", &["references b c.md|x @b c.md"]);
        check_links("implements: \"[x](b.md)\"", &["implements b.md|x @b.md"]);
        for text in
            ["see [[a]]", "[[a]] [[b]]", "[x](https://x.org)", "[x](a.md) and [y](b.md)", "[x](pic.png)", "![[a]]"]
        {
            check_links(&format!("up: \"{text}\"\ntitle: \"[[t]]\"\naliases: [\"[[n]]\"]"), &[]);
        }
    }
}
