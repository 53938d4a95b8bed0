//! Changes the targets of links in a text; all other bytes stay.
//!
//! The result is parsed again: a target that does not read back, or changes another link, is refused.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::link_site::{LinkSite, TargetForm};
use super::{destination, link_sites, same_length_text, scalar, wikilink};
use crate::model::Link;

/// How often a text is parsed to find the links that can be rewritten: enough to single out several that cannot, with fewer attempts
/// for a long text. The author of a note decides how many cannot, and all writes wait meanwhile, so links that were not tried by then
/// are refused.
const MAX_PARSES: usize = 64;
const MIN_PARSES: usize = 4;
const MAX_PARSED_BYTES: usize = 64 * 1024 * 1024;

/// A text with new targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    pub text: String,
    /// The links that were left unchanged.
    pub refused: Vec<RefusedTarget>,
}

/// A link that kept its target, since its syntax or position cannot hold the new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedTarget {
    /// The link, unchanged.
    pub link: Link,
    /// The refused target.
    pub target: String,
}

/// Changes targets: `new_target` returns the new one, or `None` to keep it.
///
/// Fragments, labels and all other bytes stay. Links with a common definition share its target: the first answer counts.
pub fn rewrite_targets(text: &str, new_target: impl FnMut(&LinkSite) -> Option<String>) -> Rewritten {
    let sites = link_sites(text);
    let targets = sites.iter().map(new_target).collect();
    let RewrittenBytes { bytes, refused } = rewrite_sites(text.as_bytes(), &sites, targets, link_sites);
    Rewritten { text: String::from_utf8(bytes).expect("whole targets were replaced by text"), refused }
}

/// A file's bytes with new targets.
pub(crate) struct RewrittenBytes {
    pub(crate) bytes: Vec<u8>,
    /// The links that were left unchanged.
    pub(crate) refused: Vec<RefusedTarget>,
}

/// Changes the targets of these sites, which `find` returns for [`same_length_text`] of the bytes. Bytes that are not UTF-8
/// stay as they are.
pub(crate) fn rewrite_sites(
    bytes: &[u8],
    sites: &[LinkSite],
    targets: Vec<Option<String>>,
    find: fn(&str) -> Vec<LinkSite>,
) -> RewrittenBytes {
    let text = &*same_length_text(bytes);
    let Planned { edits, mut refused } = planned(bytes, sites, targets);
    let mut parses = (MAX_PARSED_BYTES / text.len().max(1)).clamp(MIN_PARSES, MAX_PARSES);
    let mut accepted = Vec::new();
    accept((text, sites, find), &mut parses, &mut accepted, edits, &mut refused);
    refused.sort_by_key(|(index, _)| *index);
    let refused = refused.into_iter().map(|(index, target)| RefusedTarget { link: sites[index].link.clone(), target });
    RewrittenBytes { bytes: apply(bytes, &accepted), refused: refused.collect() }
}

/// As [`rewrite_sites`], but all or nothing. The error is a link that cannot be changed together with those before it.
pub(crate) fn rewrite_all_sites(
    bytes: &[u8],
    sites: &[LinkSite],
    targets: Vec<Option<String>>,
    find: fn(&str) -> Vec<LinkSite>,
) -> Result<Vec<u8>, RefusedTarget> {
    let source: Source<'_> = (&same_length_text(bytes), sites, find);
    let Planned { edits, refused } = planned(bytes, sites, targets);
    let of = |index: usize, target: String| RefusedTarget { link: sites[index].link.clone(), target };
    if let Some((index, target)) = refused.into_iter().next() {
        return Err(of(index, target));
    }
    if reads_back(source, &edits) {
        return Ok(apply(bytes, &edits));
    }
    // So many of the first edits read back, and so many do not.
    let (mut fit, mut too_many) = (0, edits.len());
    while too_many - fit > 1 {
        let middle = usize::midpoint(fit, too_many);
        if reads_back(source, &edits[..middle]) {
            fit = middle;
        } else {
            too_many = middle;
        }
    }
    let edit = &edits[fit];
    Err(of(edit.sites[0], edit.target.clone()))
}

/// The edits that the syntax of their links can hold, and the links that were refused.
struct Planned {
    edits: Vec<LinkEdit>,
    refused: Vec<(usize, String)>,
}

fn planned(bytes: &[u8], sites: &[LinkSite], targets: Vec<Option<String>>) -> Planned {
    let mut edits: Vec<LinkEdit> = Vec::new();
    let mut edit_at: FxHashMap<usize, usize> = FxHashMap::default();
    let mut refused = Vec::new();
    for (index, (site, target)) in sites.iter().zip(targets).enumerate() {
        let Some(target) = target.filter(|target| *target != site.link.target) else { continue };
        match edit_at.get(&site.target_range.start).map(|at| &mut edits[*at]) {
            Some(edit) if edit.target == target => edit.sites.push(index),
            Some(_) => refused.push((index, target)),
            None => match replacement(site, &target).filter(|(range, _)| is_utf8(&bytes[range.clone()])) {
                Some((range, written)) => {
                    edit_at.insert(site.target_range.start, edits.len());
                    edits.push(LinkEdit { range, written, target, sites: vec![index] });
                }
                None => refused.push((index, target)),
            },
        }
    }
    Planned { edits, refused }
}

/// A text, its links, and how they are found.
type Source<'a> = (&'a str, &'a [LinkSite], fn(&str) -> Vec<LinkSite>);

#[derive(Clone)]
struct LinkEdit {
    /// The bytes to replace: the target, or the whole YAML scalar.
    range: Range<usize>,
    written: String,
    target: String,
    /// The links that it changes.
    sites: Vec<usize>,
}

/// The range and its new text, or `None` if the syntax cannot hold the target.
fn replacement(site: &LinkSite, target: &str) -> Option<(Range<usize>, String)> {
    let written = written_target(&site.form, target)?;
    match &site.form {
        TargetForm::Yaml { scalar, text, target: place, style, in_flow, .. } => {
            let text = format!("{}{written}{}", &text[..place.start], &text[place.end..]);
            Some((scalar.clone(), scalar::write(&text, *style, *in_flow)))
        }
        _ => Some((site.target_range.clone(), written)),
    }
}

/// A target as it is written in a syntax; in YAML, within the scalar's text.
fn written_target(form: &TargetForm, target: &str) -> Option<String> {
    match form {
        TargetForm::Wiki => wikilink::can_hold(target).then(|| target.to_owned()),
        // A target that would end it early does not read back.
        TargetForm::Shortcode => Some(target.to_owned()),
        TargetForm::Bare => Some(destination::encode(target, false)),
        TargetForm::Angle => Some(destination::encode(target, true)),
        TargetForm::Escaped { rest } => Some(destination::encode(target, false) + &destination::encode_rest(rest)),
        TargetForm::Yaml { inner, .. } => written_target(inner, target),
    }
}

/// Accepts the candidates that read back, by bisection, with at most so many parses; refuses the rest.
fn accept(
    source: Source<'_>,
    parses: &mut usize,
    accepted: &mut Vec<LinkEdit>,
    candidates: Vec<LinkEdit>,
    refused: &mut Vec<(usize, String)>,
) {
    if candidates.is_empty() {
        return;
    }
    let is_tried = *parses > 0;
    if is_tried {
        *parses -= 1;
        let before = accepted.len();
        accepted.extend(candidates.iter().cloned());
        if reads_back(source, accepted) {
            return;
        }
        accepted.truncate(before);
    }
    if !is_tried || candidates.len() == 1 {
        for edit in candidates {
            refused.extend(edit.sites.iter().map(|index| (*index, edit.target.clone())));
        }
        return;
    }
    let mut first = candidates;
    let second = first.split_off(first.len() / 2);
    accept(source, parses, accepted, first, refused);
    accept(source, parses, accepted, second, refused);
}

/// Whether the edited text has the same links except for the new targets.
fn reads_back((text, sites, find): Source<'_>, edits: &[LinkEdit]) -> bool {
    let mut expected: Vec<Link> = sites.iter().map(|site| site.link.clone()).collect();
    for edit in edits {
        for index in &edit.sites {
            expected[*index].target.clone_from(&edit.target);
        }
    }
    let edited = apply(text.as_bytes(), edits);
    let found = find(std::str::from_utf8(&edited).expect("whole targets were replaced by text"));
    // Labels are not compared: the visible text may follow the target.
    let same = |found: &LinkSite, expected: &Link| {
        found.link.target == expected.target
            && found.link.syntax == expected.syntax
            && found.link.fragment == expected.fragment
            && found.link.link_type == expected.link_type
    };
    found.len() == expected.len() && found.iter().zip(&expected).all(|(found, expected)| same(found, expected))
}

fn apply(bytes: &[u8], edits: &[LinkEdit]) -> Vec<u8> {
    let mut ordered: Vec<&LinkEdit> = edits.iter().collect();
    ordered.sort_by_key(|edit| edit.range.start);
    let mut written = Vec::with_capacity(bytes.len());
    let mut done = 0;
    for edit in ordered {
        // Ranges should not overlap; if they did, the result would not read back.
        if edit.range.start < done {
            continue;
        }
        written.extend_from_slice(&bytes[done..edit.range.start]);
        written.extend_from_slice(edit.written.as_bytes());
        done = edit.range.end;
    }
    written.extend_from_slice(&bytes[done..]);
    written
}

fn is_utf8(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Every link becomes one to `target`; gives the text and how many were refused.
    fn check(text: &str, target: &str, expected: &str, refused: usize) {
        let rewritten = rewrite_targets(text, |_| Some(target.to_owned()));
        assert_eq!((rewritten.text.as_str(), rewritten.refused.len()), (expected, refused), "{text:?}");
    }

    #[test]
    fn only_the_target_changes() {
        check("x [[ a #h|b]] ![[a]] y", "c d", "x [[ c d #h|b]] ![[c d]] y", 0);
        check("|[[a\\|b]]|\n|-|\n", "c", "|[[c\\|b]]|\n|-|\n", 0);
        check("[t](a.md#h 'x') [u](<a.md>)", "b (c).md", "[t](b%20%28c%29.md#h 'x') [u](<b (c).md>)", 0);
        check("[t](a\\_b.md#x\\_y)", "c.md", "[t](c.md#x_y)", 0);
        check("[t][r] [r]\n\n[r]: a.md 'T'\n", "b.md", "[t][r] [r]\n\n[r]: b.md 'T'\n", 0);
        check("---\nreferences: a # c\n---\n", "b", "---\nreferences: b # c\n---\n", 0);
        check("---\nreferences: [a, '[[b#h|x]]']\n---\n", "c", "---\nreferences: [c, '[[c#h|x]]']\n---\n", 0);
        check("---\nreferences: [[a]]\n---\n", "b, c", "---\nreferences: [[\"b, c\"]]\n---\n", 0);
        check("---\nextends: \"\\x61\"\n---\n", "é", "---\nextends: \"é\"\n---\n", 0);
        check("---\nup: \"[[a|x]]\" # c\n---\n", "b: c", "---\nup: \"[[b: c|x]]\" # c\n---\n", 0);
        check("---\nup: '[x](a.md#h)'\n---\n", "it's b.md", "---\nup: '[x](it%27s%20b.md#h)'\n---\n", 0);
        check("`[[a]]` %%[[a]]%%", "b", "`[[a]]` %%[[a]]%%", 0);
    }

    #[test]
    fn bytes_that_are_not_utf8_stay() {
        let bytes = b"---\nup: \"[[a]]\"\nx: caf\xE9\n---\n\xFF [[a|caf\xE9]] [t](a\xE9.md) \xFE";
        let sites = link_sites(&same_length_text(bytes));
        let targets = sites.iter().map(|site| (site.link.target == "a").then(|| "b".to_owned())).collect();
        let rewritten = rewrite_sites(bytes, &sites, targets, link_sites);
        let expected = b"---\nup: \"[[b]]\"\nx: caf\xE9\n---\n\xFF [[b|caf\xE9]] [t](a\xE9.md) \xFE";
        assert_eq!((rewritten.bytes.as_slice(), rewritten.refused.len()), (expected.as_slice(), 0));
        let label = b"---\nup: \"[[a|caf\xE9]]\"\n---\n";
        let sites = link_sites(&same_length_text(label));
        let rewritten = rewrite_sites(label, &sites, vec![Some("b".to_owned())], link_sites);
        assert_eq!(
            (rewritten.bytes.as_slice(), rewritten.refused.len()),
            (label.as_slice(), 1),
            "the scalar has other bytes"
        );
    }

    #[test]
    fn targets_that_do_not_read_back_are_refused() {
        check("[[a]] [t](a.md)", "b#c.md", "[[a]] [t](b%23c.md)", 1);
        check("[[a]]", "b|c", "[[a]]", 1);
        check("[[a]]", "", "[[a]]", 1);
        check("[t](a.md)", "not-a-note.png", "[t](a.md)", 1);
        check("[[a]] `code` and [[b]]", "x`y", "[[a]] `code` and [[x`y]]", 1);
    }

    thread_local! {
        static PARSED: Cell<usize> = const { Cell::new(0) };
    }

    fn counted(text: &str) -> Vec<LinkSite> {
        PARSED.set(PARSED.get() + 1);
        link_sites(text)
    }

    #[test]
    fn links_that_cannot_be_rewritten_take_a_bounded_number_of_parses() {
        let text = "fine [[b]]\n\n".to_owned() + &"[[a]] `c`\n\n".repeat(800);
        let sites = link_sites(&text);
        let targets = || sites.iter().map(|_| Some("x`y".to_owned())).collect();
        let refused = rewrite_all_sites(text.as_bytes(), &sites, targets(), counted).expect_err("one cannot");
        let parsed = PARSED.take();
        assert_eq!((refused.link.target.as_str(), refused.target.as_str()), ("a", "x`y"));
        assert!(parsed <= 11, "{parsed}: once, and log2 of 801");

        let rewritten = rewrite_sites(text.as_bytes(), &sites, targets(), counted);
        let parsed = PARSED.take();
        assert!(parsed <= MAX_PARSES, "{parsed}");
        assert_eq!(rewritten.refused.len(), 800);
        assert!(rewritten.bytes.starts_with(b"fine [[x`y]]\n\n[[a]] `c`\n"));
    }

    #[test]
    fn all_links_are_rewritten_or_none() {
        let all = |text: &str, target: &str| {
            let sites = link_sites(text);
            let targets = sites.iter().map(|_| Some(target.to_owned())).collect();
            rewrite_all_sites(text.as_bytes(), &sites, targets, link_sites).map_err(|refused| refused.link.target)
        };
        assert_eq!(all("[[a]] [t](b.md) ![[c|d]]", "e.md"), Ok(b"[[e.md]] [t](e.md) ![[e.md|d]]".to_vec()));
        assert_eq!(all("[[a]]\n\n[[b]] `c`\n\n[[c]] `c`", "x`y"), Err("b".to_owned()));
        assert_eq!(all("[t](b.md) [[a]]", "x|y"), Err("a".to_owned()));
    }
}
