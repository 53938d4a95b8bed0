//! A client's settings file: read, backed up and replaced atomically.
#![expect(clippy::disallowed_methods, reason = "other programs' settings, changed because the user asked for it")]

use std::fs::{File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use quipu_server::own_files;
use similar::{ChangeTag, TextDiff};
use tempfile::NamedTempFile;

use super::{Client, Launch};

/// The byte order mark.
const MARK: &str = "\u{feff}";

/// A client's settings.
pub(crate) struct ConfigFile {
    client: &'static Client,
    path: PathBuf,
    /// `None` if the file does not exist.
    text: Option<String>,
}

/// A planned change.
pub(crate) struct SettingsChange<'a> {
    file: &'a ConfigFile,
    /// The file to write, which `file.path` may be a link to.
    place: PathBuf,
    pub(crate) after: String,
}

/// Held while settings of any client are read and changed: otherwise one of two concurrent commands would lose its change.
pub(crate) fn lock() -> anyhow::Result<File> {
    own_files::lock(&own_files::user_folder()?)
}

impl ConfigFile {
    pub(crate) fn read(client: &'static Client, path: PathBuf) -> anyhow::Result<Self> {
        let text = own_files::text(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self { client, path, text })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The text without the byte order mark.
    pub(crate) fn before(&self) -> &str {
        let text = self.text.as_deref().unwrap_or_default();
        text.strip_prefix(MARK).unwrap_or(text)
    }

    /// The byte order mark, if the file has one: the program that wrote it may need it.
    fn mark(&self) -> &'static str {
        if self.text.as_deref().is_some_and(|text| text.starts_with(MARK)) { MARK } else { "" }
    }

    /// What the server of this name starts, unless that is quipu.
    pub(crate) fn foreign_server(&self, name: &str) -> anyhow::Result<Option<String>> {
        let known = self.servers()?.into_iter().find(|(known, _)| known == name);
        Ok(known.and_then(|(_, launch)| match launch {
            Some(launch) if launch.is_quipu() => None,
            Some(Launch { program, arguments }) => Some([vec![program], arguments].concat().join(" ")),
            None => Some("an unknown program".to_owned()),
        }))
    }

    /// The servers, and how each is started where that is known.
    pub(crate) fn servers(&self) -> anyhow::Result<Vec<(String, Option<Launch>)>> {
        self.client.format.servers(self.before()).with_context(|| format!("cannot read {}", self.path.display()))
    }

    /// Adds a server; `None` if it exists unchanged. An existing entry keeps its other fields.
    pub(crate) fn with(&self, name: &str, launch: &Launch) -> anyhow::Result<Option<SettingsChange<'_>>> {
        let is_there = |known: &(String, Option<Launch>)| known.0 == name && known.1.as_ref() == Some(launch);
        if self.servers()?.iter().any(is_there) {
            return Ok(None);
        }
        let after = self.client.format.with(self.before(), name, launch);
        self.change(after.with_context(|| self.as_it_is())?).map(Some)
    }

    /// Like [`Self::with`], for settings that came with a project: an existing entry keeps harmless fields only. Returns the removed ones, too.
    pub(crate) fn with_harmless(
        &self,
        name: &str,
        launch: &Launch,
    ) -> anyhow::Result<(Option<SettingsChange<'_>>, Vec<String>)> {
        let format = self.client.format;
        let (before, removed) = format.pruned(self.before(), name).with_context(|| self.as_it_is())?;
        if removed.is_empty() {
            return Ok((self.with(name, launch)?, removed));
        }
        let after = format.with(&before, name, launch).with_context(|| self.as_it_is())?;
        Ok((Some(self.change(after)?), removed))
    }

    /// Replaces the server of that name; `None` if it exists unchanged.
    pub(crate) fn with_replaced(&self, name: &str, launch: &Launch) -> anyhow::Result<Option<SettingsChange<'_>>> {
        let format = self.client.format;
        let before = format.without(self.before(), name).with_context(|| self.as_it_is())?;
        let before = before.as_deref().unwrap_or(self.before());
        let after = format.with(before, name, launch).with_context(|| self.as_it_is())?;
        if after == self.before() { Ok(None) } else { self.change(after).map(Some) }
    }

    /// Removes a server; `None` if it does not exist.
    pub(crate) fn without(&self, name: &str) -> anyhow::Result<Option<SettingsChange<'_>>> {
        let after = self.client.format.without(self.before(), name);
        after.with_context(|| self.as_it_is())?.map(|after| self.change(after)).transpose()
    }

    fn change(&self, mut after: String) -> anyhow::Result<SettingsChange<'_>> {
        if self.text.is_none() && !after.ends_with('\n') {
            after.push('\n');
        }
        Ok(SettingsChange { file: self, place: self.place()?, after: with_line_ends_of(self.before(), after) })
    }

    fn as_it_is(&self) -> String {
        format!("cannot change {}", self.path.display())
    }

    /// Whether the file to write is inside a folder: links may lead out of it.
    pub(crate) fn is_in(&self, folder: &Path) -> anyhow::Result<bool> {
        let folder = folder.canonicalize().with_context(|| format!("cannot read {}", folder.display()))?;
        let place = self.place()?;
        // A file that does not exist yet is where its folder leads.
        let real = place.ancestors().find_map(|path| path.canonicalize().ok());
        Ok(real.is_some_and(|real| real.starts_with(folder)))
    }

    /// The file to write. A dangling link is an error: its target may be on a disk that is not mounted.
    fn place(&self) -> anyhow::Result<PathBuf> {
        match self.path.canonicalize() {
            Ok(place) => Ok(place),
            Err(error) if error.kind() == io::ErrorKind::NotFound => match std::fs::read_link(&self.path) {
                Ok(end) => bail!(
                    "cannot write {}: it is a link to {}, which does not exist; create that file, or remove the link",
                    self.path.display(),
                    end.display()
                ),
                Err(_) => Ok(self.path.clone()),
            },
            Err(error) => Err(error).with_context(|| format!("cannot read {}", self.path.display())),
        }
    }
}

impl SettingsChange<'_> {
    /// Writes the change. Returns the backup of the previous file, if there was one.
    ///
    /// Settings of a project are readable for everyone, and their backups are kept in the user's folder: beside the file
    /// they would be committed.
    pub(crate) fn apply(&self, now: Timestamp, is_project: bool) -> anyhow::Result<Option<PathBuf>> {
        let Self { file, place, after } = self;
        let folder = place.parent().context("cannot write settings: their path has no folder")?;
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let mode = place.metadata().map_or(if is_project { 0o644 } else { 0o600 }, |old| mode_of_new(&old));
        let new = beside(folder, &[file.mark(), after].concat(), mode)
            .with_context(|| format!("cannot write {}", place.display()))?;
        let copies = if is_project { own_files::user_folder()?.join("backups") } else { folder.to_owned() };
        let backup = file.text.as_ref().map(|text| back_up(place, &copies, text, now)).transpose()?;
        // As late as possible: the client does not take our lock.
        let current = own_files::text(place).with_context(|| format!("cannot read {}", place.display()))?;
        if current != file.text {
            if let Some(backup) = &backup {
                std::fs::remove_file(backup).with_context(|| format!("cannot remove {}", backup.display()))?;
            }
            bail!("cannot write {}: another program changed it meanwhile; run this again", place.display());
        }
        let replace = || {
            new.persist(place)?;
            File::open(folder)?.sync_all()
        };
        replace().with_context(|| format!("cannot write {}", place.display()))?;
        Ok(backup)
    }
}

/// The mode of the new version of a file, which this account will own. Set-uid and set-gid would let others act as it. A file of
/// another account may be a trap: others may not change the new one.
fn mode_of_new(old: &Metadata) -> u32 {
    let is_own = old.uid() == rustix::process::geteuid().as_raw();
    old.permissions().mode() & if is_own { 0o777 } else { 0o755 }
}

/// A text in a new temporary file, synced to disk.
fn beside(folder: &Path, text: &str, mode: u32) -> io::Result<NamedTempFile> {
    let mut new = NamedTempFile::new_in(folder)?;
    new.write_all(text.as_bytes())?;
    new.as_file().set_permissions(Permissions::from_mode(mode))?;
    new.as_file().sync_all()?;
    Ok(new)
}

/// Backs up a file's text in a folder under an unused name, for this account only.
fn back_up(path: &Path, folder: &Path, text: &str, now: Timestamp) -> anyhow::Result<PathBuf> {
    let name = path
        .file_name()
        .context("cannot back up settings: their path has no file name")?
        .to_string_lossy()
        .into_owned();
    let stamp = now.to_zoned(TimeZone::UTC).strftime("%Y%m%dT%H%M%S%3fZ").to_string();
    let context = || format!("cannot back up {}", path.display());
    std::fs::create_dir_all(folder).with_context(context)?;
    let mut copy = beside(folder, text, 0o600).with_context(context)?;
    for number in 1.. {
        let number = if number == 1 { String::new() } else { format!("-{number}") };
        let backup = folder.join(format!("{name}.{stamp}{number}.bak"));
        match copy.persist_noclobber(&backup) {
            Ok(_) => return Ok(backup),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => copy = error.file,
            Err(error) => return Err(error.error).with_context(context),
        }
    }
    unreachable!("some number is free")
}

/// Keeps the line ends of old lines, and gives new ones the line end of the first: the editors write only `\n`.
fn with_line_ends_of(before: &str, after: String) -> String {
    if !before.contains("\r\n") {
        return after;
    }
    let ends: Vec<&str> =
        before.split_inclusive('\n').map(|line| if line.ends_with("\r\n") { "\r\n" } else { "\n" }).collect();
    let (old, new) = (before.replace("\r\n", "\n"), after.replace("\r\n", "\n"));
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let mut text = String::with_capacity(after.len());
    for line in TextDiff::from_slices(&old, &new).iter_all_changes() {
        let end = match (line.tag(), line.old_index()) {
            (ChangeTag::Delete, _) => continue,
            (ChangeTag::Equal, Some(number)) => ends[number],
            _ => ends[0],
        };
        match line.value().strip_suffix('\n') {
            Some(line) => text.extend([line, end]),
            None => text.push_str(line.value()),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_line_ends() {
        let given = |before: &str, after: &str| with_line_ends_of(before, after.to_owned());
        assert_eq!(given("a\r\nb\r\n", "a\nx\nb\n"), "a\r\nx\r\nb\r\n");
        assert_eq!(given("a\r\nb\nc\r\n", "a\nb\nc\nx\n"), "a\r\nb\nc\r\nx\r\n", "each its own");
        assert_eq!(given("a\r\nb", "a\r\nb"), "a\r\nb");
        assert_eq!(given("a\nb\n", "a\nx\n"), "a\nx\n");
    }
}
