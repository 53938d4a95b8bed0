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

/// Rewrites every link that would mean another note than now, so that it means the same. The sources may be renamed notes.
pub(super) fn follow_links(preview: &mut RenamePreview<'_>, texts: Vec<SourceText>) -> Result<Vec<Vec<u8>>, NoteError> {
    let read = |text: &SourceText| match std::str::from_utf8(&text.bytes) {
        Ok(text) => Some(parse::link_sites(text)),
        // Byte ranges are those of the decoded text; only a whole one maps back.
        Err(_) => None,
    };
    let sites: Vec<Option<Vec<LinkSite>>> = texts.par_iter().map(read).collect();
    let snapshot = preview.snapshot;
    let links_of = |(text, sites): (&SourceText, &'_ Option<Vec<LinkSite>>)| -> Vec<Link> {
        match sites {
            Some(sites) => sites.iter().map(|site| site.link.clone()).collect(),
            None => snapshot.note(text.source).links.clone(),
        }
    };
    let links: Vec<Vec<Link>> = texts.iter().zip(&sites).map(links_of).collect();
    let sources: Vec<SourceLinks<'_>> = texts
        .iter()
        .zip(&links)
        .map(|(text, links)| SourceLinks { source: text.source, links: links.iter().collect() })
        .collect();
    let respelled = preview.respelled(&sources, spellings);
    let preview = &*preview;
    texts
        .into_par_iter()
        .zip(sites)
        .zip(links.par_iter().zip(respelled))
        .map(|((text, sites), (links, respelled))| rewritten(preview, text, sites.as_deref(), links, respelled))
        .collect()
}

fn rewritten(
    preview: &RenamePreview<'_>,
    text: SourceText,
    sites: Option<&[LinkSite]>,
    links: &[Link],
    respelled: Vec<Respelled>,
) -> Result<Vec<u8>, NoteError> {
    if respelled.iter().all(|respelled| *respelled == Respelled::Kept) {
        return Ok(text.bytes);
    }
    let is_impossible =
        |respelled: &Respelled| *respelled == Respelled::Stuck || sites.is_none() && *respelled != Respelled::Kept;
    if let Some(at) = respelled.iter().position(is_impossible) {
        return Err(stuck(preview, text.source, &links[at]));
    }
    let (Some(sites), Ok(source)) = (sites, std::str::from_utf8(&text.bytes)) else { return Ok(text.bytes) };
    let target = |respelled| match respelled {
        Respelled::As(target) => Some(target),
        Respelled::Kept | Respelled::Stuck => None,
    };
    let targets = respelled.into_iter().map(target).collect();
    let rewritten = parse::rewrite_sites(source, sites, targets, parse::link_sites);
    match rewritten.refused.first() {
        Some(refused) => Err(stuck(preview, text.source, &refused.link)),
        None => Ok(rewritten.text.into_bytes()),
    }
}

fn stuck(preview: &RenamePreview<'_>, source: NoteKey, link: &Link) -> NoteError {
    let unlinkable = preview.renamed.iter().find(|(_, renamed)| !parse::can_be_linked(renamed.path.stem()));
    if let Some((_, renamed)) = unlinkable {
        let reason = "links to a name with `#`, `|`, `^`, `[[` or `]]` cannot be written".to_owned();
        return NoteError::BadTitle { title: renamed.path.stem().to_owned(), reason };
    }
    let first = preview.renamed.first_key_value().map_or(source, |(key, _)| *key);
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

/// Rewrites the relative links of a moved note to files that are not notes and stay where they are. A link that is not a path
/// to a file is left alone, and so is one whose place cannot hold the new path.
pub(super) fn follow_other_files(
    bytes: &mut Vec<u8>,
    (from, to): (&str, &str),
    is_file: &mut impl FnMut(VaultPath) -> bool,
) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let sites = parse::other_file_sites(text);
    let mut moved = |site: &LinkSite| {
        let path = join(from, &site.link.target)?;
        let is_there = VaultPath::parse(&path).is_ok_and(&mut *is_file);
        let slash = if site.link.target.ends_with('/') { "/" } else { "" };
        is_there.then(|| relative(to, &path) + slash)
    };
    let targets: Vec<Option<String>> = sites.iter().map(&mut moved).collect();
    if targets.iter().any(Option::is_some) {
        *bytes = parse::rewrite_sites(text, &sites, targets, parse::other_file_sites).text.into_bytes();
    }
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
