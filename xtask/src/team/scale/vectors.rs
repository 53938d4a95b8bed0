//! Vectors in the database: exact search beside an HNSW index.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::Measurement;
use crate::team::server::TeamServer;
use crate::{data, shell};

const SCRIPT: &str = include_str!("vectors.sql");

const GRAPH: &str = "vectors";

/// The vault whose passages the builtin model embeds; larger numbers of vectors are mixes of theirs.
const VAULT: &str = "vault-obsidian-help-en-ja";

/// The model embeds for so long at most, and is done when no vector has arrived for so long.
const PATIENCE: Duration = Duration::from_secs(600);
const QUIET: Duration = Duration::from_secs(20);

/// Fewer vectors of real passages make mixes that are all alike.
const FEWEST: usize = 1000;

pub(super) fn measure(of: &Measurement<'_>) -> anyhow::Result<String> {
    let psql = of.programs.join("bin/psql");
    let real = embed(of, &psql)?;
    let mut page = format!(
        "Search for 100 of the vectors in the database, by a scan and by an HNSW index of pgvector (`m` 16, \
         `ef_construction` 64) with `hnsw.ef_search` 100 and 400, timed in the database. {real} vectors are of real passages; further ones \
         are mixes of two of them. Recall is the share of the exact first 10 and first 100. Servers scan their own memory instead, \
         exactly: the last columns.\n\n| vectors | exact p50 ms | 100: p50 ms | recall@10 % | \
         recall@100 % | 400: p50 ms | recall@10 % | recall@100 % | build s | index bytes a vector | server: scan ms | bytes a vector \
         |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n"
    );
    for size in of.sizes {
        let row = run_sql(&psql, of.url, &["-v", &format!("size={size}")], SCRIPT)?;
        let row = row.lines().last().context("the script prints a row")?.to_owned();
        page += &format!("| {row} | {} |\n", scan(*size)?);
        of.save("Vectors", &page)?;
    }
    Ok(page)
}

/// The time of an exact search in the memory of a server, and the bytes of a vector there, as cells.
fn scan(size: usize) -> anyhow::Result<String> {
    let example = ["run", "--quiet", "--release", "--package", "quipu-store-embedded", "--example", "measure_vectors"];
    let said = shell::output(shell::cargo(&example).args(["--locked", "--"]).arg(size.to_string()))?;
    let number = |before: &str| {
        let start = said.split(before).next()?;
        start.rsplit(' ').next().map(str::to_owned)
    };
    let (bytes, ms) = number(" bytes each").zip(number(" ms for")).with_context(|| format!("no figures: {said}"))?;
    Ok(format!("{ms} | {bytes}"))
}

/// Lets a server embed passages of the notes of a real vault; returns how many vectors there are.
fn embed(of: &Measurement<'_>, psql: &Path) -> anyhow::Result<usize> {
    let folder = data::unpacked()?.context("this measurement needs the real vaults of ../shared/data")?.join(VAULT);
    let listed = shell::output(shell::command("find", &["-name", "*.md", "-type", "f"]).current_dir(&folder))?;
    let mut notes: Vec<String> = listed.lines().filter_map(|path| Some(path.strip_prefix("./")?.to_owned())).collect();
    notes.sort_unstable();
    super::push(of.database, GRAPH, &folder, &notes)?;
    let server = TeamServer::start_embedding(of.binary, of.url.to_owned(), Vec::new(), "builtin")?;
    let (begun, mut count, mut since) = (Instant::now(), 0, Instant::now());
    // All are there when none has arrived for a while: how many passages the notes have is the server's business.
    while (count == 0 || since.elapsed() < QUIET) && begun.elapsed() < PATIENCE {
        // A graph is opened by a call.
        super::total(&server.url_of(GRAPH)).ok();
        let now = run_sql(psql, of.url, &[], "SELECT count(*) FROM quipu.passage_vector")?.parse::<usize>()?;
        if now != count {
            (count, since) = (now, Instant::now());
        }
        std::thread::sleep(Duration::from_secs(1));
    }
    ensure!(count >= FEWEST, "{count} passages are embedded after {PATIENCE:?}");
    Ok(count)
}

fn run_sql(psql: &Path, url: &str, options: &[&str], script: &str) -> anyhow::Result<String> {
    let file = tempfile::NamedTempFile::new()?;
    fs::write(file.path(), script)?;
    let mut command = Command::new(psql);
    command.args(["-XAtq", "-v", "ON_ERROR_STOP=1"]).args(options).arg("-f").arg(file.path()).arg(url);
    Ok(shell::output(&mut command)?.trim().to_owned())
}
