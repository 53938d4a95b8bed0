//! Whom the notes of a vault may be sent to. A vault's own settings may have come with it, from a repository or an archive:
//! that they name an embedding provider does not mean that whoever opens the vault wants it to have their notes and key.
//!
//! So a provider on another machine is used only where the environment names it, or where `quipu trust` was run. What was
//! allowed is kept in the user's own folder, which no vault brings along.

use std::path::{Path, PathBuf};

use anyhow::Context;
use quipu_embed::Provider;
use serde::{Deserialize, Serialize};

use crate::config::Embedding;
use crate::own_files;

/// A vault, and where its notes may be sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trusted {
    pub(crate) vault: String,
    pub(crate) url: String,
}

#[derive(Default, Serialize, Deserialize)]
struct Kept {
    #[serde(default)]
    trusted: Vec<Trusted>,
}

/// What the user has allowed.
pub(crate) struct TrustFile(PathBuf);

impl TrustFile {
    pub(crate) fn of_user() -> anyhow::Result<Self> {
        Ok(Self(own_files::user_folder()?.join("trust.toml")))
    }

    pub(crate) fn list(&self) -> anyhow::Result<Vec<Trusted>> {
        let Some(text) = own_files::read(&self.0)? else { return Ok(Vec::new()) };
        let kept: Kept = toml::from_str(&text)
            .with_context(|| format!("{} cannot be read; remove it and trust again", self.0.display()))?;
        Ok(kept.trusted)
    }

    pub(crate) fn add(&self, trusted: Trusted) -> anyhow::Result<()> {
        self.change(|all| {
            if !all.contains(&trusted) {
                all.push(trusted);
            }
        })
    }

    /// Takes back all that was allowed for a vault, and says what that was.
    pub(crate) fn remove(&self, vault: &str) -> anyhow::Result<Vec<Trusted>> {
        let mut removed = Vec::new();
        self.change(|all| removed = all.extract_if(.., |trusted| trusted.vault == vault).collect())?;
        Ok(removed)
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Trusted>)) -> anyhow::Result<()> {
        let _lock = own_files::lock(self.0.parent().unwrap_or(Path::new(".")))?;
        let mut trusted = self.list()?;
        change(&mut trusted);
        let text = toml::to_string(&Kept { trusted }).context("while writing what is trusted")?;
        let head = "# Made by `quipu trust`: which vault's notes may be sent where.\n\n";
        own_files::replace(&self.0, &format!("{head}{text}"))
    }
}

/// Where a provider is, if it is not in this program or on this machine.
pub(crate) fn remote_url(provider: &Provider) -> Option<&str> {
    let (Provider::Ollama { url, .. } | Provider::OpenAi { url, .. }) = provider else { return None };
    (!quipu_embed::is_on_this_machine(url)).then_some(url)
}

/// What the settings may have.
pub(crate) struct Allowed {
    pub(crate) provider: Provider,
    /// Why it is another than they name.
    pub(crate) warning: Option<String>,
    /// Whether it may have the user's key: only one that the user named, since anybody may listen on this machine.
    pub(crate) with_key: bool,
}

/// The provider that the settings name, or why another is used: then the builtin one, and nothing leaves the machine.
pub(crate) fn allowed(vault: &Path, embedding: &Embedding) -> Allowed {
    let provider = embedding.provider();
    let by_user = embedding.is_named_by_user();
    let Some(url) = remote_url(&provider).filter(|_| !by_user) else {
        return Allowed { provider, warning: None, with_key: by_user };
    };
    let wanted = Trusted { vault: vault.display().to_string(), url: url.to_owned() };
    let known = TrustFile::of_user().and_then(|file| file.list());
    match known {
        Ok(known) if known.contains(&wanted) => Allowed { provider, warning: None, with_key: true },
        known => {
            let why = known.err().map_or(String::new(), |error| format!(" ({error:#})"));
            let message = format!(
                "the vault's settings would send its notes to {url}, which nobody on this machine has allowed{why}: \
                 the builtin model is used; `quipu trust` allows it"
            );
            tracing::warn!("{message}");
            Allowed { provider: Provider::Builtin, warning: Some(message), with_key: false }
        }
    }
}
