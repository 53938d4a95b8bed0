//! Stores for a team on PostgreSQL: any number of servers work on one database. Every table's key starts with the graph.
//!
//! The ports are synchronous, the driver is not: each call runs on its caller's thread until the database has answered. So
//! they must not be called from asynchronous code.

mod connection;
mod failure;
mod graphs;
mod limits;
mod memory;
mod migrate;
mod notes;
mod request;
mod row;
mod server;
mod tokens;
mod vectors;

pub use connection::{
    AddressError, CommitTimes, ConnectError, DatabaseAddress, PoolStatus, PostgresDatabase, Subscription, Wakeups,
};
pub use failure::DatabaseError;
pub use graphs::{Graph, GraphError, GraphLimits, GraphUsage};
pub use memory::PostgresMemory;
pub use migrate::{SchemaError, SchemaVersion, roles_sql};
pub use notes::{PostgresShownNotes, PostgresVault};
pub use server::{DatabaseServer, UnsupportedServer};
pub use tokens::{Lookup, NewToken, PostgresTokens, TokenError, TokenRecord};
pub use vectors::SharedVectors;
