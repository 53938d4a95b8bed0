//! The command line as a person or a script sees it: every test starts the program on a vault of its own.

#![expect(clippy::disallowed_methods, reason = "tests make vaults and look at them with plain file calls")]
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails; clippy knows test functions, not what they share"
)]

mod sandbox;

mod access;
mod busy;
mod call;
mod config;
mod doctor;
mod examples;
mod help;
mod index;
mod install;
mod memory;
mod open;
mod picture;
mod printing;
mod query;
mod readme;
mod restore;
mod search;
mod serve;
mod stale;
mod status;
mod sync;
mod team;
mod watch;
