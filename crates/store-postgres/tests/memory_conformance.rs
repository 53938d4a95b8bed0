//! The rules of the memory port, over a real PostgreSQL.

use std::sync::Arc;

use quipu_core::RequestKey;
use quipu_store_postgres::{Graph, PostgresDatabase, PostgresMemory};
use quipu_testkit::memory_conformance::MemoryStorage;

/// A graph of a new database. Without PostgreSQL a test is skipped.
macro_rules! storage {
    () => {
        match quipu_testkit::postgres::database() {
            Some(url) => GraphStorage::new(&url),
            None => return,
        }
    };
}

struct GraphStorage {
    url: String,
    database: Arc<PostgresDatabase>,
    graph: Graph,
}

impl GraphStorage {
    fn new(url: &str) -> Self {
        let database = PostgresDatabase::connect(url).expect("the database can be reached");
        database.migrate().expect("the schema can be made");
        let graph = database.create_graph("notes").expect("the name is free");
        Self { url: url.to_owned(), database: Arc::new(database), graph }
    }
}

impl MemoryStorage for GraphStorage {
    type Store = PostgresMemory;

    fn open(&self) -> PostgresMemory {
        PostgresMemory::new(self.database.clone(), &self.graph)
    }

    /// The records have the database's time, whatever the server's clock says.
    fn expire_requests(&self) {
        let age = format!("UPDATE quipu.memory_request SET at_ns = at_ns - {}", RequestKey::REMEMBERED_NS);
        quipu_testkit::postgres::sql(&self.url, &age);
    }
}

mod conformance {
    use super::GraphStorage;

    quipu_testkit::memory_conformance!(storage!());
}
