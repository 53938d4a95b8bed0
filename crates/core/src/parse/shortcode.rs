//! Hugo's `{{< ref "page" >}}` and `{{< relref "page" >}}`, which Hugo replaces by the URL of a page anywhere: in the
//! destination of a Markdown link, in an HTML attribute, in running text.

use memchr::memmem;

use super::link_site::{LinkSite, TargetForm};
use crate::model::{Link, LinkSyntax, LinkType};

/// The end of a shortcode, after further arguments such as `lang="ja"`, is searched within so many bytes.
const MAX_REST: usize = 200;

/// Every `ref` and `relref`, except escaped ones (`{{</* ref "x" */>}}`); a heading of the same page has an empty target.
pub(super) fn find(body: &str) -> Vec<LinkSite> {
    memmem::find_iter(body.as_bytes(), b"{{").filter_map(|at| read(body, at)).collect()
}

/// The text with its shortcodes blanked; every byte keeps its position. Hugo replaces shortcodes before it parses Markdown,
/// so their content is not Markdown: `[a]({{< ref "b c" >}})` is a link.
pub(super) fn without(body: &str, shortcodes: &[LinkSite]) -> String {
    let mut bytes = body.as_bytes().to_vec();
    for shortcode in shortcodes {
        bytes[shortcode.range.clone()].fill(b'.');
    }
    String::from_utf8(bytes).expect("a shortcode starts and ends with ASCII")
}

fn read(body: &str, start: usize) -> Option<LinkSite> {
    let closer: &[u8] = match body.as_bytes().get(start + 2)? {
        b'<' => b">}}",
        b'%' => b"%}}",
        _ => return None,
    };
    let call = body[start + 3..].trim_start();
    let arguments = call.strip_prefix("rel").unwrap_or(call).strip_prefix("ref")?;
    let argument = arguments.trim_start();
    if argument.len() == arguments.len() {
        return None;
    }
    let argument = argument.strip_prefix("path=").unwrap_or(argument);
    let quote = argument.bytes().next().filter(|first| matches!(first, b'"' | b'`'));
    let quoted = quote.map(|_| &argument[1..]);
    let written = match (quoted, quote) {
        // Stops at the first quote or line break: every byte is read at most once for each kind of quote.
        (Some(text), Some(quote)) => {
            let end = memchr::memchr2(quote, b'\n', text.as_bytes())?;
            (text.as_bytes()[end] == quote).then_some(&text[..end])?
        }
        _ => &argument[..argument.find(|c: char| c.is_whitespace() || c == '>' || c == '%')?],
    };
    let at = body.len() - quoted.unwrap_or(argument).len();
    let rest = &body.as_bytes()[at + written.len()..];
    let end = at + written.len() + memmem::find(&rest[..rest.len().min(MAX_REST)], closer)? + closer.len();
    let (path, fragment) = written.split_once('#').unwrap_or((written, ""));
    let target = path.trim();
    if target.contains("{{") {
        return None;
    }
    let target_start = at + path.len() - path.trim_start().len();
    let link = Link {
        syntax: LinkSyntax::Shortcode,
        target: target.to_owned(),
        fragment: Some(fragment.trim().to_owned()).filter(|fragment| !fragment.is_empty()),
        label: None,
        link_type: LinkType::default(),
    };
    let target_range = target_start..target_start + target.len();
    Some(LinkSite { link, range: start..end, target_range, form: TargetForm::Shortcode })
}

#[cfg(test)]
mod tests {
    use crate::model::LinkSyntax;
    use crate::parse::{link_sites, parse, rewrite_targets};

    /// Every link as `target#fragment`, in order, shortcodes with a `*`; every shortcode must lead to its bytes.
    fn check(text: &str, expected: &str) {
        let shown = link_sites(text).into_iter().map(|site| {
            let is_shortcode = site.link.syntax == LinkSyntax::Shortcode;
            assert!(!is_shortcode || text[site.target_range] == site.link.target, "{text:?}");
            let fragment = site.link.fragment.map(|fragment| format!("#{fragment}")).unwrap_or_default();
            format!("{}{}{fragment}", if is_shortcode { "*" } else { "" }, site.link.target)
        });
        assert_eq!(shown.collect::<Vec<_>>().join(" "), expected, "{text:?}");
    }

    #[test]
    fn shortcodes_are_links_anywhere() {
        check(r#"[a]({{< relref "/docs/a b" >}}) [[c]]"#, "*/docs/a b c");
        check(
            r#"[[c]] {{<ref "a.md#h">}} {{% ref `b` %}} {{< ref path="d" lang="ja" >}} {{< ref e >}}"#,
            "c *a.md#h *b *d *e",
        );
        check(r#"<a href="{{< ref "../x/y#Z" >}}">Z</a>"#, "*../x/y#Z");
        check("<ul>\n<li><a href=\"{{< ref \"x\" >}}\">[[y]]</a></li>\n</ul>\n", "*x y");
        check("> - **[日本]({{< ref \"日本 語\" >}})**\n", "*日本 語");
    }

    #[test]
    fn other_shortcodes_and_literals_are_not_links() {
        for text in [
            r##"{{< ref "#here" >}}"##,
            r#"{{< figure "a" >}} {{< refs "a" >}} {{<ref"a">}} {{< ref "a >}}"#,
            r#"{{</* ref "a" */>}}"#,
            r#"`{{< ref "a" >}}`"#,
            "```\n{{< ref \"a\" >}}\n```\n",
            r#"x <!-- {{< ref "a" >}} --> y"#,
            "<!--\n{{< ref \"a\" >}}\n-->\n",
            "<pre>\n{{< ref \"a\" >}}\n</pre>\n",
            "%% {{< ref \"a\" >}} %%",
            "{{< ref \"a\n\" >}}",
        ] {
            check(text, "");
        }
        assert!(parse(r##"[x]({{< ref "#Spec" >}}) {{< ref "a#B" >}}"##).tags.is_empty());
    }

    #[test]
    fn shortcodes_without_an_end_are_read_in_linear_time() {
        for start in ["{{<ref \"", "{{<ref `", "{{<ref path=\"", "{{<ref a", "{{<"] {
            let text = start.repeat(200_000);
            let started = std::time::Instant::now();
            assert!(super::find(&text).is_empty(), "{start}");
            assert!(started.elapsed().as_secs() < 2, "{start}: {:?}", started.elapsed());
        }
    }

    #[test]
    fn a_shortcode_takes_a_new_target_it_can_hold() {
        let rewrite = |text: &str, target: &str| {
            let rewritten = rewrite_targets(text, |_| Some(target.to_owned()));
            (rewritten.text, rewritten.refused.len())
        };
        let text = r#"[a]({{< ref "b#c" >}}) {{< ref d >}}"#;
        let expected = r#"[a]({{< ref "x y#c" >}}) {{< ref d >}}"#;
        assert_eq!(rewrite(text, "x y"), (expected.to_owned(), 1));
        assert_eq!(rewrite(r#"{{< ref "a" >}}"#, "x\"y"), (r#"{{< ref "a" >}}"#.to_owned(), 1));
    }
}
