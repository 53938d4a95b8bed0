//! One request to a provider: bounded in time and size, tried again where that may help.

use std::thread;
use std::time::{Duration, Instant};

use quipu_core::ports::{EmbedError, Role};
use ureq::Agent;
use ureq::http::{HeaderMap, StatusCode};

use super::Address;
use crate::Patience;

/// A batch of 32 vectors of 16,384 dimensions, twenty characters a number, fits.
const MOST_ANSWER_BYTES: u64 = 16 << 20;

/// The most of a server's own words that an error repeats.
const MOST_WORDS: usize = 200;

const FIRST_WAIT: Duration = Duration::from_millis(100);

pub(super) struct Http {
    agent: Agent,
    endpoint: String,
    authorization: Option<String>,
    patience: Patience,
}

/// Why there is no answer.
pub(super) enum Failure {
    /// Nothing will come of asking again at once. The server may have said when.
    Broken { error: EmbedError, pause: Option<Duration> },
    /// The server will not take these texts; it may take others.
    Rejected(String),
}

impl Failure {
    pub(super) fn unusable(message: String) -> Self {
        Self::Broken { error: EmbedError::Unusable(message), pause: None }
    }
}

/// Why one attempt came to nothing.
enum Trouble {
    MayPass { message: String, retry_after: Option<Duration> },
    Lasting(Failure),
}

impl Http {
    pub(super) fn new(address: Address, key: Option<String>, patience: Patience) -> Self {
        let mut config = Agent::config_builder()
            .user_agent(concat!("quipu/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(patience.connect))
            .http_status_as_error(false)
            // A redirect would take texts and key to where nobody sent them.
            .max_redirects(0);
        if address.is_loopback() {
            config = config.proxy(None);
        }
        Self {
            agent: config.build().into(),
            endpoint: address.endpoint,
            authorization: key.map(|key| format!("Bearer {key}")),
            patience,
        }
    }

    /// The body of the answer to a request in JSON.
    pub(super) fn post(&self, role: Role, request: &[u8]) -> Result<Vec<u8>, Failure> {
        let (attempts, patience) = match role {
            Role::Query => (2, self.patience.query),
            Role::Passage => (4, self.patience.passages),
        };
        let deadline = Instant::now() + patience;
        let mut wait = FIRST_WAIT;
        for attempt in 1.. {
            match self.attempt(request, deadline.saturating_duration_since(Instant::now())) {
                Ok(answer) => return Ok(answer),
                Err(Trouble::Lasting(failure)) => return Err(failure),
                Err(Trouble::MayPass { message, retry_after }) => {
                    let wanted = retry_after.unwrap_or(wait);
                    if attempt == attempts || Instant::now() + wanted >= deadline {
                        return Err(Failure::Broken { error: EmbedError::Unavailable(message), pause: retry_after });
                    }
                    thread::sleep(wanted);
                    wait *= 4;
                }
            }
        }
        unreachable!("the last attempt returns")
    }

    fn attempt(&self, request: &[u8], within: Duration) -> Result<Vec<u8>, Trouble> {
        let mut post = self.agent.post(&self.endpoint).header("content-type", "application/json");
        if let Some(authorization) = &self.authorization {
            post = post.header("authorization", authorization);
        }
        let post = post.config().timeout_global(Some(within)).build();
        let mut answer = post.send(request).map_err(|error| self.trouble(&error))?;
        let read = answer.body_mut().with_config().limit(MOST_ANSWER_BYTES).read_to_vec();
        match answer.status() {
            StatusCode::OK => read.map_err(|error| self.trouble(&error)),
            status => Err(self.refusal(status, answer.headers(), &read.unwrap_or_default())),
        }
    }

    fn trouble(&self, error: &ureq::Error) -> Trouble {
        use ureq::Error;
        let endpoint = &self.endpoint;
        let lasting = |error| Trouble::Lasting(Failure::Broken { error, pause: None });
        match error {
            // Asking a slow server again makes it slower.
            Error::Timeout(_) => lasting(EmbedError::Unavailable(format!("{endpoint} did not answer in time"))),
            Error::BodyExceedsLimit(limit) => {
                lasting(EmbedError::Unusable(format!("{endpoint} answered with more than {limit} bytes")))
            }
            Error::Io(_) | Error::ConnectionFailed | Error::HostNotFound | Error::Protocol(_) => Trouble::MayPass {
                message: format!("{endpoint} cannot be reached ({error}); is it running?"),
                retry_after: None,
            },
            _ => lasting(EmbedError::Unavailable(format!("{endpoint} cannot be asked ({error})"))),
        }
    }

    fn refusal(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Trouble {
        let endpoint = &self.endpoint;
        let words = self.words(body);
        let message = format!("{endpoint} answered {status}{words}");
        match status.as_u16() {
            // No words of the server's here: some repeat the key.
            401 | 403 => {
                let advice = "check QUIPU_EMBEDDING_KEY in the environment";
                Trouble::Lasting(Failure::unusable(format!("{endpoint} answered {status}; {advice}")))
            }
            300..=399 => {
                let advice = "redirects are not followed, set `url` to where it leads";
                Trouble::Lasting(Failure::unusable(format!("{endpoint} answered {status}; {advice}")))
            }
            400 | 413 | 422 => Trouble::Lasting(Failure::Rejected(message)),
            408 | 429 | 500..=599 => Trouble::MayPass { message, retry_after: retry_after(headers) },
            _ => Trouble::Lasting(Failure::unusable(format!("{message}; check `url` and `model`"))),
        }
    }

    /// What a server says about its refusal, short, on one line and without the key.
    fn words(&self, body: &[u8]) -> String {
        let Ok(body) = serde_json::from_slice::<serde_json::Value>(body) else { return String::new() };
        let error = &body["error"];
        let Some(words) = error.as_str().or_else(|| error["message"].as_str()) else { return String::new() };
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        let key = self.authorization.as_ref().and_then(|authorization| authorization.strip_prefix("Bearer "));
        let words = key.map_or_else(|| words.clone(), |key| words.replace(key, "***"));
        format!(": {}", words.chars().take(MOST_WORDS).collect::<String>())
    }
}

/// In seconds; dates are not understood, and then the usual wait is kept.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get("retry-after")?.to_str().ok()?.trim().parse::<u32>().ok()?;
    Some(Duration::from_secs(seconds.into()))
}
