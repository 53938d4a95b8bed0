//! `cargo xtask bench`: the release build against the budgets, on vaults made from a seed.
//!
//! Compare rows and the way they grow, not machines: the exponent says how a time grows with the vault (1 is in step with
//! it), and is what tells a slow machine from a slow algorithm.

pub(crate) mod meaning;
mod measure;
mod search;
mod table;

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};

use crate::committed::CommittedTable;
use crate::shell::{self, Profile};
use table::Table;

/// A number of notes such as `500`, `10k` or `1m`.
pub(crate) fn size(text: &str) -> anyhow::Result<usize> {
    let (digits, factor) = match text.trim().to_lowercase() {
        text if text.ends_with('k') => (text.trim_end_matches('k').to_owned(), 1000),
        text if text.ends_with('m') => (text.trim_end_matches('m').to_owned(), 1_000_000),
        text => (text, 1),
    };
    Ok(digits.parse::<usize>().with_context(|| format!("`{text}` is no size; try 10k"))? * factor)
}

/// How the page starts to say what its figures were measured on.
const MADE: &str = "Made by `cargo xtask bench --write` ";

/// `earlier` is the page to compare with, by default the one that `write` replaces.
pub(crate) fn run(sizes: &[usize], earlier: Option<&str>, write: bool) -> anyhow::Result<()> {
    let file = shell::root().join("docs/benchmarks.md");
    let earlier = earlier.map_or(file.as_path(), Path::new);
    let earlier = fs::read_to_string(earlier).with_context(|| earlier.display().to_string())?;
    let binary = shell::build_binary(Profile::Release)?;
    let mut table = Table::default();
    for notes in sizes {
        println!("measuring {notes} notes");
        let home = tempfile::Builder::new().prefix("bench").tempdir_in(shell::target())?;
        let vault = measure::Vault::generate(home.path(), *notes)?;
        measure::first_index(&binary, &vault, &mut table)?;
        measure::first_search_after_index(&binary, &vault, &mut table)?;
        measure::warm_start(&binary, &vault, &mut table)?;
        measure::over_the_wire(&binary, &vault, &mut table)?;
        measure::first_calls(&binary, &vault, &mut table)?;
        measure::saved_file(&binary, &vault, &mut table)?;
        measure::engine(&vault, &mut table)?;
        search::run(&binary, home.path(), *notes, &mut table)?;
    }
    let page = format!("{}\n{}", about(&earlier)?, table.to_markdown(&CommittedTable::read(&earlier), sizes));
    println!("\n{page}");
    if write {
        fs::write(&file, page).with_context(|| file.display().to_string())?;
    }
    let over = table.over_budget();
    ensure!(over.is_empty(), "over budget: {}", over.join("; "));
    Ok(())
}

fn about(earlier: &str) -> anyhow::Result<String> {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map_or("?", |it| it.1);
    let cores = std::thread::available_parallelism()?;
    let rustc = shell::output(&mut shell::command("rustc", &["--version"]))?;
    let made_earlier =
        earlier.lines().find_map(|line| line.strip_prefix(MADE)).context("the earlier page has no source")?;
    Ok(format!(
        "# Benchmarks\n\n{MADE}on {cores} cores of {model}, {}.\n\n\
         - In parentheses: an earlier figure, if there is one, made {made_earlier}\n\
         - Times are in milliseconds unless stated otherwise. The column \"grows as n^\" is the exponent of growth with the \
         number of notes: 1 is linear.\n\
         - Vaults are generated from a seed: Zipf-distributed words, five links per note, every seventh note Japanese.\n\
         - The rows of `search`, `ubp_search`, and memory with model and vectors use a separate vault with as many sections \
         as the column says (a third as many notes). Its vectors are means of the builtin model's word vectors, since \
         embedding that many passages takes an hour; docs/embedding.md measures embedding.\n",
        rustc.trim()
    ))
}
