//! A real PostgreSQL for tests: one cluster for each test program, an empty database for each test.
//!
//! The cluster lives in a temporary folder and is reached by a socket in it. It does not sync to disk: tests end processes,
//! not the machine.

#![expect(clippy::disallowed_methods, reason = "the cluster's own folder")]

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a cluster may take to start on a busy machine.
const START: Duration = Duration::from_secs(60);

/// The user that a cluster of root's runs as: PostgreSQL refuses to run as root.
const NOBODY: u32 = 65534;

/// The address of a new, empty database of this program's cluster. Without a PostgreSQL in `QUIPU_POSTGRES`, a folder with
/// `bin/initdb` and its neighbours, a test says that it is skipped.
pub fn database() -> Option<String> {
    static CLUSTER: OnceLock<Option<Cluster>> = OnceLock::new();
    static DATABASES: AtomicUsize = AtomicUsize::new(0);
    let cluster = CLUSTER.get_or_init(|| std::env::var_os("QUIPU_POSTGRES").map(|program| Cluster::start(&program)));
    match cluster {
        Some(cluster) => Some(cluster.create_database(DATABASES.fetch_add(1, Ordering::Relaxed))),
        None => {
            skip();
            None
        }
    }
}

fn skip() {
    crate::skip("QUIPU_POSTGRES is not set");
}

/// What `psql` prints for a statement on a database of [`database`].
pub fn sql(url: &str, statement: &str) -> String {
    try_sql(url, statement).unwrap_or_else(|error| panic!("{statement}: {error}"))
}

/// Like [`sql`], or what `psql` says when the statement fails.
pub fn try_sql(url: &str, statement: &str) -> Result<String, String> {
    let program = std::env::var_os("QUIPU_POSTGRES").expect("a database was made");
    let output = Command::new(Path::new(&program).join("bin/psql"))
        .args(["-XAt", "-v", "ON_ERROR_STOP=1", "-c", statement, url])
        .output()
        .expect("psql starts");
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(String::from_utf8(output.stdout).expect("psql answers in UTF-8").trim().to_owned())
}

/// A running PostgreSQL. It stops, and its folder goes, when this process ends in whichever way.
pub struct Cluster {
    programs: PathBuf,
    folder: PathBuf,
    owner: Option<u32>,
    /// Reads commands; the end of its input stops the server.
    keeper: Child,
}

/// Runs the server until its standard input ends, and stops, starts or suspends it at an order.
const KEEPER: &str = r#"
folder=$1
start() {
    "$0/postgres" -D "$folder/data" -k "$folder" -c listen_addresses= -c fsync=off -c max_connections=200 \
        -c shared_buffers=32MB &
    server=$!
}
start
while read -r order; do
    case $order in
        stop) kill -QUIT $server; wait $server ;;
        start) start ;;
        freeze) kill -STOP $server $(cat /proc/$server/task/*/children) ;;
        thaw) kill -CONT $server $(cat /proc/$server/task/*/children) ;;
    esac
done
kill -CONT $server $(cat /proc/$server/task/*/children) 2>/dev/null
kill -INT $server
wait $server
rm -rf "$1"
"#;

impl Cluster {
    /// A cluster for one test, which may stop it; `None` where there is no PostgreSQL, and the test says that it is skipped.
    pub fn of_test() -> Option<Self> {
        let program = std::env::var_os("QUIPU_POSTGRES");
        if program.is_none() {
            skip();
        }
        program.map(Self::start)
    }

    /// The address of an empty database.
    pub fn database(&self) -> String {
        self.create_database(0)
    }

    /// Stops the server at once, as a crash does: every connection is lost.
    pub fn stop(&mut self) {
        self.order("stop");
        while self.is_ready() {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Starts it again.
    pub fn start_again(&mut self) {
        self.order("start");
        self.await_start();
    }

    /// Suspends the server with all its processes: connections stay open, and nothing is answered.
    pub fn freeze(&mut self) {
        self.order("freeze");
        while self.is_ready() {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Continues it.
    pub fn thaw(&mut self) {
        self.order("thaw");
        self.await_start();
    }

    fn order(&mut self, order: &str) {
        let keeper = self.keeper.stdin.as_mut().expect("its input is a pipe");
        writeln!(keeper, "{order}").expect("the keeper reads orders");
    }

    /// A cluster of the programs in a folder.
    pub fn start(program: impl AsRef<Path>) -> Self {
        let programs = program.as_ref().join("bin");
        let folder = tempfile::Builder::new().prefix("quipu-pg").tempdir().expect("a temporary folder").keep();
        let us = fs::metadata(&folder).expect("the folder was just made").uid();
        let owner = (us == 0).then_some(NOBODY);
        if owner.is_some() {
            chown(&folder, owner, owner).expect("root may give its folder away");
        }
        let mut initdb = run_as(owner, programs.join("initdb"), &folder);
        initdb.args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "-D"]);
        succeed(initdb.arg(folder.join("data")));
        let log = fs::File::create(folder.join("log")).expect("the folder is writable");
        let mut keeper = run_as(owner, "sh", &folder);
        keeper.args(["-c", KEEPER]).arg(&programs).arg(&folder);
        // In a group of its own: an interrupt of the test ends the test, which ends the server.
        keeper.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
        let keeper = keeper.spawn().expect("there is a shell");
        let cluster = Self { programs, folder, owner, keeper };
        cluster.await_start();
        cluster
    }

    fn await_start(&self) {
        let started = Instant::now();
        while !self.is_ready() {
            let log = || fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            assert!(started.elapsed() < START, "PostgreSQL did not start: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn is_ready(&self) -> bool {
        let mut ready = run_as(self.owner, self.programs.join("pg_isready"), &self.folder);
        ready.arg("-q").args(["-t", "1", "-h"]).arg(&self.folder).status().is_ok_and(|status| status.success())
    }

    fn create_database(&self, number: usize) -> String {
        let name = format!("test_{number}");
        let mut create = run_as(self.owner, self.programs.join("createdb"), &self.folder);
        succeed(create.arg("-h").arg(&self.folder).args(["-U", "postgres", &name]));
        let folder = self.folder.to_str().expect("a temporary folder has a plain name").replace('/', "%2F");
        format!("postgresql://postgres@{folder}/{name}")
    }
}

fn run_as(owner: Option<u32>, program: impl AsRef<std::ffi::OsStr>, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("HOME", home).env("LC_ALL", "C").current_dir(home);
    if let Some(owner) = owner {
        command.uid(owner).gid(owner);
    }
    command
}

fn succeed(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_has_a_database_of_its_own() {
        let (Some(one), Some(other)) = (database(), database()) else { return };
        assert_ne!(one, other);
        sql(&one, "CREATE TABLE mine ()");
        let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
        assert_eq!([sql(&one, tables), sql(&other, tables)], ["1", "0"]);
        assert_eq!(sql(&one, "SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'"), "1");
    }
}
