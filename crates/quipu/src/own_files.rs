//! Small files of the program's own: replaced whole, so that nobody reads half of one, and readable by their owner alone.
//!
//! Two places: a vault's `.quipu/`, which may have come with a copied or cloned vault, and the user's own folder, which
//! no vault can bring along. What decides whom to trust lies in the second.
#![expect(clippy::disallowed_methods, reason = "none of these files is a note or an index")]

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;

/// Where the user's own folder is; `XDG_STATE_HOME` moves it.
pub(crate) fn user_folder() -> anyhow::Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = variable("XDG_STATE_HOME").or_else(|| variable("HOME").map(|home| home.join(".local/state")));
    Ok(state.context("there is no home folder to keep anything in; set HOME or XDG_STATE_HOME")?.join("quipu"))
}

/// The text of a file; `None` where there is none.
pub(crate) fn read(file: &Path) -> anyhow::Result<Option<String>> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("while reading {}", file.display())),
    }
}

/// Puts a text in a file's place, in one step. Its folder is made where there is none.
pub(crate) fn replace(file: &Path, text: &str) -> anyhow::Result<()> {
    let write = || {
        let folder = file.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        // Made readable by its owner alone.
        let mut new = tempfile::NamedTempFile::new_in(folder)?;
        new.write_all(text.as_bytes())?;
        new.as_file().sync_all()?;
        new.persist(file)?;
        File::open(folder)?.sync_all()
    };
    write().with_context(|| format!("while writing {}", file.display()))
}

/// Held while a file is read and replaced; another process waits.
pub(crate) fn lock(folder: &Path) -> anyhow::Result<File> {
    let take = || {
        std::fs::create_dir_all(folder)?;
        let file = File::options().create(true).truncate(false).write(true).open(folder.join("own-files.lock"))?;
        file.lock()?;
        Ok::<_, io::Error>(file)
    };
    take().with_context(|| format!("while locking {}", folder.display()))
}
