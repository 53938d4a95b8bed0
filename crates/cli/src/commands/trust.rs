//! `quipu trust`: allows the providers in a vault's settings.

use clap::Args;
use quipu_embed::Purpose;
use serde_json::json;

use super::open_vault::VaultLocation;
use super::output::{Line, Output};
use super::{Failure, Outcome, Shared};
use crate::trust::{TrustFile, Trusted, url_of};

/// Allow the embedding provider and the language model in a vault's settings.
///
/// A vault's settings may have been written by someone else. A provider, even one on this machine, gets notes and the key
/// in QUIPU_EMBEDDING_KEY or QUIPU_LLM_KEY only if you allow it for this vault with this command, or name it in the
/// environment.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quipu trust            allow the providers in .quipu/config.toml, for this vault
  quipu trust --list     list the allowed providers of all vaults
  quipu trust --remove   revoke the permissions of this vault

JSON fields:
  [{vault, url, purpose}]: the permissions added, revoked or listed; purpose is embedding or llm")]
pub(crate) struct Trust {
    /// List the allowed providers.
    #[arg(long, conflicts_with = "remove")]
    list: bool,
    /// Revoke the permissions of this vault.
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
                let trusted = named(&location);
                if trusted.is_empty() {
                    let hint = "no permission is needed: without a provider, notes are sent nowhere";
                    return Err(Failure::failed("cannot allow a provider: the settings name none").hint(hint));
                }
                location.check_provider()?;
                for one in &trusted {
                    file.add(one.clone())?;
                }
                ("may be sent to", trusted)
            }
        };
        if self.json {
            let listed =
                trusted.iter().map(|one| json!({ "vault": one.vault, "url": one.url, "purpose": one.purpose }));
            output.json(&listed.collect::<Vec<_>>())?;
        } else if trusted.is_empty() {
            output.aside(&Line::new().plain("no provider is allowed"));
        } else {
            for Trusted { vault, url, purpose } in trusted {
                let line = Line::new().plain("notes of ").bold(vault).plain(format!(" {what} ")).bold(url);
                output.line(&line.plain(format!(" ({purpose})")))?;
            }
        }
        Ok(Outcome::Fine)
    }
}

/// The providers that the settings name.
fn named(location: &VaultLocation) -> Vec<Trusted> {
    let (embedding, llm) = (location.config.embedding.provider(), location.config.llm.provider());
    let embedding = url_of(&embedding).map(|url| Trusted::new(&location.root, url, Purpose::Embedding));
    let llm = llm.map(|chat| Trusted::new(&location.root, &chat.url, Purpose::Llm));
    embedding.into_iter().chain(llm).collect()
}
