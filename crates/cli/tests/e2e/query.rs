//! `query_nodes` over the wire: it follows writes by tools and by other programs, and survives a restart of the server.

use serde_json::{Value, json};

use crate::client::{Client, vault};

const NOTES: &str = "\
//- alpha.md
---
status: draft
---
- [ ] one [[beta]]
- [x] two
//- beta.md
---
status: done
tags: [a/b]
---
//- gamma.md
---
created: 2020-01-01
---
";

fn ids(client: &mut Client, arguments: Value) -> Vec<String> {
    let answer = client.answer("query_nodes", arguments);
    answer["nodes"].as_array().unwrap().iter().map(|node| node["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn questions_of_daily_work_are_one_call_each() {
    let mut client = Client::open(NOTES);
    let one = |field: &str, op: &str, value: Value| json!({ "field": field, "op": op, "value": value });
    let drafts =
        json!({ "where": [one("property.status", "eq", json!("draft")), one("modified", "within", json!("7d"))] });
    assert_eq!(ids(&mut client, drafts.clone()), ["alpha.md"]);
    let orphans = json!({ "where": [one("links_in", "eq", json!(0)), one("links_out", "eq", json!(0))] });
    assert_eq!(ids(&mut client, orphans.clone()), ["gamma.md"]);
    let tags = client.answer("query_nodes", json!({ "group_by": "tags" }));
    let expected = json!([{ "value": "a/b", "count": 1 }, { "value": null, "count": 2 }]);
    assert_eq!(tags, json!({ "total": 2, "groups": expected }));

    client.answer("create_node", json!({ "id": "delta.md", "content": "[[gamma]]" }));
    assert!(ids(&mut client, orphans).is_empty(), "a written link counts at once");
    client.answer("get_node", json!({ "id": "beta.md" }));
    client.answer("update_node", json!({ "id": "beta.md", "tags": ["c"] }));
    let tagged = json!({ "where": [one("tags", "eq", json!("c"))], "fields": ["property.status"] });
    let nodes = json!([{ "id": "beta.md", "title": "Beta", "property.status": "done" }]);
    assert_eq!(client.answer("query_nodes", tagged), json!({ "total": 1, "nodes": nodes }));
    assert_eq!(ids(&mut client, drafts), ["alpha.md"]);
}

#[test]
fn task_counts_are_kept_over_a_restart() {
    let open_tasks = json!({ "where": [{ "field": "tasks_open", "op": "gt", "value": 0 }], "fields": ["tasks_done"] });
    let nodes = json!([{ "id": "alpha.md", "title": "Alpha", "tasks_done": 1 }]);
    let mut first = Client::open_in(vault(NOTES), &[]);
    let before = first.answer("query_nodes", open_tasks.clone());
    assert_eq!(before, json!({ "total": 1, "nodes": nodes }));
    let mut second = first.join(&[]);
    drop(first);
    assert_eq!(second.answer("query_nodes", open_tasks), before);
}
