//! What a search must find, and in which order, over real stdio.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Client, LEGACY, first_block, ids, serve_command, vault, warnings};

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
fn links_of_a_site_by_slug_and_shortcode_are_edges() {
    let mut client = Client::open(
        "//- en/blog/2024-01-02.md\n---\nslug: first-post\n---\n//- en/docs/setup.md\n//- en/docs/deep/_index.md\n\
         //- en/docs/a.md\n[p](/blog/first-post/) [s]({{< relref \"setup\" >}}) [d]({{< ref \"/docs/deep\" >}}) [u](/ui/setup)\n",
    );
    let neighbors = client.answer("get_neighbors", json!({"id": "en/docs/a.md", "direction": "out"}));
    assert_eq!(ids(&neighbors), ["en/blog/2024-01-02.md", "en/docs/setup.md", "en/docs/deep/_index.md"]);
    let links = client.answer("get_node", json!({"id": "en/docs/a.md"}))["links"].clone();
    assert!(ids(&links).contains(&"/ui/setup"), "it is broken: {links}");
}

#[test]
fn a_page_that_does_not_exist_is_answered_with_near_names() {
    let mut client = Client::open("//- notes/Graph view.md\nx\n");
    let params = json!({"name": "ubp_get_page", "arguments": {"filepath": "notes/grpah view.md"}});
    let error = client.request("tools/call", params)["error"].clone();
    assert_eq!(error["code"], -32602, "{error}");
    assert_eq!(error["message"], "no page has the path \"notes/grpah view.md\"; near names: \"notes/Graph view.md\"");
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

/// Ids, names and scores, in their order.
fn ranked(results: &Value, name: &str, score: &str) -> Vec<(String, f64)> {
    let results = results.as_array().unwrap().iter();
    results.map(|result| (result[name].as_str().unwrap().to_owned(), result[score].as_f64().unwrap())).collect()
}

/// Waits until every passage has a vector of the model itself: scores by coarse ones are others.
fn wait_embedded(client: &Client) {
    let start = Instant::now();
    loop {
        let status: Value = serde_json::from_slice(&client.command(&["status", "--json"]).stdout).unwrap();
        let embedding = &status["embedding"];
        if embedding["passages"].as_u64() > Some(0) && embedding["full"] == embedding["passages"] {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{status}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Deleted versions must not count for what a word is worth.
#[test]
fn scores_of_pages_do_not_depend_on_how_often_a_note_was_edited() {
    let mut client = Client::open(
        "//- tide.md\n# Tide\nThe harbour floods at spring tide.\n\n## Gauge\nRead the gauge at noon.\n\
         //- harbour.md\nThe harbour has a gauge and three cranes.\n//- crane.md\nA crane lifts boats in spring.\n\
         //- lunch.md\nSoup at noon.\n",
    );
    let queries = ["harbour gauge", "spring tide", "crane", "noon"];
    let search = |client: &mut Client| {
        queries.map(|query| {
            let found = client.answer("ubp_search", json!({"query": query}));
            (ranked(&found["results"], "filepath", "score"), found["total_found"].clone())
        })
    };
    wait_embedded(&client);
    let before = search(&mut client);
    let original = client.read("tide.md");
    for number in 0..7 {
        let text = format!("# Tide\nThe harbour, the gauge and the spring tide, version {number}.\n");
        client.answer("update_node", json!({"id": "tide.md", "content": text}));
    }
    client.write("tide.md", &original);
    client.answer("get_node", json!({"id": "tide.md"}));
    wait_embedded(&client);
    assert_eq!(search(&mut client), before);
    client.close();
}

#[test]
fn scores_of_entities_do_not_depend_on_how_often_one_was_updated() {
    let folder = vault("");
    let mut command = serve_command(folder.path(), &[]);
    // Vectors arrive asynchronously and change the order.
    command.env("QUIPU_EMBEDDING_PROVIDER", "none");
    let mut client = Client::start_with(folder, command).shake_hands(LEGACY);
    for (name, text) in [
        ("Harbour", "cranes and a tide gauge"),
        ("Gauge", "measures the tide in the harbour"),
        ("Crane", "lifts boats out of the harbour"),
        ("Soup", "lunch at noon"),
    ] {
        client.answer("create_entity", json!({"name": name, "entity_type": "x", "description": text}));
    }
    let queries = ["harbour tide", "gauge", "crane boats", "noon"];
    let search = |client: &mut Client| {
        queries
            .map(|query| ranked(&client.answer("search_entities", json!({"query": query})), "name", "relevance_score"))
    };
    let before = search(&mut client);
    for number in 0..9 {
        let text = format!("harbour tide gauge crane boats, version {number}");
        client.answer("update_entity", json!({"entity_id": 2, "description": text}));
    }
    client.answer("update_entity", json!({"entity_id": 2, "description": "measures the tide in the harbour"}));
    assert_eq!(search(&mut client), before);
    client.close();
}

#[test]
fn nonsense_queries_find_nothing() {
    let mut client = Client::open(
        "//- harbour.md\nThe harbour has a gauge and three cranes.\n//- soup.md\nSoup and bread at noon.\n\
         //- garden/tomatoes.md\nWater the seedlings each morning. See [[soup]].\n",
    );
    wait_embedded(&client);
    for query in ["zzqqxx flurbl", "zzzzq", "???"] {
        let found = client.answer("ubp_search", json!({"query": query}));
        assert_eq!((&found["results"], &found["total_found"]), (&json!([]), &json!(0)), "{query}: {found}");
        assert_eq!(client.answer("search", json!({"query": query})), json!([]), "{query}");
    }
    let found = client.answer("ubp_search", json!({"query": "watering plants"}));
    assert_eq!(found["results"][0]["filepath"], "garden/tomatoes.md", "{found}");
    client.close();
}
