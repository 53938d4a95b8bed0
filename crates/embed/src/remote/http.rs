//! One request to a provider: limited in time and size, with retries where these may help.

use std::thread;
use std::time::{Duration, Instant};

use ureq::Agent;
use ureq::http::{HeaderMap, StatusCode};

use super::Address;
use super::error::{CallError, RemoteError};
use crate::Purpose;

/// The most characters of a server's own message in an error.
const MAX_MESSAGE_CHARS: usize = 200;

const FIRST_WAIT: Duration = Duration::from_millis(100);

pub(super) struct Http {
    agent: Agent,
    endpoint: String,
    headers: Vec<(&'static str, String)>,
    key: Option<String>,
    purpose: Purpose,
    max_response_bytes: u64,
}

/// How long and how often a request is tried.
#[derive(Clone, Copy)]
pub(super) struct Patience {
    pub(super) attempts: u32,
    /// All attempts together.
    pub(super) within: Duration,
}

/// Why one attempt failed.
enum AttemptError {
    Transient { error: RemoteError, retry_after: Option<Duration> },
    Permanent(CallError),
}

impl Http {
    pub(super) fn new(
        purpose: Purpose,
        address: Address,
        key: Option<String>,
        connect: Duration,
        max_response_bytes: u64,
    ) -> Self {
        let mut config = Agent::config_builder()
            .user_agent(concat!("quipu/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(connect))
            .http_status_as_error(false)
            // A redirect would send texts and key to an address that the user did not configure.
            .max_redirects(0);
        if address.is_loopback() {
            config = config.proxy(None);
        }
        Self {
            agent: config.build().into(),
            endpoint: address.endpoint,
            headers: key.iter().map(|key| ("authorization", format!("Bearer {key}"))).collect(),
            key,
            purpose,
            max_response_bytes,
        }
    }

    /// With these headers instead of `authorization`.
    pub(super) fn with_headers(self, headers: Vec<(&'static str, String)>) -> Self {
        Self { headers, ..self }
    }

    /// The body of the response to a JSON request.
    pub(super) fn post(&self, patience: Patience, request: &[u8]) -> Result<Vec<u8>, CallError> {
        let deadline = Instant::now() + patience.within;
        let mut wait = FIRST_WAIT;
        for attempt in 1.. {
            match self.attempt(request, deadline.saturating_duration_since(Instant::now())) {
                Ok(answer) => return Ok(answer),
                Err(AttemptError::Permanent(error)) => return Err(error),
                Err(AttemptError::Transient { error, retry_after }) => {
                    let wanted = retry_after.unwrap_or(wait);
                    if attempt == patience.attempts || Instant::now() + wanted >= deadline {
                        return Err(CallError::Broken { error, pause: retry_after });
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
        for (name, value) in &self.headers {
            post = post.header(*name, value);
        }
        let post = post.config().timeout_global(Some(within)).build();
        let mut answer = post.send(request).map_err(|error| self.attempt_error(&error))?;
        let read = answer.body_mut().with_config().limit(self.max_response_bytes).read_to_vec();
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
            Error::Timeout(_) => permanent(RemoteError::unavailable(format!("{endpoint} did not answer in time"))),
            Error::BodyExceedsLimit(limit) => {
                permanent(RemoteError::unusable(format!("the response of {endpoint} has more than {limit} bytes")))
            }
            Error::Io(_) | Error::ConnectionFailed | Error::HostNotFound | Error::Protocol(_) => {
                let message = format!("{endpoint} cannot be reached ({error}); is it running?");
                AttemptError::Transient { error: RemoteError::unavailable(message), retry_after: None }
            }
            _ => permanent(RemoteError::unavailable(format!("the request to {endpoint} failed ({error})"))),
        }
    }

    fn refusal(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> AttemptError {
        let message = format!("{} answered {status}", self.endpoint);
        let words = self.server_message(body);
        match status.as_u16() {
            // Without the server's message: some repeat the key.
            401 | 403 => {
                let advice = format!("check {} in the environment", self.purpose.key_variable());
                AttemptError::Permanent(CallError::unusable(format!("{message}; {advice}")))
            }
            300..=399 => {
                let advice = "redirects are not followed; set `url` to the address that it redirects to";
                AttemptError::Permanent(CallError::unusable(format!("{message}; {advice}")))
            }
            400 | 413 | 422 => {
                AttemptError::Permanent(CallError::Rejected(RemoteError::unusable(message).with_details(words)))
            }
            408 | 429 | 500..=599 => AttemptError::Transient {
                error: RemoteError::unavailable(message).with_details(words),
                retry_after: retry_after(headers),
            },
            _ => {
                let error = RemoteError::unusable(message).with_details(format!("{words}; check `url` and `model`"));
                AttemptError::Permanent(CallError::Broken { error, pause: None })
            }
        }
    }

    /// The server's error message: short, on one line, without the key.
    fn server_message(&self, body: &[u8]) -> String {
        let Ok(body) = serde_json::from_slice::<serde_json::Value>(body) else { return String::new() };
        let error = &body["error"];
        let Some(words) = error.as_str().or_else(|| error["message"].as_str()) else { return String::new() };
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        let words = self.key.as_ref().map_or_else(|| words.clone(), |key| words.replace(key, "***"));
        format!(": {}", words.chars().take(MAX_MESSAGE_CHARS).collect::<String>())
    }
}

/// The header in seconds; a date is ignored.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get("retry-after")?.to_str().ok()?.trim().parse::<u32>().ok()?;
    Some(Duration::from_secs(seconds.into()))
}
