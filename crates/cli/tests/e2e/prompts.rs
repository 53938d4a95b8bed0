//! The prompts over the real wire, in both protocol generations.

use serde_json::{Value, json};

use crate::client::{Client, LEGACY, modern};

const NOTES: &str = "//- plans/harbour.md\nThe survey begins in May.\n//- plans/mast.md\nOf spruce.\n";

fn names(listed: &Value) -> Vec<&str> {
    listed["result"]["prompts"].as_array().unwrap().iter().map(|prompt| prompt["name"].as_str().unwrap()).collect()
}

#[test]
fn prompts_are_listed_filled_in_and_completed() {
    let mut older = Client::start(NOTES);
    let hello = older.initialize(LEGACY);
    assert!(hello["capabilities"]["prompts"].is_object(), "{hello}");
    older.notify("notifications/initialized", json!({}));
    let mut newer = older.start_join(&[]);
    for is_modern in [false, true] {
        let client = if is_modern { &mut newer } else { &mut older };
        let mut ask =
            |method: &str, params: Value| client.request(method, if is_modern { modern(params) } else { params });
        let listed = ask("prompts/list", json!({}));
        assert_eq!(names(&listed), ["brief", "daily_note", "weekly_review", "tidy_memory", "record_decision"]);
        let topic = &listed["result"]["prompts"][0]["arguments"][0];
        assert_eq!((&topic["name"], &topic["required"]), (&json!("topic"), &json!(true)));
        let brief = ask("prompts/get", json!({ "name": "brief", "arguments": { "topic": "the harbour" } }));
        let message = &brief["result"]["messages"][0];
        let text = message["content"]["text"].as_str().unwrap_or_else(|| panic!("{brief}"));
        assert_eq!(message["role"], "user");
        assert!(text.starts_with("Write a brief on the harbour") && text.contains("`ubp_search`"), "{text}");
        let reference = json!({ "type": "ref/prompt", "name": "brief" });
        let typed = json!({ "name": "topic", "value": "plans/" });
        let completed = ask("completion/complete", json!({ "ref": reference, "argument": typed }));
        assert_eq!(completed["result"]["completion"]["values"], json!(["plans/harbour.md", "plans/mast.md"]));
        let typed = json!({ "name": "days", "value": "1" });
        let reference = json!({ "type": "ref/prompt", "name": "weekly_review" });
        let completed = ask("completion/complete", json!({ "ref": reference, "argument": typed }));
        assert_eq!(completed["result"]["completion"]["values"], json!(["14"]));
        for (name, arguments, message) in
            [("brief", json!({}), "the argument `topic` is missing"), ("none", json!({}), "there is no prompt none")]
        {
            let refused = ask("prompts/get", json!({ "name": name, "arguments": arguments }));
            assert_eq!((&refused["error"]["code"], &refused["error"]["message"]), (&json!(-32602), &json!(message)));
        }
    }
}

#[test]
fn prompts_for_writing_are_not_offered_to_readers() {
    let mut client = Client::open_in(crate::client::vault(NOTES), &["--read-only", "--toolsets", "notes"]);
    let listed = client.request("prompts/list", json!({}));
    assert_eq!(names(&listed), ["brief", "weekly_review"]);
    let brief = client.request("prompts/get", json!({ "name": "brief", "arguments": { "topic": "x" } }));
    let text = brief["result"]["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(text.contains("`search`") && !text.contains("ubp_") && !text.contains("search_entities"), "{text}");
}
