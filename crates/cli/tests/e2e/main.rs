//! The built program over real pipes, spoken to in raw lines: what a client sees, byte for byte.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, in what it calls too")]

mod client;
#[expect(dead_code, reason = "it is shared with the tests of the embedders, which ask more of it")]
#[path = "../../../embed/tests/providers/server.rs"]
mod embedding_server;
mod team_wire;

mod agent_tasks;
mod answers;
mod asked_again;
mod attacks;
mod bad_input;
mod bridge;
mod calls;
mod ending;
mod explorer;
mod finding;
mod handshake;
mod http;
mod language_model;
mod memory_lasts;
mod memory_replaced;
mod memory_size;
mod note_history;
#[cfg(feature = "oauth")]
mod oauth;
mod order;
mod over_http;
mod own_folder;
mod prompts;
mod provider_faults;
mod query;
mod real_use;
mod removed_lock;
mod resources;
mod seed_docs;
mod seed_memory;
mod seed_pages;
mod seed_roux;
mod seed_search;
mod sharing;
mod slow_reader;
mod streams;
mod team;
mod upkeep;
mod watching;
mod wire;
mod writing;
