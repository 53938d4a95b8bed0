//! The rules of the ports of notes and vectors, over the index of a server on a real PostgreSQL: in memory, with vectors that are
//! completed from the database.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use quipu_core::model::NoteKey;
use quipu_core::ports::{
    Coverage, Grade, Loaded, MissingVector, NoteChange, NoteStore, PassageHash, RankedText, StoreError, TextHits,
    TextQuery, VectorHit, VectorQuery, VectorStore,
};
use quipu_store_embedded::EmbeddedStore;
use quipu_store_postgres::{PostgresDatabase, SharedVectors};
use quipu_testkit::store_conformance::NoteStorage;

/// A new database. Without PostgreSQL a test is skipped.
macro_rules! storage {
    () => {
        match quipu_testkit::postgres::database() {
            Some(url) => ServerStorage::new(&url),
            None => return,
        }
    };
}

struct ServerStorage {
    database: Arc<PostgresDatabase>,
    graphs: AtomicUsize,
}

impl ServerStorage {
    fn new(url: &str) -> Self {
        let database = PostgresDatabase::connect(url).expect("the database can be reached");
        database.migrate().expect("the schema can be made");
        Self { database: Arc::new(database), graphs: AtomicUsize::new(0) }
    }
}

/// The stores of a server, as the program composes them.
struct ServerStore {
    own: Arc<EmbeddedStore>,
    shared: SharedVectors,
}

impl NoteStorage for ServerStorage {
    type Store = ServerStore;

    /// In a graph of its own: other stores of the same graph would share its vectors.
    fn open(&self) -> ServerStore {
        let number = self.graphs.fetch_add(1, Ordering::Relaxed);
        let graph = self.database.create_graph(&format!("graph{number}")).expect("the name is free");
        let own = Arc::new(EmbeddedStore::in_memory().expect("memory is enough"));
        let shared = SharedVectors::new(own.clone(), self.database.clone(), &graph).expect("readable");
        ServerStore { own, shared: shared.expect("the build for tests has pgvector") }
    }

    fn lasts(&self) -> bool {
        false
    }

    fn lose_text(&self, _: &ServerStore) -> bool {
        false
    }
}

impl NoteStore for ServerStore {
    fn load(&self, fingerprint: &str) -> Result<Loaded, StoreError> {
        self.own.load(fingerprint)
    }

    fn apply(&self, changes: &[NoteChange<'_>]) -> Result<(), StoreError> {
        self.own.apply(changes)
    }

    fn store_links(&self, links: &[u8]) -> Result<(), StoreError> {
        self.own.store_links(links)
    }

    fn store_lines(&self, segment: u32, lines: &[u8]) -> Result<(), StoreError> {
        self.own.store_lines(segment, lines)
    }

    fn lines(&self, segment: u32) -> Result<Option<Vec<u8>>, StoreError> {
        self.own.lines(segment)
    }

    fn search_text(&self, query: &TextQuery) -> Result<TextHits, StoreError> {
        self.own.search_text(query)
    }

    fn rank_text(&self, text: &str, limit: usize) -> Result<RankedText, StoreError> {
        self.own.rank_text(text, limit)
    }

    fn text_lost(&self) -> Result<Vec<NoteKey>, StoreError> {
        self.own.text_lost()
    }

    fn accept_loss(&self) {
        self.own.accept_loss();
    }

    fn scrub(&self) -> Result<(), StoreError> {
        self.own.scrub()
    }

    fn check(&self) -> Result<Vec<String>, StoreError> {
        NoteStore::check(&*self.own)
    }
}

impl VectorStore for ServerStore {
    fn missing(
        &self,
        space: &str,
        grade: Grade,
        among: Option<&[NoteKey]>,
        limit: usize,
    ) -> Result<Vec<MissingVector>, StoreError> {
        self.shared.missing(space, grade, among, limit)
    }

    fn coverage(&self, space: &str) -> Result<Coverage, StoreError> {
        self.shared.coverage(space)
    }

    fn put_vectors(&self, space: &str, grade: Grade, vectors: &[(PassageHash, Vec<f32>)]) -> Result<(), StoreError> {
        self.shared.put_vectors(space, grade, vectors)
    }

    fn nearest(&self, query: &VectorQuery<'_>) -> Result<Vec<VectorHit>, StoreError> {
        self.shared.nearest(query)
    }

    fn similarities(
        &self,
        query: &VectorQuery<'_>,
        sections: &[(NoteKey, usize)],
    ) -> Result<Vec<Option<f32>>, StoreError> {
        self.shared.similarities(query, sections)
    }
}

mod conformance {
    use super::ServerStorage;

    quipu_testkit::vector_conformance!(storage!());
    quipu_testkit::store_conformance!(storage!());
}
