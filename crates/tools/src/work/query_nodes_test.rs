//! Conditions, sorting, fields, groups and their errors.

use serde_json::json;

use crate::testing::Harness;

const NOTES: &str = "\
//- projects/alpha.md
---
status: Draft
priority: 3
due: 2025-02-03
tags: [work/client, urgent]
authors: [Ada, Grace Hopper]
---
- [ ] write
- [x] plan
See [[beta]] and [[nowhere]].
//- projects/beta.md
---
status: done
priority: 10
due: 2025-03-01T09:30
tags: [work]
---
Back to [[alpha]].
//- 2025-01-28.md
---
status:
---
A day.
//- lonely.md
---
priority: high
workshop: true
created: 2020-05-06
---
%% - [ ] hidden %%
```
- [ ] code
```
";

fn ids(arguments: serde_json::Value) -> Vec<String> {
    let answer = Harness::new(NOTES).call("query_nodes", arguments);
    let nodes = answer["nodes"].as_array().unwrap_or_else(|| panic!("{answer}"));
    nodes.iter().map(|node| node["id"].as_str().unwrap().to_owned()).collect()
}

#[expect(clippy::needless_pass_by_value, reason = "a test writes `json!` at the call")]
fn found(field: &str, op: &str, value: serde_json::Value) -> Vec<String> {
    ids(json!({"where": [{"field": field, "op": op, "value": value}]}))
}

const ALPHA: &str = "projects/alpha.md";
const BETA: &str = "projects/beta.md";
const DAY: &str = "2025-01-28.md";
const LONELY: &str = "lonely.md";

#[test]
fn text_is_compared_without_case_and_lists_by_any_item() {
    assert_eq!(found("property.status", "eq", json!("draft")), [ALPHA]);
    assert_eq!(found("property.STATUS", "in", json!(["DRAFT", "done"])), [ALPHA, BETA]);
    assert_eq!(found("property.authors", "eq", json!("ada")), [ALPHA]);
    assert_eq!(found("property.authors", "contains", json!("hop")), [ALPHA]);
    assert_eq!(found("title", "starts_with", json!("al")), [ALPHA]);
    assert_eq!(found("id", "starts_with", json!("Projects/")), [ALPHA, BETA]);
    assert_eq!(found("folder", "eq", json!("projects")), [ALPHA, BETA]);
    assert_eq!(found("property.workshop", "eq", json!(true)), [LONELY]);
    assert_eq!(found("properties", "eq", json!("priority")), [LONELY, ALPHA, BETA]);
}

#[test]
fn a_path_leads_into_maps_and_lists() {
    let harness = Harness::new(
        "//- a.md\n---\nmeta: {status: Draft, size: {pages: 3}}\nplan.b: dotted\n---\n\
         //- b.md\n---\nMeta:\n  Status: done\nreviews:\n  - {by: Ada, stars: 4}\n  - {by: Grace, stars: 5}\n---\n\
         //- c.md\n---\nmeta: {status: }\nempty: {status: }\n---\n",
    );
    let found = |field: &str, op: &str, value: serde_json::Value| -> Vec<String> {
        let called = harness.called("query_nodes", json!({"where": [{"field": field, "op": op, "value": value}]}));
        let crate::Reply::Answer(answer) = called.reply else { panic!("{called:?}") };
        let nodes = answer["nodes"].as_array().unwrap().iter().map(|node| node["id"].as_str().unwrap().to_owned());
        nodes.chain(called.warnings.into_iter().filter(|warning| warning.contains("property"))).collect()
    };
    assert_eq!(found("property.meta.status", "eq", json!("draft")), ["a.md"]);
    assert_eq!(found("property.META.Status", "in", json!(["done", "x"])), ["b.md"]);
    assert_eq!(found("property.meta.size.pages", "gt", json!(2)), ["a.md"]);
    assert_eq!(found("property.plan.b", "eq", json!("dotted")), ["a.md"]);
    assert_eq!(found("property.reviews.stars", "ge", json!(5)), ["b.md"]);
    assert_eq!(found("property.empty.status", "eq", json!("x")), [""; 0], "it is there, without a value");
    let unknown = "no note has the property \"meta.none\"; did you mean property.meta?";
    assert_eq!(found("property.meta.none", "eq", json!("x")), [unknown]);
    let shown = harness.call("query_nodes", json!({"fields": ["property.meta.status", "property.reviews.by"]}));
    let of = |at: usize, field: &str| shown["nodes"][at][field].clone();
    assert_eq!(of(0, "property.meta.status"), "Draft");
    assert_eq!(of(1, "property.reviews.by"), json!(["Ada", "Grace"]));
    assert_eq!(of(2, "property.meta.status"), json!(null));
    let groups = harness.call("query_nodes", json!({"group_by": "property.meta.status"}));
    assert_eq!(groups["groups"][0], json!({"value": "done", "count": 1}));
}

#[test]
fn a_link_equals_the_name_of_its_note() {
    let harness = Harness::new(
        "//- a.md\n---\nby: \"[[Grace Hopper]]\"\n---\n//- b.md\n---\nby: grace hopper\n---\n\
         //- c.md\n---\nby: [\"[[Grace Hopper|Grace]]\", \"[[2025-02-03]]\"]\n---\n\
         //- d.md\n---\nby: \"[[Grace Hopper]] and [[Ada]]\"\n---\n",
    );
    for written in ["Grace Hopper", "[[Grace Hopper]]", "[[grace hopper#Life|her]]"] {
        let where_ = json!([{"field": "property.by", "op": "eq", "value": written}]);
        let answer = harness.call("query_nodes", json!({ "where": where_, "fields": ["property.by"] }));
        assert_eq!(answer["total"], 3, "{written}: {answer}");
        assert_eq!(answer["nodes"][0]["property.by"], "[[Grace Hopper]]", "as written");
    }
    let total = |op: &str, value: &str| {
        harness.call("query_nodes", json!({"where": [{"field": "property.by", "op": op, "value": value}]}))["total"]
            .clone()
    };
    assert_eq!(total("lt", "2025-03-01"), 1, "a link to a daily note is its date");
    assert_eq!(total("contains", "and [[Ada"), 1, "not one link");
    let titled = Harness::new("//- a.md\n---\ntitle: \"[[x]]\"\n---\n");
    let title = json!([{"field": "title", "op": "eq", "value": "[[x]]"}]);
    assert_eq!(titled.call("query_nodes", json!({ "where": title }))["total"], 1, "a title is no link");
}

#[test]
fn numbers_compare_as_numbers_and_not_with_text() {
    assert_eq!(found("property.priority", "gt", json!(3)), [BETA]);
    assert_eq!(found("property.priority", "ge", json!("3")), [ALPHA, BETA]);
    assert_eq!(found("property.priority", "eq", json!("10")), [BETA]);
    assert_eq!(found("property.priority", "lt", json!("i")), [LONELY], "texts compare with texts");
}

#[test]
fn dates_compare_with_the_precision_given() {
    assert_eq!(found("property.due", "le", json!("2025-02-03")), [ALPHA]);
    assert_eq!(found("property.due", "eq", json!("2025-03-01")), [BETA], "a day has its times");
    assert_eq!(found("property.due", "gt", json!("2025-03-01")), [""; 0]);
    assert_eq!(found("property.due", "ge", json!("2025-03-01T09:30")), [BETA]);
    assert_eq!(found("property.due", "eq", json!("2025-02")), [ALPHA]);
    assert_eq!(found("created", "eq", json!("2025-01-28")), [DAY], "from the name of a daily note");
    assert_eq!(found("created", "lt", json!("2021-01-01")), [LONELY]);
}

#[test]
fn within_counts_from_now() {
    // The clock of tests stands in January 2025, a few seconds after the files were written.
    let harness = Harness::new(NOTES);
    let now = harness.call("query_nodes", json!({"fields": ["modified"], "limit": 1}));
    assert!(now["nodes"][0]["modified"].as_str().unwrap().starts_with("2025-01-29"), "{now}");
    assert_eq!(found("modified", "within", json!("1h")).len(), 4);
    assert_eq!(found("created", "within", json!("2d")), [DAY]);
    assert_eq!(found("property.due", "within", json!("+7d")), [ALPHA]);
    assert_eq!(found("property.due", "within", json!("+6w")), [ALPHA, BETA]);
    assert_eq!(found("property.due", "within", json!("4w")), [""; 0]);
}

#[test]
fn tags_contain_nested_tags() {
    assert_eq!(found("tags", "contains", json!("#Work")), [ALPHA, BETA]);
    assert_eq!(found("tags", "eq", json!("work")), [BETA]);
    assert_eq!(found("tags", "contains", json!("wor")), [""; 0]);
    assert_eq!(found("tags", "starts_with", json!("wor")), [ALPHA, BETA]);
    let untagged = json!({"where": [{"field": "tags", "op": "missing"}]});
    assert_eq!(ids(untagged), [DAY, LONELY]);
}

#[test]
fn blank_values_are_missing_and_differ_from_all() {
    assert_eq!(ids(json!({"where": [{"field": "property.status", "op": "exists"}]})), [ALPHA, BETA]);
    assert_eq!(ids(json!({"where": [{"field": "property.status", "op": "missing"}]})), [DAY, LONELY]);
    assert_eq!(found("property.status", "ne", json!("draft")), [DAY, LONELY, BETA]);
}

#[test]
fn links_and_tasks_are_counted() {
    let orphans = json!({"where": [{"field": "links_in", "op": "eq", "value": 0}, {"field": "links_out", "op": "eq", "value": "0"}]});
    assert_eq!(ids(orphans), [DAY, LONELY]);
    assert_eq!(found("broken_links", "gt", json!(0)), [ALPHA]);
    assert_eq!(found("links_to", "eq", json!("Alpha")), [BETA], "by title");
    assert_eq!(found("links_to", "eq", json!("nowhere")), [ALPHA], "a broken link");
    assert_eq!(found("linked_from", "in", json!([ALPHA, BETA])), [ALPHA, BETA]);
    assert_eq!(found("links_to", "ne", json!("alpha")), [DAY, LONELY, ALPHA]);
    assert_eq!(found("tasks_open", "ge", json!(1)), [ALPHA]);
    assert_eq!(found("chars", "lt", json!(10)), [DAY]);
    let counts =
        json!({"where": [{"field": "id", "op": "eq", "value": ALPHA}], "fields": ["tasks_open", "tasks_done"]});
    let node = json!({"id": ALPHA, "title": "Alpha", "tasks_open": 1, "tasks_done": 1});
    assert_eq!(Harness::new(NOTES).call("query_nodes", counts), json!({"total": 1, "nodes": [node]}));
}

#[test]
fn any_needs_one_and_sort_puts_missing_last() {
    let either = json!({
        "where": [{"field": "folder", "op": "eq", "value": "projects"}],
        "any": [{"field": "property.priority", "op": "gt", "value": 5}, {"field": "tags", "op": "eq", "value": "none"}]
    });
    assert_eq!(ids(either), [BETA]);
    let sort = |order| json!({"sort": [{"field": "property.priority", "order": order}]});
    assert_eq!(ids(sort("asc")), [ALPHA, BETA, LONELY, DAY]);
    assert_eq!(ids(sort("desc")), [LONELY, BETA, ALPHA, DAY]);
    let page = json!({"sort": [{"field": "property.due", "order": "desc"}], "limit": 1, "offset": 1});
    assert_eq!(ids(page), [ALPHA]);
    let two = json!({"sort": [{"field": "folder", "order": "desc"}, {"field": "title", "order": "desc"}]});
    assert_eq!(ids(two), [BETA, ALPHA, LONELY, DAY]);
}

#[test]
fn groups_have_counts() {
    let harness = Harness::new(NOTES);
    let group = |value, count| json!({"value": value, "count": count});
    let tags =
        [group(json!("urgent"), 1), group(json!("work"), 1), group(json!("work/client"), 1), group(json!(null), 2)];
    assert_eq!(harness.call("query_nodes", json!({"group_by": "tags"})), json!({"total": 4, "groups": tags}));
    let status =
        json!({"group_by": "property.status", "where": [{"field": "folder", "op": "eq", "value": "projects"}]});
    let groups = [group(json!("done"), 1), group(json!("Draft"), 1)];
    assert_eq!(harness.call("query_nodes", status), json!({"total": 2, "groups": groups}));
    let days = harness.call("query_nodes", json!({"group_by": "modified"}));
    assert_eq!(days, json!({"total": 1, "groups": [group(json!("2025-01-29"), 4)]}));
    let first = harness.called("query_nodes", json!({"group_by": "tags", "limit": 1}));
    assert_eq!(first.warnings[0], "1 of 4 groups are listed; continue with `offset` 1");
}

#[test]
fn errors_name_what_is_allowed() {
    let harness = Harness::new(NOTES);
    let fails = |arguments, expected: &str| {
        let (code, message) = harness.fails("query_nodes", arguments);
        assert_eq!(code, "INVALID_PARAMS");
        assert!(message.starts_with(expected), "{message}");
    };
    let unknown = "`where[0].field` is";
    for (field, op, value, expected) in [
        ("statsu", "eq", json!(1), "\"statsu\", which is not a field; did you mean property.status? (allowed: id,"),
        ("status", "eq", json!(1), "\"status\", which is not a field; did you mean property.status? (allowed: id,"),
        ("modifed", "eq", json!(1), "\"modifed\", which is not a field; did you mean modified? (allowed: id,"),
        ("ags", "eq", json!(1), "\"ags\", which is not a field; (allowed: id,"),
    ] {
        let arguments = json!({"where": [{"field": field, "op": op, "value": value}]});
        fails(arguments, &format!("{unknown} {expected}"));
    }
    for (field, op, value, expected) in [
        (
            "chars",
            "contains",
            json!(1),
            "`contains` does not apply to `chars`; allowed: eq, ne, lt, le, gt, ge, in, exists",
        ),
        ("chars", "gt", json!("many"), "`chars` is compared with a number"),
        ("modified", "gt", json!("yesterday"), "`modified` is compared with an ISO date or time"),
        ("modified", "within", json!("a week"), "`within` needs a length of time"),
        ("tags", "in", json!("a"), "`in` needs a list of values"),
        ("tags", "eq", json!(["a"]), "`tags` is compared with one text, number, true or false; use `in`"),
        ("tags", "exists", json!("a"), "`exists` takes no value"),
        ("tags", "eq", json!(null), "`eq` needs a value"),
    ] {
        let arguments = json!({"where": [{"field": field, "op": op, "value": value}]});
        fails(arguments, &format!("`where[0]`: {expected}"));
    }
    for (arguments, expected) in [
        (
            json!({"where": [{"field": "id", "op": "like"}]}),
            "`where[0].op` is \"like\"; it must be one of \"eq\", \"ne\",",
        ),
        (json!({"any": [{"field": "tags"}]}), "`any[0]` is not a condition: missing field `op`"),
        (
            json!({"sort": [{"field": "links_to"}]}),
            "`sort[0].field` is \"links_to\", which is only for conditions; (allowed",
        ),
        (json!({"fields": ["x"]}), "`fields[0]` is \"x\", which is not a field; (allowed"),
        (json!({"group_by": "tags", "fields": ["id"]}), "`group_by` answers counts"),
        (json!({"limit": 1001}), "`limit` is 1001; it must be a whole number from 1 to 1000"),
    ] {
        fails(arguments, expected);
    }
}

#[test]
fn names_that_nothing_has_are_pointed_out() {
    let harness = Harness::new(NOTES);
    let warned = |field: &str, value: &str| {
        let arguments = json!({"where": [{"field": field, "op": "eq", "value": value}]});
        harness.called("query_nodes", arguments).warnings.into_iter().next().unwrap_or_default()
    };
    assert!(warned("title", "x").contains("broken link"), "reported once, by the first answer");
    assert_eq!(warned("property.statu", "x"), "no note has the property \"statu\"; did you mean property.status?");
    assert_eq!(warned("links_to", "alhpa.md"), "no note has the id \"alhpa.md\"; near names: \"projects/alpha.md\"");
    assert_eq!(warned("property.status", "x"), "");
}

#[test]
fn long_answer_is_cut_and_names_the_next_page() {
    let notes: String = (0..300).map(|n| format!("//- n{n:03}.md\n---\nabout: {}\n---\n", "x".repeat(900))).collect();
    let harness = Harness::new(&notes);
    let called = harness.called("query_nodes", json!({"fields": ["property.about"]}));
    let crate::Reply::Answer(answer) = called.reply else { panic!("{called:?}") };
    let listed = answer["nodes"].as_array().unwrap().len();
    assert!(answer.to_string().len() <= 40_000 && listed > 30 && answer["total"] == 300, "{listed}");
    assert_eq!(called.warnings, [format!("{listed} of 300 notes are listed; continue with `offset` {listed}")]);
    // A client that gives a limit has room for it.
    let called = harness.called("query_nodes", json!({"fields": ["property.about"], "limit": 300}));
    let crate::Reply::Answer(answer) = &called.reply else { panic!("{called:?}") };
    assert_eq!((answer["nodes"].as_array().unwrap().len(), called.warnings), (300, Vec::new()));
}

#[test]
fn a_write_is_seen_by_the_next_query() {
    let harness = Harness::new(NOTES);
    let query = |field: &str, op: &str, value| {
        let answer = harness.call("query_nodes", json!({"where": [{"field": field, "op": op, "value": value}]}));
        answer["total"].as_u64().unwrap()
    };
    let asked =
        [("property.status", "eq", json!("draft")), ("links_in", "ge", json!(1)), ("broken_links", "gt", json!(0))];
    let all = || asked.clone().map(|(field, op, value)| query(field, op, value));
    assert_eq!(all(), [1, 2, 1]);
    harness.call("create_node", json!({"id": "nowhere.md", "content": "[[lonely]] [[gone]]"}));
    assert_eq!(all(), [1, 4, 1], "it repairs one link and brings another broken one");
    harness.call("get_node", json!({"id": "lonely.md"}));
    harness.call("update_node", json!({"id": "lonely.md", "content": "---\nstatus: draft\n---\n"}));
    harness.call("delete_node", json!({"id": "nowhere.md"}));
    harness.vault.put("lonely.md", "---\nstatus: draft\n---\n");
    harness.knowledge.apply(&quipu_core::index::FileBatch::AllRehashed, &|_| {}).unwrap();
    assert_eq!(all()[0], 2);
}

#[test]
fn many_unknown_notes_are_counted() {
    let harness = Harness::new("//- a.md\n");
    let names: Vec<String> = (0..500).map(|number| format!("nowhere {number}")).collect();
    let where_ = json!([{"field": "links_to", "op": "in", "value": names}]);
    let warnings = harness.called("query_nodes", json!({ "where": where_ })).warnings;
    assert_eq!((warnings.len(), warnings[5].as_str()), (6, "495 more names in the conditions are not notes"));
}

#[test]
fn in_looks_up_texts_numbers_dates_and_flags() {
    let harness = Harness::new(
        "//- a.md\n---\nv: Draft\n---\n//- b.md\n---\nv: 2.50\n---\n//- c.md\n---\nv: 2026-11-16T10:00\n---\n\
         //- d.md\n---\nv: true\n---\n//- e.md\n---\nv: 0.0\n---\n//- f.md\n---\nv: other\n---\n",
    );
    let found = |values: serde_json::Value| -> Vec<String> {
        let where_ = json!([{"field": "property.v", "op": "in", "value": values}]);
        let answer = harness.call("query_nodes", json!({ "where": where_ }));
        let nodes = answer["nodes"].as_array().unwrap();
        nodes.iter().map(|node| node["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(found(json!(["draft", "nothing"])), ["a.md"]);
    assert_eq!(found(json!(["2.5", -0.0])), ["b.md", "e.md"]);
    // The first two periods overlap; the last is one day.
    assert_eq!(found(json!(["2026-11", "2026-11-01", "2027-01-01"])), ["c.md"]);
    assert_eq!(found(json!(["2026-11-15", "2026-11-17"])), [""; 0]);
    assert_eq!(found(json!([true, "2026-11-16", "DRAFT"])), ["a.md", "c.md", "d.md"]);
}

#[test]
fn too_many_values_and_too_long_names_are_refused_in_few_words() {
    let harness = Harness::new("//- a.md\n");
    let values: Vec<usize> = (0..20_000).collect();
    let where_ = json!([{"field": "chars", "op": "in", "value": values}]);
    let (code, message) = harness.fails("query_nodes", json!({ "where": where_ }));
    let expected = "`where[0]`: `in` takes at most 1000 values and was given 20000; split them over several queries";
    assert_eq!((code.as_str(), message.as_str()), ("INVALID_PARAMS", expected));
    let long = format!("property.{}", "x".repeat(100_000));
    for arguments in [
        json!({"where": [{"field": long, "op": "lt", "value": [1]}]}),
        json!({"any": [{"field": long, "op": "eq", "value": 1}]}),
        json!({"fields": [long]}),
        json!({"sort": [{"field": long}]}),
        json!({"group_by": long}),
    ] {
        let (_, message) = harness.fails("query_nodes", arguments);
        assert!(message.ends_with(" has 100009 characters; the name of a field has at most 200"), "{message}");
    }
}

#[test]
fn a_folder_may_be_written_with_a_slash() {
    for folder in ["projects", "projects/", "/Projects/"] {
        assert_eq!(found("folder", "eq", json!(folder)), [ALPHA, BETA], "{folder}");
        assert_eq!(found("folder", "in", json!([folder])), [ALPHA, BETA], "{folder}");
        assert_eq!(found("folder", "ne", json!(folder)), [DAY, LONELY], "{folder}");
    }
    assert_eq!(found("folder", "eq", json!("/")), [DAY, LONELY]);
}
