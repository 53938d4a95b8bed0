//! Notes as resources: listed in pages, read as files, completed by id, and missing in each generation's words.

use serde_json::{Value, json};

use crate::client::{Client, LEGACY, modern};

const VAULT: &str = "\
//- Guides/Set Up?.md
---
title: Setting up
---
Text.
//- guides/über.md
Ü
//- a.md
# A
";

#[test]
fn listed_resources_return_the_current_file() {
    let mut client = Client::connect(VAULT, LEGACY);
    let listed = client.request("resources/list", json!({}))["result"]["resources"].clone();
    let names: Vec<&str> = listed.as_array().unwrap().iter().map(|note| note["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a.md", "guides/set up?.md", "guides/über.md"]);
    let note = &listed[1];
    assert_eq!(note["uri"], "quipu://note/guides/set%20up%3F.md");
    assert_eq!((&note["title"], &note["mimeType"]), (&json!("Setting up"), &json!("text/markdown")));
    let read = client.request("resources/read", json!({ "uri": note["uri"] }))["result"]["contents"][0].clone();
    let text = "---\ntitle: Setting up\n---\nText.\n";
    assert_eq!(read, json!({ "uri": note["uri"], "mimeType": "text/markdown", "text": text }));
    assert_eq!(note["size"], text.len());
}

#[test]
fn a_big_vault_is_listed_page_by_page() {
    let fixture: String = (0..450).map(|n| format!("//- n{n:03}.md\ntext\n")).collect();
    let mut client = Client::connect(&fixture, LEGACY);
    let (mut names, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let params = if cursor.is_null() { json!({}) } else { json!({ "cursor": cursor }) };
        let page = client.request("resources/list", params)["result"].clone();
        names.extend(page["resources"].as_array().unwrap().iter().map(|note| note["name"].clone()));
        let Some(next) = page.get("nextCursor") else { break };
        cursor = next.clone();
    }
    assert_eq!(names, (0..450).map(|n| json!(format!("n{n:03}.md"))).collect::<Vec<_>>());
}

#[test]
fn a_cursor_that_no_page_gave_is_refused() {
    let mut client = Client::connect(VAULT, LEGACY);
    for method in ["resources/list", "resources/templates/list", "tools/list"] {
        let error = client.request(method, json!({ "cursor": "nonsense" }))["error"].clone();
        assert_eq!(error["code"], -32602, "{method}: {error}");
        assert!(client.request(method, json!({ "cursor": null }))["result"].is_object(), "{method}");
    }
}

#[test]
fn the_template_and_its_completion_lead_to_a_note() {
    let mut client = Client::connect(VAULT, LEGACY);
    let templates = client.request("resources/templates/list", json!({}))["result"]["resourceTemplates"].clone();
    assert_eq!(templates[0]["uriTemplate"], "quipu://note/{+id}");
    let reference = json!({ "type": "ref/resource", "uri": "quipu://note/{+id}" });
    let mut complete = |name: &str, value: &str| {
        let argument = json!({ "name": name, "value": value });
        client.request("completion/complete", json!({ "ref": reference, "argument": argument }))
    };
    let completion = complete("id", "Gui")["result"]["completion"].clone();
    assert_eq!(completion["values"], json!(["guides/set up?.md", "guides/über.md"]));
    assert_eq!((&completion["total"], &completion["hasMore"]), (&json!(2), &json!(false)));
    assert_eq!(complete("title", "x")["error"]["code"], -32602);
}

#[test]
fn missing_resource_has_the_error_of_the_protocol_version() {
    let mut client = Client::connect(VAULT, LEGACY);
    for uri in ["quipu://note/none.md", "quipu://note/../secret.md", "file:///etc/passwd", "nonsense"] {
        let older = client.request("resources/read", json!({ "uri": uri }))["error"].clone();
        assert_eq!((&older["code"], &older["data"]["uri"]), (&json!(-32002), &json!(uri)));
        let newer = client.request("resources/read", modern(json!({ "uri": uri })))["error"].clone();
        assert_eq!(newer["code"], -32602);
    }
}

#[test]
fn client_is_notified_of_changes_in_both_generations() {
    let address = "quipu://note/a.md";
    let mut client = Client::open("//- a.md\nx\n");
    // Answered once the vault is read: that is a change too, and reported.
    client.answer("list_nodes", json!({}));
    client.request("resources/subscribe", json!({ "uri": address }));
    client.answer("update_node", json!({ "id": "a.md", "content": "changed\n" }));
    let next = |client: &mut Client| loop {
        let notice = client.notice();
        if notice["method"] != "notifications/resources/list_changed" {
            return notice;
        }
    };
    assert_eq!(next(&mut client)["params"]["uri"], address);
    client.request("resources/unsubscribe", json!({ "uri": address }));

    let listen = modern(json!({ "notifications": { "resourceSubscriptions": [address] } }));
    let id = client.send("subscriptions/listen", listen);
    assert_eq!(next(&mut client)["method"], "notifications/subscriptions/acknowledged");
    client.answer("update_node", json!({ "id": "a.md", "content": "again\n" }));
    let notice = next(&mut client);
    assert_eq!(
        (&notice["method"], &notice["params"]["uri"]),
        (&json!("notifications/resources/updated"), &json!(address))
    );
    assert_eq!(notice["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
    // An open stream does not delay the shutdown.
    client.close();
    let (status, took) = client.wait();
    assert!(status.success() && took < std::time::Duration::from_secs(5), "{status} after {took:?}");
}

#[test]
fn only_notes_can_be_subscribed_to() {
    let mut client = Client::open("//- a.md\nx\n");
    let long = format!("quipu://note/{}", "x".repeat(1_000_000));
    for uri in ["", "file:///etc/passwd", "quipu://note/", &long] {
        let answer = client.request("resources/subscribe", json!({ "uri": uri }));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(answer.to_string().len() < 1000, "the URI is not repeated in full");
    }
    let address = "quipu://note/a.md";
    client
        .send("subscriptions/listen", modern(json!({ "notifications": { "resourceSubscriptions": [long, address] } })));
    let accepted = loop {
        let notice = client.notice();
        if notice["method"] == "notifications/subscriptions/acknowledged" {
            break notice;
        }
    };
    assert_eq!(accepted["params"]["notifications"]["resourceSubscriptions"], json!([address]), "{accepted}");
}
