//! Settings to an embedder. Nothing is loaded and nobody is asked yet: that is for the first text.

use std::sync::Arc;
use std::time::Duration;

use quipu_core::ports::Embedder;

use crate::Builtin;
use crate::remote::{Address, AddressError, Protocol, Remote};

/// Who turns texts into vectors.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Provider {
    /// Nobody: there is no search by meaning.
    None,
    /// The model inside the program.
    #[default]
    Builtin,
    /// An Ollama server: `POST {url}/api/embed`.
    Ollama { url: String, model: String },
    /// OpenAI, or a server that speaks as it does: `POST {url}/v1/embeddings`.
    OpenAi { url: String, model: String },
}

impl Provider {
    /// Where Ollama listens when it is not told otherwise.
    pub const OLLAMA_URL: &str = "http://localhost:11434";
    /// Reads what the builtin model cannot: a hundred languages, long texts.
    pub const OLLAMA_MODEL: &str = "bge-m3";
    pub const OPENAI_URL: &str = "https://api.openai.com";
    pub const OPENAI_MODEL: &str = "text-embedding-3-small";
}

/// Whether a provider's url leads to this very machine. One that is no url does not.
pub fn is_on_this_machine(url: &str) -> bool {
    Address::parse(url, Protocol::OpenAi).is_ok_and(|address| address.is_loopback())
}

/// The keys that a provider may ask for. They come from the environment alone, and are neither printed nor logged.
#[derive(Clone, Default)]
pub struct Keys {
    /// `QUIPU_EMBEDDING_KEY`: for whichever provider is configured.
    pub embedding: Option<String>,
    /// `OPENAI_API_KEY`: for api.openai.com alone, since it was not set for anybody else.
    pub openai: Option<String>,
}

impl Keys {
    pub fn from_environment() -> Self {
        let key = |name: &str| std::env::var(name).ok().filter(|key| !key.is_empty());
        Self { embedding: key("QUIPU_EMBEDDING_KEY"), openai: key("OPENAI_API_KEY") }
    }
}

/// How long a provider elsewhere is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// For a connection. 2 seconds.
    pub connect: Duration,
    /// For a query's vector, retries included. Somebody is waiting. 10 seconds.
    pub query: Duration,
    /// For a batch of passages, retries included: nobody is waiting, and a server may have to load its model. 60 seconds.
    pub passages: Duration,
    /// After a failure, calls fail at once for this long, so that a provider that is down slows nothing down. 5 seconds.
    pub pause: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(2),
            query: Duration::from_secs(10),
            passages: Duration::from_secs(60),
            pause: Duration::from_secs(5),
        }
    }
}

/// What [`open`] wants to know.
#[derive(Clone, Default)]
pub struct Settings {
    pub provider: Provider,
    pub keys: Keys,
    pub patience: Patience,
}

/// Settings that no embedder can be made of.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the embedding url cannot be used: {0}")]
    Address(#[from] AddressError),
    #[error("no embedding model is named; set `model`")]
    NoModel,
    #[error("api.openai.com wants a key; set QUIPU_EMBEDDING_KEY or OPENAI_API_KEY in the environment")]
    NoKey,
    #[error("the embedding key would travel unencrypted to {host}; use https, or unset QUIPU_EMBEDDING_KEY")]
    KeyInClear { host: String },
    #[error("the embedding key has characters that cannot be sent; look at QUIPU_EMBEDDING_KEY and OPENAI_API_KEY")]
    BadKey,
}

/// The embedder that the settings describe; none for [`Provider::None`].
pub fn open(settings: &Settings) -> Result<Option<Arc<dyn Embedder>>, OpenError> {
    let (protocol, url, model) = match &settings.provider {
        Provider::None => return Ok(None),
        Provider::Builtin => return Ok(Some(Arc::new(Builtin::new()))),
        Provider::Ollama { url, model } => (Protocol::Ollama, url, model),
        Provider::OpenAi { url, model } => (Protocol::OpenAi, url, model),
    };
    let address = Address::parse(url, protocol)?;
    if model.trim().is_empty() {
        return Err(OpenError::NoModel);
    }
    let at_openai = address.host() == "api.openai.com";
    let key = settings.keys.embedding.as_ref().or(settings.keys.openai.as_ref().filter(|_| at_openai));
    match key {
        None if at_openai => return Err(OpenError::NoKey),
        Some(_) if !address.is_private() => return Err(OpenError::KeyInClear { host: address.host().to_owned() }),
        Some(key) if !key.bytes().all(|byte| byte.is_ascii_graphic()) => return Err(OpenError::BadKey),
        _ => {}
    }
    Ok(Some(Arc::new(Remote::new(protocol, address, model.trim(), key.cloned(), settings.patience))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn openai(url: &str, keys: Keys) -> Result<Option<Arc<dyn Embedder>>, OpenError> {
        let provider = Provider::OpenAi { url: url.to_owned(), model: "m".to_owned() };
        open(&Settings { provider, keys, ..Settings::default() })
    }

    fn with_key() -> Keys {
        Keys { embedding: Some("secret".to_owned()), openai: None }
    }

    #[test]
    fn the_builtin_model_is_the_default() {
        let embedder = open(&Settings::default()).unwrap().unwrap();
        assert!(embedder.space().starts_with("builtin/"));
        assert!(open(&Settings { provider: Provider::None, ..Settings::default() }).unwrap().is_none());
    }

    #[test]
    fn a_space_is_named_by_protocol_model_and_address() {
        let space = openai("http://localhost:1", Keys::default()).unwrap().unwrap().space().to_owned();
        assert_eq!(space, "openai/m at http://localhost:1/v1/embeddings");
        let provider =
            Provider::Ollama { url: Provider::OLLAMA_URL.to_owned(), model: "nomic-embed-text:latest".to_owned() };
        let settings = Settings { provider, ..Settings::default() };
        let space = open(&settings).unwrap().unwrap().space().to_owned();
        assert_eq!(space, "ollama/nomic-embed-text:latest/prefixed at http://localhost:11434/api/embed");
    }

    #[test]
    fn keys_do_not_leave_in_the_clear() {
        assert!(
            matches!(openai("http://example.org", with_key()), Err(OpenError::KeyInClear { host }) if host == "example.org")
        );
        assert!(openai("https://example.org", with_key()).is_ok());
        assert!(openai("http://127.0.0.1:8080", with_key()).is_ok());
        assert!(openai("http://[::1]:8080/v1/", with_key()).is_ok());
    }

    #[test]
    fn openai_wants_a_key_and_bad_addresses_are_refused() {
        assert!(matches!(openai(Provider::OPENAI_URL, Keys::default()), Err(OpenError::NoKey)));
        let keys = Keys { embedding: None, openai: Some("secret".to_owned()) };
        assert!(openai(Provider::OPENAI_URL, keys).is_ok());
        let keys = Keys { embedding: Some("two\nlines".to_owned()), openai: None };
        assert!(matches!(openai(Provider::OPENAI_URL, keys), Err(OpenError::BadKey)));
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
