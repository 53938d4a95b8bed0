//! Test helpers of several crates: strict implementations of the ports in memory, vaults from one string or generated from a
//! seed, conformance suites for implementations of the ports, a client for the built binary, a JSON schema validator, an identity provider, and a
//! PostgreSQL cluster.

pub mod fixture;
pub mod identity_provider;
pub mod memory_conformance;
pub mod postgres;
pub mod schema;
pub mod store_conformance;
pub mod vault_conformance;
pub mod vector_conformance;

pub mod client;
pub mod generate;
pub mod workload;

mod fixed_clock;
mod mem_memory;
mod mem_sources;
mod mem_store;
mod mem_vault;
mod mem_vectors;
mod real_data;
mod skipped;

pub use fixed_clock::FixedClock;
pub use mem_memory::{MemMemory, MemMemoryStorage, mem_memory};
pub use mem_sources::MemSources;
pub use mem_store::{MemNoteStorage, MemStore};
pub use mem_vault::MemVault;
pub use real_data::real_data;
pub use skipped::skip;
