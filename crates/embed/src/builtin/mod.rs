//! granite-embedding-30m-english, a six-layer RoBERTa with 384 dimensions, run by our own forward pass.
//!
//! Our own because it is faster than the runtimes we measured at the same exactness (docs/embedding.md): int8 weights as
//! published, activations quantised per token row, and the last layer computed for the one token that is used.

mod asset;
mod attention;
mod coarse;
mod forward;
mod kernel;
mod linear;
mod math;
mod pieces;
mod tokenizer;

use std::sync::OnceLock;

use quipu_core::ports::{Calibration, CoarseEncoder, EmbedError, Embedder, Role};

use asset::Asset;
use coarse::{Coarse, Encoder};
use forward::Forward;
use kernel::Level;
use tokenizer::Tokenizer;

/// Dimensions of a vector.
pub const DIMENSIONS: usize = 384;

/// Moves the similarities of coarse vectors to where those of full ones lie: the 50 closest sections to a query then have
/// the same mean and deviation by either, over the queries of the English judged sets. `cargo xtask eval` prints both numbers;
/// the last column of its table says how fair they are on each set.
const CALIBRATION: Calibration = Calibration { slope: 1.32, offset: -0.22 };

/// The most tokens that are read of a text, the two marks at its ends included.
pub const MAX_TOKENS: usize = 512;

/// The model that lies inside the program. It costs nothing until the first text: then a few milliseconds, and the pages of
/// the program that hold the weights.
///
/// Works on the calling thread alone; whoever has many texts and many cores calls from many threads.
#[derive(Default)]
pub struct Builtin {
    model: OnceLock<Model>,
}

struct Model {
    tokenizer: Tokenizer,
    forward: Forward,
    coarse: Coarse,
}

impl Builtin {
    /// The model, not loaded yet.
    pub const fn new() -> Self {
        Self { model: OnceLock::new() }
    }

    /// The tokens that are read of a text: [`MAX_TOKENS`] at most, the two marks at its ends included.
    pub fn tokens(&self, text: &str) -> Vec<u16> {
        self.model().tokenizer.encode(text, MAX_TOKENS)
    }

    fn model(&self) -> &Model {
        self.model.get_or_init(|| {
            let asset = Asset::model();
            let level = Level::best();
            Model {
                tokenizer: Tokenizer::new(&asset),
                forward: Forward::new(&asset, level),
                coarse: Coarse::new(&asset, level),
            }
        })
    }
}

impl Embedder for Builtin {
    fn space(&self) -> &str {
        // The last part names how it is computed: another way, more than rounding apart, is another space.
        "builtin/granite-embedding-30m-english@9b5b0964/int8-by-64"
    }

    /// The model was trained on English, and reads other scripts byte by byte. On Japanese questions it comes to half of what
    /// words alone do (docs/embedding.md).
    fn worth_beyond_english(&self) -> f32 {
        0.2
    }

    /// Passages of one vault differ by about this much from a query that they have nothing to do with.
    fn unrelated(&self) -> f32 {
        0.5
    }

    /// The model wants queries and passages alike, so the role is not looked at.
    fn embed(&self, _role: Role, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let model = self.model();
        Ok(texts.iter().map(|text| model.forward.run(&model.tokenizer.encode(text, MAX_TOKENS))).collect())
    }

    fn coarse_encoder(&self) -> Option<Box<dyn CoarseEncoder + '_>> {
        let model = self.model();
        Some(Box::new(Encoder::new(&model.coarse, &model.tokenizer)))
    }

    fn coarse_calibration(&self) -> Calibration {
        CALIBRATION
    }
}
