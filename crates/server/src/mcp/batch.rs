//! Several messages in one line, which only protocol 2025-03-26 knows: their answers leave as one line, too.
//!
//! One batch is worked on at a time, and nothing behind it is read meanwhile. Its answers are held until the last is
//! made, so they are few and their bytes bounded well below what may be unsent: the others always find room to begin.

use std::collections::HashSet;

use rmcp::model::RequestId;
use serde_json::Value;

use super::message::Refusal;
use crate::service::ResponseBytes;

/// Messages in one batch.
pub(super) const MAX_MESSAGES: usize = 100;

/// Bytes of all answers to one batch.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// A batch that has unanswered requests.
#[derive(Default)]
pub(super) struct Batch {
    unanswered: HashSet<RequestId>,
    answers: Vec<Vec<u8>>,
    bytes: usize,
    held: Vec<ResponseBytes>,
    /// The line was given away.
    is_leaving: bool,
}

impl Batch {
    pub(super) fn expect(&mut self, id: RequestId) {
        self.unanswered.insert(id);
    }

    pub(super) fn expects(&self, id: &RequestId) -> bool {
        self.unanswered.contains(id)
    }

    /// A request that was called off.
    pub(super) fn forget(&mut self, id: &RequestId) {
        self.unanswered.remove(id);
    }

    pub(super) fn refuse(&mut self, refusal: Refusal) {
        self.answers.push(refusal.into_json().to_string().into_bytes());
    }

    pub(super) fn answer(&mut self, id: RequestId, answer: Vec<u8>, held: Option<ResponseBytes>) {
        self.unanswered.remove(&id);
        if self.bytes + answer.len() > MAX_BYTES {
            let message = "the responses to this batch are too long together; send the requests one by one";
            return self.refuse(Refusal::invalid_request(Some(id), message));
        }
        self.bytes += answer.len();
        self.answers.push(answer);
        self.held.extend(held);
    }

    /// All answers as one line, once there are all, and only once; an empty one when nothing was asked.
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

/// What a batch may not hold.
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
