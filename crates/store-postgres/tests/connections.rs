//! Connections to a real PostgreSQL: TLS, several hosts, an outage, and wake-ups.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use quipu_core::model::VaultPath;
use quipu_core::ports::{FileChange, MemoryStore, NoteFeed, VaultFiles};
use quipu_store_postgres::{DatabaseAddress, Graph, NewToken, PostgresDatabase, PostgresMemory, PostgresVault};
use quipu_testkit::memory_conformance::{author, create};
use quipu_testkit::postgres;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

const TLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/tests/e2e/tls");

/// The socket and the name of a test's database.
fn socket_and_name(url: &str) -> (String, String) {
    let (_, rest) = url.split_once('@').expect("a user");
    let (folder, name) = rest.split_once('/').expect("a name");
    (format!("{}/.s.PGSQL.5432", folder.replace("%2F", "/")), name.to_owned())
}

/// Listens in front of the database, and encrypts as PostgreSQL does: the build for tests has no TLS of its own.
///
/// While `is_breaking`, the answer to the next commit of a write is lost in a record that is no TLS.
fn tls_in_front_of(socket: String, is_breaking: &Arc<AtomicBool>) -> u16 {
    let certificates = vec![CertificateDer::from_pem_file(format!("{TLS}/cert.pem")).expect("a certificate")];
    let key = PrivateKeyDer::from_pem_file(format!("{TLS}/key.pem")).expect("a key");
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("versions");
    let config = Arc::new(config.with_no_client_auth().with_single_cert(certificates, key).expect("they fit"));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let is_breaking = is_breaking.clone();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let (config, socket, is_breaking) = (config.clone(), socket.clone(), is_breaking.clone());
            thread::spawn(move || relay(client, config, &socket, &is_breaking));
        }
    });
    port
}

/// Takes turns: the protocol of a test is a question and its answer.
fn relay(mut client: TcpStream, config: Arc<ServerConfig>, socket: &str, is_breaking: &AtomicBool) {
    let mut request = [0; 8];
    client.read_exact(&mut request).expect("a request for TLS");
    assert_eq!(request[4..], 80_877_103_u32.to_be_bytes(), "nothing is sent before TLS");
    client.write_all(b"S").expect("the client waits");
    client.set_read_timeout(Some(Duration::from_millis(5))).expect("a socket");
    let mut tls = StreamOwned::new(ServerConnection::new(config).expect("a configuration"), client);
    let mut database = UnixStream::connect(socket).expect("the database listens");
    database.set_read_timeout(Some(Duration::from_millis(5))).expect("a socket");
    let (mut bytes, mut is_writing) = ([0; 65536], false);
    loop {
        match tls.read(&mut bytes) {
            Ok(0) => return,
            Ok(length) => {
                let has = |text: &str| bytes[..length].windows(text.len()).any(|part| part == text.as_bytes());
                is_writing = !has("READ ONLY") && (is_writing || has("START TRANSACTION") || has("BEGIN"));
                let is_lost = is_writing && has("COMMIT") && is_breaking.swap(false, Ordering::Relaxed);
                database.write_all(&bytes[..length]).expect("the database reads");
                if is_lost {
                    database.set_read_timeout(None).expect("a socket");
                    assert!(database.read(&mut bytes).expect("it commits") > 0);
                    tls.sock.write_all(b"this is no record of TLS").expect("the client waits");
                    return;
                }
            }
            Err(error) if is_timeout(&error) => {}
            Err(_) => return,
        }
        match database.read(&mut bytes) {
            Ok(0) => return,
            Ok(length) => drop(tls.write_all(&bytes[..length]).and_then(|()| tls.flush())),
            Err(error) if is_timeout(&error) => {}
            Err(_) => return,
        }
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}

#[test]
fn certificate_and_name_are_verified_as_the_mode_says() {
    let Some(url) = postgres::database() else { return };
    let (socket, name) = socket_and_name(&url);
    let port = tls_in_front_of(socket, &Arc::default());
    let connect = |host: &str, parameters: &str| {
        let url = format!("postgresql://postgres:hush@{host}:{port}/{name}?{parameters}");
        PostgresDatabase::connect(&url).map_err(|error| error.to_string())
    };
    let root = format!("sslrootcert={TLS}/cert.pem");
    let other = format!("sslrootcert={TLS}/renewed-cert.pem");
    let database =
        connect("localhost", &format!("sslmode=verify-full&{root}")).expect("the name is in the certificate");
    database.migrate().expect("the schema can be made");
    connect("localhost", "sslmode=require").expect("the certificate is not checked");
    connect("localhost", &format!("sslmode=verify-ca&{root}")).expect("the certificate is checked");
    for mode in ["verify-full", "verify-ca", "require"] {
        let started = Instant::now();
        let error = connect("localhost", &format!("sslmode={mode}&{other}")).expect_err("another root");
        assert!(error.contains("certificate") && !error.contains("hush"), "{mode}: {error}");
        assert!(started.elapsed() < Duration::from_secs(5), "a wrong certificate is not tried again");
    }
    let error = connect("localhost", "sslmode=verify-full&sslrootcert=/nowhere").expect_err("no file");
    assert!(error.contains("/nowhere"), "{error}");
}

/// After a commit whose answer is lost, the change is stored: that it failed would be wrong, and so would making it twice.
#[test]
fn lost_answer_to_a_commit_is_no_failure() {
    let Some(url) = postgres::database() else { return };
    let (socket, name) = socket_and_name(&url);
    let is_breaking = Arc::<AtomicBool>::default();
    let port = tls_in_front_of(socket, &is_breaking);
    let url = format!("postgresql://postgres@localhost:{port}/{name}?sslmode=require");
    let database = Arc::new(PostgresDatabase::connect(&url).expect("it listens"));
    database.migrate().expect("the schema can be made");
    let graph = database.create_graph("team").expect("free");
    let lose = || is_breaking.store(true, Ordering::Relaxed);
    let memory = PostgresMemory::new(database.clone(), &graph);
    lose();
    memory.apply(&[create("Ada")], &author(1)).expect("it is stored");
    assert!(!is_breaking.load(Ordering::Relaxed), "the answer was lost");
    assert_eq!((memory.entity_count().expect("readable"), memory.head().expect("readable").0), (1, 1), "once");

    let vault = PostgresVault::new(database.clone(), &graph);
    let path = VaultPath::parse("a.md").expect("a path");
    vault.apply(&[FileChange::Create { path: path.clone(), bytes: b"one".to_vec() }]).expect("free");
    let expected = vault.read(&path).expect("readable").expect("it exists").hash;
    vault.apply(&[FileChange::Replace { path, expected, bytes: b"two".to_vec() }]).expect("unchanged");
    let trashed = vault.trashed().expect("readable").remove(0);
    lose();
    vault.restore(&trashed).expect("it is restored");
    assert_eq!(vault.head().expect("readable"), 3, "once: another server may have changed the note in between");

    lose();
    database.create_graph("other").expect("it is created");
    lose();
    database.rename_graph("other", "third").expect("it is renamed");
    let created = jiff::Timestamp::UNIX_EPOCH;
    let new = NewToken { name: "ada", scope: "read", graphs: &["third".to_owned()], created, expires: None };
    lose();
    database.create_token(&new).expect("it is created");
    lose();
    database.revoke_token("ada").expect("it is revoked");
    lose();
    database.delete_graph("third").expect("it is deleted");
    assert!(!is_breaking.load(Ordering::Relaxed), "every answer was lost");
    assert_eq!(database.graphs().expect("readable"), [graph]);
    assert_eq!(database.tokens().expect("readable"), []);
}

#[test]
fn mode_that_needs_tls_refuses_a_server_without_it() {
    let Some(url) = postgres::database() else { return };
    let (socket, name) = socket_and_name(&url);
    let port = forward_to(socket, usize::MAX);
    let error = PostgresDatabase::connect(&format!("postgresql://postgres@127.0.0.1:{port}/{name}?sslmode=require"));
    let error = error.expect_err("the build for tests has no TLS").to_string();
    assert!(error.contains("TLS"), "{error}");
    PostgresDatabase::connect(&format!("postgresql://postgres@127.0.0.1:{port}/{name}")).expect("loopback prefers TLS");
}

/// Listens in front of the database for so many connections, then closes them all.
fn forward_to(socket: String, connections: usize) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    thread::spawn(move || {
        for client in listener.incoming().flatten().take(connections) {
            let database = UnixStream::connect(&socket).expect("the database listens");
            let (of_client, of_database) = (client.try_clone().expect("open"), database.try_clone().expect("open"));
            thread::spawn(move || {
                let (mut from, mut to) = (of_client, of_database);
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Both);
            });
            thread::spawn(move || {
                let (mut from, mut to) = (database, client);
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Both);
            });
        }
    });
    port
}

#[test]
fn next_host_is_used_when_the_first_does_not_answer() {
    let Some(url) = postgres::database() else { return };
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = silent.local_addr().expect("bound").port();
    let (login, rest) = url.split_once('@').expect("a user");
    let started = Instant::now();
    let database = PostgresDatabase::connect(&format!("{login}@127.0.0.1:{port},127.0.0.1:1,{rest}"));
    let database = database.expect("the third host is the database");
    let first = started.elapsed();
    database.migrate().expect("the schema can be made");
    thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(|| database.graphs().expect("readable")))));
    assert!(started.elapsed() < first * 2, "the host that answered is tried first");
}

/// A standby that accepts connections is not written to.
#[test]
fn host_that_does_not_accept_writes_is_passed_over() {
    let Some(url) = postgres::database() else { return };
    let (login, rest) = url.split_once('@').expect("a user");
    let read_only = format!("{url}?options=-c%20default_transaction_read_only%3Don");
    let error = DatabaseAddress::parse(&read_only).map(|address| address.with_patience(Duration::from_millis(300)));
    let error = PostgresDatabase::connect_to(&error.expect("an address")).expect_err("it is read-only").to_string();
    assert!(error.contains("does not allow writes"), "{error}");
    PostgresDatabase::connect(&format!("{login}@127.0.0.1:1,{rest}")).expect("the second host");
}

#[test]
fn outage_is_reported_with_its_start_after_a_bounded_wait() {
    let Some(url) = postgres::database() else { return };
    let (socket, name) = socket_and_name(&url);
    let port = forward_to(socket, 1);
    let address = DatabaseAddress::parse(&format!("postgresql://postgres@127.0.0.1:{port}/{name}?sslmode=disable"));
    let address = address.expect("an address").with_patience(Duration::from_secs(1));
    let database = PostgresDatabase::connect_to(&address).expect("the first connection is forwarded");
    assert_eq!(database.unreachable_since(), None);
    let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                WHERE datname = current_database() AND application_name = 'quipu'";
    postgres::sql(&url, kill);
    let ask = || {
        let started = Instant::now();
        (database.graphs().expect_err("nothing listens").to_string(), started.elapsed())
    };
    let ((first, waited), (second, at_once)) = (ask(), ask());
    assert!(first.contains("unreachable since 20") && first == second, "{first}; {second}");
    assert!(waited > Duration::from_millis(300) && at_once < waited, "{waited:?}, {at_once:?}");
    assert!(database.unreachable_since().is_some());
}

/// Another transaction is in the way, and the database is there: the error says which of the two it is.
#[test]
fn held_lock_is_reported_as_such_after_a_bounded_wait() {
    let Some(url) = postgres::database() else { return };
    let address = DatabaseAddress::parse(&url).expect("an address").with_patience(Duration::from_secs(3));
    let database = Arc::new(PostgresDatabase::connect_to(&address).expect("reachable"));
    let graph = graph(&database, "team");
    let vault = PostgresVault::new(database.clone(), &graph);
    thread::scope(|scope| {
        let url = &url;
        scope.spawn(move || postgres::sql(url, "BEGIN; SELECT FROM quipu.note_head FOR UPDATE; SELECT pg_sleep(8)"));
        let locks =
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";
        while postgres::sql(url, locks) != "1" {
            thread::sleep(Duration::from_millis(20));
        }
        let started = Instant::now();
        let path = VaultPath::parse("a.md").expect("a path");
        let refused = vault.apply(&[FileChange::Create { path, bytes: Vec::new() }]).expect_err("it is locked");
        let waited = started.elapsed();
        assert!(refused.to_string().contains("the database was busy with other transactions for"), "{refused}");
        assert!(waited > Duration::from_secs(2) && waited < Duration::from_secs(6), "{waited:?}");
        assert_eq!(database.unreachable_since(), None);
        assert_eq!(vault.head().expect("reads do not wait for the lock"), 0);
    });
}

/// Its system answers, so that connections seem to be there, and it does not.
#[test]
fn suspended_database_is_reported_after_a_bounded_wait() {
    let Some(mut cluster) = postgres::Cluster::of_test() else { return };
    let address = DatabaseAddress::parse(&cluster.database()).expect("an address");
    let database = PostgresDatabase::connect_to(&address.with_patience(Duration::from_secs(8))).expect("reachable");
    graph(&database, "team");
    cluster.freeze();
    let ask = || {
        let started = Instant::now();
        (database.graphs().expect_err("it is suspended").to_string(), started.elapsed())
    };
    let ((first, waited), (second, soon)) = (ask(), ask());
    assert!(first.contains("unreachable since 20") && first == second, "{first}; {second}");
    assert!(waited < Duration::from_secs(14) && soon < Duration::from_secs(6), "{waited:?}, {soon:?}");
    cluster.thaw();
    assert_eq!(database.graphs().expect("it answers again").len(), 1);
    assert_eq!(database.unreachable_since(), None);
}

/// Calls leave a suspended primary for the next host, although its connections look healthy.
#[test]
fn suspended_host_is_left_for_the_next() {
    let (Some(mut first), Some(second)) = (postgres::Cluster::of_test(), postgres::Cluster::of_test()) else { return };
    let urls = [first.database(), second.database()];
    for (url, name) in urls.iter().zip(["one", "two"]) {
        graph(&PostgresDatabase::connect(url).expect("reachable"), name);
    }
    let (login, rest) = urls[0].split_once('@').expect("a user");
    let host = |url: &str| url.split_once('@').expect("a user").1.split_once('/').expect("a name").0.to_owned();
    let (_, name) = rest.split_once('/').expect("a name");
    let database = PostgresDatabase::connect(&format!("{login}@{},{}/{name}", host(&urls[0]), host(&urls[1])));
    let database = database.expect("the first host answers");
    let names =
        || -> Vec<String> { database.graphs().expect("a host answers").into_iter().map(|graph| graph.name).collect() };
    assert_eq!(names(), ["one"]);
    first.freeze();
    assert_eq!(names(), ["two"]);
    first.thaw();
}

fn graph(database: &PostgresDatabase, name: &str) -> Graph {
    database.migrate().expect("the schema can be made");
    database.create_graph(name).expect("the name is free")
}

#[test]
fn write_on_one_server_wakes_the_followers_of_its_graph() {
    const LONG: Duration = Duration::from_secs(20);
    const SHORT: Duration = Duration::from_millis(200);
    let Some(url) = postgres::database() else { return };
    let (writer, reader) = (PostgresDatabase::connect(&url), PostgresDatabase::connect(&url));
    let (writer, reader) = (Arc::new(writer.expect("reachable")), reader.expect("reachable"));
    let (one, other) = (graph(&writer, "one"), graph(&writer, "other"));
    let wakeups = reader.wakeups();
    let (mut of_one, mut of_other) = (wakeups.subscribe(&one), wakeups.subscribe(&other));
    // The start of the connection wakes everyone.
    assert!(of_one.wait(LONG) && of_other.wait(LONG));
    while of_one.wait(SHORT) || of_other.wait(SHORT) {}
    let path = VaultPath::parse("a.md").expect("a path");
    let vault = PostgresVault::new(writer.clone(), &one);
    vault.apply(&[FileChange::Create { path, bytes: Vec::new() }]).expect("the path is free");
    assert!(of_one.wait(LONG), "a note");
    PostgresMemory::new(writer.clone(), &one).apply(&[create("Ada")], &author(1)).expect("an empty memory");
    assert!(of_one.wait(LONG), "memory");
    assert!(!of_other.wait(SHORT), "the other graph did not change");
    let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query = 'LISTEN quipu'";
    assert_eq!(postgres::sql(&url, kill), "1");
    assert!(of_other.wait(LONG), "what came meanwhile may be missed");
}
