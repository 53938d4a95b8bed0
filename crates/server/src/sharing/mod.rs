//! One vault, any number of processes: the first that opens it owns it, the others pass their clients' calls on to it.
//!
//! Every agent client starts a server of its own on the same folder. They agree by a lock ([`claim`]): who has it opens the
//! index, watches the files and answers the others ([`host`]) at a socket; who has not, asks there ([`link`]). When the
//! owner ends, by its client's leaving or by being killed, the system lets go of the lock and closes the connections; the
//! others see it at once, one of them gets the lock, and the calls that were under way are asked again, of the new owner
//! or of oneself ([`place`], [`seat`]). An owner sees to it that it stays the only one ([`guard`]). A call carries a key that
//! the stores remember together with what it did, so it is carried out once however often it is asked.
//!
//! Why no process of its own in the background: nothing would tell it when it is no longer needed, or which of two
//! versions should run, and a program that stays behind when its user has left is what people complain of. The price is a
//! warm start, of some tens of milliseconds, when an owner leaves.

mod claim;
mod guard;
mod host;
mod hosted;
mod link;
mod pass_on;
mod place;
mod porch;
mod seat;
mod turns;
mod wire;

use quipu_core::RequestKey;
use quipu_core::ports::{Clock, SystemClock};

pub use claim::{Card, Claim, Hold};
pub use hosted::Hosted;
pub use pass_on::{Again, Errand, Passed, Wait, pass_on};
pub use seat::{Seat, SeatOptions};
pub use wire::{Looks, Printed};

/// A key that no other call of any process has.
pub fn new_key() -> RequestKey {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    RequestKey::new(SystemClock.now_ns(), u128::from_le_bytes(bytes))
}
