//! The texts of notes with their links rewritten, so that each means what it meant before some notes were moved.

use rayon::prelude::*;

use super::NoteError;
use crate::index::{LinkToRespell, RenamePreview, Respelled, SourceLinks, join};
use crate::model::{Link, LinkSyntax, NoteKey, VaultPath};
use crate::parse::{self, LinkSite};

/// A note whose links may have to be rewritten, and its text.
pub(super) struct SourceText {
    pub(super) source: NoteKey,
    pub(super) bytes: Vec<u8>,
}

/// A text with its links rewritten.
pub(super) struct FollowedText {
    pub(super) bytes: Vec<u8>,
    /// The target of a link that was not rewritten: bytes of it are not UTF-8, or its place cannot hold the new target.
    pub(super) lost: Option<String>,
}

/// Rewrites every link that would mean another note than now, so that it means the same. The sources may be renamed notes.
pub(super) fn follow_links(
    preview: &mut RenamePreview<'_>,
    texts: Vec<SourceText>,
) -> Result<Vec<FollowedText>, NoteError> {
    let read = |text: &SourceText| parse::link_sites(&parse::same_length_text(&text.bytes));
    let sites: Vec<Vec<LinkSite>> = texts.par_iter().map(read).collect();
    let sources: Vec<SourceLinks<'_>> = texts
        .iter()
        .zip(&sites)
        .map(|(text, sites)| SourceLinks { source: text.source, links: sites.iter().map(|site| &site.link).collect() })
        .collect();
    let respelled = preview.respelled(&sources, spellings);
    let preview = &*preview;
    texts
        .into_par_iter()
        .zip(sites.par_iter().zip(respelled))
        .map(|(text, (sites, respelled))| rewritten(preview, text, sites, respelled))
        .collect()
}

fn rewritten(
    preview: &RenamePreview<'_>,
    text: SourceText,
    sites: &[LinkSite],
    respelled: Vec<Respelled>,
) -> Result<FollowedText, NoteError> {
    if respelled.iter().all(|respelled| *respelled == Respelled::Kept) {
        return Ok(FollowedText { bytes: text.bytes, lost: None });
    }
    if let Some(at) = respelled.iter().position(|respelled| *respelled == Respelled::Stuck) {
        return Err(stuck(preview, text.source, &sites[at].link));
    }
    let target = |respelled| match respelled {
        Respelled::As(target) => Some(target),
        Respelled::Kept | Respelled::Stuck => None,
    };
    let targets = respelled.into_iter().map(target).collect();
    if std::str::from_utf8(&text.bytes).is_ok() {
        let rewritten = parse::rewrite_all_sites(&text.bytes, sites, targets, parse::link_sites);
        let bytes = rewritten.map_err(|refused| stuck(preview, text.source, &refused.link))?;
        return Ok(FollowedText { bytes, lost: None });
    }
    let rewritten = parse::rewrite_sites(&text.bytes, sites, targets, parse::link_sites);
    let lost = rewritten.refused.into_iter().next().map(|refused| refused.link.target);
    Ok(FollowedText { bytes: rewritten.bytes, lost })
}

fn stuck(preview: &RenamePreview<'_>, source: NoteKey, link: &Link) -> NoteError {
    let unlinkable = preview.renamed.notes.iter().find(|(_, renamed)| !parse::can_be_linked(renamed.path.stem()));
    if let Some((_, renamed)) = unlinkable {
        let reason = "links to a name with `#`, `|`, `^`, `[[` or `]]` cannot be written".to_owned();
        return NoteError::BadTitle { title: renamed.path.stem().to_owned(), reason };
    }
    let first = preview.renamed.files().next().map_or(source, |(key, _)| key);
    let path_of = |key| preview.snapshot.note(key).path.clone();
    NoteError::LinkNotRewritable { path: path_of(first), source_path: path_of(source), target: link.target.clone() }
}

/// The ways to write a link, nearest to how it was written first.
fn spellings(respelled: &LinkToRespell<'_>) -> Vec<String> {
    let LinkToRespell { link, folder: source_folder, target: to, is_relative } = respelled;
    // The address of a page may end with a slash.
    let target = link.target.trim_end_matches('/');
    let slash = if target.len() < link.target.len() { "/" } else { "" };
    let had_extension = [".md", ".markdown"].iter().any(|end| target.to_lowercase().ends_with(end));
    let name = if had_extension { to.file_name() } else { to.stem() };
    let folder = target.rfind('/').map_or("", |slash| &target[..=slash]);
    let whole = if had_extension { to.as_str() } else { without_extension(to) };
    let in_same_folder = format!("{folder}{name}{slash}");
    let from_root = format!("/{whole}{slash}");
    if target.starts_with('/') {
        // The page of a folder may have become a page in it.
        return vec![in_same_folder, format!("{target}/{name}{slash}"), from_root];
    }
    let is_dotted = target.starts_with("./") || target.starts_with("../");
    if !(is_dotted || *is_relative && link.syntax == LinkSyntax::Markdown) {
        return vec![in_same_folder, format!("{whole}{slash}"), from_root];
    }
    let mut relative = relative(source_folder, whole);
    // Only a dot makes a wikilink relative.
    let has_dot = target.starts_with("./") || link.syntax != LinkSyntax::Markdown;
    if has_dot && !relative.starts_with("../") {
        relative.insert_str(0, "./");
    }
    let is_still_relative = join(source_folder, &in_same_folder).as_deref() == Some(whole);
    let mut ways = vec![format!("{relative}{slash}"), in_same_folder, format!("{whole}{slash}"), from_root];
    if is_still_relative {
        ways.swap(0, 1);
    }
    ways
}

/// Rewrites the relative links of a note to files that are not notes, where the note or the file moves. `path_after` returns
/// the path that a file will have, if it exists. A link that is not a path to a file is left alone; one whose place cannot hold
/// the new path is lost.
pub(super) fn follow_other_files(
    text: &mut FollowedText,
    (from, to): (&str, &str),
    path_after: &mut impl FnMut(VaultPath) -> Option<VaultPath>,
) {
    let sites = parse::other_file_sites(&parse::same_length_text(&text.bytes));
    let mut moved = |site: &LinkSite| {
        let path = VaultPath::parse(&join(from, &site.link.target)?).ok()?;
        let after = path_after(path)?;
        if join(to, &site.link.target).as_deref() == Some(after.as_str()) {
            return None;
        }
        let slash = if site.link.target.ends_with('/') { "/" } else { "" };
        Some(relative(to, after.as_str()) + slash)
    };
    let targets: Vec<Option<String>> = sites.iter().map(&mut moved).collect();
    if targets.iter().any(Option::is_some) {
        let rewritten = parse::rewrite_sites(&text.bytes, &sites, targets, parse::other_file_sites);
        text.bytes = rewritten.bytes;
        text.lost = text.lost.take().or_else(|| Some(rewritten.refused.into_iter().next()?.link.target));
    }
}

/// Whether a note in a folder has a relative link to such a file.
pub(super) fn links_to_file(bytes: &[u8], folder: &str, is_such: impl Fn(&str) -> bool) -> bool {
    // Most notes link to no file.
    if memchr::memmem::find(bytes, b"](").is_none() && memchr::memmem::find(bytes, b"]:").is_none() {
        return false;
    }
    let sites = parse::other_file_sites(&parse::same_length_text(bytes));
    sites.iter().any(|site| join(folder, &site.link.target).is_some_and(|path| is_such(&path)))
}

/// The path of a file from a folder.
fn relative(folder: &str, path: &str) -> String {
    let folder: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    let parts: Vec<&str> = path.split('/').collect();
    let common = folder.iter().zip(&parts[..parts.len() - 1]).take_while(|(a, b)| a == b).count();
    "../".repeat(folder.len() - common) + &parts[common..].join("/")
}

fn without_extension(path: &VaultPath) -> &str {
    path.as_str().rsplit_once('.').map_or(path.as_str(), |(rest, _)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_climb_only_as_far_as_needed() {
        for (folder, path, expected) in [
            ("", "a.md", "a.md"),
            ("", "x/a.md", "x/a.md"),
            ("x", "x/a.md", "a.md"),
            ("x/y", "x/a.md", "../a.md"),
            ("x/y", "z/a.md", "../../z/a.md"),
            ("x", "x", "../x"),
        ] {
            assert_eq!(relative(folder, path), expected, "{path} from {folder}");
        }
    }
}
