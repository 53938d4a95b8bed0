//! Vectors of passages: each is computed by one server, and known to all.

use std::process::Command;
use std::time::{Duration, Instant};

use quipu_testkit::postgres::{self, sql};

use super::{TeamServer, create_graph, push, wait_for};

const NOTES: usize = 48;

/// How long a server keeps a claim.
const CLAIM: Duration = Duration::from_secs(15);

/// Notes of one passage each.
fn notes() -> Vec<(String, Vec<u8>)> {
    let subjects = ["anchors", "knots", "sails", "tides", "charts", "winches"];
    let note = |number: usize| {
        let subject = subjects[number % subjects.len()];
        (format!("note{number}.md"), format!("What the crew of boat {number} knows about {subject}.\n").into_bytes())
    };
    (0..NOTES).map(note).collect()
}

fn count(url: &str, table: &str) -> usize {
    sql(url, &format!("SELECT count(*) FROM quipu.{table}")).parse().unwrap()
}

#[test]
fn each_passage_is_embedded_by_one_server() {
    let Some(url) = postgres::database() else { return };
    create_graph(&url);
    push(&url, &notes());
    let servers = [TeamServer::start_with_model(&url), TeamServer::start_with_model(&url)];
    let made = |server: &TeamServer| server.metric("quipu_passages_embedded_total");
    let fetched = |server: &TeamServer| server.metric("quipu_vectors_fetched_total");
    let started = Instant::now();
    wait_for("every server has every vector", || {
        servers.iter().all(|server| made(server) + fetched(server) >= NOTES as f64)
    });
    let [one, two] = servers.each_ref().map(made);
    // On a machine so slow that a claim ended, the other server took over what it held.
    if started.elapsed() < CLAIM {
        assert_eq!(one + two, NOTES as f64, "{one} and {two}: none is computed twice");
    }
    assert_eq!(count(&url, "passage_vector"), NOTES);
    wait_for("no claim is left", || count(&url, "passage_claim") == 0);
    let late = TeamServer::start_with_model(&url);
    wait_for("a new server fetches them", || fetched(&late) >= NOTES as f64);
    assert_eq!(made(&late), 0.0);
    wait_for("they are in its memory", || late.metric("quipu_vectors") == NOTES as f64);
}

#[test]
fn claims_of_a_killed_server_are_taken_over() {
    let Some(url) = postgres::database() else { return };
    create_graph(&url);
    push(&url, &notes());
    let mut first = TeamServer::start_with_model(&url);
    let signal = |name: &str| {
        let pid = first.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    };
    // Stopped while it computes what it has claimed.
    wait_for("the server holds a claim", || {
        signal("STOP");
        let is_held = count(&url, "passage_claim") > 0;
        if !is_held {
            signal("CONT");
        }
        is_held
    });
    first.kill();
    let claimed = count(&url, "passage_claim");
    let second = TeamServer::start_with_model(&url);
    wait_for("another server has computed what was claimed", || count(&url, "passage_vector") == NOTES);
    assert!(second.metric("quipu_passages_embedded_total") >= claimed as f64);
    wait_for("no claim is left", || count(&url, "passage_claim") == 0);
}
