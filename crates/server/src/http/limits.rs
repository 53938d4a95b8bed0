//! Limits per client: requests at a time, requests per second, and request bytes.
//!
//! A client is identified by its token, or else by its address. Workers and unread response bytes are limited by
//! [`Capacity::client_limits`].

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use http_body_util::BodyExt;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::mcp::MAX_BODY_BYTES;
use crate::service::{Capacity, RequestPermit, ResponseBudget, SMALL_REQUEST_BYTES};

/// Requests of one client in progress, streams included: a quarter of the default number of connections. All programs of one
/// machine may be one client.
const MAX_REQUESTS: usize = 256;

/// Bytes of requests that are being read, parsed or processed, of one client and of all. The total counts only what exceeds a
/// small request, so that a few clients that use it up do not block the requests of others.
const MAX_CLIENT_BYTES: usize = 128 * 1024 * 1024;
const MAX_ALL_BYTES: usize = 256 * 1024 * 1024;

/// How long a body may take, and how much longer per received byte.
const BODY_PATIENCE: Duration = Duration::from_secs(10);
const SLOWEST_BYTES_PER_SECOND: u64 = 16 * 1024;

/// JSON with deeper nesting or more values is rejected: no request of this protocol needs it.
const MAX_DEPTH: usize = 64;
const MAX_VALUES: usize = 500_000;

/// Bytes that a parsed value takes in memory, however short its text.
const BYTES_PER_VALUE: usize = 64;

/// Clients remembered; beyond this, idle ones are forgotten.
const MAX_CLIENTS: usize = 4096;

/// The clients seen so far.
pub(super) struct HttpClients {
    capacity: Arc<Capacity>,
    /// Requests a second; a burst may be twice as many.
    rate: Option<u32>,
    known: Mutex<HashMap<Arc<str>, Arc<HttpClient>>>,
    bytes: Arc<Semaphore>,
}

/// The present use of one client.
pub(super) struct HttpClient {
    pub(super) id: Arc<str>,
    pub(super) workers: Arc<Semaphore>,
    pub(super) budget: Arc<ResponseBudget>,
    requests: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    bucket: Mutex<Bucket>,
}

/// A token bucket.
pub(super) struct Bucket {
    left: f64,
    at: Instant,
}

/// Why a request is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Excess {
    /// Retry after this many seconds.
    TooMany(u64),
    TooLong,
    TooSlow,
    TooDeep,
    /// The client disconnected, or did not send valid HTTP.
    Broken,
}

/// A request's share of the limits, until it is dropped.
pub(super) struct Admitted {
    _client: Arc<HttpClient>,
    _request: OwnedSemaphorePermit,
}

/// A body that was read, and its share of the memory.
pub(super) struct ReadBody {
    pub(super) bytes: Bytes,
    pub(super) permit: RequestPermit,
}

/// The memory share of a request that is being read. It grows with the received bytes: an announced length reserves nothing.
struct RequestMemory {
    bytes: usize,
    of_client: OwnedSemaphorePermit,
    of_all: OwnedSemaphorePermit,
}

impl RequestMemory {
    fn new(client: &Arc<Semaphore>, all: &Arc<Semaphore>) -> Result<Self, Excess> {
        Ok(Self { bytes: 0, of_client: taken(client, 0)?, of_all: taken(all, 0)? })
    }

    fn grow(&mut self, bytes: usize) -> Result<(), Excess> {
        let beyond_small = |bytes: usize| bytes.saturating_sub(SMALL_REQUEST_BYTES);
        let shared = beyond_small(self.bytes + bytes) - beyond_small(self.bytes);
        self.of_client.merge(taken(self.of_client.semaphore(), bytes)?);
        self.of_all.merge(taken(self.of_all.semaphore(), shared)?);
        self.bytes += bytes;
        Ok(())
    }
}

fn taken(room: &Arc<Semaphore>, bytes: usize) -> Result<OwnedSemaphorePermit, Excess> {
    let bytes = u32::try_from(bytes).map_err(|_| Excess::TooLong)?;
    room.clone().try_acquire_many_owned(bytes).map_err(|_| Excess::TooMany(1))
}

impl HttpClients {
    pub(super) fn new(capacity: Arc<Capacity>, rate: Option<u32>) -> Self {
        Self { capacity, rate, known: Mutex::default(), bytes: Arc::new(Semaphore::new(MAX_ALL_BYTES)) }
    }

    pub(super) fn of(&self, id: &str) -> Arc<HttpClient> {
        let mut known = self.known.lock();
        if let Some(client) = known.get(id) {
            return client.clone();
        }
        if known.len() >= MAX_CLIENTS {
            known.retain(|_, client| Arc::strong_count(client) > 1);
        }
        let (workers, budget) = self.capacity.client_limits();
        let id: Arc<str> = id.into();
        let client = Arc::new(HttpClient {
            id: id.clone(),
            workers,
            budget,
            requests: Arc::new(Semaphore::new(MAX_REQUESTS)),
            bytes: Arc::new(Semaphore::new(MAX_CLIENT_BYTES)),
            bucket: Mutex::new(Bucket::full(self.rate.unwrap_or(0))),
        });
        known.insert(id, client.clone());
        client
    }

    /// Admits a request.
    pub(super) fn admit(&self, client: &Arc<HttpClient>) -> Result<Admitted, Excess> {
        if let Some(rate) = self.rate {
            client.bucket.lock().take(f64::from(rate), Instant::now())?;
        }
        let request = client.requests.clone().try_acquire_owned().map_err(|_| Excess::TooMany(1))?;
        Ok(Admitted { _client: client.clone(), _request: request })
    }

    /// Reads a body within the limits of length, time, nesting and values.
    pub(super) async fn read(
        &self,
        client: &HttpClient,
        headers: &HeaderMap,
        mut body: Body,
    ) -> Result<ReadBody, Excess> {
        let declared = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if declared.is_some_and(|length: usize| length > MAX_BODY_BYTES) {
            return Err(Excess::TooLong);
        }
        let mut room = RequestMemory::new(&client.bytes, &self.bytes)?;
        let start = Instant::now();
        let mut bytes = Vec::new();
        loop {
            let earned = Duration::from_millis(bytes.len() as u64 * 1000 / SLOWEST_BYTES_PER_SECOND);
            let frame = match timeout_at(start + BODY_PATIENCE + earned, body.frame()).await {
                Err(_) => return Err(Excess::TooSlow),
                Ok(None) => break,
                Ok(Some(frame)) => frame.map_err(|_| Excess::Broken)?,
            };
            let Some(data) = frame.data_ref() else { continue };
            if bytes.len() + data.len() > MAX_BODY_BYTES {
                return Err(Excess::TooLong);
            }
            room.grow(data.len())?;
            bytes.extend_from_slice(data);
        }
        room.grow(values(&bytes)? * BYTES_PER_VALUE)?;
        let permit = RequestPermit::of_request(room.bytes, vec![room.of_client, room.of_all]);
        Ok(ReadBody { bytes: bytes.into(), permit })
    }
}

impl Bucket {
    /// With room for a burst of twice the rate.
    pub(super) fn full(rate: u32) -> Self {
        Self { left: f64::from(rate) * 2.0, at: Instant::now() }
    }

    pub(super) fn take(&mut self, rate: f64, now: Instant) -> Result<(), Excess> {
        self.left = (self.left + rate * (now - self.at).as_secs_f64()).min(rate * 2.0);
        self.at = now;
        if self.left < 1.0 {
            return Err(Excess::TooMany(((1.0 - self.left) / rate).ceil().max(1.0) as u64));
        }
        self.left -= 1.0;
        Ok(())
    }
}

/// Approximate number of values in a JSON text, without parsing it: a few megabytes may hold millions.
fn values(text: &[u8]) -> Result<usize, Excess> {
    let (mut depth, mut values) = (0_usize, 1_usize);
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => {
                // To the end of the string; an escaped quote does not end it.
                while let Some(byte) = bytes.next() {
                    match byte {
                        b'\\' => drop(bytes.next()),
                        b'"' => break,
                        _ => {}
                    }
                }
            }
            b'[' | b'{' => {
                depth += 1;
                values += 1;
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' => values += 1,
            _ => {}
        }
        if depth > MAX_DEPTH || values > MAX_VALUES {
            return Err(Excess::TooDeep);
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_of_strings() {
        assert_eq!(values(br#"{"a": "[[[,,,\"[", "b": [1, 2, {}]}"#), Ok(1 + 3 + 3));
        assert_eq!(values(b"\"unfinished [[["), Ok(1));
        assert_eq!(values(b""), Ok(1));
        assert_eq!(values("[".repeat(MAX_DEPTH).as_bytes()), Ok(1 + MAX_DEPTH));
        assert_eq!(values("[".repeat(MAX_DEPTH + 1).as_bytes()), Err(Excess::TooDeep));
        assert_eq!(values("[]".repeat(1000).as_bytes()), Ok(1001), "side by side is not nested");
        assert_eq!(values(format!("[{}0]", "0,".repeat(MAX_VALUES)).as_bytes()), Err(Excess::TooDeep));
    }

    #[test]
    fn body_memory_is_reserved_as_it_arrives_and_small_bodies_use_the_client_share() {
        let (client, all) = (Arc::new(Semaphore::new(1_000_000)), Arc::new(Semaphore::new(1_000_000)));
        let left = || (1_000_000 - client.available_permits(), 1_000_000 - all.available_permits());
        let mut room = RequestMemory::new(&client, &all).unwrap();
        assert_eq!(left(), (0, 0), "nothing has come");
        room.grow(SMALL_REQUEST_BYTES).unwrap();
        assert_eq!(left(), (SMALL_REQUEST_BYTES, 0));
        room.grow(1000).unwrap();
        assert_eq!(left(), (SMALL_REQUEST_BYTES + 1000, 1000));
        assert_eq!(room.grow(1_000_000), Err(Excess::TooMany(1)));
        let permit = RequestPermit::of_request(room.bytes, vec![room.of_client, room.of_all]);
        permit.release_request();
        assert_eq!(left(), (0, 0), "given back before it is dropped");
    }

    #[test]
    fn bucket_allows_a_burst_and_then_the_rate() {
        let start = Instant::now();
        let mut bucket = Bucket { left: 20.0, at: start };
        let mut taken = |second: u64| {
            let now = start + Duration::from_secs(second);
            (0..100).filter(|_| bucket.take(10.0, now).is_ok()).count()
        };
        assert_eq!([taken(0), taken(1), taken(60)], [20, 10, 20]);
        assert_eq!(Bucket { left: 0.0, at: start }.take(0.25, start), Err(Excess::TooMany(4)));
    }
}
