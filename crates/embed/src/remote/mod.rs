//! Remote providers over HTTP: an embedder, and in `chat` a language model. Each may be slow, down, or return an invalid
//! response; each of these becomes an error.

mod address;
mod answer;
mod chat;
mod circuit;
mod error;
mod http;
mod model;
mod protocol;

use quipu_core::ports::{EmbedError, Embedder, Role};
use std::borrow::Cow;

use crate::{Purpose, Timeouts};
use answer::Dimensions;
use circuit::CircuitBreaker;
use error::CallError;
use http::{Http, Patience};
use model::RemoteModel;

pub(crate) use address::Address;
pub use address::{ProviderAddressError, shown_url};
pub(crate) use chat::{ChatModel, ChatProtocol};
pub(crate) use protocol::Protocol;

/// Texts in a request.
const BATCH: usize = 32;

/// Longer texts are truncated: about 6,000 tokens of English, 8,000 of Japanese. Models read 512 to 8,192.
const MAX_BYTES: usize = 24_000;

/// A batch of 32 vectors of 16,384 dimensions with twenty characters a number fits.
const MAX_RESPONSE_BYTES: u64 = 16 << 20;

/// A refused text is truncated no further than this: the cause is not its length then.
const MIN_BYTES: usize = 512;

pub(crate) struct Remote {
    protocol: Protocol,
    model: RemoteModel,
    space: String,
    http: Http,
    circuit: CircuitBreaker,
    timeouts: Timeouts,
    dimensions: Dimensions,
}

impl Remote {
    pub(crate) fn new(
        protocol: Protocol,
        address: Address,
        model: &str,
        key: Option<String>,
        timeouts: Timeouts,
    ) -> Self {
        let model = RemoteModel::named(model);
        // With the address, since the same model name may mean different models on different servers.
        let prefixed = if model.passage_prefix.is_empty() { "" } else { "/prefixed" };
        let space = format!("{}/{}{prefixed} at {}", protocol.name(), model.name, address.endpoint);
        Self {
            protocol,
            space,
            model,
            http: Http::new(Purpose::Embedding, address, key, timeouts.connect, MAX_RESPONSE_BYTES),
            circuit: CircuitBreaker::new(Purpose::Embedding, timeouts.pause, timeouts.passages),
            timeouts,
            dimensions: Dimensions::default(),
        }
    }

    fn embed_batch(&self, role: Role, texts: &[Cow<'_, str>]) -> Result<Vec<Vec<f32>>, CallError> {
        let request = self.protocol.request(&self.model.name, texts);
        let patience = match role {
            Role::Query => Patience { attempts: 2, within: self.timeouts.query },
            Role::Passage => Patience { attempts: 4, within: self.timeouts.passages },
        };
        match self.http.post(patience, &request) {
            Ok(answer) => {
                let vectors = self.protocol.vectors(&answer).map_err(CallError::unusable)?;
                answer::check(vectors, texts.len(), &self.dimensions).map_err(CallError::unusable)
            }
            // A text may be too long for this server: try half of the texts, then half of the text.
            Err(CallError::Rejected(_)) if texts.len() > 1 => {
                let (left, right) = texts.split_at(texts.len() / 2);
                let mut vectors = self.embed_batch(role, left)?;
                vectors.extend(self.embed_batch(role, right)?);
                Ok(vectors)
            }
            Err(CallError::Rejected(_)) if texts[0].len() > MIN_BYTES => {
                self.embed_batch(role, &[Cow::Borrowed(&texts[0][..texts[0].floor_char_boundary(texts[0].len() / 2)])])
            }
            Err(error) => Err(error),
        }
    }
}

impl Embedder for Remote {
    fn space(&self) -> &str {
        &self.space
    }

    fn worth_beyond_english(&self) -> f32 {
        self.model.worth_beyond_english
    }

    /// Models differ, from 0.1 to 0.6. A value in the middle serves all, since only differences between hits count.
    fn unrelated(&self) -> f32 {
        0.35
    }

    fn embed(&self, role: Role, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let prefix = match role {
            Role::Query => self.model.query_prefix,
            Role::Passage => self.model.passage_prefix,
        };
        let texts: Vec<Cow<'_, str>> = texts.iter().map(|text| prepare(prefix, text)).collect();
        let mut vectors = Vec::with_capacity(texts.len());
        for batch in texts.chunks(BATCH) {
            vectors.extend(self.circuit.guard(|| self.embed_batch(role, batch))?);
        }
        Ok(vectors)
    }
}

/// The text as it is sent. Some providers refuse empty texts, so an empty one becomes a full stop.
fn prepare<'a>(prefix: &str, text: &'a str) -> Cow<'a, str> {
    let text = if text.trim().is_empty() { "." } else { &text[..text.floor_char_boundary(MAX_BYTES)] };
    if prefix.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(format!("{prefix}{text}")) }
}
