//! `quipu push`, `pull` and `mirror` over a real PostgreSQL.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use quipu_core::model::VaultPath;
use quipu_core::ports::{FileChange, NoteHistory, VaultFiles, WriteFilter};
use quipu_store_postgres::{PostgresDatabase, PostgresVault};
use serde_json::Value;

use crate::sandbox::Sandbox;
use crate::team::Team;

const PATIENCE: Duration = Duration::from_secs(30);

/// The notes of the graph, without a server.
fn graph(team: &Team) -> PostgresVault {
    let database = PostgresDatabase::connect(&team.url).unwrap();
    let graph = database.graph("team").unwrap().expect("it was created");
    PostgresVault::new(database.into(), &graph)
}

fn path(text: &str) -> VaultPath {
    VaultPath::parse(text).unwrap()
}

/// The text of a note of the graph.
fn text(graph: &PostgresVault, at: &str) -> Option<String> {
    graph.read(&path(at)).unwrap().map(|note| String::from_utf8(note.bytes).unwrap())
}

/// Writes a note of the graph, as a server would.
fn put(graph: &PostgresVault, at: &str, text: &str) {
    let (path, bytes) = (path(at), text.as_bytes().to_vec());
    graph
        .apply(&[match graph.read(&path).unwrap() {
            Some(current) => FileChange::Replace { path, expected: current.hash, bytes },
            None => FileChange::Create { path, bytes },
        }])
        .unwrap();
}

#[test]
fn push_and_pull_carry_every_byte_and_every_deletion() {
    let Some(team) = Team::ready("//- a.md\none\n//- dir/b.md\ntwo\n//- gone.md\nx\n//- picture.png\nnot a note\n")
    else {
        return;
    };
    let odd = b"no UTF-8 \xff, no line end, \r\n";
    team.sandbox.write("odd.md", odd);
    let first = team.run(&["push"]).expect(0);
    assert!(first.stdout.contains("pushed to team: 4 created, 0 changed, 0 moved, 0 deleted"), "{first}");
    assert!(first.stderr.contains("images and other files stay in the folder"), "{first}");
    let graph = graph(&team);
    assert_eq!(graph.read(&path("odd.md")).unwrap().unwrap().bytes, odd);
    assert_eq!(team.json(&["push", "--json"])["in_sync"], 4);

    put(&graph, "a.md", "changed there");
    put(&graph, "new.md", "created there");
    std::fs::remove_file(team.sandbox.root().join("gone.md")).unwrap();
    std::fs::rename(team.sandbox.root().join("dir/b.md"), team.sandbox.root().join("dir/c.md")).unwrap();
    let planned = team.run(&["push", "--dry-run"]).expect(0);
    assert!(planned.stdout.contains("move       dir/c.md from dir/b.md"), "{planned}");
    assert_eq!(text(&graph, "gone.md").as_deref(), Some("x\n"), "a dry run changes nothing");
    let pushed = team.json(&["push", "--json"]);
    assert_eq!((&pushed["moved"], &pushed["deleted"], &pushed["waiting"]), (&1.into(), &1.into(), &2.into()));
    assert_eq!((text(&graph, "gone.md"), text(&graph, "dir/c.md").as_deref()), (None, Some("two\n")));
    assert_eq!(graph.writes(&WriteFilter::default()).unwrap()[0].by, "quipu (folder)");

    let pulled = team.json(&["pull", "--json"]);
    assert_eq!((&pulled["created"], &pulled["changed"]), (&1.into(), &1.into()));
    assert_eq!(team.sandbox.read("a.md"), "changed there");
    assert_eq!(team.sandbox.read("new.md"), "created there");
    assert_eq!(team.json(&["pull", "--json"])["in_sync"], 4);
}

#[test]
fn conflicts_are_refused_by_push_and_kept_by_pull() {
    let Some(team) = Team::ready("//- plan.md\nold\n") else { return };
    team.succeed(&["push"]);
    let graph = graph(&team);
    put(&graph, "plan.md", "theirs");
    team.sandbox.write("plan.md", "mine");
    let refused = team.run(&["push"]).expect(1);
    assert!(refused.stderr.contains("1 note was changed on both sides and not synchronised"), "{refused}");
    assert!(refused.stderr.contains("  plan.md") && refused.stderr.contains("`quipu pull`"), "{refused}");
    let kept = team.json_with_code(&["pull", "--json"], 1);
    let copy = kept["conflicts"][0]["copy"].as_str().unwrap().to_owned();
    assert!(copy.starts_with("plan (conflict 20") && copy.ends_with(" folder).md"), "{copy}");
    assert_eq!((team.sandbox.read("plan.md").as_str(), team.sandbox.read(&copy).as_str()), ("theirs", "mine"));
    assert_eq!(team.json(&["push", "--json"])["created"], 1, "the copy is a note");
    put(&graph, "plan.md", "theirs again");
    team.sandbox.write("plan.md", "mine again");
    team.succeed(&["push", "--force"]);
    assert_eq!(text(&graph, "plan.md").as_deref(), Some("mine again"));
    let replaced = &graph.trashed().unwrap()[0];
    assert_eq!(graph.kept_bytes(&replaced.version).unwrap().unwrap(), b"theirs again");
}

#[test]
fn ignored_files_and_restored_databases_delete_nothing() {
    let Some(team) = Team::ready("//- a.md\n1\n//- private.md\n2\n") else { return };
    team.succeed(&["push"]);
    team.sandbox.write(".gitignore", "private.md\n");
    let pushed = team.run(&["push"]).expect(0);
    assert!(pushed.stderr.contains("private.md: the rules of the folder exclude it"), "{pushed}");
    let graph = graph(&team);
    assert_eq!(text(&graph, "private.md").as_deref(), Some("2\n"));
    // The database comes from a backup that was made before the first push.
    quipu_testkit::postgres::sql(
        &team.url,
        "DELETE FROM quipu.note; UPDATE quipu.note_head SET change = 0, notes = 0, bytes = 0; DELETE FROM quipu.note_change; DELETE FROM quipu.note_write",
    );
    let pulled = team.run(&["pull"]).expect(0);
    assert!(pulled.stderr.contains("older than at the last run"), "{pulled}");
    assert_eq!(team.sandbox.read("a.md"), "1\n");
    team.succeed(&["push"]);
    assert_eq!(text(&graph, "a.md").as_deref(), Some("1\n"));
}

#[test]
fn wrong_graphs_and_a_second_run_are_explained() {
    let Some(team) = Team::ready("//- a.md\n1\n") else { return };
    assert!(team.fail(&["push", "--graph", "nowhere"]).contains("quipu graph list"));
    team.succeed(&["graph", "create", "other"]);
    assert!(team.fail(&["push"]).contains("name one with --graph"));
    assert!(team.sandbox.run(&["push"]).expect(2).stderr.contains("QUIPU_DATABASE_URL"));
    let mirror = Mirror::start(&team);
    assert!(team.fail(&["pull", "--graph", "team"]).contains("another run does"));
    team.succeed(&["push", "--graph", "other"]);
    drop(mirror);
    team.succeed(&["pull", "--graph", "team"]);
}

/// A full graph stops neither a push nor a mirror: what it cannot hold is named, and stays in the folder.
#[test]
fn notes_that_a_full_graph_cannot_hold_are_named_and_stay() {
    let Some(team) = Team::ready("//- a.md\n1\n//- b.md\n2\n") else { return };
    team.succeed(&["push"]);
    team.succeed(&["graph", "limit", "team", "--max-notes", "3"]);
    for name in ["c.md", "d.md", "e.md"] {
        team.sandbox.write(name, "new");
    }
    team.sandbox.write("b.md", "changed");
    let pushed = team.run(&["push"]).expect(1);
    assert!(pushed.stdout.contains("1 created, 1 changed"), "{pushed}");
    assert!(pushed.stderr.contains("cannot synchronise 2 notes"), "{pushed}");
    assert!(
        pushed.stderr.contains("d.md: the graph has reached its limit of 3 notes; an administrator can raise it"),
        "{pushed}"
    );
    let graph = graph(&team);
    assert_eq!((text(&graph, "b.md").as_deref(), text(&graph, "d.md")), (Some("changed"), None));
    let mut mirror = Mirror::start(&team);
    team.sandbox.write("a.md", "changed too");
    wait_for("the mirror goes on", || text(&graph, "a.md").as_deref() == Some("changed too"));
    assert!(mirror.child.try_wait().unwrap().is_none(), "it runs");
    assert_eq!(file(&team.sandbox, "e.md").as_deref(), Some("new"), "and stays in the folder");
    assert_eq!(graph.list().unwrap().files.len(), 3);
}

/// A running mirror of the graph `team`.
struct Mirror {
    child: Child,
}

impl Mirror {
    /// Starts it and waits until both sides were compared once.
    fn start(team: &Team) -> Self {
        let mut command = team.sandbox.command(&["mirror", "--graph", "team"]);
        command.env("QUIPU_DATABASE_URL", &team.url).env("USER", "ada");
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        let mut printed = BufReader::new(child.stdout.take().unwrap());
        printed.read_line(&mut first).unwrap();
        // It ends when its output is closed.
        std::thread::spawn(move || printed.lines().count());
        assert!(first.contains("in sync before"), "{first}");
        Self { child }
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn file(sandbox: &Sandbox, at: &str) -> Option<String> {
    std::fs::read_to_string(sandbox.root().join(at)).ok()
}

#[test]
fn mirror_follows_both_sides_and_ends_on_a_signal() {
    let Some(team) = Team::ready("//- a.md\n1\n//- b.md\n2\n") else { return };
    let graph = graph(&team);
    let mut mirror = Mirror::start(&team);
    assert_eq!(text(&graph, "a.md").as_deref(), Some("1\n"));
    team.sandbox.write("a.md", "changed here");
    put(&graph, "b.md", "changed there");
    put(&graph, "deep/c.md", "created there");
    wait_for("the folder's change is in the graph", || text(&graph, "a.md").as_deref() == Some("changed here"));
    wait_for("the graph's changes are in the folder", || {
        file(&team.sandbox, "b.md").as_deref() == Some("changed there")
            && file(&team.sandbox, "deep/c.md").as_deref() == Some("created there")
    });
    std::fs::remove_dir_all(team.sandbox.root().join("deep")).unwrap();
    wait_for("a deleted folder is deleted", || text(&graph, "deep/c.md").is_none());
    mirror.signal("INT");
    assert_eq!(mirror.child.wait().unwrap().code(), Some(0));
}

#[test]
fn mirror_that_is_killed_converges_and_keeps_both_versions() {
    let Some(team) = Team::ready("//- a.md\n1\n") else { return };
    let graph = graph(&team);
    for round in 0..6 {
        let mirror = Mirror::start(&team);
        for number in 0..5 {
            team.sandbox.write(&format!("here {number}.md"), format!("{round}"));
            put(&graph, &format!("there {number}.md"), &format!("{round}"));
        }
        std::thread::sleep(Duration::from_millis(60 * round));
        mirror.signal("KILL");
        drop(mirror);
        team.sandbox.write("a.md", format!("mine {round}"));
        put(&graph, "a.md", &format!("theirs {round}"));
    }
    let settled = Mirror::start(&team);
    drop(settled);
    let notes: Vec<Value> = graph.list().unwrap().files.iter().map(|note| note.path.as_str().into()).collect();
    for note in notes.iter().filter_map(Value::as_str) {
        assert_eq!(file(&team.sandbox, note), text(&graph, note), "{note}");
    }
    let markdown = team.sandbox.files().into_keys().filter(|path| path.extension().is_some_and(|it| it == "md"));
    assert_eq!(markdown.count(), notes.len());
    let kept: String = notes.iter().filter_map(|note| text(&graph, note.as_str().unwrap())).collect();
    for round in 0..6 {
        assert!(kept.contains(&format!("mine {round}")), "round {round}: {notes:?}");
    }
    assert_eq!(text(&graph, "a.md").as_deref(), Some("theirs 5"));
}

#[test]
fn mirror_survives_an_outage_of_the_database() {
    let Some(team) = Team::ready("//- a.md\n1\n") else { return };
    let graph = graph(&team);
    let _mirror = Mirror::start(&team);
    // New connections are refused and open ones are closed, as in a failover.
    let name = team.url.rsplit('/').next().unwrap().split('?').next().unwrap().to_owned();
    let admin = quipu_testkit::postgres::database().unwrap();
    let allow = |allowed: bool| {
        quipu_testkit::postgres::sql(&admin, &format!("ALTER DATABASE \"{name}\" ALLOW_CONNECTIONS {allowed}"));
    };
    allow(false);
    quipu_testkit::postgres::sql(
        &admin,
        &format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"),
    );
    team.sandbox.write("a.md", "written during the outage");
    std::thread::sleep(Duration::from_secs(2));
    allow(true);
    wait_for("the change arrives", || text(&graph, "a.md").as_deref() == Some("written during the outage"));
}

#[test]
fn staleness_works_in_a_checkout_that_is_mirrored() {
    let Some(team) = Team::ready("//- page.md\n---\nsource_refs: [code.rs]\n---\nold\n//- code.rs\nfn a() {}\n") else {
        return;
    };
    let git = |arguments: &[&str], date: &str| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a@example.org"]).args(arguments);
        command.env("GIT_COMMITTER_DATE", date).env("GIT_AUTHOR_DATE", date).current_dir(team.sandbox.root());
        assert!(command.output().unwrap().status.success(), "{arguments:?}");
    };
    git(&["init"], "2026-01-01T00:00:00Z");
    git(&["add", "."], "2026-01-01T00:00:00Z");
    git(&["commit", "-m", "both"], "2026-01-01T00:00:00Z");
    team.sandbox.write("code.rs", "fn b() {}\n");
    git(&["commit", "-am", "code"], "2026-02-01T00:00:00Z");
    team.succeed(&["push"]);
    assert_eq!(team.json(&["stale", "--json"])["counts"]["stale"], 1);
    put(&graph(&team), "page.md", "---\nsource_refs: [code.rs]\n---\nnew\n");
    team.succeed(&["pull"]);
    git(&["commit", "-am", "page"], "2026-03-01T00:00:00Z");
    assert_eq!(team.json(&["stale", "--json"])["counts"]["fresh"], 1);
}
