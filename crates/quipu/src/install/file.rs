//! A client's file of settings: read, changed in one step, with what was there kept beside it.
#![expect(clippy::disallowed_methods, reason = "other programs' settings, changed because the user asked for it")]

use std::fs::{File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{Client, Launch};
use crate::own_files;

/// The byte order mark.
const MARK: &str = "\u{feff}";

/// A client's settings as they are.
pub(crate) struct ConfigFile {
    client: &'static Client,
    path: PathBuf,
    /// None where there is no file.
    text: Option<String>,
}

/// A change that has not been made yet.
pub(crate) struct Change<'a> {
    file: &'a ConfigFile,
    pub(crate) after: String,
}

impl ConfigFile {
    pub(crate) fn read(client: &'static Client, path: PathBuf) -> anyhow::Result<Self> {
        let text = own_files::text(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        Ok(Self { client, path, text })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What it says, without the mark that some editors put in front.
    pub(crate) fn before(&self) -> &str {
        let text = self.text.as_deref().unwrap_or_default();
        text.strip_prefix(MARK).unwrap_or(text)
    }

    /// The mark, where there is one: whoever wrote it may need it.
    fn mark(&self) -> &'static str {
        if self.text.as_deref().is_some_and(|text| text.starts_with(MARK)) { MARK } else { "" }
    }

    /// The server of this name, where it starts another program, or none that can be told.
    pub(crate) fn stranger(&self, name: &str) -> anyhow::Result<Option<String>> {
        let known = self.servers()?.into_iter().find(|(known, _)| known == name);
        Ok(known.and_then(|(_, launch)| match launch {
            Some(launch) if launch.is_quipu() => None,
            Some(Launch { program, arguments }) => Some([vec![program], arguments].concat().join(" ")),
            None => Some("something else".to_owned()),
        }))
    }

    /// The servers in it, and how each is started.
    pub(crate) fn servers(&self) -> anyhow::Result<Vec<(String, Option<Launch>)>> {
        self.client.format.servers(self.before()).with_context(|| self.path.display().to_string())
    }

    /// Puts a server in; `None` when it is there just so.
    pub(crate) fn with(&self, name: &str, launch: &Launch) -> anyhow::Result<Option<Change<'_>>> {
        let is_there = |known: &(String, Option<Launch>)| known.0 == name && known.1.as_ref() == Some(launch);
        if self.servers()?.iter().any(is_there) {
            return Ok(None);
        }
        let after = self.client.format.with(self.before(), name, launch);
        let mut after = after.with_context(|| format!("{} is left as it is", self.path.display()))?;
        if self.text.is_none() && !after.ends_with('\n') {
            after.push('\n');
        }
        Ok(Some(Change { file: self, after }))
    }

    /// Takes a server out; `None` when there is none.
    pub(crate) fn without(&self, name: &str) -> anyhow::Result<Option<Change<'_>>> {
        let after = self.client.format.without(self.before(), name);
        let after = after.with_context(|| format!("{} is left as it is", self.path.display()))?;
        Ok(after.map(|after| Change { file: self, after }))
    }
}

impl Change<'_> {
    /// Makes it. Says where what was there is kept, if there was anything.
    pub(crate) fn make(&self, now: Timestamp) -> anyhow::Result<Option<PathBuf>> {
        // The file itself, where people have put a link to it.
        let path = self.file.path.canonicalize().unwrap_or_else(|_| self.file.path.clone());
        let folder = path.parent().context("a file is in a folder")?;
        std::fs::create_dir_all(folder).with_context(|| format!("while making {}", folder.display()))?;
        let current = own_files::text(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        if current != self.file.text {
            bail!("{} was changed by another program this moment; try again", path.display());
        }
        let backup = current.is_some().then(|| keep(&path, now)).transpose()?;
        let write = || {
            let mut new = tempfile::NamedTempFile::new_in(folder)?;
            new.write_all(self.file.mark().as_bytes())?;
            new.write_all(self.after.as_bytes())?;
            let mode = path.metadata().map_or(0o600, |metadata| metadata.permissions().mode());
            new.as_file().set_permissions(Permissions::from_mode(mode))?;
            new.as_file().sync_all()?;
            new.persist(&path)?;
            File::open(folder)?.sync_all()
        };
        write().with_context(|| format!("while writing {}", path.display()))?;
        Ok(backup)
    }
}

/// Copies a file beside itself, under a name that is free.
fn keep(path: &Path, now: Timestamp) -> anyhow::Result<PathBuf> {
    let name = path.file_name().context("a file has a name")?.to_string_lossy().into_owned();
    let stamp = now.to_zoned(TimeZone::UTC).strftime("%Y%m%dT%H%M%S%3fZ").to_string();
    let backup = path.with_file_name(format!("{name}.{stamp}.bak"));
    ensure!(!backup.exists(), "{} is there already; try again", backup.display());
    std::fs::copy(path, &backup).with_context(|| format!("while keeping a copy at {}", backup.display()))?;
    Ok(backup)
}
