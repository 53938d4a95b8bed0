//! Tokens to a vector: embeddings, six layers of attention and feed-forward, the first token's state, normalised.

use super::DIMENSIONS;
use super::asset::Asset;
use super::attention::Attention;
use super::kernel::{Computation, Level};
use super::linear::{GROUP, Linear, Quantiser};
use super::math;

const LAYERS: usize = 6;
const INNER: usize = 1536;
/// RoBERTa counts positions from two.
const FIRST_POSITION: usize = 2;
/// Rows that go through the feed-forward part together, so that its intermediate values stay in the cache.
const FED_ROWS: usize = 48;

pub(super) struct Forward {
    level: Level,
    words: &'static [i8],
    word_scales: &'static [f32],
    positions: &'static [f32],
    norm: &'static [f32],
    layers: Vec<Layer>,
}

struct Layer {
    queries: Linear,
    keys_values: Linear,
    attention: Linear,
    attention_norm: &'static [f32],
    up: Linear,
    down: Linear,
    output_norm: &'static [f32],
}

impl Forward {
    pub(super) fn new(asset: &Asset, level: Level) -> Self {
        Self {
            level,
            words: asset.numbers("word"),
            word_scales: asset.numbers("word.scale"),
            positions: asset.numbers("pos"),
            norm: asset.numbers("emb.norm"),
            layers: (0..LAYERS).map(|number| Layer::new(asset, number)).collect(),
        }
    }

    pub(super) fn run(&self, tokens: &[u16]) -> Vec<f32> {
        let mut buffers = Buffers::default();
        let mut states = self.level.run(Embed { model: self, tokens });
        for (number, layer) in self.layers.iter().enumerate() {
            // Only the first token's state is used, so the last layer computes no other.
            let wanted = if number + 1 == LAYERS { 1 } else { tokens.len() };
            self.attend(layer, &mut states, wanted, &mut buffers);
            for states in states.chunks_mut(FED_ROWS * DIMENSIONS) {
                self.feed(layer, states, &mut buffers);
            }
        }
        let length = states.iter().map(|value| value * value).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
        states.iter().map(|value| value / length).collect()
    }

    /// Applies attention to the first `wanted` states and drops the others.
    fn attend(&self, layer: &Layer, states: &mut Vec<f32>, wanted: usize, buffers: &mut Buffers) {
        let level = self.level;
        let quantised = buffers.quantiser.quantise(level, states, DIMENSIONS);
        buffers.wide.resize(quantised.count * 2 * DIMENSIONS, 0.0);
        level.multiply(&layer.keys_values, &quantised, &mut buffers.wide);
        states.truncate(wanted * DIMENSIONS);
        let quantised = buffers.quantiser.quantise(level, states, DIMENSIONS);
        buffers.narrow.resize(wanted * DIMENSIONS, 0.0);
        level.multiply(&layer.queries, &quantised, &mut buffers.narrow);
        buffers.context.resize(wanted * DIMENSIONS, 0.0);
        buffers.attention.run(level, &buffers.narrow, &buffers.wide, &mut buffers.context);
        let quantised = buffers.quantiser.quantise(level, &buffers.context, DIMENSIONS);
        level.multiply(&layer.attention, &quantised, &mut buffers.narrow);
        level.run(AddAndNorm { states, changes: &buffers.narrow, norm: layer.attention_norm });
    }

    fn feed(&self, layer: &Layer, states: &mut [f32], buffers: &mut Buffers) {
        let level = self.level;
        let quantised = buffers.quantiser.quantise(level, states, DIMENSIONS);
        buffers.wide.resize(quantised.count * INNER, 0.0);
        level.multiply(&layer.up, &quantised, &mut buffers.wide);
        level.run(Gelu { values: &mut buffers.wide });
        let quantised = buffers.quantiser.quantise(level, &buffers.wide, INNER);
        buffers.narrow.resize(states.len(), 0.0);
        level.multiply(&layer.down, &quantised, &mut buffers.narrow);
        level.run(AddAndNorm { states, changes: &buffers.narrow, norm: layer.output_norm });
    }
}

impl Layer {
    fn new(asset: &Asset, number: usize) -> Self {
        let linear = |name: &str| Linear::new(asset, &format!("{number}.{name}"));
        let qkv = linear("qkv");
        Self {
            queries: qkv.part(0..DIMENSIONS),
            keys_values: qkv.part(DIMENSIONS..3 * DIMENSIONS),
            attention: linear("attention"),
            attention_norm: asset.numbers(&format!("{number}.attention.norm")),
            up: linear("up"),
            down: linear("down"),
            output_norm: asset.numbers(&format!("{number}.output.norm")),
        }
    }
}

/// Buffers that the layers of one run share.
#[derive(Default)]
struct Buffers {
    quantiser: Quantiser,
    attention: Attention,
    wide: Vec<f32>,
    narrow: Vec<f32>,
    context: Vec<f32>,
}

/// The state of each token before the first layer: its word vector and its position.
struct Embed<'a> {
    model: &'a Forward,
    tokens: &'a [u16],
}

impl Computation for Embed<'_> {
    type Outcome = Vec<f32>;

    #[inline(always)]
    fn run<const FUSED: bool>(self) -> Vec<f32> {
        let groups = DIMENSIONS / GROUP;
        let mut states = vec![0.0; self.tokens.len() * DIMENSIONS];
        for (at, (token, state)) in self.tokens.iter().zip(states.chunks_exact_mut(DIMENSIONS)).enumerate() {
            let word = &self.model.words[usize::from(*token) * DIMENSIONS..][..DIMENSIONS];
            let scales = &self.model.word_scales[usize::from(*token) * groups..][..groups];
            let position = &self.model.positions[(at + FIRST_POSITION) * DIMENSIONS..][..DIMENSIONS];
            for ((state, word), scale) in state.chunks_exact_mut(GROUP).zip(word.chunks_exact(GROUP)).zip(scales) {
                for (state, word) in state.iter_mut().zip(word) {
                    *state = f32::from(*word) * scale;
                }
            }
            math::add_and_norm::<FUSED>(state, position, self.model.norm);
        }
        states
    }
}

struct AddAndNorm<'a> {
    states: &'a mut [f32],
    changes: &'a [f32],
    norm: &'a [f32],
}

impl Computation for AddAndNorm<'_> {
    type Outcome = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let changes = self.changes.chunks_exact(DIMENSIONS);
        for (state, change) in self.states.chunks_exact_mut(DIMENSIONS).zip(changes) {
            math::add_and_norm::<FUSED>(state, change, self.norm);
        }
    }
}

pub(super) struct Gelu<'a> {
    pub(super) values: &'a mut [f32],
}

impl Computation for Gelu<'_> {
    type Outcome = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        math::gelu::<FUSED>(self.values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same text has the same vector on every processor, except for rounding.
    #[test]
    fn all_levels_give_the_same_vector() {
        let asset = Asset::model();
        let tokens: Vec<u16> = [0].into_iter().chain((0..75).map(|number| 300 + number * 97)).chain([2]).collect();
        let vectors: Vec<Vec<f32>> =
            Level::available().into_iter().map(|level| Forward::new(&asset, level).run(&tokens)).collect();
        for vector in &vectors {
            let cosine: f32 = vector.iter().zip(&vectors[0]).map(|(a, b)| a * b).sum();
            assert!(cosine > 0.9998, "{cosine}");
        }
    }
}
