//! Who may do what in a database: roles, the isolation of graphs, limits, and tokens.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use quipu_core::RequestKey;
use quipu_core::memory::{EntityId, ObservationId};
use quipu_core::model::VaultPath;
use quipu_core::ports::{
    ApplyError, Author, ChangeNumber, FileChange, MemoryChange, MemoryStore, TextOwner, UndoError, VaultFiles,
    WriteError,
};
use quipu_store_postgres::{
    Graph, GraphError, GraphLimits, NewToken, PostgresDatabase, PostgresMemory, PostgresTokens, PostgresVault,
    TokenError, roles_sql,
};
use quipu_testkit::memory_conformance::{author, create, observe};
use quipu_testkit::postgres::{self, sql, try_sql};

fn migrated(url: &str) -> Arc<PostgresDatabase> {
    let database = PostgresDatabase::connect(url).expect("the database can be reached");
    database.migrate().expect("the schema can be made");
    Arc::new(database)
}

fn path(text: &str) -> VaultPath {
    VaultPath::parse(text).expect("a test's path is a vault path")
}

fn new_note(at: &str, bytes: &[u8]) -> FileChange {
    FileChange::Create { path: path(at), bytes: bytes.to_vec() }
}

fn fill(database: &Arc<PostgresDatabase>, graph: &Graph) {
    PostgresVault::new(database.clone(), graph).apply(&[new_note("a.md", b"text")]).expect("the path is free");
    let memory = PostgresMemory::new(database.clone(), graph);
    memory.apply(&[create("Ada"), observe(1, "sails")], &author(1)).expect("an empty memory");
}

/// The program works with the rights of a server; the database itself keeps graphs apart, whatever a statement says.
#[test]
fn role_of_servers_reaches_one_graph_and_no_administration() {
    let Some(url) = postgres::database() else { return };
    sql(&url, &roles_sql());
    let admin_url = url.replace("postgres@", "quipu_admin@");
    let database = migrated(&admin_url);
    sql(&url, &roles_sql());
    let (a, b) = (database.create_graph("a").expect("free"), database.create_graph("b").expect("free"));
    let url = url.replace("postgres@", "quipu_server@");
    let server = Arc::new(PostgresDatabase::connect(&url).expect("the role may log in"));
    assert!(server.schema().expect("readable").check().is_ok());
    fill(&server, &a);
    fill(&server, &b);
    assert_eq!(PostgresMemory::new(server.clone(), &a).check().expect("readable"), [""; 0]);
    let tables =
        "SELECT string_agg(relname, ' ') FROM pg_class WHERE relrowsecurity AND relnamespace = 'quipu'::regnamespace";
    let tables = sql(&url, tables);
    let with_graph = "SELECT count(DISTINCT table_name) FROM information_schema.columns WHERE table_schema = 'quipu' \
                      AND column_name = 'graph' AND table_name <> 'token_graph'";
    assert_eq!(tables.split(' ').count().to_string(), sql(&url, with_graph), "every table with a graph has the wall");
    for table in tables.split(' ') {
        assert_eq!(sql(&url, &format!("SELECT count(*) FROM quipu.{table}")), "0", "{table}: no graph is set");
        let others = format!("SET quipu.graph = '1'; SELECT count(*) FROM quipu.{table} WHERE graph <> 1");
        assert_eq!(sql(&url, &others).lines().last(), Some("0"), "{table}");
        let delete = format!("SET quipu.graph = '1'; DELETE FROM quipu.{table} WHERE graph = 2");
        assert_eq!(sql(&url, &delete).lines().last(), Some("DELETE 0"), "{table}");
    }
    assert_eq!(sql(&url, "SET quipu.graph = '2'; SELECT count(*) FROM quipu.note").lines().last(), Some("1"));
    let into_b = "SET quipu.graph = '1'; INSERT INTO quipu.note (graph, path, path_key, bytes, hash, modified_ns) \
                  VALUES (2, 'x.md', 'x.md', '', '', 1)";
    assert!(try_sql(&url, into_b).expect_err("another graph").contains("row-level security"));
    let moved = "SET quipu.graph = '1'; UPDATE quipu.note SET graph = 2";
    assert!(try_sql(&url, moved).expect_err("another graph").contains("row-level security"));
    for forbidden in [
        "INSERT INTO quipu.graph (name) VALUES ('c')",
        "DELETE FROM quipu.graph",
        "INSERT INTO quipu.token (id, name, scope, hash, created_ns) VALUES ('x', 'x', 'admin', '', 1)",
        "UPDATE quipu.token SET scope = 'admin'",
        "INSERT INTO quipu.token_graph (token, graph) VALUES ('x', 1)",
        "UPDATE quipu.migration SET needs = 9",
        "CREATE TABLE quipu.mine ()",
        "ALTER TABLE quipu.note DISABLE ROW LEVEL SECURITY",
        "DROP TABLE quipu.note",
        "TRUNCATE quipu.note",
        "SET ROLE quipu_admin",
        "COPY quipu.note TO PROGRAM 'cat'",
    ] {
        let error = try_sql(&url, forbidden).expect_err(forbidden);
        assert!(error.contains("permission denied") || error.contains("must be owner"), "{forbidden}: {error}");
    }
}

/// So a row is found among those of its graph, and the tables can be distributed by graph.
#[test]
fn every_unique_key_starts_with_the_graph() {
    let Some(url) = postgres::database() else { return };
    migrated(&url);
    let unique = "FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid AND t.relnamespace = 'quipu'::regnamespace \
                  AND t.relrowsecurity LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = i.indkey[0] \
                  WHERE i.indisunique";
    let others =
        format!("SELECT string_agg(indexrelid::regclass::text, ' ') {unique} AND a.attname IS DISTINCT FROM 'graph'");
    assert_eq!(sql(&url, &others), "");
    let count: usize = sql(&url, &format!("SELECT count(*) {unique}")).parse().expect("a number");
    assert!(count > 20, "{count} keys");
}

/// An index serves the look-up of names also where rules for rows apply.
#[test]
fn names_are_looked_up_by_index_under_row_level_security() {
    let Some(url) = postgres::database() else { return };
    let database = migrated(&url);
    let graph = database.create_graph("a").expect("free");
    fill(&database, &graph);
    sql(
        &url,
        "DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'reader') THEN CREATE ROLE reader LOGIN; END IF; END $$",
    );
    sql(&url, "GRANT USAGE ON SCHEMA quipu TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA quipu TO reader");
    sql(
        &url,
        "INSERT INTO quipu.alias SELECT 1, 1, n, 'x' || n, 'x' || n FROM generate_series(10, 20000) n; ANALYZE quipu.alias",
    );
    let explain = "SET search_path = quipu; SET quipu.graph = '1'; \
                   EXPLAIN SELECT entity FROM alias WHERE graph = 1 AND alias_hash = hashtextextended('x50', 0)";
    let plan = sql(&url.replace("postgres@", "reader@"), explain);
    assert!(plan.contains("alias_by_hash") && plan.contains("alias_hash ="), "{plan}");
}

/// An index finds the notes at, above and below the paths of a write.
#[test]
fn write_of_notes_reads_no_others() {
    const NOTES: u64 = 5000;
    let Some(url) = postgres::database() else { return };
    let database = migrated(&url);
    let vault = PostgresVault::new(database.clone(), &database.create_graph("a").expect("free"));
    let paths = format!("SELECT 'n' || n || '.md' AS path FROM generate_series(1, {NOTES}) n");
    // As long as notes are: the planner uses an index anyway where rows are short.
    let text = "convert_to(repeat(md5(path), 30), 'UTF8')";
    let insert = format!("INSERT INTO quipu.note SELECT 1, path, path, {text}, '\\x00', 1, 960 FROM ({paths}) AS new");
    sql(&url, &format!("{insert}; ANALYZE quipu.note"));
    let new: Vec<FileChange> = (0..10).map(|number| new_note(&format!("new{number}.md"), b"text")).collect();
    vault.apply(&new).expect("their paths are free");
    // A connection reports what it has read when it ends.
    drop((vault, database));
    let counted = |column: &str| -> u64 {
        let of_notes = "FROM pg_stat_user_tables WHERE schemaname = 'quipu' AND relname = 'note'";
        sql(&url, &format!("SELECT {column} {of_notes}")).parse().expect("a number")
    };
    let started = Instant::now();
    while counted("n_tup_ins") < NOTES + 10 {
        assert!(started.elapsed() < Duration::from_secs(60), "it reports nothing");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(counted("seq_tup_read") < NOTES, "{} notes were read", counted("seq_tup_read"));
}

/// Sets the limits of the graph `team`.
fn limit(database: &PostgresDatabase, max_notes: Option<i64>, max_bytes: Option<i64>) {
    database.limit_graph("team", GraphLimits { max_notes, max_bytes, max_rate: None }).expect("it exists");
}

#[test]
fn limits_of_a_graph_stop_growth_and_nothing_else() {
    let Some(url) = postgres::database() else { return };
    let database = migrated(&url);
    let graph = database.create_graph("team").expect("free");
    let vault = PostgresVault::new(database.clone(), &graph);
    let usage = || {
        let usage = database.graph_usage().expect("readable").remove(0);
        (usage.notes, usage.bytes)
    };
    vault.apply(&[new_note("a.md", b"12345"), new_note("b.md", b"12345")]).expect("no limit");
    assert_eq!(usage(), (2, 10));
    limit(&database, Some(2), Some(12));
    let refused = |change: FileChange| match vault.apply(&[change]) {
        Err(error @ WriteError::Full { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        refused(new_note("c.md", b"")),
        "cannot write c.md: the graph has reached its limit of 2 notes; an administrator can raise it with `quipu graph limit`"
    );
    let replace = |at: &str, bytes: &[u8]| {
        let expected = vault.read(&path(at)).expect("readable").expect("it exists").hash;
        FileChange::Replace { path: path(at), expected, bytes: bytes.to_vec() }
    };
    assert!(refused(replace("a.md", b"123")).contains("its limit of 12 bytes"), "the old version is kept");
    vault.apply(&[replace("a.md", b"12")]).expect("exactly the limit");
    assert!(usage().1 > 12, "a version counts with what is recorded about it");
    assert!(refused(replace("a.md", b"")).contains("its limit of 12 bytes"), "nor can edits fill the database");
    let b = vault.read(&path("b.md")).expect("readable").expect("it exists");
    vault.apply(&[FileChange::Delete { path: path("b.md"), expected: b.hash }]).expect("deleting is allowed");
    let trashed = vault.trashed().expect("readable").remove(0);
    assert!(matches!(vault.restore(&trashed), Err(WriteError::Full { .. })));
    vault.prune(i64::MAX).expect("writable");
    assert_eq!(usage(), (1, 2), "without its old versions");
    vault.apply(&[replace("a.md", b"1234567890")]).expect("there is room again");
}

#[test]
fn memory_counts_against_the_limit_of_a_graph() {
    let Some(url) = postgres::database() else { return };
    let database = migrated(&url);
    let graph = database.create_graph("team").expect("free");
    let memory = PostgresMemory::new(database.clone(), &graph);
    let used = || database.graph_usage().expect("readable").remove(0).bytes;
    memory.apply(&[create("Ada"), observe(1, &"x".repeat(1000))], &author(1)).expect("no limit");
    let before = used();
    assert!(before > 1000, "{before}");
    limit(&database, None, Some(before + 1500));
    memory.apply(&[observe(1, &"x".repeat(1000))], &author(1)).expect("within the limit");
    let full = memory.apply(&[observe(1, &"x".repeat(1000))], &author(1)).expect_err("beyond it");
    let ApplyError::Failed(failure) = full else { panic!("{full}") };
    assert!(failure.advice.expect("advice").starts_with("the graph has reached its limit of "), "and says what to do");
    assert_eq!(memory.head().expect("readable").0, 2, "nothing was changed");
    let delete = MemoryChange::DeleteObservation { id: ObservationId(1) };
    memory.apply(&[delete], &author(1)).expect("deleting is allowed");
    let undone = memory.undo(ChangeNumber(3), &author(1)).expect_err("it would come back");
    assert!(matches!(undone, UndoError::Failed(_)), "{undone}");
    let vault = PostgresVault::new(database.clone(), &graph);
    assert!(matches!(vault.apply(&[new_note("a.md", &[b'x'; 1000])]), Err(WriteError::Full { .. })), "notes share it");
    let before = used();
    memory.redact(TextOwner::Entity(EntityId(1)), "asked for", &author(2)).expect("it exists");
    assert!(used() < before - 2000, "redacted texts do not count: {before}, {}", used());
}

#[test]
fn graphs_are_renamed_and_deleted_with_all_they_have() {
    let Some(url) = postgres::database() else { return };
    let database = migrated(&url);
    let (one, two) = (database.create_graph("one").expect("free"), database.create_graph("two").expect("free"));
    fill(&database, &one);
    fill(&database, &two);
    assert!(matches!(database.rename_graph("one", "two"), Err(GraphError::Exists(_))));
    for wrong in ["", "A", "1", "a b", "a/b", "a'; DROP TABLE quipu.graph; --", &"a".repeat(65)] {
        assert!(matches!(database.rename_graph("one", wrong), Err(GraphError::Name(_))), "{wrong}");
    }
    database.rename_graph("one", "first").expect("the name is free");
    assert!(matches!(database.rename_graph("one", "x"), Err(GraphError::Unknown(_))));
    assert!(matches!(database.delete_graph("x' OR '1'='1"), Err(GraphError::Unknown(_))));
    database.delete_graph("first").expect("it exists");
    assert_eq!(database.graphs().expect("readable"), [two]);
    for table in ["note", "note_head", "note_change", "entity", "observation", "change", "change_step"] {
        assert_eq!(sql(&url, &format!("SELECT count(*) FROM quipu.{table} WHERE graph = 1")), "0", "{table}");
        assert_ne!(sql(&url, &format!("SELECT count(*) FROM quipu.{table} WHERE graph = 2")), "0", "{table}");
    }
}

#[test]
fn tokens_are_kept_as_hashes_and_revoked_for_running_servers() {
    let Some(url) = postgres::database() else { return };
    let database = migrated(&url);
    for name in ["one", "two"] {
        database.create_graph(name).expect("free");
    }
    let now = Timestamp::from_second(1).expect("a time");
    let new = |name: &str, graphs: &[&str]| {
        let graphs: Vec<String> = graphs.iter().map(|graph| (*graph).to_owned()).collect();
        database.create_token(&NewToken { name, scope: "write", graphs: &graphs, created: now, expires: Some(now) })
    };
    let odd = "'; DROP TABLE quipu.token; --\0";
    let (_, made) = new(odd, &["two", "one"]).expect("the name is free");
    let graphs: Vec<&str> = made.graphs.iter().map(|graph| graph.name.as_str()).collect();
    assert_eq!((made.name.as_str(), &graphs[..]), (odd, &["one", "two"][..]));
    assert_eq!((made.created, made.expires), (now, Some(now)));
    new(&made.id, &["one"]).expect("a name may look like an id");
    assert_eq!(database.revoke_token(&made.id).expect("there are two").name, odd, "the id counts first");
    assert_eq!(database.revoke_token(&made.id).expect("there is one").name, made.id);
    let (text, made) = new(odd, &["two", "one"]).expect("the name is free again");
    assert!(matches!(new(odd, &["one"]), Err(TokenError::Exists(_))));
    assert!(matches!(new("lost", &["nowhere"]), Err(TokenError::NoGraph(_))));
    assert_eq!(database.tokens().expect("readable"), std::slice::from_ref(&made), "a refused token is not there");
    let dump = sql(&url, "SELECT token::text FROM quipu.token");
    assert!(!dump.contains(&text["quipu_".len()..]), "{dump}");
    let server = PostgresTokens::new(migrated(&url));
    let find = |text: &str| server.find(text).expect("readable").map(|token| token.id.clone());
    assert_eq!(find(&text), Some(made.id.clone()));
    for wrong in ["", "quipu_", &text.to_uppercase(), "' OR ''='", &text[..20]] {
        assert_eq!(find(wrong), None, "{wrong}");
    }
    assert_eq!(database.revoke_token(odd).expect("it exists").id, made.id);
    assert!(matches!(database.revoke_token(odd), Err(TokenError::Unknown(_))));
    let revoked = Instant::now();
    while find(&text).is_some() {
        assert!(revoked.elapsed() < Duration::from_secs(10), "a revoked token is rejected within seconds");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A server redacts with the rights that it has, and no table has the text afterwards.
#[test]
fn redacted_text_is_in_no_table() {
    let Some(url) = postgres::database() else { return };
    sql(&url, &roles_sql());
    let database = migrated(&url.replace("postgres@", "quipu_admin@"));
    sql(&url, &roles_sql());
    let graph = database.create_graph("team").expect("free");
    let server = PostgresDatabase::connect(&url.replace("postgres@", "quipu_server@")).expect("the role may log in");
    let memory = PostgresMemory::new(Arc::new(server), &graph);
    let tables = "SELECT string_agg(relname, ' ') FROM pg_class \
                  WHERE relkind = 'r' AND relnamespace = 'quipu'::regnamespace";
    let tables = sql(&url, tables);
    let holders = || -> Vec<&str> {
        let count = |table: &str| format!("SELECT count(*) FROM quipu.{table} AS it WHERE it::text ILIKE '%zanzibar%'");
        tables.split(' ').filter(|table| sql(&url, &count(table)) != "0").collect()
    };
    let asked = Author { request: Some(RequestKey(1)), ..author(1) };
    memory.apply(&[create("Zanzibar"), observe(1, "sees [[zanzibar]]"), create("Bo")], &asked).expect("empty");
    assert!(["entity", "observation", "change_step", "memory_request"].iter().all(|table| holders().contains(table)));
    memory.redact(TextOwner::Entity(EntityId(1)), "asked for", &author(2)).expect("it exists");
    assert_eq!(holders(), [""; 0]);
    assert_eq!(sql(&url, "SELECT name FROM quipu.entity"), "Bo");
    assert_eq!(memory.check().expect("readable"), [""; 0]);
}
