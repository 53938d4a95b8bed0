//! One request to a provider: limited in time and size, with retries where these may help.

use std::thread;
use std::time::{Duration, Instant};

use quipu_core::ports::{EmbedError, Role};
use ureq::Agent;
use ureq::http::{HeaderMap, StatusCode};

use super::Address;
use crate::Timeouts;

/// A batch of 32 vectors of 16,384 dimensions with twenty characters a number fits.
const MAX_RESPONSE_BYTES: u64 = 16 << 20;

/// The most characters of a server's own message in an error.
const MAX_MESSAGE_CHARS: usize = 200;

const FIRST_WAIT: Duration = Duration::from_millis(100);

pub(super) struct Http {
    agent: Agent,
    endpoint: String,
    authorization: Option<String>,
    timeouts: Timeouts,
}

/// Why there is no response.
pub(super) enum CallError {
    /// A retry at once does not help. The server may have said when to retry.
    Broken { error: EmbedError, pause: Option<Duration> },
    /// The server refuses these texts; it may accept others.
    Rejected(String),
}

impl CallError {
    pub(super) fn unusable(message: String) -> Self {
        Self::Broken { error: EmbedError::Unusable(message), pause: None }
    }
}

/// Why one attempt failed.
enum AttemptError {
    Transient { message: String, retry_after: Option<Duration> },
    Permanent(CallError),
}

impl Http {
    pub(super) fn new(address: Address, key: Option<String>, timeouts: Timeouts) -> Self {
        let mut config = Agent::config_builder()
            .user_agent(concat!("quipu/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(timeouts.connect))
            .http_status_as_error(false)
            // A redirect would send texts and key to an address that the user did not configure.
            .max_redirects(0);
        if address.is_loopback() {
            config = config.proxy(None);
        }
        Self {
            agent: config.build().into(),
            endpoint: address.endpoint,
            authorization: key.map(|key| format!("Bearer {key}")),
            timeouts,
        }
    }

    /// The body of the response to a JSON request.
    pub(super) fn post(&self, role: Role, request: &[u8]) -> Result<Vec<u8>, CallError> {
        let (attempts, timeouts) = match role {
            Role::Query => (2, self.timeouts.query),
            Role::Passage => (4, self.timeouts.passages),
        };
        let deadline = Instant::now() + timeouts;
        let mut wait = FIRST_WAIT;
        for attempt in 1.. {
            match self.attempt(request, deadline.saturating_duration_since(Instant::now())) {
                Ok(answer) => return Ok(answer),
                Err(AttemptError::Permanent(error)) => return Err(error),
                Err(AttemptError::Transient { message, retry_after }) => {
                    let wanted = retry_after.unwrap_or(wait);
                    if attempt == attempts || Instant::now() + wanted >= deadline {
                        return Err(CallError::Broken { error: EmbedError::Unavailable(message), pause: retry_after });
                    }
                    thread::sleep(wanted);
                    wait *= 4;
                }
            }
        }
        unreachable!("the last attempt returns")
    }

    fn attempt(&self, request: &[u8], within: Duration) -> Result<Vec<u8>, AttemptError> {
        let mut post = self.agent.post(&self.endpoint).header("content-type", "application/json");
        if let Some(authorization) = &self.authorization {
            post = post.header("authorization", authorization);
        }
        let post = post.config().timeout_global(Some(within)).build();
        let mut answer = post.send(request).map_err(|error| self.attempt_error(&error))?;
        let read = answer.body_mut().with_config().limit(MAX_RESPONSE_BYTES).read_to_vec();
        match answer.status() {
            StatusCode::OK => read.map_err(|error| self.attempt_error(&error)),
            status => Err(self.refusal(status, answer.headers(), &read.unwrap_or_default())),
        }
    }

    fn attempt_error(&self, error: &ureq::Error) -> AttemptError {
        use ureq::Error;
        let endpoint = &self.endpoint;
        let permanent = |error| AttemptError::Permanent(CallError::Broken { error, pause: None });
        match error {
            // Retries make a slow server slower.
            Error::Timeout(_) => permanent(EmbedError::Unavailable(format!("{endpoint} did not answer in time"))),
            Error::BodyExceedsLimit(limit) => {
                permanent(EmbedError::Unusable(format!("the response of {endpoint} has more than {limit} bytes")))
            }
            Error::Io(_) | Error::ConnectionFailed | Error::HostNotFound | Error::Protocol(_) => {
                AttemptError::Transient {
                    message: format!("{endpoint} cannot be reached ({error}); is it running?"),
                    retry_after: None,
                }
            }
            _ => permanent(EmbedError::Unavailable(format!("the request to {endpoint} failed ({error})"))),
        }
    }

    fn refusal(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> AttemptError {
        let endpoint = &self.endpoint;
        let words = self.server_message(body);
        let message = format!("{endpoint} answered {status}{words}");
        match status.as_u16() {
            // Without the server's message: some repeat the key.
            401 | 403 => {
                let advice = "check QUIPU_EMBEDDING_KEY in the environment";
                AttemptError::Permanent(CallError::unusable(format!("{endpoint} answered {status}; {advice}")))
            }
            300..=399 => {
                let advice = "redirects are not followed; set `url` to the address that it redirects to";
                AttemptError::Permanent(CallError::unusable(format!("{endpoint} answered {status}; {advice}")))
            }
            400 | 413 | 422 => AttemptError::Permanent(CallError::Rejected(message)),
            408 | 429 | 500..=599 => AttemptError::Transient { message, retry_after: retry_after(headers) },
            _ => AttemptError::Permanent(CallError::unusable(format!("{message}; check `url` and `model`"))),
        }
    }

    /// The server's error message: short, on one line, without the key.
    fn server_message(&self, body: &[u8]) -> String {
        let Ok(body) = serde_json::from_slice::<serde_json::Value>(body) else { return String::new() };
        let error = &body["error"];
        let Some(words) = error.as_str().or_else(|| error["message"].as_str()) else { return String::new() };
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        let key = self.authorization.as_ref().and_then(|authorization| authorization.strip_prefix("Bearer "));
        let words = key.map_or_else(|| words.clone(), |key| words.replace(key, "***"));
        format!(": {}", words.chars().take(MAX_MESSAGE_CHARS).collect::<String>())
    }
}

/// The header in seconds; a date is ignored.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get("retry-after")?.to_str().ok()?.trim().parse::<u32>().ok()?;
    Some(Duration::from_secs(seconds.into()))
}
