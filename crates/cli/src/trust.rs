//! Whom the notes of a vault may be sent to. A vault's own settings may have come with it, from a repository or an archive:
//! that they name an embedding provider does not mean that whoever opens the vault wants it to have their notes and key.
//!
//! So a provider outside this program is used only where the environment names it, or where `quipu trust` was run. That
//! holds for loopback too: any program, of any account, may listen at a port of this machine. What was allowed is kept in
//! the user's own folder, which no vault brings along.

use std::path::{Path, PathBuf};

use anyhow::Context;
use quipu_embed::Provider;
use quipu_server::own_files;
use serde::{Deserialize, Serialize};

use crate::config::Embedding;

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

/// Where a provider gets texts sent to; `None` for the one inside this program.
pub(crate) fn url_of(provider: &Provider) -> Option<&str> {
    match provider {
        Provider::Ollama { url, .. } | Provider::OpenAi { url, .. } => Some(url),
        Provider::Builtin | Provider::None => None,
    }
}

/// The provider that is used.
pub(crate) struct Allowed {
    pub(crate) provider: Provider,
    /// Why it is another than the settings name. It does not say where the vault lies, so clients may see it.
    pub(crate) warning: Option<String>,
}

/// The provider that the settings name, where the user named or allowed it; else the builtin one, which sends nothing.
pub(crate) fn allowed(vault: &Path, embedding: &Embedding) -> Allowed {
    let provider = embedding.provider();
    let Some(url) = url_of(&provider).filter(|_| !embedding.is_named_by_user()) else {
        return Allowed { provider, warning: None };
    };
    let wanted = Trusted { vault: vault.display().to_string(), url: url.to_owned() };
    let known = TrustFile::of_user().and_then(|file| file.list());
    match known {
        Ok(known) if known.contains(&wanted) => Allowed { provider, warning: None },
        known => {
            let why = known.err().map_or(String::new(), |error| format!(" ({error:#})"));
            let message = format!(
                "cannot send notes to the embedding provider at {url}: only the vault's own settings name it, and the user \
                 has not allowed it{why}; the builtin model is used"
            );
            let quoted = wanted.vault.replace('\'', r"'\''");
            tracing::warn!("{message}. To allow it, run: quipu trust --vault '{quoted}'");
            let warning = format!("{message}. To allow it, run `quipu trust` in the folder of the vault");
            Allowed { provider: Provider::Builtin, warning: Some(warning) }
        }
    }
}
