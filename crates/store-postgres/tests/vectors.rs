//! Vectors that several servers share, over a real PostgreSQL.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quipu_core::model::NoteKey;
use quipu_core::ports::{Coverage, Grade, MissingVector, PassageHash, StoreError, VectorHit, VectorQuery, VectorStore};
use quipu_store_postgres::{PostgresDatabase, SharedVectors};
use quipu_testkit::postgres;

const SPACE: &str = "model'; DROP TABLE quipu.passage_vector; --";

/// The passages and vectors of one server, in its memory.
#[derive(Default)]
struct OwnVectors {
    passages: Vec<PassageHash>,
    vectors: std::sync::Mutex<Vec<(PassageHash, Vec<f32>)>>,
}

impl OwnVectors {
    fn get(&self, hash: PassageHash) -> Option<Vec<f32>> {
        let vectors = self.vectors.lock().expect("no test panics in it");
        vectors.iter().find(|(known, _)| *known == hash).map(|(_, vector)| vector.clone())
    }
}

impl VectorStore for OwnVectors {
    fn missing(
        &self,
        _: &str,
        _: Grade,
        _: Option<&[NoteKey]>,
        limit: usize,
    ) -> Result<Vec<MissingVector>, StoreError> {
        let missing = self.passages.iter().filter(|hash| self.get(**hash).is_none()).take(limit);
        Ok(missing.map(|hash| MissingVector { key: NoteKey(1), passage: 0, hash: *hash }).collect())
    }

    fn coverage(&self, _: &str) -> Result<Coverage, StoreError> {
        Ok(Coverage::default())
    }

    fn put_vectors(&self, _: &str, _: Grade, vectors: &[(PassageHash, Vec<f32>)]) -> Result<(), StoreError> {
        self.vectors.lock().expect("no test panics in it").extend_from_slice(vectors);
        Ok(())
    }

    fn nearest(&self, _: &VectorQuery<'_>) -> Result<Vec<VectorHit>, StoreError> {
        Ok(Vec::new())
    }

    fn similarities(&self, _: &VectorQuery<'_>, _: &[(NoteKey, usize)]) -> Result<Vec<Option<f32>>, StoreError> {
        Ok(Vec::new())
    }
}

fn hash(number: u8) -> PassageHash {
    PassageHash([number; 16])
}

/// A server with so many passages, all without vectors.
fn server(url: &str, passages: u8) -> (Arc<OwnVectors>, SharedVectors) {
    let database = PostgresDatabase::connect(url).expect("reachable");
    database.migrate().expect("the schema can be made");
    let graph = match database.graph("team").expect("readable") {
        Some(graph) => graph,
        None => database.create_graph("team").expect("free"),
    };
    let own = Arc::new(OwnVectors { passages: (0..passages).map(hash).collect(), ..OwnVectors::default() });
    let shared = SharedVectors::new(own.clone(), Arc::new(database), &graph).expect("readable");
    (own, shared.expect("the build for tests has pgvector"))
}

fn missing(server: &SharedVectors, limit: usize) -> Vec<PassageHash> {
    let missing = server.missing(SPACE, Grade::FULL, None, limit).expect("readable");
    missing.into_iter().map(|passage| passage.hash).collect()
}

/// As an embedder would: the vector depends on the text alone.
fn embed(server: &SharedVectors, hashes: &[PassageHash]) {
    let vectors: Vec<_> = hashes.iter().map(|hash| (*hash, vector(*hash))).collect();
    server.put_vectors(SPACE, Grade::FULL, &vectors).expect("writable");
}

fn vector(hash: PassageHash) -> Vec<f32> {
    let angle = f32::from(hash.0[0]);
    vec![angle.sin(), angle.cos(), 0.0]
}

#[test]
fn each_passage_is_embedded_by_one_server_and_known_to_all() {
    let Some(url) = postgres::database() else { return };
    let ((one_has, one), (two_has, two)) = (server(&url, 20), server(&url, 20));
    let mut embedded = Vec::new();
    for _ in 0..40 {
        for server in [&one, &two] {
            let claimed = missing(server, 4);
            assert!(claimed.iter().all(|hash| !embedded.contains(hash)), "a passage is not embedded twice");
            embed(server, &claimed);
            embedded.extend(claimed);
        }
    }
    assert_eq!(embedded.len(), 20);
    for number in 0..20 {
        for own in [&one_has, &two_has] {
            let found = own.get(hash(number)).expect("every server has every vector");
            let close = found.iter().zip(vector(hash(number))).all(|(a, b)| (a - b).abs() < 0.001);
            assert!(close, "{number}: {found:?}");
        }
    }
}

#[test]
fn servers_at_work_at_once_embed_no_passage_twice() {
    const PASSAGES: u8 = 200;
    let Some(url) = postgres::database() else { return };
    let servers: Vec<_> = (0..3).map(|_| server(&url, PASSAGES)).collect();
    std::thread::scope(|scope| {
        for (own, shared) in &servers {
            scope.spawn(move || {
                let started = Instant::now();
                while (0..PASSAGES).any(|number| own.get(hash(number)).is_none()) {
                    embed(shared, &missing(shared, 2));
                    assert!(started.elapsed() < Duration::from_secs(60), "a vector does not arrive");
                }
            });
        }
    });
    let embedded: u64 = servers.iter().map(|(_, shared)| shared.embedded_and_fetched().0).sum();
    assert_eq!(embedded, u64::from(PASSAGES));
}

#[test]
fn claims_of_a_dead_server_are_taken_over() {
    let Some(url) = postgres::database() else { return };
    let ((_, dying), (_, other)) = (server(&url, 3), server(&url, 3));
    let dying = dying.with_claim(Duration::from_secs(1));
    assert_eq!(missing(&dying, 3).len(), 3);
    assert_eq!(missing(&dying, 3).len(), 3, "its own claims are renewed");
    assert_eq!(missing(&other, 3), []);
    drop(dying);
    let started = Instant::now();
    while missing(&other, 3).len() < 3 {
        assert!(started.elapsed() < Duration::from_secs(20), "the claims do not end");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn vectors_with_other_dimensions_are_not_fetched() {
    let Some(url) = postgres::database() else { return };
    let ((_, old), (new_has, new)) = (server(&url, 2), server(&url, 2));
    embed(&old, &missing(&old, 2));
    new.put_vectors(SPACE, Grade::FULL, &[(hash(9), vec![1.0, 0.0])]).expect("writable");
    assert_eq!(missing(&new, 2), [hash(0), hash(1)], "the model changed under one name");
    assert_eq!(new_has.get(hash(0)), None);
}
