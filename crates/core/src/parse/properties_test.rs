//! What must hold for every text whatsoever.

use proptest::prelude::*;

use super::{FrontmatterEdit, link_sites, parse, rewrite_targets, splice_frontmatter};
use crate::model::LinkSyntax;

/// Pieces of Markdown and YAML that mean something, and some that only look like it.
fn token() -> impl Strategy<Value = String> {
    let fixed = prop::sample::select(vec![
        "[[",
        "]]",
        "![[",
        "[",
        "]",
        "(",
        ")",
        "](",
        "|",
        "\\|",
        "#",
        "##",
        "## ",
        "### ",
        "# ",
        "`",
        "```\n",
        "~~~\n",
        "$",
        "$$",
        "%%",
        "%%\n",
        "<!--",
        "-->",
        "<div>",
        "</div>",
        "<div>\n",
        "<!-- x -->",
        "<!-- ",
        " -->\n",
        "<details>\n<summary>",
        "</summary>\n",
        "<code>",
        "</code>",
        "<pre>\n",
        "</pre>",
        "<script>\n",
        "</script>",
        "<td\nx='",
        "<b>",
        "<?",
        "<![CDATA[",
        "<",
        ">",
        "> ",
        "- ",
        "* ",
        "1. ",
        "    ",
        "\t",
        "\n",
        "\n\n",
        "\r\n",
        "\r",
        " ",
        "---",
        "---\n",
        "...\n",
        "***\n",
        "===\n",
        "\\",
        "&amp;",
        "&#35;",
        "*",
        "_",
        "~~",
        "a",
        "b.md",
        "c d",
        ".md",
        "x.markdown#h",
        "<a b.md>",
        "%20",
        "日本語",
        "é",
        "e\u{301}",
        "🎉",
        "\u{FEFF}",
        "\u{200D}",
        "\u{3000}",
        "。",
        "#tag",
        "#日本",
        "(#",
        "「#",
        "|a|b|\n|-|-|\n",
        "[r]: a.md\n",
        "[r]",
        "[^1]",
        "[^1]: ",
        ": ",
        "title: ",
        "tags: ",
        "references: ",
        "depends_on:\n",
        "  - ",
        "[a, b]",
        "{a: b}",
        "'",
        "\"",
        "&a ",
        "*a",
        "!!str ",
        "|\n",
        ">-\n",
        "? ",
        ", ",
        "null",
        "2024",
        "key: value\n",
        "+",
        "=",
        "\0",
        "https://x.org/#a",
    ]);
    prop_oneof![9 => fixed.prop_map(str::to_owned), 1 => any::<char>().prop_map(String::from)]
}

fn soup() -> impl Strategy<Value = String> {
    let tokens = |most: usize| prop::collection::vec(token(), 0..most).prop_map(|tokens| tokens.concat());
    prop_oneof![
        any::<String>(),
        tokens(40),
        (tokens(12), tokens(24)).prop_map(|(yaml, body)| format!("---\n{yaml}\n---\n{body}")),
        (html(), tokens(16)).prop_map(|(html, body)| format!("{html}{body}")),
        (entries(), tokens(24)).prop_map(|(yaml, body)| format!("---\n{yaml}---\n{body}")),
    ]
}

/// HTML blocks with links and tags in and between their markup.
fn html() -> impl Strategy<Value = String> {
    let container = prop::sample::select(vec!["", "> ", "- ", "  ", "\t"]);
    let markup = prop::sample::select(vec![
        "<!-- ", " -->", "<div>", "</div>", "<pre>", "</pre>", "<b x='", "'>", "<", ">", "é", " ", "    ", ",", "%%",
        "`",
    ]);
    let text =
        prop::sample::select(vec!["[[a]]", "[[a#h|b]]", "[t](a.md)", "#tag", "[", "]]", "](b.md)", "", "x", "- "]);
    let line = (container, prop::collection::vec((markup, text), 1..6)).prop_map(|(container, parts)| {
        let parts: String = parts.into_iter().map(|(markup, text)| format!("{markup}{text}")).collect();
        format!("{container}{parts}\n")
    });
    let start = prop::sample::select(vec!["<div>", "<!-- x --> ", "> <div>\n", "- <!-- \n", "<details>\n", "<pre>"]);
    (start, prop::collection::vec(line, 1..5)).prop_map(|(start, lines)| format!("{start}{}", lines.concat()))
}

/// Frontmatter that is mostly valid, in all its styles.
fn entries() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec!["title", "tags", "tag", "references", "x", "'y'", "日本", "aliases"]);
    let value = prop::sample::select(vec![
        " a",
        " 'a b'",
        " \"a\\tb\"",
        "",
        " [a, b]",
        " [a,\n  b]",
        "\n  - a\n  - b",
        "\n- a # c\n- b",
        " # c\n  - a",
        " |\n  x\n  y",
        " >-\n  x\n\n  y",
        " 12",
        " 3.10",
        " [007, 1e3]",
        " &z 1.50",
        " a\n  b",
        " {a: b}",
        "\n  k: v\n  l:\n    - m",
        " [[a]]",
        " \"[[a|b]]\"",
        " a, b",
        "\n  -\n  - x",
        " &z q",
        " *z",
        " 'it''s'",
        " é ü",
    ]);
    let after = prop::sample::select(vec!["\n", "  # c\n", "\n\n", "\n# c\n", "\r\n"]);
    prop::collection::vec((key, value, after), 0..5)
        .prop_map(|parts| parts.into_iter().map(|(key, value, after)| format!("{key}:{value}{after}")).collect())
}

fn new_text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z ,#:'\"-]{0,8}", any::<String>(), token()]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(1000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_range_is_one_of_the_text_and_sections_cover_the_body(text in soup()) {
        let parsed = parse(&text);
        prop_assert!(text.is_char_boundary(parsed.body_start));
        let mut at = parsed.body_start;
        for section in &parsed.sections {
            prop_assert_eq!(section.range.start, at);
            prop_assert!(text.get(section.range.clone()).is_some());
            prop_assert!(text.get(section.text_start..section.range.end).is_some(), "{:?}", section);
            prop_assert!(section.text_start >= section.range.start);
            prop_assert_eq!(section.heading.is_some(), section.level != 0);
            at = section.range.end;
        }
        prop_assert_eq!(at, text.len());
        prop_assert_eq!(parsed.sections[0].level, 0);

        let sites = link_sites(&text);
        prop_assert_eq!(&parsed.links, &sites.iter().map(|site| site.link.clone()).collect::<Vec<_>>());
        for site in &sites {
            prop_assert!(!site.link.target.is_empty());
            prop_assert!(text.get(site.range.clone()).is_some());
            let written = text.get(site.target_range.clone());
            prop_assert!(written.is_some_and(|written| !written.is_empty()), "{:?}", site);
            if matches!(site.link.syntax, LinkSyntax::Wiki | LinkSyntax::Embed) {
                prop_assert_eq!(written.unwrap().replace('\\', "/"), site.link.target.clone());
            }
        }
    }

    #[test]
    fn splicing_keeps_the_body_and_every_other_key(text in soup(), title in new_text(), tags in prop::collection::vec(new_text(), 0..3)) {
        let before = parse(&text);
        let edits = [FrontmatterEdit::Title(title.clone()), FrontmatterEdit::Tags(tags.clone())];
        let Ok(spliced) = splice_frontmatter(text.as_bytes(), &edits) else { return Ok(()) };
        let spliced = String::from_utf8(spliced).unwrap();
        let after = parse(&spliced);
        prop_assert_eq!(&spliced[after.body_start..], &text[before.body_start..]);
        let wanted = Some(title.trim().to_owned()).filter(|title| !title.is_empty());
        prop_assert_eq!(&after.title, &wanted);
        prop_assert_eq!(&after.properties, &before.properties);
        prop_assert_eq!(&after.aliases, &before.aliases);
        // The same again changes nothing.
        let again = splice_frontmatter(spliced.as_bytes(), &edits).unwrap();
        prop_assert_eq!(String::from_utf8(again).unwrap(), spliced);
    }

    #[test]
    fn rewriting_gives_exactly_the_new_targets(text in soup(), name in "[a-z #%()|`é日]{1,6}", every in 1usize..3) {
        let before = link_sites(&text);
        let target = format!("{}.md", name.trim());
        let mut asked = 0;
        let rewritten = rewrite_targets(&text, |_| {
            asked += 1;
            (asked % every == 0).then(|| target.clone())
        });
        let after = link_sites(&rewritten.text);
        prop_assert_eq!(asked, before.len());
        prop_assert_eq!(after.len(), before.len());
        for (old, new) in before.iter().zip(&after) {
            prop_assert!(new.link.target == old.link.target || new.link.target == target);
            prop_assert_eq!(&new.link.fragment, &old.link.fragment);
        }
        if rewritten.refused.is_empty() && every == 1 {
            prop_assert!(after.iter().all(|site| site.link.target == target));
        }
        // With the targets cut out, both texts are the same.
        let others = |text: &str, sites: &[super::LinkSite]| {
            let mut cuts: Vec<_> = sites.iter().filter(|site| site.link.syntax != LinkSyntax::Frontmatter).collect();
            cuts.sort_by_key(|site| std::cmp::Reverse(site.target_range.start));
            cuts.dedup_by_key(|site| site.target_range.clone());
            let start = parse(text).body_start;
            let mut text = text.to_owned();
            cuts.iter().for_each(|site| text.replace_range(site.target_range.clone(), ""));
            text[start..].to_owned()
        };
        let is_escaped = before.iter().any(|site| matches!(site.form, super::link_site::TargetForm::Escaped { .. }));
        if !is_escaped {
            prop_assert_eq!(others(&text, &before), others(&rewritten.text, &after));
        }
    }
}

#[test]
fn tags_aliases_links_and_headings_are_capped_with_a_warning() {
    use super::{MAX_ALIASES, MAX_HEADINGS, MAX_LINKS, MAX_TAGS};
    let repeat = |count: usize, part: fn(usize) -> String| (0..count).map(part).collect::<String>();
    let text = repeat(MAX_TAGS + 5, |n| format!("#t{n} "))
        + &repeat(MAX_LINKS + 5, |n| format!("[[{n}]] "))
        + "\n"
        + &repeat(MAX_HEADINGS + 5, |n| format!("## h{n}\n"));
    let parsed = parse(&text);
    assert_eq!((parsed.tags.len(), parsed.links.len()), (MAX_TAGS, MAX_LINKS));
    assert_eq!(parsed.sections.len(), MAX_HEADINGS + 1);
    assert_eq!(parsed.sections.last().unwrap().range.end, text.len());
    assert_eq!(parsed.warnings.len(), 3, "{:?}", parsed.warnings);
    assert_eq!(link_sites(&text).len(), MAX_LINKS);
    let at_limit = repeat(MAX_TAGS, |n| format!("#t{n} ")) + &repeat(MAX_LINKS, |n| format!("[[{n}]] "));
    assert!(parse(&at_limit).warnings.is_empty());
    let names = |count: usize| parse(&format!("---\naliases:\n{}---\n", repeat(count, |n| format!("- a{n}\n"))));
    let (at_limit, beyond) = (names(MAX_ALIASES), names(MAX_ALIASES + 5));
    assert_eq!((at_limit.aliases.len(), at_limit.warnings.len()), (MAX_ALIASES, 0));
    assert_eq!((beyond.aliases.len(), beyond.warnings.len()), (MAX_ALIASES, 1));
    assert!(beyond.warnings[0].contains("10000 aliases"), "{:?}", beyond.warnings);
}

#[test]
fn long_notes_are_parsed_up_to_a_limit_with_a_warning() {
    let text = format!("[[first]]\n{}[[late]] #late\n# Late\n", format!("{}\n", "é".repeat(5_000)).repeat(1_000));
    let parsed = parse(&text);
    assert_eq!((parsed.links.len(), parsed.tags.len(), parsed.sections.len()), (1, 0, 1));
    assert_eq!(parsed.sections[0].range.end, text.len());
    assert_eq!(parsed.warnings.len(), 1, "{:?}", parsed.warnings);
    assert_eq!(link_sites(&text).len(), 1);
}
