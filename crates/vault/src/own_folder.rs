//! The folder `.quipu`, which holds Quipu's own files next to the notes.

use std::io::{self, Write};

use crate::dir::{Dir, Metadata};

pub(crate) const OWN_FOLDER: &str = ".quipu";

/// The index, the private history and the versions in the trash are about notes that the group may not be able to read; tokens
/// are of one account; what is longer than a process id in the place of the write lock is no lock. Links are left out: `chmod`
/// would change their targets, which may be anywhere.
const SHARE_COMMAND: &str = concat!(
    r"find .quipu \( -path '.quipu/index*' -o -path '.quipu/history-*' -o -path '.quipu/tokens*' ",
    r"-o -path '.quipu/trash/*' -o -name 'write.lock.refused-*' -o -name write.lock -size +10c \) -prune ",
    r"-o \( -type d -o -type f -links 1 \) ",
    "-exec chgrp GROUP {} + -exec chmod g+rwX {} + -type d -exec chmod g+s {} +"
);

/// Opens `.quipu`, and creates it if needed. Its `.gitignore` excludes all of it. Fails if it belongs to another account than this
/// one, root or the owner of the vault: that account could read and replace old versions of notes.
pub(crate) fn open_or_create(root: &Dir) -> io::Result<Dir> {
    let is_new = root.create_unshared_folder(OWN_FOLDER)?;
    let own = root.open(OWN_FOLDER)?;
    let (owner, vault_owner) = (Metadata::of(&own)?.owner.0, Metadata::of(root)?.owner.0);
    if ![0, vault_owner, rustix::process::geteuid().as_raw()].contains(&owner) {
        let message = format!(
            "{OWN_FOLDER} belongs to another account (user id {owner}), which does not own the vault; remove it, or let the \
             owner of the vault run `chown -R` on it"
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    if is_new {
        root.sync()?;
    }
    if own.metadata(".gitignore")?.is_none() {
        match own.create_own_file(".gitignore") {
            Ok(mut file) => file.write_all(b"*\n")?,
            // Another process creates it too.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(own)
}

/// Opens a folder below `.quipu`.
pub(crate) fn open_below(root: &Dir, path: &str) -> io::Result<Dir> {
    root.open_below(&format!("{OWN_FOLDER}/{path}"))
}

/// Replaces the error for a name of another account by one that says how to share the vault.
pub(crate) fn explain_denied(error: io::Error, dir: &Dir, name: &str) -> io::Error {
    // An error without a code of the system has an explanation already.
    if error.kind() != io::ErrorKind::PermissionDenied || error.raw_os_error().is_none() {
        return error;
    }
    match dir.metadata(name) {
        Ok(Some(metadata)) if metadata.owner.0 != rustix::process::geteuid().as_raw() => {
            let parent = if name == OWN_FOLDER { String::new() } else { format!("{OWN_FOLDER}/") };
            let message = format!(
                "{parent}{name} belongs to another account (user id {}), and this account may not open it; to share the \
                 vault, run in it as that account: {}",
                metadata.owner.0, SHARE_COMMAND
            );
            io::Error::new(io::ErrorKind::PermissionDenied, message)
        }
        _ => error,
    }
}
