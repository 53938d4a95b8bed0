//! The pages that a site generator makes of notes, so that links between them can be followed.
//!
//! `/docs/setup/` may be `en/docs/setup.md`, `en/docs/setup/_index.md`, or a note whose frontmatter says so. A vault is often
//! not the root of the site, so the end of a path is enough where only one page ends so.

use crate::model::{Note, fold};

/// Stems of notes that are the page of their folder, best first.
const FOLDER_STEMS: [&str; 3] = ["index", "_index", "readme"];

/// Frontmatter keys that give a page another address.
const ADDRESS_KEYS: [&str; 3] = ["slug", "url", "permalink"];

/// How a note comes to be a page, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PageForm {
    File,
    /// By its place in [`FOLDER_STEMS`].
    Folder(usize),
    Frontmatter,
}

/// The page of a folder that a note is, by its folded path without extension.
pub(super) fn folder_page(folded_path: &str) -> Option<(&str, PageForm)> {
    let (folder, stem) = folded_path.rsplit_once('/')?;
    let place = FOLDER_STEMS.iter().position(|name| *name == stem)?;
    Some((folder, PageForm::Folder(place)))
}

/// The folded paths that a note's frontmatter gives to its page. An alias that starts with `/` is an address too.
pub(super) fn frontmatter_pages(note: &Note, folded_path: &str) -> Box<[Box<str>]> {
    let mut pages: Vec<Box<str>> = Vec::new();
    for key in ADDRESS_KEYS {
        let Some(address) = note.text_property(key) else { continue };
        let path = path_of_address(&address);
        // A slug of one part replaces the last part of the page's path; any other address is a whole path.
        let page = if key == "slug" && !path.contains('/') {
            let own = folder_page(folded_path).map_or(folded_path, |(folder, _)| folder);
            own.rsplit_once('/').map_or(path.clone(), |(folder, _)| format!("{folder}/{path}"))
        } else {
            path
        };
        pages.push(page.into());
    }
    let addresses = note.aliases.iter().filter(|alias| alias.starts_with('/'));
    pages.extend(addresses.map(|alias| path_of_address(alias).into()));
    pages.retain(|page| !page.is_empty());
    pages.into()
}

/// The path of an address, folded, without scheme, host and slashes around it.
fn path_of_address(address: &str) -> String {
    let path = match address.split_once("://") {
        Some((_, rest)) => rest.split_once('/').map_or("", |(_, path)| path),
        None => address,
    };
    fold(path.split(['#', '?']).next().unwrap_or_default().trim_matches('/'))
}

/// The path without a language in front: `en/docs/x` is `docs/x` and, since sites put their pages below such a folder, `x`.
pub(super) fn without_language(path: &str) -> impl Iterator<Item = &str> {
    let rest = path.split_once('/').filter(|(first, _)| is_language(first)).map(|(_, rest)| rest);
    rest.into_iter().chain(rest.and_then(|rest| rest.strip_prefix("docs/")))
}

/// The codes of ISO 639-1, which sites use for their languages. Other short folders, such as `ui`, are no languages.
const LANGUAGES: &str = "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de \
    dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it \
    iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd \
    ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su \
    sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu";

/// Scripts in which sites write one language.
const SCRIPTS: [&str; 5] = ["arab", "cyrl", "hans", "hant", "latn"];

/// `en`, `pt-br`, `zh-hans`, `es-419`.
fn is_language(folded: &str) -> bool {
    let (language, region) = folded.split_once(['-', '_']).map_or((folded, None), |(it, region)| (it, Some(region)));
    let is_region = |region: &str| match region.len() {
        2 => region.bytes().all(|byte| byte.is_ascii_lowercase()),
        4 => SCRIPTS.contains(&region),
        3 => region.bytes().all(|byte| byte.is_ascii_digit()),
        _ => false,
    };
    LANGUAGES.split(' ').any(|code| code == language) && region.is_none_or(is_region)
}

/// The last two parts of a path that has them.
pub(super) fn tail(path: &str) -> Option<&str> {
    let slash = path.rfind('/')?;
    Some(path[..slash].rfind('/').map_or(path, |before| &path[before + 1..]))
}

/// How many folders two paths have in common from the root.
pub(super) fn common_folders(one: &str, other: &str) -> usize {
    one.split('/').zip(other.split('/')).take_while(|(a, b)| a == b && !a.is_empty()).count()
}

/// The folder of a path; empty at the root.
pub(super) fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

#[cfg(test)]
mod tests {
    use crate::index::resolve::Resolver;
    use crate::model::{ContentHash, FileStat, Link, LinkSyntax, LinkType, Note, NoteKey, VaultPath};
    use crate::parse::{TitleRule, read_note};
    use crate::ports::FileContent;

    /// A note at `path`, or at `path = key: value` with that frontmatter.
    fn note(line: &str) -> Note {
        let (path, frontmatter) = line.split_once(" = ").unwrap_or((line, ""));
        let bytes = format!("---\n{frontmatter}\n---\n").into_bytes();
        let stat = FileStat { modified_ns: 1, size: bytes.len() as u64 };
        let content = FileContent { hash: ContentHash::of(&bytes), bytes, stat };
        read_note(&VaultPath::parse(path).unwrap(), &content, &TitleRule::default()).0
    }

    fn resolve(vault: &[&str], source: &str, syntax: LinkSyntax, target: &str) -> Option<String> {
        let notes: Vec<Note> = vault.iter().map(|line| note(line)).collect();
        let mut resolver = Resolver::new(&notes.iter().map(Some).collect::<Vec<_>>());
        let link = Link { syntax, target: target.into(), fragment: None, label: None, link_type: LinkType::References };
        let found = resolver.resolve(&note(source), &link);
        // Whatever went and came back, the answer is the same.
        for (slot, note) in notes.iter().enumerate().rev() {
            resolver.remove(NoteKey::of_slot(slot));
            resolver.insert(NoteKey::of_slot(slot), note);
        }
        assert_eq!(found, resolver.resolve(&note(source), &link), "{target} in {source}");
        found.map(|key| notes[key.slot()].path.to_string())
    }

    #[track_caller]
    fn check(vault: &[&str], source: &str, target: &str, expected: Option<&str>) {
        assert_eq!(resolve(vault, source, LinkSyntax::Markdown, target).as_deref(), expected, "{target} in {source}");
    }

    #[test]
    fn a_link_from_the_root_of_a_site_means_the_page_there() {
        let vault = ["docs/a.md", "docs/b/index.md", "docs/c/_index.md", "docs/d/README.md", "docs/My Page.md"];
        for (target, expected) in [
            ("/docs/a", "docs/a.md"),
            ("/docs/a/", "docs/a.md"),
            ("/docs//a/", "docs/a.md"),
            ("/Docs/A.md", "docs/a.md"),
            ("/docs/b/", "docs/b/index.md"),
            ("/docs/c", "docs/c/_index.md"),
            ("/docs/d", "docs/d/README.md"),
            ("/docs/my-page/", "docs/My Page.md"),
        ] {
            check(&vault, "x/y.md", target, Some(expected));
        }
        for target in ["/docs/e", "/a/docs", "/docs", "/ocs/a"] {
            check(&vault, "x/y.md", target, None);
        }
        let both = ["docs/x/README.md", "docs/x/_index.md", "docs/x/index.md", "docs/x.md"];
        for (count, expected) in [(4, "docs/x.md"), (3, "docs/x/index.md"), (2, "docs/x/_index.md")] {
            check(&both[..count], "y.md", "/docs/x/", Some(expected));
        }
    }

    #[test]
    fn the_end_of_a_path_is_enough_where_only_one_page_has_it() {
        let vault =
            ["content/docs/a.md", "one/docs/b.md", "two/docs/b.md", "one/c/_index.md", "docs/b2.md", "x/docs/b2.md"];
        check(&vault, "s.md", "/docs/a/", Some("content/docs/a.md"));
        check(&vault, "s.md", "/a", Some("content/docs/a.md"));
        check(&vault, "s.md", "/c/", Some("one/c/_index.md"));
        check(&vault, "s.md", "/docs/b/", None);
        check(&vault, "x/s.md", "/docs/b2/", Some("docs/b2.md"));
        check(&["content/docs/a.md"], "s.md", "/ocs/a", None);
    }

    #[test]
    fn page_links_prefer_their_own_language() {
        let vault = ["en/docs/a.md", "ja/docs/a.md", "en/docs/b/_index.md", "ja/docs/b.md", "en/docs/only.md"];
        check(&vault, "ja/docs/x/y.md", "/docs/a/", Some("ja/docs/a.md"));
        check(&vault, "en/docs/x/y.md", "/docs/a/", Some("en/docs/a.md"));
        check(&vault, "en/docs/b/y.md", "/docs/b/", Some("en/docs/b/_index.md"));
        check(&vault, "ja/docs/x.md", "/docs/only", Some("en/docs/only.md"));
        check(&vault, "x.md", "/docs/a/", None);
        check(&vault, "en/docs/x.md", "/ja/docs/a/", Some("ja/docs/a.md"));
        check(&vault, "ja/docs/x.md", "/ja/docs/only/", Some("en/docs/only.md"));
        let mdn = ["files/en-us/web/html/index.md", "files/fr/web/html/index.md"];
        check(&mdn, "files/fr/web/x.md", "/en-US/docs/Web/HTML", Some("files/fr/web/html/index.md"));
        check(&mdn[..1], "files/fr/web/x.md", "/en-US/docs/Web/HTML", Some("files/en-us/web/html/index.md"));
        check(&mdn[..1], "x.md", "/about/docs/Web/HTML", None);
    }

    #[test]
    fn a_short_folder_that_is_no_language_is_part_of_the_path() {
        let vault = ["misc/deep/setup.md"];
        for target in ["/ui/setup", "/go/setup", "/db/docs/setup", "/en-docs/setup", "/v2/setup", "/xx/setup"] {
            check(&vault, "x.md", target, None);
        }
        for target in ["/en/setup", "/pt-br/setup", "/zh-hans/docs/setup", "/es-419/setup", "/zh_CN/setup"] {
            check(&vault, "x.md", target, Some("misc/deep/setup.md"));
        }
    }

    #[test]
    fn frontmatter_url_is_the_address_of_a_page() {
        let vault = [
            "en/blog/2024-x.md = slug: first-post",
            "en/blog/bundle/index.md = slug: second-post",
            "a.md = url: /about/us/",
            "b.md = permalink: https://example.org/b/page/?x",
            "c.md = aliases: [/old/c/, other]",
            "d.md = slug: /deep/down",
        ];
        for (target, expected) in [
            ("/blog/first-post/", "en/blog/2024-x.md"),
            ("/blog/2024-x/", "en/blog/2024-x.md"),
            ("/en/blog/second-post", "en/blog/bundle/index.md"),
            ("/about/us", "a.md"),
            ("/b/page/", "b.md"),
            ("/old/c", "c.md"),
            ("/deep/down/", "d.md"),
        ] {
            check(&vault, "x.md", target, Some(expected));
        }
        check(&vault, "x.md", "/other", None);
        let both = ["en/a.md = url: /about/", "ja/a.md = url: /about/"];
        check(&both, "ja/x.md", "/about/", Some("ja/a.md"));
    }

    #[test]
    fn a_shortcode_is_relative_to_its_folder_then_to_the_site() {
        let vault = ["en/api/pod.md", "en/api/meta/_index.md", "en/api/meta/status.md", "en/guide/pod.md"];
        for (source, target, expected) in [
            ("en/api/x.md", "pod", Some("en/api/pod.md")),
            ("en/api/meta/x.md", "../pod.md", Some("en/api/pod.md")),
            ("en/api/x.md", "meta", Some("en/api/meta/_index.md")),
            ("en/guide/x.md", "/api/meta/status", Some("en/api/meta/status.md")),
            ("en/guide/x.md", "status.md", Some("en/api/meta/status.md")),
            ("x.md", "pod", None),
        ] {
            assert_eq!(resolve(&vault, source, LinkSyntax::Shortcode, target).as_deref(), expected, "{target}");
        }
        // A Markdown link to a file names that file and no other.
        check(&vault, "en/guide/x.md", "status.md", None);
    }
}
