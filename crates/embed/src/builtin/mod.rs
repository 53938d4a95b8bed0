//! granite-embedding-30m-english, a six-layer RoBERTa with 384 dimensions, run by our own forward pass.
//!
//! Our own because it is twice as fast as the runtimes we measured at the same exactness (docs/embedding.md): int8 weights as
//! published, activations quantised per token row, and the last layer computed for the one token that is used.

mod asset;
mod forward;
mod linear;
mod math;
mod tokenizer;

use asset::Asset;
use forward::Forward;
use tokenizer::Tokenizer;

/// Dimensions of a vector.
pub const DIMENSIONS: usize = 384;

/// The most tokens that are read of a text, the two marks at its ends included.
pub const MAX_TOKENS: usize = 512;

/// The model, ready to run. Weights stay where the program was loaded; this holds a few hundred kilobytes.
pub struct BuiltinModel {
    tokenizer: Tokenizer,
    forward: Forward,
}

impl BuiltinModel {
    /// Prepares the model. Takes some milliseconds; do it when the first vector is wanted.
    pub fn load() -> Self {
        let asset = Asset::open();
        Self { tokenizer: Tokenizer::new(&asset), forward: Forward::new(&asset) }
    }

    /// A text's vector, of length one. Deterministic: it does not depend on what else is embedded.
    pub fn embed(&self, text: &str) -> Vec<f32> {
        self.forward.run(&self.tokenizer.encode(text, MAX_TOKENS))
    }

    /// How many tokens a text has, the two marks included and nothing cut.
    pub fn count_tokens(&self, text: &str) -> usize {
        self.tokenizer.encode(text, usize::MAX).len()
    }
}
