//! Tokens to a vector: embeddings, six layers of attention and feed-forward, the first token's state, normalised.

use super::asset::ModelAsset;
use super::attention::{Attention, HEADS, Head};
use super::kernel::{Computation, Level};
use super::linear::{GROUP, Linear, Quantiser};
use super::math;
use super::{DIMENSIONS, first_token};

const LAYERS: usize = 6;
/// RoBERTa counts positions from two.
const FIRST_POSITION: usize = 2;

pub(super) struct Forward {
    level: Level,
    words: &'static [i8],
    word_scales: &'static [f32],
    positions: &'static [f32],
    norm: &'static [f32],
    layers: Vec<Layer>,
}

struct Layer {
    heads: Vec<Head>,
    attention: Linear,
    attention_norm: &'static [f32],
    up: Vec<Linear>,
    down: Linear,
    output_norm: &'static [f32],
}

impl Forward {
    pub(super) fn new(asset: &ModelAsset, level: Level) -> Self {
        Self {
            level,
            words: asset.numbers("word"),
            word_scales: asset.numbers("word.scale"),
            positions: asset.numbers("pos"),
            norm: asset.numbers("emb.norm"),
            layers: (0..LAYERS).map(|number| Layer::new(asset, number)).collect(),
        }
    }

    pub(super) fn run(&self, tokens: &[u16], buffers: &mut Buffers) -> Vec<f32> {
        let mut states = self.level.run(Embed { model: self, tokens });
        let (last, layers) = self.layers.split_last().expect("the model has layers");
        for layer in layers {
            let quantised = buffers.quantiser.quantise(self.level, &states, DIMENSIONS);
            buffers.context.resize(states.len(), 0.0);
            buffers.attention.run(self.level, &layer.heads, &quantised, &mut buffers.context);
            self.finish(layer, &mut states, buffers);
        }
        // Only the first token's state is used, so the last layer computes no other.
        let context = first_token::attend(self.level, &last.heads, &states, &mut buffers.quantiser);
        states.truncate(DIMENSIONS);
        buffers.context.clear();
        buffers.context.extend(context);
        self.finish(last, &mut states, buffers);
        let length = states.iter().map(|value| value * value).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
        states.iter().map(|value| value / length).collect()
    }

    /// What follows attention in a layer, for as many tokens as there are states.
    fn finish(&self, layer: &Layer, states: &mut [f32], buffers: &mut Buffers) {
        let level = self.level;
        let Buffers { quantiser, inner, context, changes, floats, .. } = buffers;
        changes.resize(states.len(), 0.0);
        level.multiply(&layer.attention, &quantiser.quantise(level, context, DIMENSIONS), changes);
        level.run(AddAndNorm { states, changes, norm: layer.attention_norm });
        let quantised = quantiser.quantise(level, states, DIMENSIONS);
        let quantised = inner.multiply_gelu(level, &layer.up, &quantised, floats);
        level.multiply(&layer.down, &quantised, changes);
        level.run(AddAndNorm { states, changes, norm: layer.output_norm });
    }
}

impl Layer {
    fn new(asset: &ModelAsset, number: usize) -> Self {
        let linear = |name: &str| Linear::new(asset, &format!("{number}.{name}"));
        let qkv = linear("qkv");
        Self {
            heads: (0..HEADS).map(|head| Head::new(&qkv, head)).collect(),
            attention: linear("attention"),
            attention_norm: asset.numbers(&format!("{number}.attention.norm")),
            up: linear("up").parts(),
            down: linear("down"),
            output_norm: asset.numbers(&format!("{number}.output.norm")),
        }
    }
}

/// Buffers that all layers and texts share.
#[derive(Default)]
pub(super) struct Buffers {
    quantiser: Quantiser,
    attention: Attention,
    context: Vec<f32>,
    inner: Quantiser,
    changes: Vec<f32>,
    floats: Vec<f32>,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A text has the same vector on every processor, except for rounding.
    #[test]
    fn all_levels_give_the_same_vector() {
        let asset = ModelAsset::model();
        let tokens: Vec<u16> = [0].into_iter().chain((0..75).map(|number| 300 + number * 97)).chain([2]).collect();
        let vectors: Vec<Vec<f32>> = Level::available()
            .into_iter()
            .map(|level| Forward::new(&asset, level).run(&tokens, &mut Buffers::default()))
            .collect();
        for vector in &vectors {
            let cosine: f32 = vector.iter().zip(&vectors[0]).map(|(a, b)| a * b).sum();
            assert!(cosine > 0.9998, "{cosine}");
        }
    }
}
