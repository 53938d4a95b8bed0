//! `quipu trust`: allows the embedding provider in a vault's settings.

use clap::Args;
use serde_json::json;

use super::open_vault::VaultLocation;
use super::output::{Line, Output};
use super::{Failure, Outcome, Shared};
use crate::trust::{TrustFile, Trusted, url_of};

/// Allow the embedding provider in a vault's settings.
///
/// A vault's settings may have been written by someone else. A provider, also one on this machine, gets notes and the key
/// in QUIPU_EMBEDDING_KEY only if you allow it for this vault with this command, or name it in the environment.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quipu trust            allow the provider in .quipu/config.toml, for this vault
  quipu trust --list     list the allowed providers of all vaults
  quipu trust --remove   revoke the permission of this vault

JSON fields:
  [{vault, url}]: the permissions added, revoked or listed")]
pub(crate) struct Trust {
    /// List the allowed providers.
    #[arg(long, conflicts_with = "remove")]
    list: bool,
    /// Revoke the permission of this vault.
    #[arg(long)]
    remove: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Trust {
    pub(super) fn run(self, shared: &Shared, output: &mut Output) -> Result<Outcome, Failure> {
        let file = TrustFile::of_user()?;
        let (what, trusted) = if self.list {
            ("may be sent to", file.list()?)
        } else {
            let location = VaultLocation::find(None, shared)?;
            let vault = location.root.display().to_string();
            if self.remove {
                ("are no longer sent to", file.remove(&vault)?)
            } else {
                let provider = location.config.embedding.provider();
                let Some(url) = url_of(&provider) else {
                    let hint = "no permission is needed: the builtin model sends notes nowhere";
                    return Err(Failure::failed("cannot allow a provider: the settings name none").hint(hint));
                };
                location.check_provider()?;
                let trusted = Trusted { vault, url: url.to_owned() };
                file.add(trusted.clone())?;
                ("may be sent to", vec![trusted])
            }
        };
        if self.json {
            let listed = trusted.iter().map(|one| json!({ "vault": one.vault, "url": one.url }));
            output.json(&listed.collect::<Vec<_>>())?;
        } else if trusted.is_empty() {
            output.aside(&Line::new().plain("no embedding provider is allowed"));
        } else {
            for Trusted { vault, url } in trusted {
                output.line(&Line::new().plain("notes of ").bold(vault).plain(format!(" {what} ")).bold(url))?;
            }
        }
        Ok(Outcome::Fine)
    }
}
