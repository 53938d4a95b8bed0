//! The document that the pages toolset comes from: every field, default, limit and error of the five tools.

#![expect(clippy::needless_pass_by_value, reason = "calls read better with `json!` in place")]
#![expect(clippy::disallowed_methods, reason = "a test plays the user, who removes a file")]

use serde_json::{Value, json};

use crate::client::Client;

const PAGES: &str = "\
//- designs/search.md
---
title: Search Design
doc_type: design
source_refs:
  - src/search.ts
---
The preamble on 検索.

## Ranking

Ranking needs [[store|depends_on]] and follows [[spec|implements]].

### Ties

By path. 🚀 Cafe\u{301} ภาษาไทย العربية
//- spec.md
---
doc_type: spec
---
What search must do. See [the design](designs/search.md).
//- store.md
---
doc_type: db-schema
---
Tables. [[spec|extends]] [[rival|conflicts_with]]
//- rival.md
Another store.
//- src/search.ts
export {}
";

fn page(client: &mut Client, path: &str) -> Value {
    client.answer("ubp_get_page", json!({ "filepath": path }))
}

/// The code and message of a call that must fail as an error of the protocol.
fn refused(client: &mut Client, tool: &str, arguments: Value) -> (i64, String) {
    let answer = client.request("tools/call", json!({ "name": tool, "arguments": arguments }));
    let error = &answer["error"];
    let code = error["code"].as_i64().unwrap_or_else(|| panic!("{tool} did not fail: {answer}"));
    (code, error["message"].as_str().unwrap().to_owned())
}

fn is_uuid_v5(text: &str) -> bool {
    let form: String = text.chars().map(|c| if c.is_ascii_hexdigit() { 'x' } else { c }).collect();
    form == "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx" && text.as_bytes()[14] == b'5'
}

#[test]
fn get_page_has_every_field() {
    let mut client = Client::open(PAGES);
    let answer = page(&mut client, "designs/search.md");
    let fields: Vec<&str> = answer.as_object().unwrap().keys().map(String::as_str).collect();
    let expected =
        "doc_id filepath title doc_type version content sections outlinks backlinks staleness stale_refs updated_at";
    assert_eq!(fields.join(" "), expected);
    assert!(is_uuid_v5(answer["doc_id"].as_str().unwrap()), "{answer}");
    assert_eq!((&answer["title"], &answer["doc_type"]), (&json!("Search Design"), &json!("design")));
    assert!(answer["content"].as_str().unwrap().starts_with("The preamble on 検索.\n\n## Ranking\n"), "the real body");
    let headings: Vec<&Value> = answer["sections"].as_array().unwrap().iter().map(|part| &part["heading"]).collect();
    assert_eq!(headings, [&json!(null), &json!("Ranking"), &json!("Ties")]);
    let links = |name: &str| -> Vec<(String, String)> {
        let text = |link: &Value, field: &str| link[field].as_str().unwrap().to_owned();
        answer[name].as_array().unwrap().iter().map(|link| (text(link, "link_type"), text(link, "filepath"))).collect()
    };
    let link = |link_type: &str, path: &str| (link_type.to_owned(), path.to_owned());
    assert_eq!(links("outlinks"), [link("depends_on", "store.md"), link("implements", "spec.md")]);
    assert_eq!(links("backlinks"), [link("references", "spec.md")]);
    // A database has no source files.
    let level = if crate::team_wire::is_wanted() { "untracked" } else { "fresh" };
    assert_eq!((&answer["staleness"], &answer["stale_refs"]), (&json!(level), &json!([])));
    assert_eq!(page(&mut client, "spec.md")["staleness"], "untracked");
    let id = answer["outlinks"][0]["doc_id"].clone();
    assert_eq!(page(&mut client, "STORE.md")["doc_id"], id, "in any case, when it is unambiguous");
}

#[test]
fn changed_source_makes_the_page_stale_at_the_next_call() {
    if crate::team_wire::is_wanted() {
        return quipu_testkit::skip("a database has no source files");
    }
    let mut client = Client::open(PAGES);
    let level = |client: &mut Client| {
        let answer = page(client, "designs/search.md");
        (answer["staleness"].as_str().unwrap().to_owned(), answer["stale_refs"].clone())
    };
    assert_eq!(level(&mut client), ("fresh".into(), json!([])));
    client.write("src/search.ts", "export { changed }");
    assert_eq!(level(&mut client), ("possibly_stale".into(), json!(["src/search.ts"])));
    client.write("src/search.ts", "export {}\n");
    assert_eq!(level(&mut client), ("fresh".into(), json!([])));
    std::fs::remove_file(client.root().join("src/search.ts")).unwrap();
    assert_eq!(level(&mut client), ("stale".into(), json!(["src/search.ts"])));
}

#[test]
fn get_context_has_the_page_and_its_neighbours() {
    let mut client = Client::open(PAGES);
    let answer = client.answer("ubp_get_context", json!({ "filepath": "designs/search.md" }));
    let lines: Vec<String> = answer["related"]
        .as_array()
        .unwrap()
        .iter()
        .map(|page| format!("{} {} {} {}", page["depth"], page["direction"], page["link_type"], page["filepath"]))
        .collect();
    let expected = [
        "1 \"outlink\" \"depends_on\" \"store.md\"",
        "1 \"outlink\" \"implements\" \"spec.md\"",
        "2 \"outlink\" \"conflicts_with\" \"rival.md\"",
    ];
    assert_eq!(lines, expected);
    assert_eq!(answer["related"][2]["summary"], "Another store.");
    assert_eq!(answer["center"]["title"], "Search Design");
    let chars = |text: &Value| text.as_str().unwrap().chars().count();
    let size = chars(&answer["center"]["content"])
        + answer["related"].as_array().unwrap().iter().map(|page| chars(&page["summary"])).sum::<usize>();
    assert_eq!((&answer["total_size"], &answer["truncated_count"]), (&json!(size), &json!(0)));
    let near = client.answer("ubp_get_context", json!({ "filepath": "designs/search.md", "depth": 1 }));
    assert_eq!(near["related"].as_array().unwrap().len(), 2);
    let small = client.answer("ubp_get_context", json!({ "filepath": "spec.md", "max_size": 60 }));
    assert!(small["total_size"].as_u64().unwrap() <= 60 && small["truncated_count"].as_u64().unwrap() > 0, "{small}");
}

#[test]
fn words_of_every_script_are_found_and_marked() {
    let mut client = Client::open(PAGES);
    for (query, heading, marked) in [
        ("検索", json!(null), "<mark>検索</mark>"),
        ("検", json!(null), "<mark>検</mark>索"),
        ("🚀", json!("Ties"), "<mark>🚀</mark>"),
        ("café", json!("Ties"), "<mark>Cafe\u{301}</mark>"),
        ("ไทย", json!("Ties"), "ภาษา<mark>ไทย</mark>"),
        ("العربية", json!("Ties"), "<mark>العربية</mark>"),
    ] {
        let answer = client.answer("ubp_fulltext_search", json!({ "query": query }));
        let hit = &answer["results"][0];
        assert_eq!((&hit["filepath"], &hit["section_heading"]), (&json!("designs/search.md"), &heading), "{query}");
        let snippet = hit["snippet"].as_str().unwrap();
        assert!(snippet.contains(marked), "{snippet}");
        assert!(snippet.replace("<mark>", "").replace("</mark>", "").chars().count() <= 64, "{snippet}");
    }
    let answer = client.answer("ubp_fulltext_search", json!({ "query": "store", "limit": 1 }));
    let fields: Vec<&str> = answer["results"][0].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(fields.join(" "), "doc_id filepath title section_heading snippet rank");
    let total = answer["total_found"].as_u64().unwrap();
    assert!(total > 1, "{answer}");
    let spec = client.answer("ubp_fulltext_search", json!({ "query": "search", "doc_type": "spec" }));
    assert_eq!((&spec["results"][0]["filepath"], &spec["total_found"]), (&json!("spec.md"), &json!(1)));
    assert_eq!(
        client.answer("ubp_fulltext_search", json!({ "query": "zeppelin" })),
        json!({"results": [], "total_found": 0})
    );
}

#[test]
fn pages_are_listed_by_type_and_in_order() {
    let mut client = Client::open(PAGES);
    let mut list = |arguments: Value| -> Vec<String> {
        let answer = client.answer("ubp_list_pages", arguments);
        let pages = answer["pages"].as_array().unwrap();
        assert_eq!(answer["total"], json!(pages.len()));
        pages.iter().map(|page| page["filepath"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(list(json!({})), ["rival.md", "designs/search.md", "spec.md", "store.md"], "by title");
    assert_eq!(
        list(json!({ "sort": "filepath", "order": "desc" })),
        ["store.md", "spec.md", "rival.md", "designs/search.md"]
    );
    assert_eq!(list(json!({ "doc_type": "db-schema" })), ["store.md"]);
    assert_eq!(list(json!({ "doc_type": "other" })), ["rival.md"], "what does not say");
    assert_eq!(list(json!({ "doc_type": "meeting" })), [""; 0]);
    assert_eq!(list(json!({ "sort": "updated_at" })).len(), 4);
    let answer = client.answer("ubp_list_pages", json!({ "doc_type": "design" }));
    assert_eq!(answer["pages"][0]["link_count"], 2);
}

#[test]
fn the_graph_has_typed_edges() {
    let mut client = Client::open(PAGES);
    let all = client.answer("ubp_get_graph", json!({}));
    assert_eq!((all["nodes"].as_array().unwrap().len(), all["edges"].as_array().unwrap().len()), (4, 5));
    let fields: Vec<&str> = all["nodes"][0].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(fields.join(" "), "id filepath title doc_type");
    let mut types: Vec<&str> =
        all["edges"].as_array().unwrap().iter().map(|edge| edge["type"].as_str().unwrap()).collect();
    types.sort_unstable();
    assert_eq!(types, ["conflicts_with", "depends_on", "extends", "implements", "references"]);
    let rival = all["nodes"].as_array().unwrap().iter().find(|node| node["filepath"] == "rival.md").unwrap();
    for center in [&rival["id"], &json!("rival.md")] {
        let near = client.answer("ubp_get_graph", json!({ "center": center, "depth": 1 }));
        assert_eq!((near["nodes"].as_array().unwrap().len(), near["edges"].as_array().unwrap().len()), (2, 1));
        assert_eq!(near["edges"][0]["target"], rival["id"]);
    }
}

#[test]
fn page_tool_errors_are_protocol_errors() {
    let mut client = Client::open(PAGES);
    for (tool, arguments, expected) in [
        ("ubp_get_page", json!({}), "`filepath` is missing"),
        ("ubp_get_page", json!({ "filepath": "nowhere.md" }), "no page has the path \"nowhere.md\""),
        ("ubp_get_page", json!({ "filepath": "../../etc/passwd" }), "no page has the path"),
        ("ubp_get_page", json!({ "filepath": "spec.md", "raw": true }), "`raw` is not an argument of this tool"),
        ("ubp_get_context", json!({ "filepath": "nowhere.md" }), "no page has the path"),
        (
            "ubp_get_context",
            json!({ "filepath": "spec.md", "depth": 0 }),
            "`depth` is 0; it must be a whole number from 1 to 3",
        ),
        ("ubp_get_context", json!({ "filepath": "spec.md", "depth": 4 }), "`depth` is 4"),
        ("ubp_fulltext_search", json!({ "query": "" }), "`query`"),
        (
            "ubp_fulltext_search",
            json!({ "query": "x", "limit": 51 }),
            "`limit` is 51; it must be a whole number from 1 to 50",
        ),
        (
            "ubp_fulltext_search",
            json!({ "query": "x", "doc_type": "poem" }),
            "`doc_type` is \"poem\"; it must be one of",
        ),
        ("ubp_list_pages", json!({ "sort": "size" }), "`sort` is \"size\"; it must be one of"),
        ("ubp_list_pages", json!({ "order": "up" }), "`order` is \"up\"; it must be one of"),
        ("ubp_get_graph", json!({ "depth": 6 }), "`depth` is 6; it must be a whole number from 1 to 5"),
        ("ubp_get_graph", json!({ "center": "nowhere.md" }), "no page has the path"),
    ] {
        let (code, message) = refused(&mut client, tool, arguments.clone());
        assert_eq!(code, -32602, "{tool} {arguments}");
        assert!(message.contains(expected), "{tool} {arguments}: {message}");
    }
}

#[test]
fn doc_id_survives_a_rebuild_of_the_index() {
    let mut client = Client::open(PAGES);
    let before = page(&mut client, "store.md")["doc_id"].clone();
    drop(client);
    let mut client = Client::open(PAGES);
    assert_eq!(page(&mut client, "store.md")["doc_id"], before, "in another vault, even");
}
