//! Providers elsewhere, against a real HTTP server that wraps the builtin model: well, slow, down, wrong, and back again.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod chat;
mod server;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use quipu_core::ports::{EmbedError, Embedder, Role};
use quipu_embed::{Builtin, EmbedderSettings, Keys, Provider, Timeouts, open};
use server::{Mood, Server};

/// The settings' own defaults, but quick.
fn timeouts() -> Timeouts {
    Timeouts {
        connect: Duration::from_secs(2),
        query: Duration::from_millis(1500),
        passages: Duration::from_secs(8),
        pause: Duration::from_millis(200),
    }
}

fn opened(provider: Provider) -> Arc<dyn Embedder> {
    let keys = Keys { own: Some("the-secret-key".to_owned()), ..Keys::default() };
    open(&EmbedderSettings { provider, keys, timeouts: timeouts() }).unwrap().unwrap()
}

fn ollama(url: String) -> Arc<dyn Embedder> {
    opened(Provider::Ollama { url, model: "granite-embedding".to_owned() })
}

fn openai(url: String) -> Arc<dyn Embedder> {
    opened(Provider::OpenAi { url, model: "granite-embedding".to_owned() })
}

fn unavailable(embedder: &dyn Embedder) -> String {
    match embedder.embed(Role::Query, &["bread"]) {
        Err(EmbedError::Unavailable(message)) => message,
        other => panic!("{other:?}"),
    }
}

fn unusable(embedder: &dyn Embedder) -> String {
    match embedder.embed(Role::Query, &["bread"]) {
        Err(EmbedError::Unusable(message)) => message,
        other => panic!("{other:?}"),
    }
}

fn wait_for_the_pause_to_end() {
    std::thread::sleep(timeouts().pause + Duration::from_millis(20));
}

fn assert_same_vectors(ours: &[Vec<f32>], expected: &[Vec<f32>]) {
    assert_eq!(ours.len(), expected.len());
    for (ours, expected) in ours.iter().zip(expected) {
        let far = ours.iter().zip(expected).any(|(ours, expected)| (ours - expected).abs() > 1e-5);
        assert!(!far, "{ours:?} instead of {expected:?}");
    }
}

#[test]
fn both_protocols_return_vectors_in_the_order_of_texts() {
    let server = Server::start();
    // More than one batch, and a text that is empty.
    let texts: Vec<String> = (0..40).map(|number| format!("note number {number}")).chain([".".to_owned()]).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let expected = Builtin::new().embed(Role::Passage, &texts).unwrap();
    for embedder in [ollama(server.url()), openai(server.url()), openai(format!("{}/v1/", server.url()))] {
        let before = server.requests();
        assert_same_vectors(&embedder.embed(Role::Passage, &texts).unwrap(), &expected);
        assert_eq!(server.requests() - before, 2, "41 texts are two batches");
        assert_same_vectors(&embedder.embed(Role::Query, &[""]).unwrap(), &expected[40..]);
        assert_eq!(embedder.embed(Role::Query, &[]).unwrap(), Vec::<Vec<f32>>::new());
    }
    assert!(server.last_head().to_lowercase().contains("authorization: bearer the-secret-key"));
    assert_eq!(server.last_body()["model"], "granite-embedding");
}

#[test]
fn models_with_prefixes_get_them() {
    let server = Server::start();
    let embedder = opened(Provider::Ollama { url: server.url(), model: "nomic-embed-text".to_owned() });
    embedder.embed(Role::Query, &["bread"]).unwrap();
    assert_eq!(server.last_body()["input"][0], "search_query: bread");
    embedder.embed(Role::Passage, &["bread"]).unwrap();
    assert_eq!(server.last_body()["input"][0], "search_document: bread");
}

#[test]
fn slow_server_times_out() {
    let server = Server::start();
    let embedder = ollama(server.url());
    server.be(Mood::Slow(Duration::from_secs(5)));
    let start = Instant::now();
    assert!(unavailable(&*embedder).contains("did not answer in time"));
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    assert_eq!(server.requests(), 1, "a slow server is not asked again at once");
}

#[test]
fn server_that_is_down_fails_at_once_and_is_used_when_it_is_back() {
    let server = Server::start();
    let address = server.address();
    let embedder = ollama(server.url());
    let well = embedder.embed(Role::Query, &["bread"]).unwrap();
    drop(server);

    assert!(unavailable(&*embedder).contains("is it running?"));
    let start = Instant::now();
    for _call in 0..100 {
        unavailable(&*embedder);
    }
    assert!(start.elapsed() < Duration::from_millis(100), "the pause costs nothing: {:?}", start.elapsed());

    let _server = Server::start_at(address);
    wait_for_the_pause_to_end();
    assert_eq!(embedder.embed(Role::Query, &["bread"]).unwrap(), well);
    assert_eq!(embedder.embed(Role::Query, &["bread"]).unwrap(), well);
}

#[test]
fn open_circuit_sends_no_requests_and_then_one_test_request() {
    let server = Server::start();
    let embedder = ollama(server.url());
    server.be(Mood::Says("nonsense"));
    unusable(&*embedder);
    assert_eq!(server.requests(), 1);
    unusable(&*embedder);
    assert_eq!(server.requests(), 1);

    wait_for_the_pause_to_end();
    server.be(Mood::Slow(Duration::from_millis(500)));
    std::thread::scope(|scope| {
        let trial = scope.spawn(|| embedder.embed(Role::Query, &["bread"]));
        while server.requests() < 2 {
            std::thread::yield_now();
        }
        unusable(&*embedder);
        assert_eq!(server.requests(), 2, "only the trial got through");
        trial.join().unwrap().unwrap();
    });
    embedder.embed(Role::Query, &["bread"]).unwrap();
}

#[test]
fn transient_errors_are_retried() {
    let server = Server::start();
    let embedder = openai(server.url());
    for status in [429, 500, 503] {
        server.be(Mood::Passing(Arc::new(AtomicUsize::new(1)), status));
        embedder.embed(Role::Query, &["bread"]).unwrap();
    }
    server.be(Mood::Passing(Arc::new(AtomicUsize::new(3)), 503));
    embedder.embed(Role::Passage, &["bread"]).unwrap();

    let before = server.requests();
    server.be(Mood::Status(503, "", r#"{"error":"loading the model"}"#));
    assert!(unavailable(&*embedder).ends_with("answered 503 Service Unavailable: loading the model"));
    assert_eq!(server.requests() - before, 2, "a query is tried twice");
}

#[test]
fn retry_after_is_honoured() {
    let server = Server::start();
    let embedder = openai(server.url());
    server.be(Mood::Status(429, "retry-after: 2\r\n", "{}"));
    let start = Instant::now();
    unavailable(&*embedder);
    assert!(start.elapsed() < Duration::from_secs(1), "longer than a query waits, so it is not waited for");

    server.be(Mood::Well);
    wait_for_the_pause_to_end();
    unavailable(&*embedder);
    assert_eq!(server.requests(), 1);
    std::thread::sleep(Duration::from_secs(2).saturating_sub(start.elapsed()) + Duration::from_millis(50));
    embedder.embed(Role::Query, &["bread"]).unwrap();
}

#[test]
fn responses_with_other_dimensions_are_refused() {
    let server = Server::start();
    let embedder = ollama(server.url());
    embedder.embed(Role::Query, &["bread"]).unwrap();
    server.be(Mood::Dimensions(768));
    assert!(unusable(&*embedder).contains("768 dimensions, where there were 384 before"));
    server.be(Mood::Well);
    wait_for_the_pause_to_end();
    assert_eq!(embedder.embed(Role::Query, &["bread"]).unwrap()[0].len(), 384);
}

#[test]
fn responses_without_vectors_are_refused() {
    let server = Server::start();
    for (body, why) in [
        ("<html>Welcome to the hotel's network</html>", "not a response of the ollama protocol"),
        (r#"{"embeddings":[]}"#, "0 vectors for 1 texts"),
        (r#"{"embeddings":[[]]}"#, "0 dimensions"),
        (r#"{"embeddings":[[0.0,0.0]]}"#, "without a direction"),
        // Too large a number is refused by the JSON parser or by the check of directions.
        (r#"{"embeddings":[[1e99,0.0]]}"#, ""),
        (r#"{"embeddings":[[null,1.0]]}"#, "not a response"),
        (r#"{"embeddings":[[1.0],[1.0]]}"#, "2 vectors for 1 texts"),
    ] {
        server.be(Mood::Says(body));
        let message = unusable(&*ollama(server.url()));
        assert!(message.contains(why), "{message}");
    }
    server.be(Mood::Says(r#"{"data":[{"index":1,"embedding":[1.0]}]}"#));
    assert!(unusable(&*openai(server.url())).contains("have gaps"));
}

#[test]
fn endless_response_is_cut_off() {
    let server = Server::start();
    server.be(Mood::Endless);
    let embedder = ollama(server.url());
    let error = embedder.embed(Role::Passage, &["bread"]).unwrap_err();
    assert!(matches!(&error, EmbedError::Unusable(message) if message.contains("more than 16777216 bytes")), "{error}");
}

#[test]
fn error_for_a_wrong_key_does_not_show_it() {
    let server = Server::start();
    server.be(Mood::Status(401, "", r#"{"error":{"message":"Incorrect API key: the-secret-key"}}"#));
    let message = unusable(&*openai(server.url()));
    assert!(message.contains("401") && message.contains("QUIPU_EMBEDDING_KEY"), "{message}");
    assert!(!message.contains("the-secret-key"), "{message}");
    server.be(Mood::Status(404, "", r#"{"error":"model \"granite-embedding\" not found, the-secret-key"}"#));
    let message = unusable(&*ollama(server.url()));
    assert!(message.contains("not found, ***; check `url` and `model`"), "{message}");
}

#[test]
fn key_is_not_sent_to_a_redirect() {
    let (server, other) = (Server::start(), Server::start());
    let location: &'static str = format!("location: {}/api/embed\r\n", other.url()).leak();
    for status in [301, 307, 308] {
        server.be(Mood::Status(status, location, ""));
        let message = unusable(&*ollama(server.url()));
        assert!(message.contains("redirects are not followed"), "{message}");
    }
    assert_eq!(other.requests(), 0);
}

#[test]
fn text_too_long_for_the_server_is_truncated() {
    let server = Server::start();
    server.be(Mood::Short(1000));
    let long = "the oven and the flour ".repeat(200);
    let texts = ["bread", long.as_str(), "salt"];
    let vectors = openai(server.url()).embed(Role::Passage, &texts).unwrap();
    // 4,600 bytes, halved until it fits.
    assert_same_vectors(&vectors, &Builtin::new().embed(Role::Passage, &["bread", &long[..575], "salt"]).unwrap());
}

#[test]
fn rejected_texts_do_not_stop_others() {
    let server = Server::start();
    let embedder = openai(server.url());
    server.be(Mood::Short(3));
    assert!(unusable(&*embedder).contains("exceeds the context length"));
    embedder.embed(Role::Query, &["rye"]).unwrap();
}
