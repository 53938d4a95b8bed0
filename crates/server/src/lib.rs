//! The server: who may call, in which order and how much, and every way a client comes in.
//!
//! Which files and stores stand behind a vault is not known here: the composition root gives them as a
//! [`ServedVault`](served_vault::ServedVault).

pub mod service;

pub mod http;
mod mcp;
pub mod sharing;
pub mod stdio;
pub mod team;
pub mod web;

pub mod engine;
pub mod served_vault;

mod background;
mod hang_up;
pub mod own_files;
mod shutdown;
mod stamp;
pub mod tokens;

pub use shutdown::on_stop_signal;
