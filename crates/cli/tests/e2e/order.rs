//! A client that sends its calls without waiting for answers finds what it would have found had it waited.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::client::{Client, first_block};

/// Sends all calls, then reads all answers, and gives the results in the order of the calls.
fn pipelined(client: &mut Client, calls: &[(&str, Value)]) -> Vec<Value> {
    let sent: Vec<i64> = calls
        .iter()
        .map(|(tool, arguments)| client.send("tools/call", json!({ "name": tool, "arguments": arguments })))
        .collect();
    let mut answers: HashMap<i64, Value> = HashMap::new();
    for _ in &sent {
        let answer = client.receive();
        answers.insert(answer["id"].as_i64().unwrap(), answer["result"].clone());
    }
    sent.iter().map(|id| answers.remove(id).unwrap()).collect()
}

/// More than there are workers, three times over: a write, a call that fails, and a read of what was written.
#[test]
fn writes_run_in_order_and_reads_see_earlier_writes() {
    let mut owner = Client::open("//- a.md\nOld.\n");
    let mut other = owner.join(&[]);
    for (client, name) in [(&mut owner, "Ada"), (&mut other, "Boat")] {
        let entity =
            client.answer("create_entity", json!({ "name": name, "entity_type": "Person" }))["entity_id"].clone();
        client.answer("get_node", json!({ "id": "a.md" }));
        let mut calls = Vec::new();
        for number in 0..50 {
            let text = format!("{name} {number}");
            calls.push(("update_entity", json!({ "entity_id": entity, "name": text })));
            calls.push(("get_node", json!({ "id": "missing.md" })));
            calls.push(("get_entity", json!({ "entity_id": entity })));
            calls.push(("update_node", json!({ "id": "a.md", "content": text })));
            calls.push(("get_node", json!({ "id": "a.md" })));
        }
        let results = pipelined(client, &calls);
        for (number, results) in results.chunks(5).enumerate() {
            let text = format!("{name} {number}");
            assert_eq!(first_block(&results[2])["name"], text, "an entity, read behind its write");
            assert_eq!(first_block(&results[4])["content"], text, "a note, read behind its write");
        }
        assert_eq!(client.read("a.md"), format!("{name} 49"));
    }
}

/// A write checks what its client was shown, and the read before it counts.
#[test]
fn write_runs_after_earlier_reads() {
    let mut client = Client::open("//- a.md\nOld.\n");
    for number in 0..20 {
        client.write("a.md", format!("Edited elsewhere, {number}.\n"));
        let results = pipelined(
            &mut client,
            &[("get_node", json!({ "id": "a.md" })), ("update_node", json!({ "id": "a.md", "content": "Mine." }))],
        );
        assert!(results[1]["isError"] != true, "{}", results[1]);
    }
}
