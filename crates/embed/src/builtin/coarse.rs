//! A coarse encoder: vectors in the model's space at a hundredth of its cost, so that search by meaning works as soon as a vault
//! is indexed. Queries use the model itself, and the model's vectors replace the coarse ones step by step.
//!
//! A text is the weighted mean of the model's word vectors beside a convolution over three neighbouring tokens, with a small
//! network on top. The contribution of a token to the convolution depends on the token only, so it is computed once and cached.
//! `scripts/train_coarse.py` trains the encoder, docs/embedding.md has measurements.

use std::sync::Arc;

use quipu_core::ports::CoarseEncoder;
use rustc_hash::FxHashMap;

use super::asset::ModelAsset;
use super::kernel::{Computation, Level};
use super::linear::{GROUP, Linear, Quantiser};
use super::tokenizer::Tokenizer;
use super::{DIMENSIONS, MAX_TOKENS, math};

/// Outputs of the convolution.
const CHANNELS: usize = 256;
/// The token before, the token itself, the token after.
const TAPS: usize = 3;
/// Inputs of the network: the mean word vector and the pooled convolution.
const POOLED: usize = DIMENSIONS + CHANNELS;
/// Tokens that share a weight for their position.
const POSITION_STEP: usize = 5;
/// The limit of what attention adds to a token's weight, as in training.
const MAX_LOGIT: f32 = 8.0;
/// The most pieces of text whose tokens are cached. Common words come first and repeat.
const MAX_KNOWN_PIECES: usize = 1 << 16;

/// The weights, shared by all encoders.
pub(super) struct Coarse {
    level: Level,
    words: &'static [i8],
    word_scales: &'static [f32],
    /// The factor that brings a word vector to a length of about one.
    unit: f32,
    weights: [&'static [f32]; 2],
    positions: &'static [f32],
    attention: &'static [f32],
    bias: &'static [f32],
    project: Linear,
    neighbours: Linear,
    direct: Linear,
    up: Vec<Linear>,
    down: Linear,
}

impl Coarse {
    pub(super) fn new(model: &ModelAsset, level: Level) -> Self {
        let asset = ModelAsset::coarse();
        let linear = |name| Linear::new(&asset, name);
        Self {
            level,
            words: model.numbers("word"),
            word_scales: model.numbers("word.scale"),
            unit: asset.numbers::<f32>("unit")[0],
            weights: [asset.numbers("weight"), asset.numbers("weight2")],
            positions: asset.numbers("position"),
            attention: asset.numbers("attention"),
            bias: asset.numbers("conv.bias"),
            project: linear("project"),
            neighbours: linear("neighbours"),
            direct: linear("direct"),
            up: linear("up").parts(),
            down: linear("down"),
        }
    }

    /// The word vector of a token, of a length of about one.
    fn word(&self, token: u16) -> [f32; DIMENSIONS] {
        let (values, scales) = self.word_row(token);
        std::array::from_fn(|at| f32::from(values[at]) * scales[at / GROUP] * self.unit)
    }

    fn word_row(&self, token: u16) -> (&'static [i8; DIMENSIONS], &'static [f32]) {
        const GROUPS: usize = DIMENSIONS / GROUP;
        let row = usize::from(token);
        let values = self.words[row * DIMENSIONS..][..DIMENSIONS].try_into().expect("the slice has this length");
        (values, &self.word_scales[row * GROUPS..][..GROUPS])
    }
}

/// An encoder for one thread. Its caches take at most 40 MB.
pub(super) struct Encoder<'m> {
    coarse: &'m Coarse,
    tokenizer: &'m Tokenizer,
    pieces: FxHashMap<Box<str>, Arc<[u16]>>,
    cache: TokenCache,
    quantiser: Quantiser,
    inner: Quantiser,
    floats: Vec<f32>,
}

impl<'m> Encoder<'m> {
    pub(super) fn new(coarse: &'m Coarse, tokenizer: &'m Tokenizer) -> Self {
        let cache = TokenCache { row_of: vec![None; coarse.weights[0].len()], rows: Vec::new() };
        Self {
            coarse,
            tokenizer,
            pieces: FxHashMap::default(),
            cache,
            quantiser: Quantiser::default(),
            inner: Quantiser::default(),
            floats: Vec::new(),
        }
    }

    fn tokens(&mut self, text: &str) -> Vec<u16> {
        let (tokenizer, pieces) = (self.tokenizer, &mut self.pieces);
        tokenizer.encode_by(text, MAX_TOKENS, |piece, tokens| {
            if let Some(known) = pieces.get(piece) {
                tokens.extend_from_slice(known);
                return;
            }
            let start = tokens.len();
            tokenizer.encode_piece(piece.as_bytes(), tokens);
            if pieces.len() < MAX_KNOWN_PIECES {
                pieces.insert(piece.into(), tokens[start..].into());
            }
        })
    }

    /// Computes and caches what a token adds to the convolution before, at and after its position.
    fn cache_token(&mut self, token: u16) {
        let coarse = self.coarse;
        let mut projected = vec![0.0; coarse.project.outputs];
        let word = self.quantiser.quantise(coarse.level, &coarse.word(token), DIMENSIONS);
        coarse.level.multiply(&coarse.project, &word, &mut projected);
        let mut added = vec![0.0; TAPS * CHANNELS];
        let projected = self.quantiser.quantise(coarse.level, &projected, projected.len());
        coarse.level.multiply(&coarse.neighbours, &projected, &mut added);
        self.cache.insert(token, &added);
    }

    /// The network on top of the pooled features.
    fn finish(&mut self, mut pooled: [f32; POOLED]) -> Vec<f32> {
        let coarse = self.coarse;
        coarse.level.run(Normalise { row: &mut pooled });
        let input = self.quantiser.quantise(coarse.level, &pooled, POOLED);
        let mut vector = vec![0.0; DIMENSIONS];
        coarse.level.multiply(&coarse.direct, &input, &mut vector);
        let input = self.inner.multiply_gelu(coarse.level, &coarse.up, &input, &mut self.floats);
        let mut added = vec![0.0; DIMENSIONS];
        coarse.level.multiply(&coarse.down, &input, &mut added);
        for (value, added) in vector.iter_mut().zip(added) {
            *value += added;
        }
        let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
        vector.iter_mut().for_each(|value| *value /= length);
        vector
    }
}

impl CoarseEncoder for Encoder<'_> {
    fn encode(&mut self, text: &str) -> Vec<f32> {
        let tokens = self.tokens(text);
        // Without the start and end tokens, which every text has.
        let tokens = &tokens[1..tokens.len() - 1];
        for token in tokens {
            if self.cache.row_of[usize::from(*token)].is_none() {
                self.cache_token(*token);
            }
        }
        let pooled = self.coarse.level.run(PoolTokens { coarse: self.coarse, cache: &self.cache, tokens });
        self.finish(pooled)
    }
}

/// What each token adds to the convolution: 768 bytes and three scales.
struct TokenCache {
    row_of: Vec<Option<u32>>,
    rows: Vec<[FilterTap; TAPS]>,
}

/// What a token adds through one tap of the convolution.
struct FilterTap {
    values: [i8; CHANNELS],
    scale: f32,
}

impl TokenCache {
    fn insert(&mut self, token: u16, added: &[f32]) {
        self.row_of[usize::from(token)] = u32::try_from(self.rows.len()).ok();
        self.rows.push(std::array::from_fn(|tap| FilterTap::new(&added[tap * CHANNELS..][..CHANNELS])));
    }

    fn taps(&self, token: u16) -> &[FilterTap; TAPS] {
        let row = self.row_of[usize::from(token)].expect("every token of a text is cached before it is pooled");
        &self.rows[row as usize]
    }
}

impl FilterTap {
    fn new(added: &[f32]) -> Self {
        let scale = added.iter().fold(1e-30_f32, |max, value| max.max(value.abs())) / 127.0;
        Self { values: std::array::from_fn(|at| (added[at] / scale).round() as i8), scale }
    }

    #[inline(always)]
    fn add_to<const FUSED: bool>(&self, features: &mut [f32; CHANNELS]) {
        for (feature, value) in features.iter_mut().zip(&self.values) {
            *feature = math::multiply_add::<FUSED>(f32::from(*value), self.scale, *feature);
        }
    }
}

/// The features of all tokens in one: the weighted mean of the word vectors, then that of the convolution's outputs.
struct PoolTokens<'a> {
    coarse: &'a Coarse,
    cache: &'a TokenCache,
    tokens: &'a [u16],
}

impl Computation for PoolTokens<'_> {
    type Outcome = [f32; POOLED];

    #[inline(always)]
    fn run<const FUSED: bool>(self) -> [f32; POOLED] {
        let Self { coarse, cache, tokens } = self;
        let mut words = [0.0; DIMENSIONS];
        let mut convolved = [0.0; CHANNELS];
        let mut totals = [0.0_f32; 2];
        for (at, token) in tokens.iter().enumerate() {
            let row = usize::from(*token);
            let position = coarse.positions[(at / POSITION_STEP).min(coarse.positions.len() - 1)];
            let weight = (coarse.weights[0][row] + position).exp();
            let (values, scales) = coarse.word_row(*token);
            let groups = words.as_chunks_mut::<GROUP>().0.iter_mut().zip(values.as_chunks::<GROUP>().0);
            for ((sums, values), scale) in groups.zip(scales) {
                let factor = weight * scale * coarse.unit;
                for (sum, value) in sums.iter_mut().zip(values) {
                    *sum = math::multiply_add::<FUSED>(f32::from(*value), factor, *sum);
                }
            }
            let mut features: [f32; CHANNELS] = coarse.bias.try_into().expect("one for each channel");
            if let Some(before) = at.checked_sub(1) {
                cache.taps(tokens[before])[0].add_to::<FUSED>(&mut features);
            }
            cache.taps(*token)[1].add_to::<FUSED>(&mut features);
            if let Some(after) = tokens.get(at + 1) {
                cache.taps(*after)[2].add_to::<FUSED>(&mut features);
            }
            features = features.map(math::gelu::<FUSED>);
            let logit = math::dot::<FUSED>(&features, coarse.attention).clamp(-MAX_LOGIT, MAX_LOGIT);
            let attended = (coarse.weights[1][row] + position + logit).exp();
            for (sum, feature) in convolved.iter_mut().zip(&features) {
                *sum = math::multiply_add::<FUSED>(*feature, attended, *sum);
            }
            totals[0] += weight;
            totals[1] += attended;
        }
        let mut pooled = [0.0; POOLED];
        let total = |at: usize| totals[usize::from(at >= DIMENSIONS)].max(1e-30);
        for (at, (pooled, sum)) in pooled.iter_mut().zip(words.iter().chain(&convolved)).enumerate() {
            *pooled = sum / total(at);
        }
        pooled
    }
}

struct Normalise<'a> {
    row: &'a mut [f32; POOLED],
}

impl Computation for Normalise<'_> {
    type Outcome = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        math::normalise::<FUSED>(self.row, 1e-5);
    }
}
