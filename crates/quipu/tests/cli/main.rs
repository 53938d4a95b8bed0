//! The command line as a person or a script sees it: every test starts the program on a vault of its own.

#![expect(clippy::disallowed_methods, reason = "tests make vaults and look at them with plain file calls")]

mod sandbox;

mod call;
mod config;
mod doctor;
mod help;
mod index;
mod printing;
mod restore;
mod search;
mod serve;
mod status;
