//! Prints how fast the builtin model is, in texts a CPU-second at 15, 64, 256 and 512 tokens, the best of five rounds, and what memory
//! it takes.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a measuring program")]

use std::error::Error;
use std::time::{Duration, Instant};

use quipu_core::ports::{Embedder, Role};
use quipu_embed::Builtin;

fn main() -> Result<(), Box<dyn Error>> {
    println!("before the first text: {}", memory()?);
    let start = Instant::now();
    let model = Builtin::new();
    model.embed(Role::Query, &["a"])?;
    println!("first text {:?}", start.elapsed());
    for words in [13, 62, 254, 510] {
        let text = "the quick brown fox jumps over lazy dogs and "
            .repeat(60)
            .split(' ')
            .take(words)
            .collect::<Vec<_>>()
            .join(" ");
        let mut best = 0.0_f64;
        for _round in 0..5 {
            best = best.max(texts_per_cpu_second(|| drop(model.embed(Role::Passage, &[&text])))?);
        }
        let mut encoder = model.coarse_encoder().ok_or("the builtin model has a coarse encoder")?;
        let mut coarse = 0.0_f64;
        for _round in 0..5 {
            coarse = coarse.max(texts_per_cpu_second(|| drop(encoder.encode(&text)))?);
        }
        let tokens = model.tokens(&text).len();
        let ratio = coarse / best;
        println!("{tokens} tokens: {best:.1} texts/CPU-second, coarse {coarse:.0}: {ratio:.0} times as many");
    }
    println!("afterwards: {}", memory()?);
    Ok(())
}

/// Resident memory as Linux counts it: of our own, and pages of the program, which the system may drop and read again.
fn memory() -> Result<String, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let kept = |line: &&str| line.starts_with("RssAnon:") || line.starts_with("RssFile:");
    Ok(status.lines().filter(kept).map(|line| line.replace('\t', " ")).collect::<Vec<_>>().join(", "))
}

fn texts_per_cpu_second(mut embed: impl FnMut()) -> Result<f64, Box<dyn Error>> {
    let start = Instant::now();
    let before = cpu_seconds()?;
    let mut texts = 0.0;
    while start.elapsed() < Duration::from_millis(500) {
        embed();
        texts += 1.0;
    }
    Ok(texts / (cpu_seconds()? - before))
}

/// What this process has computed so far, as Linux counts it: other processes on the machine do not matter.
fn cpu_seconds() -> Result<f64, Box<dyn Error>> {
    let counted = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanoseconds = counted.split(' ').next().ok_or("an empty schedstat")?;
    Ok(nanoseconds.parse::<f64>()? / 1e9)
}
