//! Watching without the kernel's help: two lists of the vault, compared.

use std::cmp::Ordering;
use std::time::Instant;

use quipu_core::model::VaultPath;
use quipu_core::ports::{ListedFile, VaultFiles};

use super::{Flow, Session, WatchEvent};

/// Looking may take this part of the time, no more: a large vault is looked at less often.
const REST_FACTOR: u32 = 10;

impl Session {
    /// Looks at everything again and again. Without a baseline the first look is told as a rescan.
    pub(super) fn poll(&mut self, mut before: Option<Vec<ListedFile>>) {
        let mut pause = self.options.poll_every;
        let mut is_told = false;
        while self.wait(pause) == Flow::On {
            let start = Instant::now();
            match self.vault.list() {
                Ok(listing) => {
                    is_told = false;
                    match before.as_deref() {
                        Some(before) => self.tell_changed(differences(before, &listing.files)),
                        None => self.tell(WatchEvent::Rescan),
                    }
                    before = Some(listing.files);
                }
                Err(error) => {
                    // A vault that cannot be read has lost no notes; once it is back everything is looked at.
                    before = None;
                    if !std::mem::replace(&mut is_told, true) {
                        self.tell(WatchEvent::Warning(format!("the vault cannot be watched now: {error}")));
                    }
                }
            }
            pause = self.options.poll_every.max(start.elapsed() * REST_FACTOR);
        }
    }
}

/// The paths that are in one list only, or with another size or time. Both lists are sorted.
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
