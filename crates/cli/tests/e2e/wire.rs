//! Lines that are no messages, and messages that ask for nothing there is. None of them ends the conversation.

use serde_json::{Value, json};

use crate::client::{Client, LEGACY};

const VAULT: &str = "//- a.md\n# A\n";

/// The code and id of the error that a line is answered with.
fn refusal(client: &mut Client, line: &[u8]) -> (i64, Value) {
    client.send_line(line);
    let answer = client.receive();
    assert_eq!(answer["jsonrpc"], "2.0");
    let id = answer.get("id").expect("an error has an id, or null").clone();
    (answer["error"]["code"].as_i64().unwrap(), id)
}

fn still_answers(client: &mut Client) {
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
}

#[test]
fn line_that_is_not_json_is_a_parse_error() {
    let mut client = Client::connect(VAULT, LEGACY);
    let deep = [b"[".repeat(200_000), b"]".repeat(200_000)].concat();
    let lines: [&[u8]; 4] = [b"hello", b"{\"jsonrpc\":\"2.0\",", b"\xff\xfe", &deep];
    for line in lines {
        assert_eq!(refusal(&mut client, line), (-32700, Value::Null));
        still_answers(&mut client);
    }
}

#[test]
fn unparsable_request_is_answered_under_its_id() {
    let mut client = Client::connect(VAULT, LEGACY);
    let half = br#"{"jsonrpc":"2.0","id":"h","method":"tools/call","params":{"name":"list_nodes","arguments":{"x":"\ud83d"}}}"#;
    let deep = [br#"{"jsonrpc":"2.0","params":{"x":"#.to_vec(), b"[".repeat(200_000), b"]".repeat(200_000)].concat();
    let deep = [deep, br#"},"method":"tools/call","id":2}"#.to_vec()].concat();
    let broken = b"{\"jsonrpc\":\"2.0\",\"id\":3,\"x\":\"\xc3\"}";
    for (line, id) in [(&half[..], json!("h")), (&deep, json!(2)), (broken, json!(3))] {
        assert_eq!(refusal(&mut client, line), (-32700, id));
        still_answers(&mut client);
    }
}

#[test]
fn a_batch_is_answered_as_one_where_the_version_has_batches() {
    let mut client = Client::connect(VAULT, "2025-03-26");
    let call = |id: i64, tool: &str| {
        let params = json!({ "name": tool, "arguments": { "id": "a.md" } });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 99 } });
    let ping = json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" });
    client.send_json(&json!([call(1, "get_node"), ping, cancelled, 7, call(2, "no_such_tool"), call(1, "get_node")]));
    let batch = client.receive();
    let answers = batch.as_array().unwrap();
    let answer = |id: Value| answers.iter().filter(move |answer| answer["id"] == id).collect::<Vec<_>>();
    assert_eq!(answers.len(), 5, "{batch}");
    assert_eq!(answer(json!(1))[0]["result"]["structuredContent"]["id"], "a.md");
    assert_eq!(answer(json!("p"))[0]["result"], json!({}));
    assert_eq!(answer(json!(2))[0]["error"]["code"], -32602);
    assert_eq!(answer(Value::Null).len(), 2, "what is no message, and an id in use");
    still_answers(&mut client);

    // One without requests has no answer.
    client.send_line(br#"[{"jsonrpc":"2.0","method":"notifications/initialized"}]"#);
    still_answers(&mut client);
    assert_eq!(refusal(&mut client, b"[]"), (-32600, Value::Null));

    client.send_json(&json!([call(3, "get_node"), call(4, "get_node")]));
    let last = client.close();
    assert_eq!(last.len(), 1, "the end of input waits for a batch: {last:?}");
    assert_eq!(last[0].as_array().unwrap().len(), 2);
}

#[test]
fn a_batch_of_long_answers_is_bounded() {
    let long = "x".repeat(3_000_000);
    let mut client = Client::connect(&format!("//- a.md\n{long}\n"), "2025-03-26");
    let params = json!({ "name": "get_document", "arguments": { "path": "a.md" } });
    let call = |id| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
    client.send_json(&(0..20).map(call).collect());
    let batch = client.receive();
    let answers = batch.as_array().unwrap();
    let failed = answers.iter().filter(|answer| answer["error"]["code"] == -32600).count();
    assert_eq!((answers.len(), failed), (20, 18));
    still_answers(&mut client);
}

#[test]
fn batch_of_a_version_without_batches_gets_one_error_per_request() {
    let mut client = Client::connect(VAULT, LEGACY);
    client.send_line(br#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":"b","method":"tools/list"}]"#);
    for id in [json!(1), json!("b")] {
        let answer = client.receive();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(-32600)));
    }
    still_answers(&mut client);
}

#[test]
fn json_that_is_not_a_request_is_an_invalid_request() {
    let mut client = Client::connect(VAULT, LEGACY);
    for (line, id) in [
        ("42", Value::Null),
        ("[]", Value::Null),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, json!(1)),
        ("{}", Value::Null),
        (r#"{"jsonrpc":"2.0","id":"me"}"#, json!("me")),
        (r#"{"id":9,"method":"ping"}"#, json!(9)),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, Value::Null),
    ] {
        assert_eq!(refusal(&mut client, line.as_bytes()), (-32600, id), "{line}");
    }
    still_answers(&mut client);
}

#[test]
fn an_endless_line_is_refused_and_the_next_one_is_read() {
    let mut client = Client::connect(VAULT, LEGACY);
    let long = "x".repeat(17 * 1024 * 1024);
    assert_eq!(refusal(&mut client, long.as_bytes()), (-32600, Value::Null));
    let request = format!(r#"{{"jsonrpc":"2.0","id":"long","method":"tools/call","params":{{"name":"{long}"}}}}"#);
    assert_eq!(refusal(&mut client, request.as_bytes()), (-32600, json!("long")), "its id stands in front");
    let request = format!(r#"{{"method":"tools/call","params":{{"name":"{long}"}},"id":"long","jsonrpc":"2.0"}}"#);
    assert_eq!(refusal(&mut client, request.as_bytes()), (-32600, Value::Null), "its id is thrown away");
    still_answers(&mut client);
}

#[test]
fn ten_megabytes_of_arguments_are_fine() {
    let mut client = Client::connect(VAULT, LEGACY);
    let result = client.call("get_document", json!({ "path": "x".repeat(10_000_000) }));
    assert_eq!(result["isError"], true);
    still_answers(&mut client);
}

#[test]
fn blank_lines_responses_and_unknown_notifications_are_ignored() {
    let mut client = Client::connect(VAULT, LEGACY);
    for line in [
        "",
        "  \t ",
        r#"{"jsonrpc":"2.0","id":5,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":"odd"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/no/such"}"#,
    ] {
        client.send_line(line.as_bytes());
    }
    still_answers(&mut client);
}

#[test]
fn unknown_method_and_wrong_parameters_have_different_errors() {
    let mut client = Client::connect(VAULT, LEGACY);
    let unknown = client.request("no/such", json!({}))["error"].clone();
    assert_eq!(unknown, json!({ "code": -32601, "message": "there is no method no/such" }));
    let long = client.request(&"x".repeat(100_000), json!({}))["error"].clone();
    assert!(long["code"] == -32601 && long["message"].as_str().unwrap().len() < 300, "{long}");
    let long = client.request("resources/read", json!({ "uri": "x".repeat(100_000) }))["error"].clone();
    assert!(long.to_string().len() < 600, "{long}");
    assert_eq!(client.request("tools/call", json!({ "name": 5 }))["error"]["code"], -32602);
    assert_eq!(client.request("tools/call", json!({ "name": "get_node", "arguments": [] }))["error"]["code"], -32602);
    assert_eq!(client.request("tools/call", json!({ "name": "no_such_tool" }))["error"]["code"], -32602);
}

#[test]
fn a_client_may_ask_for_log_messages_and_gets_none() {
    let mut client = Client::connect(VAULT, LEGACY);
    assert_eq!(client.request("logging/setLevel", json!({ "level": "debug" }))["result"], json!({}));
}

#[test]
fn string_and_number_ids_are_returned_unchanged() {
    let mut client = Client::connect(VAULT, LEGACY);
    for id in [json!("seven"), json!("7"), json!(7), json!(0), json!(-1), json!(i64::MAX)] {
        client.send_json(&json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }));
        assert_eq!(client.receive()["id"], id);
    }
}
