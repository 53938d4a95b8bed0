//! How long a folder move holds the vault: `cargo bench -p quipu --bench moves [-- NOTES [FOLDER]]`. Generates a folder with NOTES
//! notes (3,000 by default) and a tenth as many outside that link into it, below FOLDER or the temporary folder, moves the folder
//! and moves it back, three times. Prints one JSON line, in seconds.
#![expect(clippy::print_stdout, reason = "a benchmark tells its figures")]
#![expect(clippy::disallowed_methods, reason = "writes a vault of its own making")]

#[path = "common/open.rs"]
mod open;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use std::{env, fs};

use anyhow::{anyhow, ensure};
use quipu_core::Session;
use quipu_testkit::generate;
use quipu_tools::{Registry, RegistryOptions, Reply};
use serde_json::{Value, json};

use open::open;

const ROUNDS: usize = 3;

fn main() -> anyhow::Result<()> {
    let mut arguments = env::args().skip(1).filter(|argument| argument != "--bench");
    let notes: usize = arguments.next().map_or(Ok(3_000), |notes| notes.parse())?;
    let home = tempfile::tempdir_in(arguments.next().map_or_else(env::temp_dir, PathBuf::from))?;
    let inside = generate::vault(&home.path().join("old"), notes, 7)?;
    for (number, target) in inside.iter().step_by(10).enumerate() {
        fs::write(home.path().join(format!("outside-{number}.md")), format!("See [this](old/{target}).\n"))?;
    }
    let knowledge = Arc::new(open(home.path(), "index")?.0);
    knowledge.start(&|_| {})?;
    let registry = Registry::new(knowledge, RegistryOptions::default());
    let call = |name: &str, arguments: Value| -> anyhow::Result<(Value, f64)> {
        let tool = registry.find(name).map_err(|reply| anyhow!("{reply:?}"))?;
        let started = Instant::now();
        let response = registry.call(tool, arguments, &Session::default(), None);
        let took = started.elapsed().as_secs_f64();
        match response.reply {
            Reply::Answer(answer) => Ok((answer, took)),
            other => Err(anyhow!("{name} failed: {other:?}")),
        }
    };
    let mut times = Vec::new();
    for (from, to) in [("old/", "new/deep/"), ("new/deep/", "old/")].into_iter().cycle().take(2 * ROUNDS) {
        let (answer, took) = call("move_node", json!({ "id": from, "to": to }))?;
        ensure!(answer["moved"].as_array().is_some_and(|moved| !moved.is_empty()), "nothing moved: {answer}");
        times.push(took);
    }
    times.sort_by(f64::total_cmp);
    println!("{}", json!({ "label": "move a folder", "notes": notes, "best": times[0], "all": times }));
    Ok(())
}
