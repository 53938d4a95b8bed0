//! Stand-in until the command line is merged: `quipu serve [--http ADDRESS] DIR`.

mod mcp;
mod serve;

use std::sync::Arc;

use quipu_core::ports::SystemClock;
use quipu_core::{Knowledge, Parts};

fn main() -> anyhow::Result<()> {
    let filter = std::env::var("QUIPU_LOG").unwrap_or("warn".into());
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_env_filter(filter).init();
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    let folder = arguments.last().cloned().unwrap_or(".".into());
    let vault = quipu_vault::FolderVault::open(folder.as_ref(), Default::default())?;
    let parts = Parts {
        vault: Arc::new(vault),
        store: Arc::new(quipu_testkit::store_conformance::Shelf::open(&quipu_testkit::MemShelf::default())),
        clock: Arc::new(SystemClock),
        title_rule: Default::default(),
    };
    let knowledge = Arc::new(Knowledge::new(parts));
    let started = knowledge.clone();
    std::thread::spawn(move || started.start(&|_| {}).expect("the vault is indexed"));
    let registry = Arc::new(quipu_tools::Registry::new(knowledge.clone(), Default::default()));
    match arguments.first().map(String::as_str) {
        Some("--http") => serve::http::serve(knowledge, registry, arguments[1].parse()?),
        _ => serve::stdio::serve(knowledge, registry),
    }
}
