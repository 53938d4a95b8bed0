//! `quipu query`: conditions as people type them, and what is printed.

use crate::sandbox::{Sandbox, check};

const NOTES: &str = "\
//- alpha.md
---
status: draft
tags: [work/client]
---
- [ ] one [[beta]]
//- beta.md
---
status: done
due: 2026-12-24
---
//- gamma.md
";

#[test]
fn query_finds_notes_by_metadata() {
    let vault = Sandbox::of(NOTES);
    vault.run(&["index"]).expect(0);
    check(
        "query_fields",
        &vault.run(&["query", "status exists", "--sort", "-title", "--fields", "status,due"]).expect(0),
    );
    check("query_groups", &vault.run(&["query", "--group-by", "status"]).expect(0));
    check("query_unknown_operator", &vault.run(&["query", "status like draft"]).expect(2));
    check("query_wrong_value", &vault.run(&["query", "chars > many"]).expect(2));
    check("query_nothing", &vault.run(&["query", "tags ~ home"]).expect(1));
    let orphans = vault.run(&["query", "links_in = 0", "links_out = 0", "--json"]).expect(0).json();
    assert_eq!(orphans["nodes"][0]["id"], "gamma.md");
    let either = vault.run(&["query", "--any", "tags ~ work", "due within +10y", "--json"]).expect(0).json();
    assert_eq!(either["total"], 2);
    let joined = vault.run(&["query", "status = draft and tags ~ work"]).expect(2).stderr;
    assert!(joined.contains("write each condition in its own quotes"), "{joined}");
}
