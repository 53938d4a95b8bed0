//! A note's file under a new name, and every link to it rewritten in the same step.

use super::NoteError;
use crate::Knowledge;
use crate::index::{IndexError, Snapshot, Writer, Written};
use crate::model::{ContentHash, Link, Note, NoteKey, VaultPath};
use crate::parse;
use crate::ports::FileChange;

/// What is renamed to what.
pub(super) struct Rename<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) key: NoteKey,
    pub(super) to: VaultPath,
    /// The version on disk now.
    pub(super) expected: ContentHash,
    /// The version it becomes, its own links not yet rewritten.
    pub(super) bytes: Vec<u8>,
}

impl Knowledge {
    /// Moves the file and rewrites the links, all or nothing; returns the note's final bytes.
    pub(super) fn rename(&self, writer: &mut Writer, rename: Rename<'_>) -> Result<Vec<u8>, NoteError> {
        let Rename { snapshot, key, to, expected, bytes } = rename;
        let note = snapshot.note(key);
        let renamed = self.indexer.read_renamed(&to, &bytes);
        let mut follow = |source: &Note, bytes: &[u8]| follow_links(writer, (note, &renamed), key, source, bytes);

        let bytes = follow(&renamed, &bytes)?;
        let mut changes =
            vec![FileChange::Move { from: note.path.clone(), to: to.clone(), expected, bytes: bytes.clone() }];
        for source in snapshot.incoming(key) {
            let source = snapshot.note(source);
            let Some(content) = self.vault.read(&source.path).map_err(IndexError::from)? else { continue };
            if content.hash != source.hash {
                return Err(NoteError::ChangedElsewhere { path: source.path.clone() });
            }
            let rewritten = follow(source, &content.bytes)?;
            if rewritten != content.bytes {
                changes.push(FileChange::Replace {
                    path: source.path.clone(),
                    expected: content.hash,
                    bytes: rewritten,
                });
            }
        }

        let stats = self.vault.apply(&changes)?;
        let written = changes.into_iter().zip(stats).filter_map(|(change, stat)| match change {
            FileChange::Move { from, to, bytes, .. } => {
                Some(Written { was: Some(from), ..Written::new(to, bytes, stat?) })
            }
            FileChange::Replace { path, bytes, .. } => Some(Written::new(path, bytes, stat?)),
            FileChange::Create { .. } | FileChange::Delete { .. } => None,
        });
        self.indexer.adopt(writer, written.collect());
        Ok(bytes)
    }
}

/// A source's bytes with every link that meant the note, and would not any more, rewritten so that it does.
fn follow_links(
    writer: &mut Writer,
    (note, renamed): (&Note, &Note),
    key: NoteKey,
    source: &Note,
    bytes: &[u8],
) -> Result<Vec<u8>, NoteError> {
    let stuck = |link: &Link| NoteError::LinkNotRewritable {
        path: note.path.clone(),
        source_path: source.path.clone(),
        target: link.target.clone(),
    };
    let Ok(text) = std::str::from_utf8(bytes) else {
        // Byte ranges are those of the decoded text; only a whole one maps back.
        return match source.links.iter().find(|link| writer.means(source, link) == Some(key)) {
            Some(link) => Err(stuck(link)),
            None => Ok(bytes.to_vec()),
        };
    };
    let mut failed = None;
    let rewritten = parse::rewrite_targets(text, |site| {
        let link = &site.link;
        if writer.means(source, link) != Some(key) || writer.would_mean(note, renamed, key, source, link) {
            return None;
        }
        let new = spellings(&renamed.path, link).into_iter().find(|target| {
            writer.would_mean(note, renamed, key, source, &Link { target: target.clone(), ..link.clone() })
        });
        if new.is_none() {
            failed = Some(stuck(link));
        }
        new
    });
    match failed.or_else(|| rewritten.refused.first().map(|refused| stuck(&refused.link))) {
        Some(error) => Err(error),
        None => Ok(rewritten.text.into_bytes()),
    }
}

/// The ways to write the new name, nearest to how the link was written first.
fn spellings(to: &VaultPath, link: &Link) -> Vec<String> {
    let had_extension = [".md", ".markdown"].iter().any(|end| link.target.to_lowercase().ends_with(end));
    let name = if had_extension { to.file_name() } else { to.stem() };
    let folder = link.target.rfind('/').map_or("", |slash| &link.target[..=slash]);
    let whole = if had_extension { to.as_str().to_owned() } else { without_extension(to).to_owned() };
    vec![format!("{folder}{name}"), whole.clone(), format!("/{whole}")]
}

fn without_extension(path: &VaultPath) -> &str {
    path.as_str().rsplit_once('.').map_or(path.as_str(), |(rest, _)| rest)
}
