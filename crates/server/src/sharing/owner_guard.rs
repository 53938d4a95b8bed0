//! How an owner stays the only one. The lock and the socket are files, and files get deleted: by a cleanup script, by
//! `git clean`, by a sync of another machine's folder. The owner recreates a deleted lock or socket. If another process has
//! taken the lock meanwhile, this one gives up ownership.

use std::path::Path;
use std::time::{Duration, Instant};

use super::owner_lock::{LockAttempt, LockFingerprint, LockState, OwnerInfo, OwnerLock, OwnerMode};
use super::ownership::{OwnerResources, Ownership, SERVE};
use super::shared_vault::SharedVaultState;

/// Between two checks.
const CHECK_INTERVAL: Duration = Duration::from_millis(700);

impl SharedVaultState {
    /// Checks lock and socket while this process owns the vault. Returns the new owner if another process has taken the lock:
    /// that one waits for the index, so this process must close it first.
    pub(super) fn guard(&self) -> Option<OwnerInfo> {
        let own_folder = self.own_folder.as_deref()?;
        let mut reported = LockState::Intact;
        let mut is_info_missing = false;
        while let Some(fingerprint) = self.fingerprint() {
            let state = fingerprint.compare(own_folder);
            if state != reported && state != LockState::Intact {
                tracing::warn!(folder = %own_folder.display(), "{}", state.message());
            }
            reported = state;
            match state {
                LockState::Intact => is_info_missing = false,
                LockState::SocketRemoved => self.reopen_socket(own_folder),
                LockState::LockRemoved => match OwnerLock::acquire(own_folder, OwnerMode::Shared, SERVE) {
                    LockAttempt::Acquired(newer) => self.relock(newer),
                    // A process that has just taken the lock may be about to write its information.
                    LockAttempt::HeldByOther(info) if info == OwnerInfo::default() && !is_info_missing => {
                        is_info_missing = true;
                    }
                    LockAttempt::HeldByOther(info) => match info.mode {
                        OwnerMode::Shared => return Some(info),
                        // It ends soon, or cannot be asked.
                        OwnerMode::Temporary | OwnerMode::Exclusive => {
                            tracing::debug!(?info, "another process has the vault's lock");
                        }
                    },
                    LockAttempt::Unavailable(error) => tracing::debug!(%error, "cannot lock the vault again"),
                },
            }
            self.wait_as_owner();
        }
        None
    }

    /// What to check; `None` once this process does not own the vault.
    fn fingerprint(&self) -> Option<LockFingerprint> {
        match &*self.ownership() {
            Ownership::Owner(_, Some(resources)) => Some(resources.lock.fingerprint()),
            _ => None,
        }
    }

    fn wait_as_owner(&self) {
        let until = Instant::now() + CHECK_INTERVAL;
        let mut ownership = self.ownership();
        while let (Ownership::Owner(_, Some(_)), Some(left)) =
            (&*ownership, until.checked_duration_since(Instant::now()))
        {
            self.ownership_changed.wait_for(&mut ownership, left);
        }
    }

    fn relock(&self, newer: OwnerLock) {
        let Ownership::Owner(_, Some(OwnerResources { server, lock })) = &mut *self.ownership() else { return };
        lock.move_to(newer);
        match server {
            Some(server) => server.set_vault(lock.identity()),
            None => lock.write_info(OwnerMode::Exclusive),
        }
    }

    fn reopen_socket(&self, own_folder: &Path) {
        let Ownership::Owner(_, Some(OwnerResources { server: Some(server), lock })) = &mut *self.ownership() else {
            return;
        };
        if let Err(error) = lock.listen(own_folder).and_then(|listener| server.move_to(listener)) {
            // No thread accepts connections there: the next check must find it missing.
            lock.close_socket();
            tracing::warn!("other processes cannot share this vault's index: cannot create a socket: {error}");
        }
    }
}

impl LockState {
    fn message(self) -> &'static str {
        match self {
            Self::Intact => "this process owns the vault",
            Self::LockRemoved => "the vault's lock was removed under this process",
            Self::SocketRemoved => "the vault's socket was removed under this process",
        }
    }
}
