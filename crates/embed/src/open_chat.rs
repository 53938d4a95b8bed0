//! Creates a language model from settings. The first request connects to the provider.

use std::sync::Arc;
use std::time::Duration;

use quipu_core::ports::TextModel;

use crate::open::{SettingsError, checked_key};
use crate::remote::{Address, ChatModel, ChatProtocol};
use crate::{Keys, Purpose};

/// The server of a language model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatProvider {
    pub kind: ChatKind,
    pub url: String,
    pub model: String,
}

/// The protocol of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChatKind {
    /// `POST {url}/api/chat`
    Ollama,
    /// `POST {url}/v1/chat/completions`, OpenAI or a compatible server.
    OpenAi,
    /// `POST {url}/v1/messages`
    Anthropic,
}

impl ChatKind {
    /// The address where the settings name none.
    pub fn default_url(self) -> &'static str {
        match self {
            Self::Ollama => crate::Provider::OLLAMA_URL,
            Self::OpenAi => crate::Provider::OPENAI_URL,
            Self::Anthropic => "https://api.anthropic.com",
        }
    }
}

/// Timeouts of a language model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChatTimeouts {
    /// For a connection. 2 seconds.
    pub connect: Duration,
    /// For an answer, retries included. 45 seconds: a client is waiting, and many give up after 60.
    pub answer: Duration,
    /// After a failure, calls fail at once for this long. 30 seconds.
    pub pause: Duration,
}

impl Default for ChatTimeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(2), answer: Duration::from_secs(45), pause: Duration::from_secs(30) }
    }
}

/// Creates the configured language model.
pub fn open_chat(
    provider: &ChatProvider,
    keys: &Keys,
    timeouts: ChatTimeouts,
) -> Result<Arc<dyn TextModel>, SettingsError> {
    let protocol = match provider.kind {
        ChatKind::Ollama => ChatProtocol::Ollama,
        ChatKind::OpenAi => ChatProtocol::OpenAi,
        ChatKind::Anthropic => ChatProtocol::Anthropic,
    };
    let address = Address::parse(&provider.url, |path| protocol.endpoint(path))
        .map_err(|error| SettingsError::Address(Purpose::Llm, error))?;
    let model = provider.model.trim();
    if model.is_empty() {
        return Err(SettingsError::NoModel(Purpose::Llm));
    }
    let key = checked_key(Purpose::Llm, &address, keys)?;
    Ok(Arc::new(ChatModel::new(protocol, address, model, key, timeouts)))
}
