//! A dump of the schema, restored into another database, as docs/team.md describes.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use quipu_core::model::VaultPath;
use quipu_core::ports::{FileChange, VaultFiles};
use quipu_store_postgres::{PostgresDatabase, PostgresVault, roles_sql};
use quipu_testkit::postgres::{database, sql};

/// Runs a program of PostgreSQL.
fn program(name: &str, arguments: &[&str]) -> Output {
    let programs = std::env::var_os("QUIPU_POSTGRES").expect("a database was made");
    let output = Command::new(Path::new(&programs).join("bin").join(name)).args(arguments).output();
    output.expect("it starts")
}

/// A dump of a database with a note and a vector.
fn dump(url: &str, file: &str) {
    let database = PostgresDatabase::connect(url).expect("reachable");
    database.migrate().expect("the schema can be made");
    let graph = database.create_graph("team").expect("free");
    let vault = PostgresVault::new(Arc::new(database), &graph);
    let path = VaultPath::parse("a.md").expect("a path");
    vault.apply(&[FileChange::Create { path, bytes: b"kept".to_vec() }]).expect("writable");
    sql(url, "INSERT INTO quipu.passage_vector SELECT id, 'model', '\\x00', '[1,0]' FROM quipu.graph");
    let dumped = program("pg_dump", &["--format=custom", "--schema=quipu", "--file", file, url]);
    assert!(dumped.status.success(), "{}", String::from_utf8_lossy(&dumped.stderr));
}

fn note(url: &str) -> Vec<u8> {
    let database = PostgresDatabase::connect(url).expect("reachable");
    let graph = database.graph("team").expect("readable").expect("restored");
    let vault = PostgresVault::new(Arc::new(database), &graph);
    vault.read(&VaultPath::parse("a.md").expect("a path")).expect("readable").expect("restored").bytes
}

#[test]
fn dump_is_restored_into_a_new_database() {
    let (Some(from), Some(to)) = (database(), database()) else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("quipu.dump");
    let file = file.to_str().expect("a plain name");
    dump(&from, file);
    // Creates the extension, which the dump does not have, and the roles.
    sql(&to, &roles_sql());
    let restored = program("pg_restore", &["--clean", "--if-exists", "--dbname", &to, file]);
    assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
    assert_eq!(sql(&to, "SELECT count(*) FROM quipu.passage_vector"), "1");
    assert_eq!(note(&to), b"kept");
    PostgresDatabase::connect(&to).expect("reachable").migrate().expect("rights of the roles");
    let may = "SELECT has_table_privilege('quipu_server', 'quipu.passage_vector', 'INSERT')";
    assert_eq!(sql(&to, may), "t");
}

#[test]
fn vectors_get_their_tables_when_the_extension_comes_later() {
    let (Some(from), Some(to)) = (database(), database()) else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("quipu.dump");
    let file = file.to_str().expect("a plain name");
    dump(&from, file);
    let restored = program("pg_restore", &["--dbname", &to, file]);
    assert!(!restored.status.success(), "the type of vectors is missing");
    assert_eq!(note(&to), b"kept", "all other tables are restored");
    let exists = "SELECT to_regclass('quipu.passage_vector') IS NOT NULL";
    assert_eq!(sql(&to, exists), "f");
    sql(&to, "CREATE EXTENSION vector");
    let database = PostgresDatabase::connect(&to).expect("reachable");
    let before = database.migrate().expect("the tables can be made");
    assert_eq!(before.current, before.newest, "no migration is missing");
    assert_eq!(sql(&to, exists), "t");
    let is_bound = "SELECT relrowsecurity FROM pg_class WHERE oid = 'quipu.passage_vector'::regclass";
    assert_eq!(sql(&to, is_bound), "t");
    database.migrate().expect("once more changes nothing");
}
