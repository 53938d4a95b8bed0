//! Tests of the public interface on real folders.
#![expect(clippy::disallowed_methods, reason = "tests play the user, who edits files directly")]
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails, in what it calls too")]

mod home;
mod journals;

mod conformance;
mod disks;
mod histories;
mod images;
mod linked_renames;
mod permissions;
mod processes;
mod pruning;
mod reading;
mod rules;
mod sharing;
mod source_limits;
mod sources;
mod watching;
mod writing;
