//! One vault, any number of processes: the first process that opens it owns it, the others pass their clients' calls to it.
//!
//! Every agent client starts its own server on the same folder. The process that holds a lock ([`owner_lock`]) is the owner:
//! it opens the index, watches the files and answers the others at a socket ([`owner_server`], [`owner_client`]). When the
//! owner exits or is killed, the system releases the lock and closes the connections. The others notice at once, one of them
//! gets the lock, and calls without a response are sent again ([`ownership`], [`shared_vault`]). The owner checks that its
//! lock and socket are still there ([`owner_guard`]). A call carries a key that the stores keep together with its effect, so
//! it takes effect once, however often it is sent.
//!
//! There is no background daemon: nothing would tell it when to exit or which of two versions should run, and processes left
//! behind are a frequent complaint. The price is a warm start of some tens of milliseconds when an owner exits.

mod concurrency_limit;
mod owner_client;
mod owner_guard;
mod owner_lock;
mod owner_server;
mod ownership;
mod pending_handshakes;
mod run_in_owner;
mod shared_vault;
mod temporary_owner;
mod wire;

use quipu_core::RequestKey;
use quipu_core::ports::{Clock, SystemClock};

pub use owner_lock::{OwnerInfo, OwnerLock, OwnerMode};
pub use run_in_owner::{CommandOutcome, OwnerCommand, Retry, WaitPolicy, run_in_owner};
pub use shared_vault::{SharedVault, SharedVaultOptions};
pub use temporary_owner::TemporaryOwner;

/// A key that is unique among all calls of all processes.
pub fn new_key() -> RequestKey {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    RequestKey::new(SystemClock.now_ns(), u128::from_le_bytes(bytes))
}
