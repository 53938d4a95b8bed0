//! The calls that benchmarks time: every read tool, with typical arguments.
//!
//! The same ids give the same calls in every process, so that times over a connection and in the process can be compared.

use serde_json::{Value, json};

use crate::generate::{Random, tag, word};

/// One kind of call, and the calls of that kind.
pub struct Kind {
    /// Its name in tables.
    pub label: &'static str,
    pub tool: &'static str,
    /// The arguments, one for each call.
    pub arguments: Vec<Value>,
}

/// Calls of every kind on a vault of [`crate::generate`] with these note ids, sorted.
pub fn kinds(ids: &[String], calls_a_kind: usize) -> Vec<Kind> {
    let mut random = Random(11);
    let mut kind = |label, tool, make: &dyn Fn(&mut Random) -> Value| Kind {
        label,
        tool,
        arguments: (0..calls_a_kind).map(|_| make(&mut random)).collect(),
    };
    let id = |random: &mut Random| &ids[random.below(ids.len())];
    let some_tag = |random: &mut Random| tag(random.below(20));
    // Words in some notes: neither in all nor in none.
    let some_word = |random: &mut Random| word(100 + random.below(2000));
    vec![
        kind("get_node", "get_node", &|r| json!({ "id": id(r) })),
        kind("get_node with neighbours", "get_node", &|r| json!({ "id": id(r), "depth": 1 })),
        kind("get_neighbors", "get_neighbors", &|r| json!({ "id": id(r) })),
        kind("get_neighbors with text", "get_neighbors", &|r| json!({ "id": id(r), "include_content": true })),
        kind("find_path", "find_path", &|r| json!({ "source": id(r), "target": id(r) })),
        kind("get_hubs by links", "get_hubs", &|_| json!({ "limit": 50 })),
        kind("get_hubs by rank", "get_hubs", &|_| json!({ "metric": "pagerank", "limit": 50 })),
        kind("search_by_tags, any", "search_by_tags", &|r| json!({ "tags": [some_tag(r), some_tag(r)] })),
        kind("search_by_tags, all", "search_by_tags", &|r| json!({ "tags": [tag(0), some_tag(r)], "mode": "all" })),
        kind("random_node", "random_node", &|r| json!({ "tags": [some_tag(r)] })),
        kind("list_nodes", "list_nodes", &|r| json!({ "offset": r.below(ids.len()) })),
        kind("list_nodes by tag", "list_nodes", &|r| json!({ "tag": some_tag(r) })),
        kind("resolve_nodes, exact", "resolve_nodes", &|r| json!({ "names": [stem(id(r))], "strategy": "exact" })),
        kind("resolve_nodes, fuzzy", "resolve_nodes", &|r| json!({ "names": [mistyped(stem(id(r)))] })),
        kind("query_nodes by property, newest first", "query_nodes", &|r| {
            json!({
                "where": [{ "field": "property.created", "op": "ge", "value": format!("2026-{:02}-01", 1 + r.below(12)) }],
                "sort": [{ "field": "modified", "order": "desc" }],
                "fields": ["modified", "tags"]
            })
        }),
        kind(
            "query_nodes by tag",
            "query_nodes",
            &|r| json!({ "where": [{ "field": "tags", "op": "contains", "value": some_tag(r) }] }),
        ),
        kind("query_nodes by 1000 ids", "query_nodes", &|r| {
            let wanted: Vec<&String> = (0..1000).map(|_| id(r)).collect();
            json!({ "where": [{ "field": "id", "op": "in", "value": wanted }], "limit": 10 })
        }),
        kind(
            "query_nodes by modified",
            "query_nodes",
            &|_| json!({ "where": [{ "field": "modified", "op": "within", "value": "7d" }] }),
        ),
        kind("query_nodes, tags with counts", "query_nodes", &|_| json!({ "group_by": "tags" })),
        kind("nodes_exist", "nodes_exist", &|r| json!({ "ids": [id(r), id(r), "no/such.md"] })),
        kind(
            "list_documents of a section",
            "list_documents",
            &|r| json!({ "section": format!("area{}", r.below(20)) }),
        ),
        kind("get_document", "get_document", &|r| json!({ "path": id(r) })),
        kind("search_docs, common word", "search_docs", &|r| json!({ "query": word(r.below(10)) })),
        kind("search_docs, one word", "search_docs", &|r| json!({ "query": some_word(r) })),
        kind(
            "search_docs, two words",
            "search_docs",
            &|r| json!({ "query": format!("{} {}", some_word(r), word(30)) }),
        ),
    ]
}

/// The median and the 95th percentile.
pub fn percentiles(mut times: Vec<f64>) -> (f64, f64) {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
    (at(0.5), at(0.95))
}

fn stem(id: &str) -> &str {
    id.rsplit('/').next().unwrap_or(id).trim_end_matches(".md")
}

/// The name without its third letter.
fn mistyped(name: &str) -> String {
    name.chars().enumerate().filter(|(at, _)| *at != 2).map(|(_, letter)| letter).collect()
}
