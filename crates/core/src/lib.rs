//! The domain of Quipu: notes, the graph of their links, search, and the agents' memory.
//!
//! Nothing here opens a file, a database or a socket: [`ports`] are the only way out. Every front end calls one
//! [`Knowledge`].

pub mod model;
pub mod parse;
pub mod ports;

pub mod bridge;
pub mod graph;
pub mod index;
pub mod memory;
pub mod notes;
pub mod query;
pub mod search;
pub mod staleness;
pub mod suggest;
pub mod sync;

mod calendar;
mod diff;
mod dot_products;
mod knowledge;
mod quote;
mod recent;
mod request;
mod session;
mod warnings;

pub use diff::unified_diff;
pub use dot_products::{dot_product, dot_products};
pub use knowledge::{Knowledge, Parts, ReadNote};
pub use quote::{on_one_line, quoted, shell_quoted};
pub use recent::{ChangeCursor, ChangeKind, RecentChange, RecentChangePage, RecentError, RecentFilter};
pub use request::{InvalidKey, RequestKey};
pub use session::{Extent, Session, SessionChanges, ShownVersion};
