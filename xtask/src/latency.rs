//! `cargo xtask latency`: what a call costs on each way to a vault, in one run: to the server that owns it, through another
//! server and its socket, and over HTTP to the owner of a vault just like it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use quipu_testkit::client::Client;
use quipu_testkit::generate;
use serde_json::{Value, json};

use crate::load::client::Client as HttpClient;
use crate::peers::http::Server;
use crate::shell::{self, Profile};

const NOTES: usize = 1000;
const CALLS: usize = 2000;

/// Calls in turn on each way, so that a busy moment of the machine hits all alike.
const ROUND: usize = 20;

pub(crate) fn run(write: bool) -> anyhow::Result<()> {
    let binary = shell::build_binary(Profile::Release)?;
    let home = tempfile::Builder::new().prefix("latency").tempdir_in(shell::target())?;
    let mut ways = Ways::open(&binary, home.path())?;
    let id = ways.paths[NOTES / 2].to_lowercase();
    let new = json!({ "name": "Log", "entity_type": "Task" });
    let entity = ways.owner.call("create_entity", &new)?.value().context("create_entity failed")?["entity_id"].clone();
    // The first of its memory too, so that it has the same number.
    ways.http.call("create_entity", &new)?;
    let mut page =
        "| call, p50 / p95 | to the owner | through the socket | over HTTP |\n|---|---|---|---|\n".to_owned();
    let words = generate::word(50);
    for (tool, arguments) in [
        ("get_node", json!({ "id": id })),
        ("ubp_fulltext_search", json!({ "query": words })),
        ("create_observation", json!({ "entity_id": entity, "text_content": "one more fact" })),
    ] {
        let [owner, socket, http] = ways.measure(tool, &arguments)?;
        page.push_str(&format!("| `{tool}` | {owner} | {socket} | {http} |\n"));
    }
    ways.close()?;
    println!("{page}");
    if write {
        let file = shell::root().join("docs/sharing.md");
        let text = fs::read_to_string(&file)?;
        let (before, rest) = text.split_once(BEGIN).context("docs/sharing.md has no place for the table")?;
        let (_, after) = rest.split_once(END).context("docs/sharing.md has no end of the table")?;
        fs::write(&file, format!("{before}{BEGIN}\n{page}{END}{after}"))?;
    }
    Ok(())
}

const BEGIN: &str = "<!-- cargo xtask latency --write -->";
const END: &str = "<!-- end -->";

/// Three clients: two of one vault, the third of another that is like it.
struct Ways {
    paths: Vec<String>,
    owner: Client,
    other: Client,
    http: HttpClient,
    server: Server,
}

impl Ways {
    fn open(binary: &Path, home: &Path) -> anyhow::Result<Self> {
        let vault = home.join("vault");
        let paths = generate::vault(&vault, NOTES, 1)?;
        let like_it = tempfile::tempdir_in(home)?;
        generate::vault(like_it.path(), NOTES, 1)?;
        let serve = || {
            let mut command = Command::new(binary);
            command.arg("serve").arg(&vault).env_remove("QUIPU_VAULT").stderr(Stdio::null());
            command
        };
        let mut owner = Client::spawn(&mut serve())?;
        owner.call("list_nodes", &json!({}))?;
        let other = Client::spawn(&mut serve())?;
        let (server, _) = Server::start_in(binary, &[], like_it, tempfile::tempdir_in(home)?)?;
        let mut http = HttpClient::connect(&server.url, "")?;
        http.call("list_nodes", &json!({}))?;
        Ok(Self { paths, owner, other, http, server })
    }

    /// How long a call takes on each way.
    fn measure(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<[String; 3]> {
        let mut times = [const { Vec::new() }; 3];
        for _ in 0..CALLS / ROUND {
            for (way, times) in times.iter_mut().enumerate() {
                for _ in 0..ROUND {
                    let started = Instant::now();
                    match way {
                        0 => drop(self.owner.call(tool, arguments)?.value().context("the owner failed")?),
                        1 => drop(self.other.call(tool, arguments)?.value().context("the socket failed")?),
                        _ => ensure!(self.http.call(tool, arguments)?["isError"] != true, "HTTP failed"),
                    }
                    times.push(started.elapsed());
                }
            }
        }
        Ok(times.map(|mut times| {
            times.sort();
            let at = |part: usize| micros(times[(times.len() - 1) * part / 100]);
            format!("{} / {}", at(50), at(95))
        }))
    }

    fn close(self) -> anyhow::Result<()> {
        self.owner.close()?;
        self.other.close()?;
        drop(self.server);
        Ok(())
    }
}

fn micros(time: Duration) -> String {
    format!("{} µs", time.as_micros())
}
