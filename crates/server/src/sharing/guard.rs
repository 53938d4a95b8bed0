//! How an owner stays the only one. The lock and the socket are files, and files get removed: by a cleaning script, by
//! `git clean`, by a sync of another machine's folder. A lock that is gone is taken anew, and a socket made anew; where
//! another process has taken the lock meanwhile, this one steps down.

use std::path::Path;
use std::time::{Duration, Instant};

use super::claim::{Asked, Card, Claim, Hold, Marks, Standing};
use super::place::{Held, Place, SERVE};
use super::seat::Shared;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(700);

impl Shared {
    /// Looks after lock and socket for as long as this process owns the vault. Says who owns it, where that is another now:
    /// it waits for the index, which this one is to close before anything else.
    pub(super) fn guard(&self) -> Option<Card> {
        let own_folder = self.own_folder.as_deref()?;
        let mut said = Standing::Firm;
        let mut is_unknown = false;
        while let Some(marks) = self.marks() {
            let standing = marks.look(own_folder);
            if standing != said && standing != Standing::Firm {
                tracing::warn!(folder = %own_folder.display(), "{}", standing.words());
            }
            said = standing;
            match standing {
                Standing::Firm => is_unknown = false,
                Standing::NoSocket => self.listen_anew(own_folder),
                Standing::NoLock => match Claim::ask(own_folder, Hold::Shared, SERVE) {
                    Asked::Had(claim) => self.lock_anew(claim),
                    // Whoever has just taken the lock may be about to write its card.
                    Asked::Taken(card) if card == Card::default() && !is_unknown => is_unknown = true,
                    Asked::Taken(card) => match card.hold {
                        Hold::Shared => return Some(card),
                        // It is soon through, or nobody could ask it.
                        Hold::Passing | Hold::Alone => tracing::debug!(?card, "another process has the vault's lock"),
                    },
                    Asked::Impossible(error) => tracing::debug!(%error, "the lock cannot be taken anew"),
                },
            }
            self.wait_as_owner();
        }
        None
    }

    /// What to compare; `None` once this process does not own the vault.
    fn marks(&self) -> Option<Marks> {
        match &*self.place() {
            Place::Owner(_, Some(held)) => Some(held.claim.marks()),
            _ => None,
        }
    }

    fn wait_as_owner(&self) {
        let until = Instant::now() + LOOK;
        let mut place = self.place();
        while let (Place::Owner(_, Some(_)), Some(left)) = (&*place, until.checked_duration_since(Instant::now())) {
            self.moved.wait_for(&mut place, left);
        }
    }

    fn lock_anew(&self, claim: Claim) {
        let Place::Owner(_, Some(Held { host, claim: held })) = &mut *self.place() else { return };
        held.move_to(claim);
        match host {
            Some(host) => host.rename(held.identity()),
            None => held.write_card(Hold::Alone),
        }
    }

    fn listen_anew(&self, own_folder: &Path) {
        let Place::Owner(_, Some(Held { host: Some(host), claim })) = &mut *self.place() else { return };
        if let Err(error) = claim.listen(own_folder).and_then(|listener| host.move_to(listener)) {
            // Nobody listens there: the next look is to find it missing.
            claim.close_socket();
            tracing::warn!("other processes cannot share this vault's index: no socket can be made: {error}");
        }
    }
}

impl Standing {
    fn words(self) -> &'static str {
        match self {
            Self::Firm => "this process owns the vault",
            Self::NoLock => "the vault's lock was removed under this process",
            Self::NoSocket => "the vault's socket was removed under this process",
        }
    }
}
