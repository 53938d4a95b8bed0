//! Destinations of Markdown links: which of them are notes, their position, and how a path is written as one.

use std::borrow::Cow;
use std::ops::Range;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use super::link_site::TargetForm;
use crate::model::has_attachment_extension;

/// Characters that would end a destination, start other syntax, or be read as part of a URL.
const IN_ANGLES: AsciiSet = CONTROLS
    .add(b'%')
    .add(b'#')
    .add(b'?')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'&')
    .add(b'`')
    .add(b'|')
    .add(b'$')
    .add(b'[')
    .add(b']')
    .add(b':');
const BARE: AsciiSet = IN_ANGLES.add(b' ').add(b'(').add(b')').add(b'"').add(b'\'').add(b'*').add(b'~');

/// A destination that is a note.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Destination {
    /// Decoded, `/` between parts.
    pub(super) path: String,
    pub(super) fragment: Option<String>,
    /// Whether it is the URL path of a page instead of the path of a file.
    pub(super) is_page: bool,
}

/// Reads a destination from the Markdown parser, with escapes and entities resolved.
///
/// `None` unless it is the path of a Markdown file, or starts with `/` and may be a page of a site generated from the
/// notes, such as `/docs/setup/`.
pub(super) fn read(url: &str) -> Option<Destination> {
    let path = local_path(url)?;
    let is_markdown = |(_, extension): (&str, &str)| {
        extension.eq_ignore_ascii_case("md") || extension.eq_ignore_ascii_case("markdown")
    };
    let is_page = !path.rsplit_once('.').is_some_and(is_markdown);
    if is_page && (!path.starts_with('/') || path.trim_matches('/').is_empty() || has_attachment_extension(&path)) {
        return None;
    }
    Some(Destination { path, fragment: fragment(url), is_page })
}

/// Reads a destination with a relative path to a file that is not a note.
pub(super) fn read_other_file(url: &str) -> Option<Destination> {
    let path = local_path(url)?;
    let is_other = !path.is_empty() && !path.starts_with('/') && read(url).is_none();
    is_other.then(|| Destination { path, fragment: fragment(url), is_page: false })
}

/// The path of a destination, decoded, unless it names another host or a scheme.
fn local_path(url: &str) -> Option<String> {
    let path = &url[..path_length(url)];
    let is_elsewhere = path.starts_with("//") || has_scheme(path);
    (!is_elsewhere).then(|| decode(path).replace('\\', "/"))
}

fn fragment(url: &str) -> Option<String> {
    url.split_once('#').map(|(_, fragment)| decode(fragment)).filter(|fragment| !fragment.is_empty())
}

/// The range of a destination's path in the source, and the syntax for a new one.
///
/// `source` is the whole text, `at` the first byte after `(` or after the colon of a definition.
pub(super) fn locate(source: &str, at: usize, url: &str) -> (Range<usize>, TargetForm) {
    // A destination may start on the next line of a quote.
    let skipped = source[at..].find(|c: char| !c.is_ascii_whitespace() && c != '>').unwrap_or(0);
    let start = at + skipped;
    let in_angles = source[start..].starts_with('<');
    let start = start + usize::from(in_angles);
    let raw = start..start + raw_length(&source.as_bytes()[start..], in_angles);
    let written = &source[raw.clone()];
    if written.contains(['\\', '&']) {
        let rest = url[path_length(url)..].to_owned();
        let whole = raw.start - usize::from(in_angles)..raw.end + usize::from(in_angles);
        return (whole, TargetForm::Escaped { rest });
    }
    let form = if in_angles { TargetForm::Angle } else { TargetForm::Bare };
    (start..start + path_length(written), form)
}

/// Encodes a path as a destination.
pub(super) fn encode(path: &str, in_angles: bool) -> String {
    encode_ascii(path, if in_angles { &IN_ANGLES } else { &BARE })
}

/// Encodes the part after a path, `#fragment` or `?query`, with its escapes resolved.
pub(super) fn encode_rest(rest: &str) -> String {
    const REST: AsciiSet = BARE.remove(b'%').remove(b'#').remove(b'?').remove(b':').remove(b'&');
    encode_ascii(rest, &REST)
}

/// Encodes ASCII only: other scripts stay readable.
fn encode_ascii(text: &str, set: &'static AsciiSet) -> String {
    let mut encoded = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() {
            encoded.extend(utf8_percent_encode(c.encode_utf8(&mut [0; 4]), set));
        } else {
            encoded.push(c);
        }
    }
    encoded
}

/// The length of a destination's source, without `<` and `>`.
fn raw_length(bytes: &[u8], in_angles: bool) -> usize {
    let mut open_parens = 0_usize;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' if bytes.get(at + 1).is_some_and(u8::is_ascii_punctuation) => at += 1,
            b'>' if in_angles => break,
            _ if in_angles => {}
            b'(' => open_parens += 1,
            b')' if open_parens == 0 => break,
            b')' => open_parens -= 1,
            byte if *byte <= b' ' => break,
            _ => {}
        }
        at += 1;
    }
    at.min(bytes.len())
}

/// The length of the part before `#fragment` or `?query`.
fn path_length(url: &str) -> usize {
    url.find(['#', '?']).unwrap_or(url.len())
}

fn has_scheme(path: &str) -> bool {
    path.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
    })
}

/// Percent-decoded; unchanged if the result is not UTF-8.
fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8().map_or_else(|_| text.to_owned(), Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_files_and_pages_from_the_root_are_destinations() {
        for (url, path, fragment) in [
            ("a.md", "a.md", None),
            ("../b/My%20Note.MD#a%20b", "../b/My Note.MD", Some("a b")),
            ("/from/root.markdown?x=1#y", "/from/root.markdown", Some("y")),
            ("dir\\a.md", "dir/a.md", None),
            ("%E6%97%A5.md", "日.md", None),
            ("%FF.md", "%FF.md", None),
            ("a%3Ab.md", "a:b.md", None),
            ("a.md#", "a.md", None),
            ("/docs/a%20b/?x#y", "/docs/a b/", Some("y")),
            ("/docs/v1.2", "/docs/v1.2", None),
            ("/a", "/a", None),
        ] {
            let is_page = !path.to_lowercase().ends_with("md") && !path.ends_with("markdown");
            let expected = Destination { path: path.into(), fragment: fragment.map(str::to_owned), is_page };
            assert_eq!(read(url), Some(expected), "{url:?}");
        }
        for url in [
            "https://x.org/a.md",
            "//x.org/a.md",
            "#a.md",
            "a.png",
            "a",
            "mailto:a@b.md",
            "",
            "C:/a.md",
            "md",
            "/",
            "/a.png",
            "a/",
            "./a",
        ] {
            assert_eq!(read(url), None, "{url:?}");
        }
    }

    #[test]
    fn a_path_is_found_in_its_source() {
        for (source, url, expected) in [
            ("a.md)", "a.md", "a.md"),
            ("  a(b).md#x 'title')", "a(b).md#x", "a(b).md"),
            ("<my note.md?x>)", "my note.md?x", "my note.md"),
            ("a\\(b.md#x)", "a(b.md#x", "a\\(b.md#x"),
            ("\n> a.md)", "a.md", "a.md"),
        ] {
            assert_eq!(&source[locate(source, 0, url).0], expected, "{source:?}");
        }
    }

    #[test]
    fn a_written_path_reads_back() {
        for path in ["a b (c).md", "50% #1?.md", "日本 語.md", "a&amp;b.md", "x:y.md", "a`b$c|d.md", "é\u{a0}.md"] {
            for in_angles in [false, true] {
                assert_eq!(decode(&encode(path, in_angles)), path);
            }
        }
        assert_eq!(encode("日本 語.md", false), "日本%20語.md");
    }
}
