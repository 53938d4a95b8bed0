//! Watching without kernel events: compares two listings of the vault.

use std::cmp::Ordering;
use std::time::Instant;

use quipu_core::model::VaultPath;
use quipu_core::ports::{ListedFile, VaultFiles};

use super::{Flow, WatchEvent, WatchLoop};

/// The pause is at least this many times as long as a listing: a large vault is polled less often.
const PAUSE_FACTOR: u32 = 10;

impl WatchLoop {
    /// Polls until stopped. Without a baseline, the first listing is reported as a rescan.
    pub(super) fn poll(&mut self, mut before: Option<Vec<ListedFile>>) {
        let mut pause = self.options.poll_every;
        let mut is_reported = false;
        while self.wait(pause) == Flow::On {
            let start = Instant::now();
            match self.vault.list() {
                Ok(listing) => {
                    is_reported = false;
                    let event = match before.as_deref() {
                        Some(before) => self.event_of(differences(before, &listing.files)),
                        None => Some(WatchEvent::Rescan),
                    };
                    if let Some(event) = event {
                        (self.on_change)(event);
                    }
                    before = Some(listing.files);
                }
                Err(error) => {
                    // A vault that cannot be read has lost no notes; a rescan follows when it can.
                    before = None;
                    if !std::mem::replace(&mut is_reported, true) {
                        (self.on_change)(WatchEvent::Warning(format!("cannot watch the vault: {error}; retrying")));
                    }
                }
            }
            pause = self.options.poll_every.max(start.elapsed() * PAUSE_FACTOR);
        }
    }
}

/// The paths that are in one list only, or have another size or time. Both lists are sorted.
fn differences(before: &[ListedFile], after: &[ListedFile]) -> Vec<VaultPath> {
    let (mut before, mut after) = (before.iter().peekable(), after.iter().peekable());
    let mut changed = Vec::new();
    loop {
        let order = match (before.peek(), after.peek()) {
            (Some(old), Some(new)) => old.path.cmp(&new.path),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return changed,
        };
        let old = if order.is_le() { before.next() } else { None };
        let new = if order.is_ge() { after.next() } else { None };
        if old != new {
            changed.extend(old.or(new).map(|file| file.path.clone()));
        }
    }
}
