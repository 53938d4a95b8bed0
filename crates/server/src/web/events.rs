//! `GET /api/events`: the trail as it grows, that texts of it were redacted, and when a graph was laid out, as server-sent events. Asked for by `fetch` with an
//! Authorization header: the browser's own EventSource cannot send one.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::answers::WebRefusal;
use super::{Explorer, caller_of, is_local};
use crate::service::{Caller, TrailEntry};
use crate::tokens::TokenScope;

/// How often the trail is looked at. Polled, since notifications are not possible: the owner may be another process, and may change.
const EVERY: Duration = Duration::from_millis(200);

/// After this many looks without news a comment shows that the connection is alive.
const QUIET: u32 = 50;

/// Events that wait for a slow reader; then the trail is not looked at until it has caught up.
const QUEUED: usize = 64;

pub(super) async fn events(State(explorer): State<Arc<Explorer>>, request: Request) -> Result<Response, WebRefusal> {
    let (caller, _) = caller_of(&request)?;
    let (events, read) = mpsc::channel(QUEUED);
    tokio::spawn(follow(explorer, caller, events));
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, Body::from_stream(ReceiverStream::new(read))).into_response())
}

/// Sends entries until the client disconnects.
async fn follow(explorer: Arc<Explorer>, caller: Caller, events: mpsc::Sender<Result<Bytes, Infallible>>) {
    let sees_reads = caller.scope == TokenScope::Admin || is_local(&caller);
    let mut looks = tokio::time::interval(EVERY);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut next = None;
    let mut clearings = None;
    let mut quiet = QUIET;
    let mut layouts = 0;
    loop {
        looks.tick().await;
        let asked = explorer.clone();
        let from = next.unwrap_or(0);
        let page = tokio::task::spawn_blocking(move || asked.service.vault().trail(from)).await;
        let mut text = String::new();
        if let Ok(Ok(page)) = page {
            // What others read is theirs; what they change concerns all.
            let shown = page.traces.iter().filter(|trace| sees_reads || trace.writes);
            next = match next {
                // A text was redacted: the page drops its own, and the next look sends what is left.
                _ if clearings.replace(page.clearings).is_some_and(|known| known != page.clearings) => {
                    write_event(&mut text, "cleared", &page.clearings);
                    None
                }
                Some(_) => {
                    shown.for_each(|trace| write_event(&mut text, "trace", trace));
                    Some(page.next)
                }
                // What happened before, in one piece: nothing is to be read again for it.
                None => {
                    write_event(&mut text, "history", &shown.collect::<Vec<&TrailEntry>>());
                    Some(page.next)
                }
            };
        }
        // A page that shows a draft asks again for the graph.
        let made = explorer.layouts.made();
        if made != layouts {
            layouts = made;
            write_event(&mut text, "layout", &made);
        }
        quiet += 1;
        if text.is_empty() && quiet < QUIET {
            if events.is_closed() {
                return;
            }
            continue;
        }
        quiet = 0;
        // A comment is a sign of life, and sends the headers when the stream begins.
        let text = if text.is_empty() { ":\n\n".to_owned() } else { text };
        if events.send(Ok(Bytes::from(text))).await.is_err() {
            return;
        }
    }
}

fn write_event(text: &mut String, name: &str, value: &impl Serialize) {
    if let Ok(data) = serde_json::to_string(value) {
        text.push_str(&format!("event: {name}\ndata: {data}\n\n"));
    }
}
