//! Change notifications: one sender, and a queue per subscribed client.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use quipu_core::model::{NoteId, VaultPath};
use quipu_tools::{Registry, echoed};
use rmcp::RoleServer;
use rmcp::model::{ErrorData, ResourceUpdatedNotificationParam};
use rmcp::service::{Peer, SubscriptionSink};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::time::Instant;

use crate::service::{SMALL_REQUEST_BYTES, VaultChange};

/// Changes that a slow listener may lag behind; beyond that it is notified that anything may have changed.
const QUEUED: usize = 64;

/// How long to wait for further changes, so that a checkout of a thousand files is not a thousand notifications.
const GATHER: Duration = Duration::from_millis(100);

/// Notes that one client may subscribe to, and the length of all its URIs together, which are kept as long as the subscription.
const MAX_FOLLOWED: usize = 1000;
const MAX_FOLLOWED_BYTES: usize = SMALL_REQUEST_BYTES;

/// Above the URI of any note: an id, which is in normal form, can be three times as long as its path, and is percent-encoded.
const MAX_URI_BYTES: usize = 3 * 3 * VaultPath::MAX_BYTES + 100;

/// Sends changes to all listeners.
pub(super) struct ChangeNotices(broadcast::Sender<Arc<VaultChange>>);

impl Default for ChangeNotices {
    fn default() -> Self {
        Self(broadcast::Sender::new(QUEUED))
    }
}

impl ChangeNotices {
    /// Sends a change to the listeners, if there are any.
    pub(super) fn tell(&self, change: VaultChange) {
        // The only error is that there is no listener.
        drop(self.0.send(Arc::new(change)));
    }

    pub(super) fn listen(&self) -> ChangeFeed {
        ChangeFeed(self.0.subscribe())
    }
}

/// The notes that a client subscribed to, with the URIs it used.
#[derive(Default)]
pub(super) struct FollowedNotes(Mutex<HashMap<NoteId, Vec<String>>>);

impl FollowedNotes {
    /// Keeps the URIs that one client can subscribe to.
    pub(super) fn acceptable(uris: Vec<String>) -> Vec<String> {
        uris.into_iter().filter(|uri| note_of(uri).is_ok()).take(MAX_FOLLOWED).collect()
    }

    /// Subscribes to a URI, even of a note that does not exist yet.
    pub(super) fn add(&self, uri: &str) -> Result<(), ErrorData> {
        let note = note_of(uri)?;
        let mut followed = self.0.lock();
        if followed.values().map(Vec::len).sum::<usize>() >= MAX_FOLLOWED {
            let message = format!("cannot subscribe to more than {MAX_FOLLOWED} notes; unsubscribe from one first");
            return Err(ErrorData::invalid_params(message, None));
        }
        if followed.values().flatten().map(String::len).sum::<usize>() + uri.len() > MAX_FOLLOWED_BYTES {
            let message = format!(
                "cannot subscribe to URIs of more than {MAX_FOLLOWED_BYTES} bytes together; unsubscribe from one first"
            );
            return Err(ErrorData::invalid_params(message, None));
        }
        let uris = followed.entry(note).or_default();
        if !uris.iter().any(|known| known == uri) {
            uris.push(uri.to_owned());
        }
        Ok(())
    }

    /// Ends the subscription to a URI.
    pub(super) fn remove(&self, uri: &str) {
        let mut followed = self.0.lock();
        followed.retain(|_, uris| {
            uris.retain(|known| known != uri);
            !uris.is_empty()
        });
    }

    fn among(&self, gathered: &VaultChange) -> Vec<String> {
        let followed = self.0.lock();
        let mut uris: Vec<String> = match &gathered.notes {
            None => followed.values().flatten().cloned().collect(),
            Some(notes) => notes.iter().filter_map(|note| followed.get(note)).flatten().cloned().collect(),
        };
        uris.sort();
        uris.dedup();
        uris
    }
}

/// The note that a client subscribes to.
fn note_of(uri: &str) -> Result<NoteId, ErrorData> {
    if uri.len() > MAX_URI_BYTES {
        let message = format!(
            "cannot subscribe to {}: it has {} bytes, and the URI of a note has at most {MAX_URI_BYTES}; \
             use one from resources/list",
            echoed(uri),
            uri.len()
        );
        return Err(ErrorData::invalid_params(message, None));
    }
    let not_a_note = || ErrorData::invalid_params(format!("{} is not the URI of a note", echoed(uri)), None);
    Registry::note_of_resource(uri).ok_or_else(not_a_note)
}

/// The changes that a listener has not received yet.
pub(super) struct ChangeFeed(broadcast::Receiver<Arc<VaultChange>>);

impl ChangeFeed {
    /// Notifies a client of the older generation: always of changed lists, and of notes it subscribed to.
    pub(super) async fn tell_peer(mut self, peer: Peer<RoleServer>, followed: Arc<FollowedNotes>) {
        while let Some(gathered) = self.gather().await {
            let mut told = Ok(());
            if gathered.tools {
                told = peer.notify_tool_list_changed().await;
            }
            if gathered.listing {
                told = told.and(peer.notify_resource_list_changed().await);
            }
            for uri in followed.among(&gathered) {
                told = told.and(peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await);
            }
            if told.is_err() {
                return;
            }
        }
    }

    /// Notifies a client of the newer generation of what it subscribed to.
    pub(super) async fn tell_sink(mut self, sink: &SubscriptionSink, followed: &FollowedNotes) {
        let wants_list = sink.accepted().resources_list_changed == Some(true);
        let wants_tools = sink.accepted().tools_list_changed == Some(true);
        while let Some(gathered) = self.gather().await {
            let mut told = Ok(());
            if gathered.tools && wants_tools {
                told = sink.notify_tool_list_changed().await;
            }
            if gathered.listing && wants_list {
                told = told.and(sink.notify_resource_list_changed().await);
            }
            for uri in followed.among(&gathered) {
                told = told.and(sink.notify_resource_updated(uri).await);
            }
            if told.is_err() {
                return;
            }
        }
    }

    /// The next change and those soon after it; `None` when there will be none. A continuous series of changes is sent in
    /// parts.
    async fn gather(&mut self) -> Option<VaultChange> {
        let mut gathered = VaultChange::NONE;
        let mut next = self.0.recv().await;
        let until = Instant::now() + GATHER;
        loop {
            match next {
                Ok(notice) => {
                    gathered.listing |= notice.listing;
                    gathered.tools |= notice.tools;
                    match (&mut gathered.notes, &notice.notes) {
                        (Some(notes), Some(more)) => notes.extend_from_slice(more),
                        (notes, _) => *notes = None,
                    }
                }
                Err(RecvError::Lagged(_)) => gathered = VaultChange { tools: true, ..VaultChange::ANY },
                Err(RecvError::Closed) => return None,
            }
            match tokio::time::timeout_at(until, self.0.recv()).await {
                Ok(more) => next = more,
                Err(_) => return Some(gathered),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_of_subscriptions_are_bounded_one_by_one_and_together() {
        let followed = FollowedNotes::default();
        let uri = |length: usize| format!("quipu://note/{}", "x".repeat(length));
        let long = uri(MAX_URI_BYTES);
        assert!(followed.add(&long).unwrap_err().message.contains("has at most 36100"));
        assert_eq!(FollowedNotes::acceptable(vec![long, uri(3)]), [uri(3)]);
        let fit = MAX_FOLLOWED_BYTES / uri(30_000).len();
        for more in 0..fit {
            followed.add(&uri(30_000 - more)).unwrap();
        }
        assert!(followed.add(&uri(30_001)).unwrap_err().message.contains("bytes together"));
        followed.remove(&uri(30_000));
        followed.add(&uri(30_001)).unwrap();
    }

    #[tokio::test]
    async fn continuous_changes_are_notified_at_intervals() {
        let notices = Arc::<ChangeNotices>::default();
        let mut listening = notices.listen();
        let busy = tokio::spawn(async move {
            loop {
                notices.tell(VaultChange { notes: Some(vec![NoteId::new("a.md")]), ..VaultChange::NONE });
                tokio::time::sleep(GATHER / 5).await;
            }
        });
        let told = tokio::time::timeout(50 * GATHER, listening.gather()).await;
        assert!(told.expect("before it pauses").is_some());
        busy.abort();
    }
}
