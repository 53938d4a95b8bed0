//! A remote language model over HTTP. It may be slow, down, or answer nonsense; each of these becomes an error.

mod protocol;
mod question;

use std::sync::atomic::{AtomicUsize, Ordering};

use quipu_core::ports::{ModelText, NamedEntities, TextModel, TextModelError};
use serde::de::DeserializeOwned;

use super::Address;
use super::circuit::CircuitBreaker;
use super::error::{CallError, RemoteError};
use super::http::{Http, Patience};
use crate::{ChatTimeouts, Purpose};
use protocol::{NoAnswer, Question};
use question::{EntitiesAnswer, SummaryAnswer, TagsAnswer};

pub(crate) use protocol::ChatProtocol;

/// Far more than the longest answer.
const MAX_RESPONSE_BYTES: u64 = 1 << 20;

/// Requests at a time. Each occupies a worker of the server while it waits, and other calls need some too.
const MAX_CALLS: usize = 4;

pub(crate) struct ChatModel {
    protocol: ChatProtocol,
    model: String,
    http: Http,
    circuit: CircuitBreaker,
    patience: Patience,
    calls: AtomicUsize,
}

/// One of [`MAX_CALLS`], returned on drop.
struct Slot<'a>(&'a AtomicUsize);

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ChatModel {
    pub(crate) fn new(
        protocol: ChatProtocol,
        address: Address,
        model: &str,
        key: Option<String>,
        timeouts: ChatTimeouts,
    ) -> Self {
        let headers = protocol.headers(key.as_ref());
        let http = Http::new(Purpose::Llm, address, key, timeouts.connect, MAX_RESPONSE_BYTES);
        Self {
            protocol,
            model: model.to_owned(),
            http: http.with_headers(headers),
            circuit: CircuitBreaker::new(Purpose::Llm, timeouts.pause, timeouts.answer),
            patience: Patience { attempts: 2, within: timeouts.answer },
            calls: AtomicUsize::new(0),
        }
    }

    fn slot(&self) -> Result<Slot<'_>, RemoteError> {
        let slot = Slot(&self.calls);
        match self.calls.fetch_add(1, Ordering::Relaxed) < MAX_CALLS {
            true => Ok(slot),
            false => Err(RemoteError::unavailable(format!("{MAX_CALLS} requests are waiting for it already"))),
        }
    }

    fn ask<Answer: DeserializeOwned>(&self, question: &Question) -> Result<Answer, TextModelError> {
        let _slot = self.slot()?;
        let asked = self.circuit.guard(|| {
            let response = self.http.post(self.patience, &self.protocol.request(&self.model, question))?;
            let refused = |message: &str| CallError::Rejected(RemoteError::unusable(message.to_owned()));
            let answer = self.protocol.answer(&response).map_err(|why| match why {
                NoAnswer::Invalid(message) => CallError::unusable(message),
                NoAnswer::Refused(message) => refused(message),
            })?;
            serde_json::from_value(answer).map_err(|_| refused("the answer does not have the form that was asked for"))
        });
        Ok(asked?)
    }
}

impl TextModel for ChatModel {
    fn summarize(&self, note: ModelText<'_>, max_words: usize) -> Result<String, TextModelError> {
        Ok(self.ask::<SummaryAnswer>(&question::summary(note, max_words))?.summary)
    }

    fn choose_tags(&self, note: ModelText<'_>, tags: &[&str], limit: usize) -> Result<Vec<String>, TextModelError> {
        Ok(self.ask::<TagsAnswer>(&question::tags(note, tags, limit))?.tags)
    }

    fn name_entities(&self, note: ModelText<'_>, types: &[&str]) -> Result<NamedEntities, TextModelError> {
        Ok(self.ask::<EntitiesAnswer>(&question::entities(note, types))?.into())
    }
}
