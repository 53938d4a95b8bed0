//! A primary and its synchronous standby. Each has a file system of its own where that is possible, which can be filled.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use tempfile::TempDir;

/// PostgreSQL refuses to run as root.
const NOBODY: u32 = 65534;

/// How long a node may take to start or to be promoted on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The file system of a node.
const FILE_SYSTEM_MB: u64 = 400;

/// The name of the database, and the standby's name for the primary.
const DATABASE: &str = "team";

/// Two nodes, one of which accepts writes.
pub(super) struct Cluster {
    programs: PathBuf,
    folder: TempDir,
    owner: Option<u32>,
    nodes: [Node; 2],
    primary: usize,
    /// Why disks cannot be filled here.
    pub(super) why_no_full_disk: Option<String>,
}

struct Node {
    port: u16,
    place: PathBuf,
    process: Option<Child>,
}

impl Cluster {
    /// Starts both nodes; every commit is on both before it is acknowledged. Nothing waits for a disk: processes end here, not the
    /// machine.
    pub(super) fn start(programs: &Path) -> anyhow::Result<Self> {
        let mut cluster = Self::prepare(programs)?;
        for node in 0..cluster.nodes.len() {
            cluster.mount(node)?;
        }
        let small = "fsync = off\nwal_level = replica\nshared_buffers = 32MB\nmin_wal_size = 32MB\nmax_wal_size = 64MB\n\
                     wal_keep_size = 32MB\n";
        cluster.start_primary(small)?;
        cluster.add_standby()?;
        Ok(cluster)
    }

    /// Starts one node on disk, whose commits wait for the disk.
    pub(super) fn alone(programs: &Path) -> anyhow::Result<Self> {
        let mut cluster = Self::prepare(programs)?;
        cluster.why_no_full_disk = Some("the node is on a disk of this machine".to_owned());
        cluster.start_primary("shared_buffers = 256MB\nmax_wal_size = 4GB\n")?;
        Ok(cluster)
    }

    fn prepare(programs: &Path) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("quipu-team").tempdir()?;
        let owner = (fs::metadata(folder.path())?.uid() == 0).then_some(NOBODY);
        chown(folder.path(), owner, owner)?;
        let node = |name: &str| -> anyhow::Result<Node> {
            let place = folder.path().join(name);
            fs::create_dir(&place)?;
            chown(&place, owner, owner)?;
            Ok(Node { port: free_port()?, place, process: None })
        };
        let nodes = [node("one")?, node("two")?];
        let programs = programs.join("bin");
        Ok(Self { programs, folder, owner, nodes, primary: 0, why_no_full_disk: None })
    }

    fn start_primary(&mut self, settings: &str) -> anyhow::Result<()> {
        let data = self.data(0);
        let initdb = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "-D"];
        self.run_program("initdb", |command| command.args(initdb).arg(&data))?;
        fs::write(data.join("postgresql.auto.conf"), format!("max_connections = 200\n{settings}"))?;
        self.launch(0)?;
        self.run_program("createdb", |command| command.arg(DATABASE))?;
        Ok(())
    }

    /// The ports of both nodes.
    pub(super) fn ports(&self) -> [u16; 2] {
        [self.nodes[0].port, self.nodes[1].port]
    }

    /// Kills the primary as a power cut does, and promotes its standby. Every connection to the primary has ended before.
    pub(super) fn fail_over(&mut self) -> anyhow::Result<()> {
        let old = self.primary;
        self.kill(old)?;
        self.primary = 1 - old;
        let data = self.data(self.primary);
        self.run_program("pg_ctl", |command| command.args(["promote", "-w", "-D"]).arg(data))?;
        self.sql("ALTER SYSTEM RESET synchronous_standby_names")?;
        self.sql("SELECT pg_reload_conf()")?;
        Ok(())
    }

    /// Makes the node that is down the synchronous standby of the primary.
    pub(super) fn add_standby(&mut self) -> anyhow::Result<()> {
        let standby = 1 - self.primary;
        let (data, port) = (self.data(standby), self.nodes[self.primary].port);
        if data.exists() {
            fs::remove_dir_all(&data)?;
        }
        let from = format!("host=127.0.0.1 port={port} user=postgres application_name={DATABASE}");
        let backup = ["-X", "stream", "-c", "fast", "-R", "--no-sync", "-d", &from, "-D"];
        self.run_program("pg_basebackup", |command| command.args(backup).arg(&data))?;
        self.launch(standby)?;
        self.sql(&format!("ALTER SYSTEM SET synchronous_standby_names = '{DATABASE}'"))?;
        self.sql("SELECT pg_reload_conf()")?;
        wait_for("the standby follows synchronously", || {
            Ok(self.sql("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'")?.trim() == "1")
        })
    }

    /// Fills the disk of the primary while `work` runs. The node may end because of it; it is started again.
    pub(super) fn with_full_disk(&mut self, work: impl FnOnce()) -> anyhow::Result<()> {
        let filler = self.nodes[self.primary].place.join("filler");
        // More than there is room for: the copy ends with the disk full.
        let mut fill = Command::new("dd");
        fill.arg("if=/dev/zero").arg(format!("of={}", filler.display())).arg("bs=64k");
        fill.arg(format!("count={}", FILE_SYSTEM_MB * 32)).stderr(Stdio::null()).status()?;
        work();
        fs::remove_file(&filler)?;
        let node = self.primary;
        let process = self.nodes[node].process.as_mut().context("the primary was started")?;
        if process.try_wait()?.is_some() {
            self.launch(node)?;
        }
        wait_for("the primary answers after the disk was full", || Ok(self.sql("SELECT 1").is_ok()))
    }

    /// What a statement returns on the primary.
    pub(super) fn sql(&self, statement: &str) -> anyhow::Result<String> {
        let database = if statement.starts_with("ALTER SYSTEM") { "postgres" } else { DATABASE };
        self.run_program("psql", |command| command.args(["-XAt", "-v", "ON_ERROR_STOP=1", "-c", statement, database]))
    }

    fn data(&self, node: usize) -> PathBuf {
        self.nodes[node].place.join("data")
    }

    /// Gives a node a small file system in memory, if this user may.
    fn mount(&mut self, node: usize) -> anyhow::Result<()> {
        let place = &self.nodes[node].place;
        let size = format!("size={FILE_SYSTEM_MB}m,mode=0700");
        let mut mount = Command::new("mount");
        let mounted = mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(place).output();
        match mounted {
            Ok(output) if output.status.success() => {}
            Ok(output) => self.why_no_full_disk = Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => self.why_no_full_disk = Some(format!("cannot start `mount`: {error}")),
        }
        chown(&self.nodes[node].place, self.owner, self.owner)?;
        Ok(())
    }

    fn launch(&mut self, node: usize) -> anyhow::Result<()> {
        let (data, port) = (self.data(node), self.nodes[node].port);
        let mut postgres = self.program("postgres");
        postgres.arg("-D").arg(data).arg("-k").arg(self.folder.path());
        postgres.args(["-c", "listen_addresses=127.0.0.1", "-c"]).arg(format!("port={port}"));
        let log = fs::File::options().create(true).append(true).open(self.folder.path().join("log"))?;
        postgres.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.nodes[node].process = Some(postgres.spawn().context("cannot start PostgreSQL")?);
        let ready = || {
            let mut ready = self.program("pg_isready");
            Ok(ready.args(["-q", "-h", "127.0.0.1", "-p", &port.to_string()]).status()?.success())
        };
        wait_for("PostgreSQL starts", ready)
    }

    /// Kills a node with all its processes.
    fn kill(&mut self, node: usize) -> anyhow::Result<()> {
        let Some(mut process) = self.nodes[node].process.take() else { bail!("the node does not run") };
        let children = children(process.id())?;
        process.kill()?;
        process.wait()?;
        for child in children {
            // Most have ended with the one that started them.
            let _ = Command::new("kill").args(["-9", &child.to_string()]).stderr(Stdio::null()).status()?;
        }
        Ok(())
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command.env("HOME", self.folder.path()).env("LC_ALL", "C").current_dir(self.folder.path());
        command.env("PGUSER", "postgres").env("PGHOST", "127.0.0.1").env("PGCONNECT_TIMEOUT", "5");
        command.env("PGPORT", self.nodes[self.primary].port.to_string());
        if let Some(owner) = self.owner {
            command.uid(owner).gid(owner);
        }
        command
    }

    fn run_program(&self, name: &str, set: impl FnOnce(&mut Command) -> &mut Command) -> anyhow::Result<String> {
        let mut command = self.program(name);
        let output = set(&mut command).output().with_context(|| format!("cannot start {name}"))?;
        ensure!(output.status.success(), "{name} failed: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for node in 0..self.nodes.len() {
            // One that is down has nothing to end.
            let _ = self.kill(node);
            if self.why_no_full_disk.is_none() {
                let _ = Command::new("umount").arg("-l").arg(&self.nodes[node].place).status();
            }
        }
    }
}

/// The URL of the database through ports of this machine.
pub(super) fn url(ports: &[u16]) -> String {
    let hosts: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    format!("postgresql://postgres@{}/{DATABASE}", hosts.join(","))
}

/// A port that was free a moment ago.
pub(super) fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

pub(super) fn wait_for(what: &str, mut is_so: impl FnMut() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let started = Instant::now();
    while !is_so()? {
        ensure!(started.elapsed() < PATIENCE, "not within {} s: {what}", PATIENCE.as_secs());
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn children(process: u32) -> anyhow::Result<Vec<u32>> {
    let listed = fs::read_to_string(format!("/proc/{process}/task/{process}/children"))?;
    Ok(listed.split_whitespace().filter_map(|id| id.parse().ok()).collect())
}
