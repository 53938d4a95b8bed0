//! Batches: several messages in one line, answered in one line. Only protocol 2025-03-26 has them.
//!
//! One batch is processed at a time, and nothing after it is read meanwhile. Its responses are kept until the last one is
//! ready, so their number and bytes are limited, well below the limit for unsent responses.

use std::collections::HashSet;

use rmcp::model::RequestId;
use serde_json::Value;

use super::message::MessageRefusal;
use crate::service::ResponseBytes;

/// Messages in one batch.
pub(super) const MAX_MESSAGES: usize = 100;

/// Bytes of all responses to one batch.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// A batch with requests that have no response yet.
#[derive(Default)]
pub(super) struct Batch {
    unanswered: HashSet<RequestId>,
    answers: Vec<Vec<u8>>,
    bytes: usize,
    held: Vec<ResponseBytes>,
    /// Whether `line` has returned the responses.
    is_leaving: bool,
}

impl Batch {
    pub(super) fn expect(&mut self, id: RequestId) {
        self.unanswered.insert(id);
    }

    pub(super) fn expects(&self, id: &RequestId) -> bool {
        self.unanswered.contains(id)
    }

    /// Removes a cancelled request.
    pub(super) fn forget(&mut self, id: &RequestId) {
        self.unanswered.remove(id);
    }

    pub(super) fn refuse(&mut self, refusal: MessageRefusal) {
        self.answers.push(refusal.into_json().to_string().into_bytes());
    }

    pub(super) fn answer(&mut self, id: RequestId, answer: Vec<u8>, held: Option<ResponseBytes>) {
        self.unanswered.remove(&id);
        if self.bytes + answer.len() > MAX_BYTES {
            let message = "the responses to this batch are too long together; send the requests one by one";
            return self.refuse(MessageRefusal::invalid_request(Some(id), message));
        }
        self.bytes += answer.len();
        self.answers.push(answer);
        self.held.extend(held);
    }

    /// All responses as one line, returned once, when the last one is ready; empty for a batch without requests.
    pub(super) fn line(&mut self) -> Option<Vec<u8>> {
        if self.is_leaving || !self.unanswered.is_empty() {
            return None;
        }
        self.is_leaving = true;
        let answers = std::mem::take(&mut self.answers);
        if answers.is_empty() {
            return Some(Vec::new());
        }
        let mut line = answers.join(&b',');
        line.insert(0, b'[');
        line.extend_from_slice(b"]\n");
        Some(line)
    }
}

/// Why a batch is rejected: too many messages, or one that batches may not contain.
pub(super) fn fault_of(messages: &[Value]) -> Option<String> {
    if messages.is_empty() {
        Some("a batch has at least one message".to_owned())
    } else if messages.len() > MAX_MESSAGES {
        Some(format!("a batch has at most {MAX_MESSAGES} messages"))
    } else if messages.iter().any(|message| message["method"] == "initialize") {
        Some("`initialize` cannot be part of a batch".to_owned())
    } else {
        None
    }
}
