//! The built program over real pipes, spoken to in raw lines: what a client sees, byte for byte.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, in what it calls too")]

mod client;

mod attacks;
mod bad_input;
mod calls;
mod ending;
mod handshake;
mod http;
mod over_http;
mod resources;
mod seed_docs;
mod seed_memory;
mod seed_pages;
mod seed_roux;
mod seed_search;
mod slow_reader;
mod watching;
mod wire;
mod writing;
