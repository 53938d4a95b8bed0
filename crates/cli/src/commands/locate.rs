//! Which folder is the vault: the one given, else that of the environment, else the nearest one upwards that has `.quipu/`.

use std::path::{Path, PathBuf};

use quipu_server::own_files::own_folder;

use super::Shared;
use super::output::{Line, Output};
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
        Failure::usage(format!("cannot use the current folder: {error}")).hint("give the vault with --vault DIR")
    })?;
    let home = std::env::var_os("HOME").map(PathBuf::from).and_then(|home| home.canonicalize().ok());
    // Folders above the home folder are shared with others: a `.quipu` there is nobody's vault.
    let ceiling = home.as_deref().filter(|home| here.starts_with(home));
    let mut upwards = here.ancestors().take_while(|folder| ceiling.is_none_or(|ceiling| folder.starts_with(ceiling)));
    if let Some(vault) = upwards.find(|folder| own_folder(folder).is_dir()) {
        if vault != here {
            let text = format!("using the vault {}, found above the current folder", vault.display());
            Output::new().aside(&Line::new().dim(text));
        }
        return Ok(vault.to_owned());
    }
    // Programs that start a server often do so from `/` or from the home folder. Nobody means to index those.
    if here.parent().is_none() || home.as_deref() == Some(&here) {
        let message = format!("no vault was given, and {} is no folder of notes", here.display());
        return Err(Failure::usage(message).hint("say which one: --vault ~/notes, or QUIPU_VAULT=~/notes"));
    }
    Ok(here)
}
