//! Which providers may receive the notes of a vault: for vectors, and for a language model. A vault's settings may have come
//! from a repository or an archive, so a provider named there does not have the user's consent to get notes and the key.
//!
//! An external provider is used only if the environment names it or the user ran `quipu trust`. That includes loopback:
//! any program of any user may listen on a port. Permissions are stored in the user's folder, outside of any vault.

use std::path::{Path, PathBuf};

use anyhow::Context;
use quipu_embed::{ChatProvider, Provider, Purpose, shown_url};
use quipu_server::own_files;
use serde::{Deserialize, Serialize};

use crate::config::{Embedding, Llm};

/// A vault, and the provider that may receive its notes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trusted {
    pub(crate) vault: String,
    pub(crate) url: String,
    /// What for: each has its own key. Earlier versions knew embedding alone.
    #[serde(default = "embedding")]
    pub(crate) purpose: String,
}

fn embedding() -> String {
    Purpose::Embedding.to_string()
}

impl Trusted {
    pub(crate) fn new(vault: &Path, url: &str, purpose: Purpose) -> Self {
        Self { vault: vault.display().to_string(), url: url.to_owned(), purpose: purpose.to_string() }
    }
}

#[derive(Default, Serialize, Deserialize)]
struct TrustList {
    #[serde(default)]
    trusted: Vec<Trusted>,
}

/// The user's file of trusted providers.
pub(crate) struct TrustFile(PathBuf);

impl TrustFile {
    pub(crate) fn of_user() -> anyhow::Result<Self> {
        Ok(Self(own_files::user_folder()?.join("trust.toml")))
    }

    pub(crate) fn list(&self) -> anyhow::Result<Vec<Trusted>> {
        let Some(text) = own_files::read(&self.0)? else { return Ok(Vec::new()) };
        let list: TrustList = toml::from_str(&text)
            .with_context(|| format!("cannot read {}; delete it and run `quipu trust` again", self.0.display()))?;
        Ok(list.trusted)
    }

    pub(crate) fn add(&self, trusted: Trusted) -> anyhow::Result<()> {
        self.change(|all| {
            if !all.contains(&trusted) {
                all.push(trusted);
            }
        })
    }

    /// Revokes all permissions of a vault and returns them.
    pub(crate) fn remove(&self, vault: &str) -> anyhow::Result<Vec<Trusted>> {
        let mut removed = Vec::new();
        self.change(|all| removed = all.extract_if(.., |trusted| trusted.vault == vault).collect())?;
        Ok(removed)
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Trusted>)) -> anyhow::Result<()> {
        let _lock = own_files::lock(self.0.parent().unwrap_or(Path::new(".")))?;
        let mut trusted = self.list()?;
        change(&mut trusted);
        let text = toml::to_string(&TrustList { trusted }).context("cannot write the trusted providers")?;
        let head = "# Written by `quipu trust`: which providers may receive the notes of which vault.\n\n";
        own_files::replace(&self.0, &format!("{head}{text}"))
    }
}

/// The address that a provider's texts are sent to; `None` for the builtin one.
pub(crate) fn url_of(provider: &Provider) -> Option<&str> {
    match provider {
        Provider::Ollama { url, .. } | Provider::OpenAi { url, .. } => Some(url),
        Provider::Builtin | Provider::None => None,
    }
}

/// What is used of a provider in the settings.
pub(crate) struct Allowed<P> {
    pub(crate) provider: P,
    /// Why it is not the one in the settings. Does not name the vault's path, so clients may see it.
    pub(crate) warning: Option<String>,
}

/// The provider of the settings if the user named or allowed it, else the builtin one, which sends nothing.
pub(crate) fn allowed(vault: &Path, embedding: &Embedding) -> Allowed<Provider> {
    let provider = embedding.provider();
    let external = url_of(&provider).filter(|_| !embedding.is_named_by_user());
    let instead = "the builtin model is used";
    match external.and_then(|url| refusal(&Trusted::new(vault, url, Purpose::Embedding), Purpose::Embedding, instead)) {
        Some(warning) => Allowed { provider: Provider::Builtin, warning: Some(warning) },
        None => Allowed { provider, warning: None },
    }
}

/// The language model of the settings if the user named or allowed it, else none.
pub(crate) fn allowed_llm(vault: &Path, llm: &Llm) -> Allowed<Option<ChatProvider>> {
    let provider = llm.provider();
    let external = provider.as_ref().filter(|_| !llm.is_named_by_user());
    let instead = "summaries, tags and entities are made without it";
    match external.and_then(|chat| refusal(&Trusted::new(vault, &chat.url, Purpose::Llm), Purpose::Llm, instead)) {
        Some(warning) => Allowed { provider: None, warning: Some(warning) },
        None => Allowed { provider, warning: None },
    }
}

/// Why notes may not be sent; `None` if the user allowed it.
fn refusal(wanted: &Trusted, purpose: Purpose, instead: &str) -> Option<String> {
    let known = TrustFile::of_user().and_then(|file| file.list());
    if known.as_ref().is_ok_and(|known| known.contains(wanted)) {
        return None;
    }
    let why = known.err().map_or(String::new(), |error| format!(" ({error:#})"));
    let (provider, url) = (purpose.provider(), shown_url(&wanted.url));
    let message = format!(
        "cannot send notes to the {provider} at {url}: only the vault's own settings name it, and the user has not allowed \
         it{why}; {instead}"
    );
    let quoted = wanted.vault.replace('\'', r"'\''");
    tracing::warn!("{message}. To allow it, run: quipu trust --vault '{quoted}'");
    Some(format!("{message}. To allow it, run `quipu trust` in the folder of the vault"))
}
