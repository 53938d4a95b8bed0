//! The built program with an embedding server beside it, real HTTP on a real socket: what a client sees while the provider
//! is slow, down, answers nonsense or vectors of another model, and when it is back.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Client, LEGACY, PATIENCE, first_block, serve_command, vault, warnings};
use crate::embedding_server::{Mood, Server};

const NOTES: &str = "\
//- invoices.md
Send the bill to the customer before the end of the month.
//- hose.md
A long hose reaches every bed.
";

/// A client whose server has embedded all its notes with the help of this one.
fn embedded_by(server: &Server) -> Client {
    let vault = vault(NOTES);
    let mut command = serve_command(vault.path(), &[]);
    command.env("QUIPU_EMBEDDING_PROVIDER", "ollama").env("QUIPU_EMBEDDING_URL", server.url());
    command.env("QUIPU_EMBEDDING_MODEL", "all-minilm");
    let mut client = Client::start_with(vault, command).shake_hands(LEGACY);
    until_hybrid(&mut client, "asking clients for payment", "invoices.md");
    client
}

/// Asks for pages; with what was said beside the answer.
fn ask(client: &mut Client, query: &str) -> (Value, Vec<String>) {
    let answer = client.request("tools/call", json!({"name": "ubp_search", "arguments": {"query": query, "limit": 1}}));
    let result = &answer["result"];
    assert!(result["content"].is_array(), "{answer}");
    (first_block(result), warnings(result))
}

/// Waits until a search goes by meaning again, over all notes and without a word about trouble, and finds this page.
#[track_caller]
fn until_hybrid(client: &mut Client, query: &str, expected: &str) {
    let started = Instant::now();
    loop {
        let (answer, said) = ask(client, query);
        if answer["search_type"] == "hybrid" && said.is_empty() && answer["results"][0]["filepath"] == expected {
            return;
        }
        assert!(started.elapsed() < PATIENCE, "{answer} {said:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// While the provider fails, words find what they can, the answer says why, and it comes soon.
#[track_caller]
fn answers_by_words(client: &mut Client, why: &str) {
    let (answer, said) = ask(client, "bill customer");
    assert_eq!(answer["search_type"], "fulltext_fallback", "{answer}");
    assert_eq!(answer["results"][0]["filepath"], "invoices.md", "{answer}");
    assert!(said.iter().any(|line| line.contains("searched by words alone") && line.contains(why)), "{said:?}");
    // From now on no call waits for it.
    let started = Instant::now();
    let (answer, _) = ask(client, "hose");
    assert_eq!(answer["results"][0]["filepath"], "hose.md", "{answer}");
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
}

/// A note made while the provider failed is embedded afterwards, without a restart.
#[track_caller]
fn recovers(client: &mut Client) {
    until_hybrid(client, "asking clients for payment", "invoices.md");
    until_hybrid(client, "birthday celebration", "party.md");
}

fn throw_a_party(client: &Client) {
    client.write("party.md", "Balloons, a cake, and music for the anniversary.\n");
}

#[test]
fn slow_provider_does_not_block_calls() {
    let server = Server::start();
    let mut client = embedded_by(&server);
    server.be(Mood::Slow(Duration::from_secs(40)));
    answers_by_words(&mut client, "did not answer in time");
    throw_a_party(&client);
    server.be(Mood::Well);
    recovers(&mut client);
}

#[test]
fn provider_that_is_back_is_used_again() {
    let server = Server::start();
    let address = server.address();
    let mut client = embedded_by(&server);
    drop(server);
    answers_by_words(&mut client, "cannot be reached");
    throw_a_party(&client);
    let _back = Server::start_at(address);
    recovers(&mut client);
}

#[test]
fn invalid_provider_responses_are_refused() {
    let server = Server::start();
    let mut client = embedded_by(&server);
    for (mood, why) in [
        (Mood::Says("<html>Welcome to the hotel's network</html>"), "not a response of the ollama protocol"),
        (Mood::Status(500, "", "{}"), "answered 500"),
    ] {
        server.be(mood);
        answers_by_words(&mut client, why);
        server.be(Mood::Well);
        until_hybrid(&mut client, "asking clients for payment", "invoices.md");
    }
    throw_a_party(&client);
    recovers(&mut client);
}

#[test]
fn temporary_change_of_dimensions_loses_no_vector() {
    let server = Server::start();
    let mut client = embedded_by(&server);
    let before = server.requests();
    server.be(Mood::Dimensions(768));
    answers_by_words(&mut client, "768 dimensions, where there were 384 before");
    server.be(Mood::Well);
    until_hybrid(&mut client, "asking clients for payment", "invoices.md");
    // Every request since was for a query: no passage was embedded again.
    assert!(server.last_body()["input"][0].as_str().unwrap().contains("payment"));
    assert!(server.requests() - before < 20, "{} requests", server.requests() - before);
    throw_a_party(&client);
    recovers(&mut client);
}

#[test]
fn permanent_change_of_dimensions_rebuilds_the_vectors() {
    let server = Server::start();
    let mut client = embedded_by(&server);
    server.be(Mood::Dimensions(768));
    answers_by_words(&mut client, "768 dimensions");
    // Nothing needs to be deleted or started again: all notes are embedded again, in a separate space.
    until_hybrid(&mut client, "hose", "hose.md");
    throw_a_party(&client);
    until_hybrid(&mut client, "balloons", "party.md");
    server.be(Mood::Well);
    recovers(&mut client);
}
