//! Which folder is the vault: as told, else from the environment, else the nearest one upwards that has been a vault.

use std::path::{Path, PathBuf};

use super::Shared;
use crate::compose::own_folder;
use crate::failure::Failure;

const VARIABLE: &str = "QUIPU_VAULT";

/// The vault's folder. `given` is a command's own argument.
pub(crate) fn vault(given: Option<&Path>, shared: &Shared) -> Result<PathBuf, Failure> {
    if let (Some(given), Some(flag)) = (given, &shared.vault) {
        let message = format!("two vaults were given: {} and --vault {}", given.display(), flag.display());
        return Err(Failure::usage(message).hint("leave one of them out"));
    }
    let variable = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
    match given.or(shared.vault.as_deref()) {
        Some(told) => existing(told, ""),
        None => match variable {
            Some(told) => existing(&told, " (from QUIPU_VAULT)"),
            None => nearest(),
        },
    }
}

fn existing(told: &Path, origin: &str) -> Result<PathBuf, Failure> {
    // Absolute, so that messages and the snippet for a client's configuration hold wherever they are read.
    match told.canonicalize() {
        Ok(path) if path.is_dir() => Ok(path),
        Ok(_) => Err(Failure::usage(format!("{}{origin} is not a folder", told.display()))
            .hint("give the folder that holds the notes")),
        Err(error) => Err(Failure::usage(format!("cannot open the vault {}{origin}: {error}", told.display()))
            .hint("give a folder that exists, for instance: --vault ~/notes")),
    }
}

fn nearest() -> Result<PathBuf, Failure> {
    let here = std::env::current_dir().map_err(|error| {
        Failure::usage(format!("the current folder cannot be used: {error}")).hint("give --vault DIR")
    })?;
    if let Some(vault) = here.ancestors().find(|folder| own_folder(folder).is_dir()) {
        return Ok(vault.to_owned());
    }
    // Programs that start a server often do so from `/` or from the home folder. Nobody means to index those.
    let home = std::env::var_os("HOME").map(PathBuf::from);
    if here.parent().is_none() || home.as_deref() == Some(&here) {
        let message = format!("no vault was given, and {} is no folder of notes", here.display());
        return Err(Failure::usage(message).hint("say which one: --vault ~/notes, or QUIPU_VAULT=~/notes"));
    }
    Ok(here)
}
