//! Images that notes show. The vault's rules for paths apply to them as to notes; links to files are not followed.

use std::io;
use std::sync::Arc;

use quipu_core::model::VaultPath;
use quipu_core::ports::{Image, VaultError};

use crate::dir::{FileKind, is_no_folder};
use crate::folder::{Folder, ResolvedPath, resolve, split};
use crate::folder_vault::FolderVault;
use crate::read::read_in;
use crate::walk::walk_folders;

/// Larger than any photograph that belongs into a note.
const MAX_BYTES: u64 = 16 << 20;

/// What browsers draw, by extension. Any other file is not an image, whatever is in it.
const MEDIA_TYPES: [(&str, &str); 8] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("avif", "image/avif"),
    ("bmp", "image/bmp"),
    ("svg", "image/svg+xml"),
];

/// The image that a link of a note means: from the note's folder, from the root, or by the end of its path. Of several with
/// that end, the first by path.
pub(crate) fn find(vault: &FolderVault, note: &VaultPath, target: &str) -> Result<Option<Image>, VaultError> {
    let extension = target.rsplit_once('.').map(|(_, extension)| extension).unwrap_or_default();
    let known = MEDIA_TYPES.iter().find(|(known, _)| known.eq_ignore_ascii_case(extension));
    let Some((_, media_type)) = known else { return Ok(None) };
    let bytes = bytes_of(vault, note, target);
    let bytes = bytes.map_err(|source| VaultError::Read { path: target.to_owned(), source })?;
    Ok(bytes.map(|bytes| Image { media_type, bytes }))
}

fn bytes_of(vault: &FolderVault, note: &VaultPath, target: &str) -> io::Result<Option<Vec<u8>>> {
    let (folder, _) = split(note.as_str());
    let beside = if target.starts_with('/') { None } else { below(folder, target) };
    let from_root = below("", target);
    for path in beside.iter().chain(&from_root) {
        if let Some(bytes) = read(vault, path)? {
            return Ok(Some(bytes));
        }
    }
    let Some(end) = from_root else { return Ok(None) };
    let (end_folder, name) = split(&end);
    let is_end = |folder: &str| {
        let rest = folder.strip_suffix(end_folder);
        rest.is_some_and(|rest| rest.is_empty() || end_folder.is_empty() || rest.ends_with('/'))
    };
    let folders = walk_folders(vault, &Arc::new(Folder::root(vault)?)).folders;
    for folder in folders.iter().filter(|folder| !folder.path.is_empty() && is_end(&folder.path)) {
        if let Some(bytes) = read(vault, &format!("{}/{name}", folder.path))? {
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}

/// The path from the root of a target seen from a folder; `None` if it leaves the vault.
fn below(folder: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

fn read(vault: &FolderVault, path: &str) -> io::Result<Option<Vec<u8>>> {
    if VaultPath::parse(path).is_err() {
        return Ok(None);
    }
    let (parent, name) = split(path);
    let folder = match VaultPath::parse(parent) {
        Ok(parent) => match resolve(vault, &parent) {
            Ok(ResolvedPath::Folder(folder)) => folder,
            Ok(_) => return Ok(None),
            Err(error) if is_no_folder(&error) => return Ok(None),
            Err(error) => return Err(error),
        },
        // The root: every other part of a valid path is valid.
        Err(_) => Arc::new(Folder::root(vault)?),
    };
    if vault.rules.check_image(&folder.patterns, &folder.path_of(name)).is_err() {
        return Ok(None);
    }
    let Some(metadata) = folder.dir.metadata(name)?.filter(|file| file.kind == FileKind::File) else {
        return Ok(None);
    };
    let size = metadata.stat.size;
    if size > MAX_BYTES {
        let message = format!("its size of {size} bytes exceeds the limit of {MAX_BYTES} for an image");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(read_in(&folder.dir, name)?.map(|(content, _)| content.bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_seen_from_a_folder_and_never_leave_the_vault() {
        assert_eq!(below("a/b", "c.png").as_deref(), Some("a/b/c.png"));
        assert_eq!(below("a/b", "../c/./d.png").as_deref(), Some("a/c/d.png"));
        assert_eq!(below("", "/c//d.png").as_deref(), Some("c/d.png"));
        assert_eq!(below("a", "../../c.png"), None);
        assert_eq!(below("a", ".."), None);
    }
}
