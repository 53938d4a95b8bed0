//! How a conversation ends: what was asked before is answered, and the process goes.

use std::time::Duration;

use serde_json::json;

use crate::client::{Client, LEGACY};

const VAULT: &str = "//- a.md\n# A\n";

#[test]
fn requests_before_the_end_of_input_are_answered() {
    let mut client = Client::connect(VAULT, LEGACY);
    let call = json!({ "name": "list_nodes", "arguments": {} });
    let mut sent: Vec<i64> = (0..100).map(|_| client.send("tools/call", call.clone())).collect();
    let mut answered: Vec<i64> = client.close().iter().map(|answer| answer["id"].as_i64().unwrap()).collect();
    sent.sort_unstable();
    answered.sort_unstable();
    assert_eq!(answered, sent);
    assert!(client.wait().0.success());
}

#[test]
fn silent_client_that_disconnects_ends_the_server() {
    let mut client = Client::start(VAULT);
    assert!(client.close().is_empty());
    assert!(client.wait().0.success());
}

#[test]
fn signal_ends_the_server_cleanly_within_a_second() {
    for signal in ["TERM", "INT"] {
        let mut client = Client::connect(VAULT, LEGACY);
        client.call("list_nodes", json!({}));
        client.signal(signal);
        let (status, took) = client.wait();
        assert!(status.success(), "{signal}: {status}");
        assert!(took < Duration::from_secs(1), "{signal}: {took:?}");
    }
}

#[test]
fn stdout_carries_only_protocol_messages() {
    let mut client = Client::connect(VAULT, LEGACY);
    client.send_line(b"not a message");
    client.send("tools/call", json!({ "name": "get_node", "arguments": { "id": "a.md" } }));
    // `close` fails on any line that is none.
    assert_eq!(client.close().len(), 2);
}
