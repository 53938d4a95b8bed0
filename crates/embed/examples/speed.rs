//! Prints how fast the builtin model and the coarse encoder are, in texts a CPU-second at 15, 64, 256 and 512 tokens, the best of
//! five rounds, and what memory the model takes. The texts are pieces of the pages in docs/, each different: the coarse
//! encoder caches tokens, so one text over and over would be faster than a vault is.
//!
//! Fails if the coarse encoder is not fast enough on texts as long as the passages of a vault.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a measuring program")]

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use quipu_core::ports::{Embedder, Role};
use quipu_embed::Builtin;

const ROUNDS: usize = 5;

/// The least time of a round with the model.
const ROUND: Duration = Duration::from_millis(500);

/// The coarse encoder must be so many times as fast as the model, at these lengths. Shorter texts, of which a vault has few, find
/// the encoder's cache empty.
const LEAST_RATIO: f64 = 50.0;
const CHECKED: [usize; 2] = [64, 256];

fn main() -> Result<(), Box<dyn Error>> {
    println!("before the first text: {}", memory()?);
    let start = Instant::now();
    let model = Builtin::new();
    model.embed(Role::Query, &["a"])?;
    println!("first text {:?}", start.elapsed());
    let pages = pages()?;
    let mut too_slow = Vec::new();
    for tokens in [15, 64, 256, 512] {
        let texts = texts(&model, &pages, tokens);
        let mut next = texts.iter().cycle();
        let (mut full, mut coarse) = (0.0_f64, 0.0_f64);
        for _ in 0..ROUNDS {
            full = full.max(texts_per_cpu_second(|| {
                let (start, mut count) = (Instant::now(), 0);
                while start.elapsed() < ROUND {
                    let text = next.next().ok_or("docs/ has no text")?;
                    model.embed(Role::Passage, &[text.as_str()])?;
                    count += 1;
                }
                Ok(count)
            })?);
            // A new encoder, whose cache is empty, as at the start of a pass over a vault.
            coarse = coarse.max(texts_per_cpu_second(|| {
                let mut encoder = model.coarse_encoder().ok_or("the builtin model has a coarse encoder")?;
                texts.iter().for_each(|text| drop(encoder.encode(text)));
                Ok(texts.len())
            })?);
        }
        let (count, ratio) = (texts.len(), coarse / full);
        println!(
            "{tokens} tokens, {count} texts: {full:.1} texts/CPU-second, coarse {coarse:.0}: {ratio:.0} times as many"
        );
        if CHECKED.contains(&tokens) && ratio < LEAST_RATIO {
            too_slow.push(format!("{ratio:.0} times at {tokens} tokens"));
        }
    }
    println!("afterwards: {}", memory()?);
    if !too_slow.is_empty() {
        return Err(format!("the coarse encoder is only {} as fast as the model", too_slow.join(" and ")).into());
    }
    Ok(())
}

/// The text of the pages in docs/.
fn pages() -> Result<String, Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut files =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, std::io::Error>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "md"));
    files.sort();
    Ok(files.iter().map(std::fs::read_to_string).collect::<Result<Vec<_>, _>>()?.join("\n"))
}

/// The pages in pieces of about so many tokens.
fn texts(model: &Builtin, pages: &str, tokens: usize) -> Vec<String> {
    let mut texts = Vec::new();
    let mut text = String::new();
    for word in pages.split_inclusive(char::is_whitespace) {
        text += word;
        // No word is empty, so fewer bytes cannot be enough tokens.
        if text.len() >= 2 * tokens && model.tokens(&text).len() >= tokens {
            texts.push(std::mem::take(&mut text));
        }
    }
    texts
}

/// Resident memory as Linux counts it: of our own, and pages of the program, which the system may drop and read again.
fn memory() -> Result<String, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let kept = |line: &&str| line.starts_with("RssAnon:") || line.starts_with("RssFile:");
    Ok(status.lines().filter(kept).map(|line| line.replace('\t', " ")).collect::<Vec<_>>().join(", "))
}

/// `embed` returns how many texts it embedded.
fn texts_per_cpu_second(embed: impl FnOnce() -> Result<usize, Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    let before = cpu_seconds()?;
    let texts = embed()?;
    Ok(texts as f64 / (cpu_seconds()? - before))
}

/// What this process has computed so far, as Linux counts it: other processes on the machine do not matter.
fn cpu_seconds() -> Result<f64, Box<dyn Error>> {
    let counted = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanoseconds = counted.split(' ').next().ok_or("an empty schedstat")?;
    Ok(nanoseconds.parse::<f64>()? / 1e9)
}
