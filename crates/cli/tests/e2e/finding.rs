//! What a search must find, and in which order, over real stdio.

use serde_json::json;

use crate::client::{Client, first_block, warnings};

#[test]
fn greek_names_match_whatever_follows_their_last_letter() {
    let mut client = Client::open("//- sub/ΝΟΜΟΣ.md\nκείμενο\n//- law.md\nΝΟΜΟΣΧΕΔΙΟ\n//- from.md\n[[sub/ΝΟΜΟΣ]]\n");
    let neighbours = client.answer("get_neighbors", json!({"id": "from.md"}));
    assert_eq!(neighbours[0]["title"], "ΝΟΜΟΣ", "{neighbours}");
    for query in ["ΝΟΜΟΣ", "νομος"] {
        let found = client.answer("search_docs", json!({"query": query})).to_string();
        assert!(found.contains("law.md"), "{query}: {found}");
    }
}

#[test]
fn an_entity_is_found_by_the_type_that_was_given() {
    let mut client = Client::open("");
    let made = client.call("create_entity", json!({"name": "Ada", "entity_type": "Person"}));
    assert_eq!(first_block(&made)["entity_type"], "User", "{made}");
    assert_eq!(warnings(&made), ["entity_type \"Person\" is stored as \"User\"; searches find it by either word"]);
    for query in ["Person", "user"] {
        let found = client.answer("search_entities", json!({"query": query}));
        assert_eq!(found[0]["name"], "Ada", "{query}: {found}");
        assert_eq!(found[0]["matched_fields"], json!(["entity_type"]), "{query}: {found}");
    }
    let made = client.call("create_entity", json!({"name": "Login is slow", "entity_type": "issue"}));
    assert_eq!(warnings(&made), [""; 0], "another case is no other word: {made}");
}
