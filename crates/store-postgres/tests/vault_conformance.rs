//! The rules of the vault port, over rows of a real PostgreSQL.

use std::fmt::Write;
use std::sync::Arc;

use quipu_core::model::{ContentHash, VaultPath};
use quipu_store_postgres::{PostgresDatabase, PostgresVault};
use quipu_testkit::postgres;
use quipu_testkit::vault_conformance::TestedVault;

/// The notes of a new graph. Without PostgreSQL a test is skipped.
macro_rules! vault {
    () => {
        match quipu_testkit::postgres::database() {
            Some(url) => Rows::new(url),
            None => return,
        }
    };
}

struct Rows {
    url: String,
    vault: PostgresVault,
}

impl Rows {
    fn new(url: String) -> Self {
        let database = PostgresDatabase::connect(&url).expect("the database can be reached");
        database.migrate().expect("the schema can be made");
        let graph = database.create_graph("notes").expect("the name is free");
        Self { url, vault: PostgresVault::new(Arc::new(database), &graph) }
    }
}

impl TestedVault for Rows {
    type Vault = PostgresVault;

    fn vault(&self) -> &PostgresVault {
        &self.vault
    }

    /// As another program could write a row, which no server does: some are no notes.
    fn save(&self, path: &str, text: &str) {
        let key = VaultPath::parse(path).expect("a test's path is a vault path").note_id();
        let (bytes, hash) = (hex(text.as_bytes()), hex(&ContentHash::of(text.as_bytes()).0));
        let sql = format!(
            "INSERT INTO quipu.note (graph, path, path_key, bytes, hash, modified_ns) \
             VALUES (1, '{path}', '{key}', '\\x{bytes}', '\\x{hash}', 1) \
             ON CONFLICT (graph, path) DO UPDATE SET bytes = excluded.bytes, hash = excluded.hash"
        );
        postgres::sql(&self.url, &sql);
    }

    fn keeps_empty_folders(&self) -> bool {
        false
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("a text can be written to");
        hex
    })
}

mod conformance {
    use super::Rows;

    quipu_testkit::vault_conformance!(vault!());
}
