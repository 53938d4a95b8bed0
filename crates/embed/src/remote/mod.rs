//! An embedder elsewhere, asked over HTTP. It may be slow, down, or answer nonsense; none of that gets further than an error.

mod address;
mod answer;
mod circuit;
mod http;
mod model;
mod protocol;

use quipu_core::ports::{EmbedError, Embedder, Role};
use std::borrow::Cow;

use crate::Patience;
use answer::Dimensions;
use circuit::Circuit;
use http::{Failure, Http};
use model::Model;

pub(crate) use address::Address;
pub use address::AddressError;
pub(crate) use protocol::Protocol;

/// Texts that are sent at a time.
const BATCH: usize = 32;

/// A text is cut here: about 6,000 tokens of English, 8,000 of Japanese. Models read 512 to 8,192.
const MOST_BYTES: usize = 24_000;

/// A text that is refused is not cut below this; then the length is not what is wrong with it.
const LEAST_BYTES: usize = 512;

pub(crate) struct Remote {
    protocol: Protocol,
    model: Model,
    space: String,
    http: Http,
    circuit: Circuit,
    dimensions: Dimensions,
}

impl Remote {
    pub(crate) fn new(
        protocol: Protocol,
        address: Address,
        model: &str,
        key: Option<String>,
        patience: Patience,
    ) -> Self {
        let model = Model::named(model);
        // The address is part of it: what a name stands for is the server's own affair, and many take any name.
        let prefixed = if model.passage_prefix.is_empty() { "" } else { "/prefixed" };
        let space = format!("{}/{}{prefixed} at {}", protocol.name(), model.name, address.endpoint);
        Self {
            protocol,
            space,
            model,
            http: Http::new(address, key, patience),
            circuit: Circuit::new(patience),
            dimensions: Dimensions::default(),
        }
    }

    fn embed_batch(&self, role: Role, texts: &[Cow<'_, str>]) -> Result<Vec<Vec<f32>>, Failure> {
        let request = self.protocol.request(&self.model.name, texts);
        match self.http.post(role, &request) {
            Ok(answer) => {
                let vectors = self.protocol.vectors(&answer).map_err(Failure::unusable)?;
                answer::check(vectors, texts.len(), &self.dimensions).map_err(Failure::unusable)
            }
            // One of the texts may be longer than this server takes. Asking for fewer, then for less, finds out.
            Err(Failure::Rejected(_)) if texts.len() > 1 => {
                let (left, right) = texts.split_at(texts.len() / 2);
                let mut vectors = self.embed_batch(role, left)?;
                vectors.extend(self.embed_batch(role, right)?);
                Ok(vectors)
            }
            Err(Failure::Rejected(_)) if texts[0].len() > LEAST_BYTES => {
                self.embed_batch(role, &[Cow::Borrowed(beginning(&texts[0], texts[0].len() / 2))])
            }
            Err(failure) => Err(failure),
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

    /// Models differ, from 0.1 to 0.6. In the middle none is far off, since only the differences between hits count.
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

/// Some providers refuse to embed nothing, so an empty text is asked for as a full stop.
fn prepare<'a>(prefix: &str, text: &'a str) -> Cow<'a, str> {
    let text = if text.trim().is_empty() { "." } else { beginning(text, MOST_BYTES) };
    if prefix.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(format!("{prefix}{text}")) }
}

/// As many whole characters as fit.
fn beginning(text: &str, most_bytes: usize) -> &str {
    let mut end = most_bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
