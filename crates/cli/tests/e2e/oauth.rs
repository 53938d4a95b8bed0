//! Tokens from an identity provider, against the program built with the feature `oauth`: its keys in a file, and at an
//! address.

#![expect(clippy::disallowed_methods, reason = "a test writes the provider's keys")]

use std::io::{BufReader, Write};
use std::net::TcpListener;

use quipu_testkit::identity_provider::{ISSUER, RESOURCE, forged, keys, token, token_with};
use serde_json::{Value, json};

use crate::client::{modern, vault};
use crate::http::{Answer, Post, Prepared, Server};

fn serve(keys: &str) -> Server {
    serve_in(Server::prepare(vault("//- a.md\nx\n")), keys)
}

fn serve_in(prepared: Prepared, keys: &str) -> Server {
    let flags = ["--oauth-issuer", ISSUER, "--oauth-resource", RESOURCE, "--oauth-keys", keys];
    prepared.start(&flags)
}

fn serve_with_file() -> (Server, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.json");
    std::fs::write(&file, keys()).unwrap();
    (serve(file.to_str().unwrap()), folder)
}

fn create(name: &str) -> Post {
    Post::call("create_node", &modern(json!({ "name": "create_node", "arguments": { "id": name, "content": "x" } })))
}

#[test]
fn metadata_names_the_identity_provider() {
    let (server, _keys) = serve_with_file();
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"] {
        let page = Post::get(path).send(server.address).unwrap();
        assert_eq!((page.status, page.header("content-type").as_deref()), (200, Some("application/json")), "{path}");
        let page = page.message().unwrap();
        assert_eq!((&page["resource"], &page["authorization_servers"]), (&json!(RESOURCE), &json!([ISSUER])));
        assert_eq!(page["scopes_supported"], json!(["read", "write", "admin"]));
    }
    let asked = Post::list().send(server.address).unwrap();
    let challenge = asked.header("www-authenticate").unwrap();
    let metadata = "resource_metadata=\"https://notes.example/.well-known/oauth-protected-resource/mcp\"";
    assert!(asked.status == 401 && challenge.contains(metadata), "{challenge}");
}

#[test]
fn token_for_this_server_grants_its_scope_and_others_are_rejected() {
    let (server, _keys) = serve_with_file();
    assert_eq!(Post::list().status(server.address), 401, "also on loopback: a proxy may be in front");
    assert_eq!(Post::list().bearer(&token()).status(server.address), 200);
    assert_eq!(create("new.md").bearer(&token()).status(server.address), 200);
    assert!(server.root().join("new.md").exists());
    for (claim, value) in [
        ("exp", json!(1_000_000_000)),
        ("nbf", json!(4_102_444_000_u64)),
        ("aud", json!("https://other.example/mcp")),
        ("iss", json!("https://evil.example")),
        ("scope", json!("openid email")),
        ("sub", Value::Null),
    ] {
        let answer = Post::list().bearer(&token_with(claim, value.clone())).send(server.address).unwrap();
        let challenge = answer.header("www-authenticate").unwrap_or_default();
        assert!(answer.status == 401 && challenge.contains("error=\"invalid_token\""), "{claim} {value}: {answer:?}");
    }
    let reading = token_with("scope", json!("read"));
    assert_eq!(Post::list().bearer(&reading).status(server.address), 200);
    let refused = create("not.md").bearer(&reading).send(server.address).unwrap();
    let challenge = refused.header("www-authenticate").unwrap_or_default();
    assert!(
        refused.status == 403 && challenge.contains("error=\"insufficient_scope\", scope=\"write\""),
        "{refused:?}"
    );
    assert!(!server.root().join("not.md").exists());
    assert_eq!(Post::list().bearer(&forged()).status(server.address), 401);
    assert_eq!(Post::get("/metrics").bearer(&token()).status(server.address), 403);
    assert_eq!(Post::get("/metrics").bearer(&token_with("scope", json!("admin"))).status(server.address), 200);
}

#[test]
fn subject_and_token_of_the_same_name_are_separate() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.json");
    std::fs::write(&file, keys()).unwrap();
    let prepared = Server::prepare(vault("//- a.md\nx\n"));
    let ours = prepared.token("ada", "write");
    let server = serve_in(prepared, file.to_str().unwrap());
    let call = |bearer: &str, tool: &str, arguments: Value| {
        let params = modern(json!({ "name": tool, "arguments": arguments }));
        let answer = Post::call(tool, &params).bearer(bearer).send(server.address).unwrap();
        answer.message().unwrap()["result"]["structuredContent"].clone()
    };
    let project = call(&token(), "create_entity", json!({ "name": "Boat", "entity_type": "Project" }));
    call(&token(), "set_context", json!({ "project_id": project["entity_id"] }));
    assert_eq!(call(&token(), "get_context", json!({}))["project_name"], "Boat");
    assert_eq!(call(&ours, "get_context", json!({}))["project_name"], Value::Null);
    let log = server.quipu(&["audit", "--json"]);
    assert!(log.contains("(subject ada)") && !log.contains("(ada)"), "{log}");
}

/// The provider: answers every request with its keys.
#[test]
fn keys_are_fetched_from_the_providers_address() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/jwks.json", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            Answer::read_head(&mut BufReader::new(&stream)).unwrap();
            let keys = keys();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", keys.len());
            stream.write_all(format!("{head}{keys}").as_bytes()).unwrap();
        }
    });
    let server = serve(&url);
    assert_eq!(Post::list().bearer(&token()).status(server.address), 200);
    assert_eq!(Post::list().bearer(&token_with("aud", json!("https://other.example"))).status(server.address), 401);
}

#[test]
fn tokens_of_a_withdrawn_key_are_rejected_from_the_next_request() {
    let (server, folder) = serve_with_file();
    assert_eq!(Post::list().bearer(&token()).status(server.address), 200);
    std::fs::write(folder.path().join("keys.json"), keys().replace("\"one\"", "\"two\"")).unwrap();
    assert_eq!(Post::list().bearer(&token()).status(server.address), 401);
}

#[test]
fn server_without_provider_keys_does_not_start() {
    let vault = vault("//- a.md\nx\n");
    for keys in ["nowhere.json", "http://login.example/jwks.json"] {
        let flags =
            ["--http", "127.0.0.1:0", "--oauth-issuer", ISSUER, "--oauth-resource", RESOURCE, "--oauth-keys", keys];
        let output = crate::client::serve_command(vault.path(), &flags).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && said.contains(keys), "{said}");
    }
}

/// A provider's token names no graph: it must not open every graph of a database.
#[test]
fn oauth_on_a_database_requires_one_graph() {
    let refused = std::process::Command::new(crate::client::QUIPU)
        .args(["serve", "--http", "127.0.0.1:0", "--database", "postgresql://quipu@127.0.0.1:1/quipu"])
        .args(["--oauth-issuer", ISSUER, "--oauth-resource", RESOURCE, "--oauth-keys", "keys.json"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && said.contains("--graph NAME"), "{refused:?}");
}
