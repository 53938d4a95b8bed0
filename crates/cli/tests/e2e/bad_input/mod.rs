//! What goes wrong, in arguments, in files and on disks: a clear error each, nothing lost, and the server still answers.

mod arguments;
mod disks;
mod files;
mod links;
mod paths;

use std::path::Path;

use serde_json::json;

use crate::client::{Client, files_below};

/// Runs calls that must leave every file as it is, and the server answering.
#[track_caller]
fn unharmed(client: &mut Client, folder: &Path, calls: impl FnOnce(&mut Client)) {
    let before = files_below(folder);
    calls(client);
    assert_eq!(files_below(folder), before, "a file was changed");
    still_answers(client);
}

#[track_caller]
fn still_answers(client: &mut Client) {
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
    assert!(client.answer("list_nodes", json!({}))["total"].is_number());
}

/// Fails when a message gives away where a test's vault lies or how the program failed inside.
#[track_caller]
fn reveals_no_internals(message: &str) {
    let place = std::env::temp_dir();
    let gives_away = message.contains(place.to_str().unwrap());
    assert!(!gives_away && !message.contains("panic") && !message.contains("internal error"), "{message}");
}
