//! The domain of Quipu, pure: what a note is, how text becomes a graph, and what may be done to it.
//!
//! Nothing here opens a file, a database or a socket. What lasts is reached through [`ports`].

#![warn(missing_docs)]

pub mod model;
pub mod parse;
pub mod ports;
