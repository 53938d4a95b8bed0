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

/// Calls of the tools that change or show a note, by an id that must name none: each fails, and no file outside is shown.
#[track_caller]
fn names_no_note(client: &mut Client, id: &str) {
    let version = "0123456789abcdef";
    for (tool, arguments) in [
        ("edit_node", json!({ "id": id, "edits": [{ "op": "append", "text": "evil" }] })),
        ("move_node", json!({ "id": id, "to": "moved.md" })),
        ("node_history", json!({ "id": id })),
        ("diff_node", json!({ "id": id, "from": version })),
        ("revert_node", json!({ "id": id, "version": version })),
        ("redact", json!({ "kind": "note", "id": id, "reason": "evil" })),
    ] {
        let (code, message) = client.error(tool, arguments);
        let is_about_the_id = ["NODE_NOT_FOUND", "INVALID_PARAMS", "ResourceNotFound", "InvalidArguments"];
        assert!(is_about_the_id.contains(&code.as_str()), "{tool} {id:?}: {code} {message}");
        assert!(!message.contains("secret\n"), "{tool} {id:?}: {message}");
        // What the client itself wrote may be said back to it, as an id too.
        reveals_no_internals(&message.replace(id, "").replace(&id.to_lowercase(), ""));
    }
}

/// Moves a note to a path where no note may be.
#[track_caller]
fn is_no_destination(client: &mut Client, to: &str) {
    let (code, message) = client.error("move_node", json!({ "id": "a.md", "to": to }));
    assert!(["INVALID_PARAMS", "NODE_EXISTS"].contains(&code.as_str()), "{to:?}: {code} {message}");
    assert!(code == "NODE_EXISTS" || message.starts_with("`to` "), "{to:?}: {message}");
    reveals_no_internals(&message.replace(to, ""));
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
