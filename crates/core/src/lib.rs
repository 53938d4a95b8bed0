//! The domain of Quipu, pure: what a note is, how text becomes a graph, and what may be done to it.
//!
//! Nothing here opens a file, a database or a socket. What lasts is reached through [`ports`];
//! a front door holds one [`Knowledge`] and asks it everything.

#![warn(missing_docs)]

pub mod model;
pub mod parse;
pub mod ports;

pub mod bridge;
pub mod graph;
pub mod index;
pub mod memory;
pub mod notes;
pub mod search;
pub mod staleness;

mod dot_products;
mod knowledge;
mod quote;
mod request;
mod session;
mod warnings;

pub use dot_products::{dot_product, dot_products};
pub use knowledge::{Knowledge, Parts, ReadNote};
pub use quote::{on_one_line, quoted};
pub use request::{NoKey, RequestKey};
pub use session::{Extent, Session, SessionChanges, ShownVersion};
