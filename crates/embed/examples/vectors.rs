//! Reads a JSON list of texts, writes for each a line `{"tokens": […], "vector": […]}`. For scripts/measure_embedding.py.
#![expect(clippy::print_stdout, reason = "its answer goes to a script")]

use std::error::Error;

use quipu_core::ports::{Embedder, Role};
use quipu_embed::Builtin;

fn main() -> Result<(), Box<dyn Error>> {
    let texts: Vec<String> = serde_json::from_reader(std::io::stdin())?;
    let model = Builtin::new();
    for text in &texts {
        let vectors = model.embed(Role::Passage, &[text])?;
        println!("{}", serde_json::json!({ "tokens": model.tokens(text), "vector": vectors[0] }));
    }
    Ok(())
}
