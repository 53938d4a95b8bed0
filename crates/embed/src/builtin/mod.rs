//! granite-embedding-30m-english, a six-layer RoBERTa with 384 dimensions, run by our own forward pass.
//!
//! It is faster than the runtimes we measured at the same accuracy (docs/embedding.md): int8 weights as published, activations
//! quantised per token row, and the last layer computed only for the token that is used.

mod asset;
mod attention;
mod coarse;
mod first_token;
mod forward;
mod kernel;
mod linear;
mod math;
mod pieces;
mod tokenizer;

use std::sync::OnceLock;

use quipu_core::ports::{Calibration, CoarseEncoder, EmbedError, Embedder, Role};

use asset::ModelAsset;
use coarse::{Coarse, Encoder};
use forward::{Buffers, Forward};
use kernel::Level;
use tokenizer::Tokenizer;

/// Dimensions of a vector.
pub const DIMENSIONS: usize = 384;

/// Maps similarities of coarse vectors to those of full ones: over the queries of the English judged sets, the 50 closest
/// sections have the same mean and deviation by either. `cargo xtask eval` prints both numbers, and for each set the share
/// of full vectors among the closest, which shows how well they fit.
const CALIBRATION: Calibration = Calibration { slope: 1.32, offset: -0.22 };

/// The most tokens of a text, the start and end tokens included.
pub const MAX_TOKENS: usize = 512;

/// The model inside the program. It is loaded at the first text, in a few milliseconds, from pages of the program.
///
/// It works on the calling thread only; to use many cores, call it from many threads.
#[derive(Default)]
pub struct Builtin {
    model: OnceLock<BuiltinModel>,
}

struct BuiltinModel {
    tokenizer: Tokenizer,
    forward: Forward,
    coarse: Coarse,
}

impl Builtin {
    /// The model, not loaded yet.
    pub const fn new() -> Self {
        Self { model: OnceLock::new() }
    }

    /// The tokens of a text: [`MAX_TOKENS`] at most, the start and end tokens included.
    pub fn tokens(&self, text: &str) -> Vec<u16> {
        self.model().tokenizer.encode(text, MAX_TOKENS)
    }

    fn model(&self) -> &BuiltinModel {
        self.model.get_or_init(|| {
            let asset = ModelAsset::model();
            let level = Level::best();
            BuiltinModel {
                tokenizer: Tokenizer::new(&asset),
                forward: Forward::new(&asset, level),
                coarse: Coarse::new(&asset, level),
            }
        })
    }
}

impl Embedder for Builtin {
    fn space(&self) -> &str {
        // The last part names the computation: one that differs by more than rounding is another space.
        "builtin/granite-embedding-30m-english@9b5b0964/int8-by-64"
    }

    /// The model was trained on English and reads other scripts byte by byte. On Japanese questions it scores half as much as
    /// words alone; at a fifth, it lowered the ranking by words (docs/search.md).
    fn worth_beyond_english(&self) -> f32 {
        0.15
    }

    /// The typical similarity of a query and an unrelated passage of the same vault.
    fn unrelated(&self) -> f32 {
        0.5
    }

    /// The model treats queries and passages alike, so the role is ignored.
    fn embed(&self, _role: Role, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let model = self.model();
        let mut buffers = Buffers::default();
        let mut run = |text: &&str| model.forward.run(&model.tokenizer.encode(text, MAX_TOKENS), &mut buffers);
        Ok(texts.iter().map(&mut run).collect())
    }

    fn coarse_encoder(&self) -> Option<Box<dyn CoarseEncoder + '_>> {
        let model = self.model();
        Some(Box::new(Encoder::new(&model.coarse, &model.tokenizer)))
    }

    fn coarse_calibration(&self) -> Calibration {
        CALIBRATION
    }
}
