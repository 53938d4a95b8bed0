//! The files of a folder that are not notes, which move with it.
//!
//! What the rules exclude stays: a pattern may keep it away from clients only where it is now.

use std::io;
use std::sync::Arc;

use quipu_core::model::VaultPath;
use quipu_core::ports::OtherFiles;

use crate::dir::FileKind;
use crate::folder::{Folder, ResolvedPath, resolve};
use crate::folder_vault::FolderVault;
use crate::rules::is_markdown;
use crate::temporary;

/// Deeper folders stay: each open one takes a handle.
const MAX_DEPTH: usize = 64;

/// The files below a folder.
pub(crate) fn list_below(vault: &FolderVault, path: &VaultPath) -> io::Result<OtherFiles> {
    let mut found = OtherFiles::default();
    if let ResolvedPath::Folder(folder) = resolve(vault, path)? {
        visit(vault, &folder, MAX_DEPTH, &mut found)?;
    }
    found.files.sort_unstable();
    found.kept.sort_unstable();
    Ok(found)
}

fn visit(vault: &FolderVault, folder: &Arc<Folder>, depth: usize, found: &mut OtherFiles) -> io::Result<()> {
    for (name, kind) in folder.dir.entries()? {
        let path = folder.path_of(&name.to_string_lossy());
        let name = name.to_str().unwrap_or_default();
        if temporary::is_ours(name) {
            continue;
        }
        let is_excluded = |is_folder| vault.rules.check(&folder.patterns, &path, is_folder).is_err();
        match (kind, VaultPath::parse(&path)) {
            (FileKind::Folder, Ok(_)) if depth > 0 && !name.is_empty() && !is_excluded(true) => {
                let dir = folder.dir.open(name)?;
                let child = folder.child(name, None).opened(vault, dir)?;
                visit(vault, &Arc::new(child), depth - 1, found)?;
            }
            (FileKind::Folder, _) => found.kept.push(path + "/"),
            (FileKind::File | FileKind::Link, Ok(_)) if is_markdown(name.as_ref()) && !is_excluded(false) => {}
            (FileKind::File, Ok(other)) if !name.is_empty() && is_movable(vault, folder, name, &path) => {
                found.files.push(other);
            }
            _ => found.kept.push(path),
        }
    }
    Ok(())
}

fn is_movable(vault: &FolderVault, folder: &Folder, name: &str, path: &str) -> bool {
    let is_hidden = name.starts_with('.');
    !is_hidden && !is_markdown(name.as_ref()) && vault.rules.check_excluded(&folder.patterns, path, false).is_ok()
}
