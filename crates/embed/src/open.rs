//! Creates an embedder from settings. The first text loads the model or connects to the provider.

use std::sync::Arc;
use std::time::Duration;

use quipu_core::ports::Embedder;

use crate::remote::{Address, Protocol, ProviderAddressError, Remote};
use crate::{Builtin, Purpose};

/// The source of vectors.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Provider {
    /// None: there is no search by meaning.
    None,
    /// The model inside the program.
    #[default]
    Builtin,
    /// An Ollama server: `POST {url}/api/embed`.
    Ollama { url: String, model: String },
    /// OpenAI, or a server with its protocol: `POST {url}/v1/embeddings`.
    OpenAi { url: String, model: String },
}

impl Provider {
    /// Ollama's default address.
    pub const OLLAMA_URL: &str = "http://localhost:11434";
    /// Unlike the builtin model it reads a hundred languages and long texts.
    pub const OLLAMA_MODEL: &str = "bge-m3";
    pub const OPENAI_URL: &str = "https://api.openai.com";
    pub const OPENAI_MODEL: &str = "text-embedding-3-small";
}

const OPENAI_KEY: &str = "OPENAI_API_KEY";
const ANTHROPIC_KEY: &str = "ANTHROPIC_API_KEY";

/// API keys. They come from the environment only, and are neither printed nor logged.
#[derive(Clone, Default)]
pub struct Keys {
    /// `QUIPU_EMBEDDING_KEY` or `QUIPU_LLM_KEY`: for the configured provider.
    pub own: Option<String>,
    /// `OPENAI_API_KEY`: for api.openai.com only, since it was not set for another provider.
    pub openai: Option<String>,
    /// `ANTHROPIC_API_KEY`: for api.anthropic.com only.
    pub anthropic: Option<String>,
}

impl Keys {
    pub fn from_environment(purpose: Purpose) -> Self {
        let key = |name: &str| std::env::var(name).ok().filter(|key| !key.is_empty());
        Self { own: key(purpose.key_variable()), openai: key(OPENAI_KEY), anthropic: key(ANTHROPIC_KEY) }
    }
}

/// Timeouts of a remote provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection. 2 seconds.
    pub connect: Duration,
    /// For the vector of a query, retries included: a client is waiting. 10 seconds.
    pub query: Duration,
    /// For a batch of passages, retries included: no client is waiting, and a server may have to load its model. 60 seconds.
    pub passages: Duration,
    /// After a failure, calls fail at once for this long, so that a provider that is down causes no delays. 5 seconds.
    pub pause: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(2),
            query: Duration::from_secs(10),
            passages: Duration::from_secs(60),
            pause: Duration::from_secs(5),
        }
    }
}

/// The settings of an embedder.
#[derive(Clone, Default)]
pub struct EmbedderSettings {
    pub provider: Provider,
    pub keys: Keys,
    pub timeouts: Timeouts,
}

/// Why settings are invalid.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("the {0} url is invalid: {1}")]
    Address(Purpose, ProviderAddressError),
    #[error("the {0} model is missing; set `{0}.model`")]
    NoModel(Purpose),
    #[error("{host} requires a key; set {} or {variable} in the environment", purpose.key_variable())]
    NoKey { purpose: Purpose, host: String, variable: &'static str },
    #[error("the {purpose} key would be sent unencrypted to {host}; use https, or unset {}", purpose.key_variable())]
    KeyInClear { purpose: Purpose, host: String },
    #[error("the {purpose} key has invalid characters; check {} and {variable}", purpose.key_variable())]
    BadKey { purpose: Purpose, variable: &'static str },
}

/// Creates the configured embedder; `None` for [`Provider::None`].
pub fn open(settings: &EmbedderSettings) -> Result<Option<Arc<dyn Embedder>>, SettingsError> {
    let (protocol, url, model) = match &settings.provider {
        Provider::None => return Ok(None),
        Provider::Builtin => return Ok(Some(Arc::new(Builtin::new()))),
        Provider::Ollama { url, model } => (Protocol::Ollama, url, model),
        Provider::OpenAi { url, model } => (Protocol::OpenAi, url, model),
    };
    let address = Address::parse(url, |path| protocol.endpoint(path))
        .map_err(|error| SettingsError::Address(Purpose::Embedding, error))?;
    if model.trim().is_empty() {
        return Err(SettingsError::NoModel(Purpose::Embedding));
    }
    let key = checked_key(Purpose::Embedding, &address, &settings.keys)?;
    Ok(Some(Arc::new(Remote::new(protocol, address, model.trim(), key, settings.timeouts))))
}

/// The key for this address, if it may be sent there.
pub(crate) fn checked_key(purpose: Purpose, address: &Address, keys: &Keys) -> Result<Option<String>, SettingsError> {
    let (variable, known, is_required) = match address.host() {
        "api.openai.com" => (OPENAI_KEY, keys.openai.as_ref(), true),
        "api.anthropic.com" => (ANTHROPIC_KEY, keys.anthropic.as_ref(), true),
        _ => (OPENAI_KEY, None, false),
    };
    let host = || address.host().to_owned();
    match keys.own.as_ref().or(known) {
        None if is_required => Err(SettingsError::NoKey { purpose, host: host(), variable }),
        Some(_) if !address.is_private() => Err(SettingsError::KeyInClear { purpose, host: host() }),
        Some(key) if !key.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Err(SettingsError::BadKey { purpose, variable })
        }
        key => Ok(key.cloned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn openai(url: &str, keys: Keys) -> Result<Option<Arc<dyn Embedder>>, SettingsError> {
        let provider = Provider::OpenAi { url: url.to_owned(), model: "m".to_owned() };
        open(&EmbedderSettings { provider, keys, ..EmbedderSettings::default() })
    }

    fn with_key() -> Keys {
        Keys { own: Some("secret".to_owned()), ..Keys::default() }
    }

    #[test]
    fn builtin_model_is_the_default() {
        let embedder = open(&EmbedderSettings::default()).unwrap().unwrap();
        assert!(embedder.space().starts_with("builtin/"));
        assert!(open(&EmbedderSettings { provider: Provider::None, ..EmbedderSettings::default() }).unwrap().is_none());
    }

    #[test]
    fn space_name_has_protocol_model_and_address() {
        let space = openai("http://localhost:1", Keys::default()).unwrap().unwrap().space().to_owned();
        assert_eq!(space, "openai/m at http://localhost:1/v1/embeddings");
        let provider =
            Provider::Ollama { url: Provider::OLLAMA_URL.to_owned(), model: "nomic-embed-text:latest".to_owned() };
        let settings = EmbedderSettings { provider, ..EmbedderSettings::default() };
        let space = open(&settings).unwrap().unwrap().space().to_owned();
        assert_eq!(space, "ollama/nomic-embed-text:latest/prefixed at http://localhost:11434/api/embed");
    }

    #[test]
    fn keys_are_not_sent_unencrypted() {
        assert!(
            matches!(openai("http://example.org", with_key()), Err(SettingsError::KeyInClear { host, .. }) if host == "example.org")
        );
        assert!(openai("https://example.org", with_key()).is_ok());
        assert!(openai("http://127.0.0.1:8080", with_key()).is_ok());
        assert!(openai("http://[::1]:8080/v1/", with_key()).is_ok());
    }

    #[test]
    fn openai_requires_a_key_and_invalid_urls_are_refused() {
        assert!(matches!(openai(Provider::OPENAI_URL, Keys::default()), Err(SettingsError::NoKey { .. })));
        let keys = Keys { openai: Some("secret".to_owned()), ..Keys::default() };
        assert!(openai(Provider::OPENAI_URL, keys).is_ok());
        let keys = Keys { own: Some("two\nlines".to_owned()), ..Keys::default() };
        assert!(matches!(openai(Provider::OPENAI_URL, keys), Err(SettingsError::BadKey { .. })));
        for url in [
            "",
            "localhost:11434",
            "ftp://example.org",
            "https://",
            "https://me:secret@example.org",
            "https://a.b/?key=secret",
        ] {
            let error = openai(url, Keys::default()).err().unwrap().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
