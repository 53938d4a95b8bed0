//! A kept version whose text becomes the text of a note again.
//!
//! In a `.quipu` that a group shares, every member can add a line to the history and rename files in the trash, so neither says
//! whose text a version is. Its permissions do, which only its owner can change: a version that the group cannot read is not
//! written to a note that the group can read, and one by another account only to a note that this account could write anyway.

use std::fs::File;
use std::io::{self, Read};

use quipu_core::model::VaultPath;
use quipu_core::ports::LoggedFile;

use crate::dir::{Dir, Metadata, if_exists};
use crate::folder::split;
use crate::own_folder::{self, OWN_FOLDER};
use crate::permissions::{ENTER, GroupRights, READ, WRITE};
use crate::trash;
use crate::write_plan::Template;

const IS_PRIVATE: &str =
    "the group can read the note, but not the kept version; copy its text from .quipu/trash yourself";
const IS_FOREIGN: &str = "the kept version belongs to an account that cannot write the note";

/// The file of a version, open.
pub(crate) struct KeptFile {
    file: File,
    metadata: Metadata,
    /// Whether every folder of its path lets the group in.
    is_reachable: bool,
    /// The group that shares `.quipu`.
    group: Option<u32>,
    /// The accounts that could write any version anyway.
    trusted: [u32; 3],
}

impl KeptFile {
    /// Opens a version; `None` if it does not exist. Each folder is opened in the one before, so that none can be exchanged.
    pub(crate) fn open(root: &Dir, version: &str) -> io::Result<Option<Self>> {
        if trash::note_of(version).is_none() {
            return Ok(None);
        }
        let own = root.open(OWN_FOLDER)?;
        let owner = Metadata::of(&own)?.owner;
        let group = own.is_shared()?.then_some(owner.1);
        let (folders, name) = split(version);
        let Some(mut folder) = if_exists(own_folder::open_below(root, trash::TRASH))? else { return Ok(None) };
        let mut is_reachable = true;
        for part in folders.split('/') {
            let Some(below) = if_exists(folder.open(part))? else { return Ok(None) };
            is_reachable &= group.is_none_or(|group| GroupRights::of(&below, group).is_ok_and(GroupRights::can_list));
            folder = below;
        }
        let Some(file) = if_exists(folder.open_file(name))? else { return Ok(None) };
        let metadata = Metadata::of(&file)?;
        let trusted = [0, owner.0, rustix::process::geteuid().as_raw()];
        Ok(Some(Self { file, metadata, is_reachable, group, trusted }))
    }

    pub(crate) fn has_text(&self, bytes: &[u8]) -> io::Result<bool> {
        let mut found = Vec::new();
        (&self.file).take(bytes.len() as u64 + 1).read_to_end(&mut found)?;
        Ok(found == bytes)
    }

    /// Why its text may not be written to a note in a folder; `None` if it may. `replaced` is the folder and the name of the
    /// file whose permissions the note gets; without one it gets those of the version.
    pub(crate) fn refusal(
        &self,
        root: &Dir,
        note_folder: &str,
        replaced: Option<(&str, &str)>,
    ) -> io::Result<Option<&'static str>> {
        let Some(group) = self.group else { return Ok(None) };
        let folder = rights_to_folder(root, note_folder, group)?;
        let own = GroupRights::of(&self.file, group)?;
        let (rights, owner) = match replaced {
            Some((folder, name)) => {
                let file = root.open_below(folder)?.open_file(name)?;
                (GroupRights::of(&file, group)?, Some(Metadata::of(&file)?.owner.0))
            }
            None => (own, None),
        };
        // A new file has the permissions of the version, but may be in a folder that more accounts can enter.
        let is_readable = self.is_reachable && (own.all & READ != 0 || replaced.is_none());
        if !is_readable && rights.within(folder).some & READ != 0 {
            return Ok(Some(IS_PRIVATE));
        }
        let is_trusted = self.trusted.contains(&self.metadata.owner.0) || owner == Some(self.metadata.owner.0);
        let is_written =
            folder.all & ENTER != 0 && (folder.all & WRITE != 0 || owner.is_some() && rights.all & WRITE != 0);
        Ok(if is_trusted || is_written { None } else { Some(IS_FOREIGN) })
    }

    /// For a new note with its permissions: one that was private when it was deleted is private again.
    pub(crate) fn template(&self, note: &VaultPath, version: &str) -> Template {
        let (folder, name) = split(version);
        let folder = format!("{OWN_FOLDER}/{}/{folder}", trash::TRASH);
        Template { path: note.clone(), folder, name: name.to_owned(), metadata: self.metadata }
    }
}

/// Whether an entry of the history is about a file that the group cannot read, now or before. An unknown state counts as closed.
pub(crate) fn is_closed_to(root: &Dir, group: u32, entry: &LoggedFile) -> bool {
    let is_open = |path: &VaultPath| -> io::Result<bool> {
        let (folder, name) = split(path.as_str());
        if rights_to_folder(root, folder, group)?.all & ENTER == 0 {
            return Ok(false);
        }
        match if_exists(root.open_below(folder).and_then(|folder| folder.open_file(name)))? {
            Some(file) => Ok(GroupRights::of(&file, group)?.all & READ != 0),
            None => Ok(true),
        }
    };
    let is_kept_open = |version: &str| -> io::Result<bool> {
        let Some(kept) = KeptFile::open(root, version)? else { return Ok(true) };
        Ok(kept.is_reachable && GroupRights::of(&kept.file, group)?.all & READ != 0)
    };
    let is_all_open = || -> io::Result<bool> {
        for path in entry.paths() {
            if !is_open(path)? {
                return Ok(false);
            }
        }
        entry.kept.as_deref().map_or(Ok(true), is_kept_open)
    };
    !is_all_open().unwrap_or(false)
}

/// The rights of a group to a folder of the vault, through those above it. A folder that does not exist yet is like the one that
/// it will be created in.
fn rights_to_folder(root: &Dir, folder: &str, group: u32) -> io::Result<GroupRights> {
    let mut rights = GroupRights::of(root, group)?;
    let mut open = root.open(".")?;
    for part in folder.split('/').filter(|part| !part.is_empty()) {
        let Some(below) = if_exists(open.open(part))? else { break };
        rights = GroupRights::of(&below, group)?.within(rights);
        open = below;
    }
    Ok(rights)
}
