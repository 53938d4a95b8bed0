//! What tests of several crates share: strict implementations of the ports in memory, vaults written as one string, and
//! suites that every implementation of a port must pass. For development only; nothing that ships depends on it.

pub mod fixture;
pub mod store_conformance;

mod fixed_clock;
mod mem_store;
mod mem_vault;

pub use fixed_clock::FixedClock;
pub use mem_store::{MemShelf, MemStore};
pub use mem_vault::MemVault;
