//! Vectors of memory that several servers make together, over a real PostgreSQL.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use quipu_core::memory::{DuplicateRule, Embedded, EntityTypes, Memory, MemoryParts};
use quipu_core::ports::{EmbedError, Embedder, MemoryStore, Role};
use quipu_store_postgres::{PostgresDatabase, PostgresMemory};
use quipu_testkit::memory_conformance::{author, create, observe};
use quipu_testkit::{FixedClock, postgres};

/// Counts the texts that it embeds.
#[derive(Default)]
struct CountingModel(AtomicUsize);

impl Embedder for CountingModel {
    fn space(&self) -> &'static str {
        "counted"
    }

    fn worth_beyond_english(&self) -> f32 {
        1.0
    }

    fn unrelated(&self) -> f32 {
        0.0
    }

    fn embed(&self, _: Role, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        self.0.fetch_add(texts.len(), Ordering::Relaxed);
        thread::sleep(Duration::from_millis(2));
        Ok(texts.iter().map(|text| vec![1.0, text.len() as f32]).collect())
    }
}

/// A memory with so many observations.
fn filled(url: &str, observations: usize) {
    let database = PostgresDatabase::connect(url).expect("reachable");
    database.migrate().expect("the schema can be made");
    let graph = database.create_graph("team").expect("free");
    let changes: Vec<_> = (0..observations).map(|number| observe(1, &format!("observation {number}"))).collect();
    let memory = PostgresMemory::new(Arc::new(database), &graph);
    memory.apply(&[create("log")], &author(1)).expect("an empty memory");
    memory.apply(&changes, &author(1)).expect("the entity exists");
}

/// The memory as a server of its own has it open.
fn server(url: &str, model: &Arc<CountingModel>) -> Memory {
    let database = PostgresDatabase::connect(url).expect("reachable");
    let graph = database.graph("team").expect("readable").expect("it was created");
    Memory::new(MemoryParts {
        store: Arc::new(PostgresMemory::new(Arc::new(database), &graph)),
        embedder: Some(model.clone()),
        clock: Arc::new(FixedClock::default()),
        types: EntityTypes::default(),
        rule: DuplicateRule::default(),
    })
}

#[test]
fn each_text_of_memory_is_embedded_by_one_server() {
    const OBSERVATIONS: usize = 300;
    let Some(url) = postgres::database() else { return };
    filled(&url, OBSERVATIONS);
    let model = Arc::<CountingModel>::default();
    let started = Instant::now();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let server = server(&url, &model);
                while server.embed_some(16).expect("the database answers").missing > 0 {
                    assert!(started.elapsed() < Duration::from_secs(60), "a vector does not arrive");
                }
            });
        }
    });
    assert_eq!(model.0.load(Ordering::Relaxed), OBSERVATIONS + 1, "once for all servers");
    let unmade = "SELECT count(*) FROM quipu.text_claim WHERE text_hash NOT IN \
                  (SELECT text_hash FROM quipu.observation_vector UNION SELECT text_hash FROM quipu.entity_vector)";
    assert_eq!(postgres::sql(&url, unmade), "0", "no claim is left of a text without a vector");
}

#[test]
fn texts_of_a_dead_server_are_taken_over() {
    let Some(url) = postgres::database() else { return };
    filled(&url, 2);
    let dying = PostgresDatabase::connect(&url).expect("reachable");
    let graph = dying.graph("team").expect("readable").expect("it was created");
    let dying = PostgresMemory::new(Arc::new(dying), &graph);
    let model = Arc::<CountingModel>::default();
    let server = server(&url, &model);
    let texts: Vec<i64> = ["observation 0", "observation 1"].map(text_hash).to_vec();
    for claimed in ["at first", "renewed"] {
        assert_eq!(dying.claim_texts("counted", &texts, 9).expect("writable").len(), 2, "{claimed}");
    }
    let own = server.embed_some(16).expect("the database answers");
    assert_eq!(own, Embedded { done: 1, missing: 2, elsewhere: 0 }, "the entity");
    let waiting = server.embed_some(16).expect("the database answers");
    assert_eq!(waiting, Embedded { done: 0, missing: 2, elsewhere: 2 });
    postgres::sql(&url, "UPDATE quipu.text_claim SET until = now() - interval '1 second'");
    assert_eq!(server.embed_some(16).expect("the database answers").missing, 0);
}

/// As memory identifies a text.
fn text_hash(text: &str) -> i64 {
    let hash = blake3::hash(text.as_bytes());
    i64::from_le_bytes(hash.as_bytes()[..8].try_into().expect("a hash has 32 bytes"))
}
