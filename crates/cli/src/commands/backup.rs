//! `quipu backup`: a consistent copy of memory, while agents write to it.

use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use quipu_own_folder::OwnFolder;
use quipu_server::own_files::own_folder;
use serde_json::json;

use super::open_vault::VaultLocation;
use super::output::{Line, Output};
use super::status::size;
use super::{Failure, Outcome, Shared};
use crate::compose::{OpenMode, memory_file};

/// Copy memory to a file while agents use it.
///
/// The copy is a SQLite file, checked before it is renamed into place. To restore it, stop every quipu process, move
/// .quipu/memory.db with its -wal and -shm files away, and put the copy in its place. Notes are plain files: back them up
/// like other files.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quipu backup                        to .quipu/backups/, named by the time
  quipu backup /media/disk/memory.db  to a file of your choice

JSON fields:
  {file, bytes}")]
pub(crate) struct Backup {
    /// File to write; it must not exist.
    file: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Backup {
    pub(super) fn run(self, shared: &Shared, output: &mut Output) -> Result<Outcome, Failure> {
        let location = VaultLocation::find(None, shared)?;
        if !memory_file(&location.root).exists() {
            return Err(Failure::failed("cannot back up memory: this vault has none yet"));
        }
        let open = location.memory(OpenMode::Existing)?;
        let file = match self.file {
            Some(file) => file,
            None => {
                let own = own_folder(&location.root);
                let folder = OwnFolder::open(&own).and_then(|own| own.folder("backups"));
                let folder = folder.map_err(|error| {
                    Failure::failed(format!("cannot create {}: {error}", own.join("backups").display()))
                })?;
                let now = Timestamp::from_nanosecond(i128::from(open.memory.now_ns()));
                let now = now.expect("64 bits of nanoseconds reach 1677 to 2262").to_zoned(TimeZone::UTC);
                folder.path().join(format!("memory-{}.db", now.strftime("%Y%m%dT%H%M%S%3fZ")))
            }
        };
        open.database.backup(&file).map_err(|error| Failure::failed(error.to_string()))?;
        let bytes = file.metadata().map_or(0, |metadata| metadata.len());
        if self.json {
            output.json(&json!({ "file": file, "bytes": bytes }))?;
        } else {
            output.line(
                &Line::new()
                    .plain("copied memory to ")
                    .bold(file.display().to_string())
                    .plain(format!("  {}", size(bytes))),
            )?;
        }
        Ok(Outcome::Fine)
    }
}
