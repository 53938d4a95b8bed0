//! What every front door asks of a vault.

mod desk;

pub use desk::{Change, Desk, Listener, Reading};
