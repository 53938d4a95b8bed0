//! Links, tags and headings as a body's Markdown has them.

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
                LinkSyntax::Shortcode => "{{",
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
fn invalid_wikilinks_are_not_links() {
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
fn markdown_links_count_if_their_target_is_a_note() {
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
    check("[t](/docs/a/#h) ![p](/docs/a) [u](/a.png)", &["]( /docs/a/#h|t @/docs/a/"]);
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

#[test]
fn characters_and_tasks_are_counted() {
    for (text, chars, open, done) in [
        ("", 0, 0, 0),
        ("---\na: 1\n---\n\nZwölf\n", 6, 0, 0),
        ("\n\nx", 3, 0, 0),
        ("- [ ] a\n  - [x] b\n1. [X] c\n* [ ] d\n", 35, 2, 2),
        ("[ ] no item\n- [/] begun\n- [-] cancelled\n- [>] later\n", 52, 2, 1),
        ("- [1]\n- [ab] no\n- [/](link)\n-      [/] code\n", 44, 0, 0),
        ("```\n- [ ] code\n```\n%%\n- [ ] hidden\n%%\n", 38, 0, 0),
    ] {
        let counts = parse(text).counts;
        assert_eq!((counts.chars, counts.tasks_open, counts.tasks_done), (chars, open, done), "{text:?}");
    }
}
