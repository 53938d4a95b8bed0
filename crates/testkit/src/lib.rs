//! What tests of several crates share: strict implementations of the ports in memory, and suites that every
//! implementation of a port must pass. For development only; nothing that ships depends on it.

mod mem_store;
pub mod store_conformance;

pub use mem_store::{MemShelf, MemStore};
