//! `cargo xtask memory`: what memory is worth, on real data and at size. The measuring itself is an example of the store's
//! crate; this finds the data and builds it as it ships.

mod wire;

use anyhow::bail;

use crate::{data, shell};

pub(crate) fn run(what: &[String]) -> anyhow::Result<()> {
    let mut arguments: Vec<String> = what.to_vec();
    match arguments.first().map(String::as_str) {
        Some("wire") => {
            let sizes = if arguments.len() == 1 { vec![1000, 10_000, 100_000] } else { sizes(&arguments[1..])? };
            return wire::run(&sizes);
        }
        Some("vectors") if arguments.len() == 1 => arguments.push("100000".to_owned()),
        Some("speed") if arguments.len() == 1 => arguments.extend(["1000", "10000", "100000"].map(str::to_owned)),
        Some("speed" | "vectors") => {}
        Some("contradictions" | "duplicates" | "merges" | "recall") => match data::unpacked()? {
            Some(folder) => arguments.push(folder.display().to_string()),
            None => bail!("the data sets are not here: they belong into ../shared/data"),
        },
        _ => bail!("measure what: contradictions, duplicates, merges, recall, speed, vectors or wire?"),
    }
    let example =
        ["run", "--release", "--quiet", "--package", "quipu-store-embedded", "--example", "measure_memory", "--"];
    shell::run(shell::cargo(&example).args(&arguments))
}

fn sizes(words: &[String]) -> anyhow::Result<Vec<usize>> {
    words.iter().map(|word| crate::bench::size(word)).collect()
}
