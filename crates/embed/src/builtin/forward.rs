//! Tokens to a vector: embeddings, six layers of attention and feed-forward, the first token's state, normalised.

use super::asset::Asset;
use super::linear::{Level, Linear, Quantised};
use super::{DIMENSIONS, math};

const LAYERS: usize = 6;
const HEADS: usize = 12;
const HEAD: usize = DIMENSIONS / HEADS;
const INNER: usize = 1536;
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
    qkv: Linear,
    attention: Linear,
    attention_norm: &'static [f32],
    up: Linear,
    down: Linear,
    output_norm: &'static [f32],
}

impl Forward {
    pub(super) fn new(asset: &Asset) -> Self {
        Self {
            level: Level::detect(),
            words: asset.numbers("word"),
            word_scales: asset.numbers("word.scale"),
            positions: asset.numbers("pos"),
            norm: asset.numbers("emb.norm"),
            layers: (0..LAYERS)
                .map(|layer| Layer {
                    qkv: Linear::new(asset, &format!("{layer}.qkv")),
                    attention: Linear::new(asset, &format!("{layer}.attention")),
                    attention_norm: asset.numbers(&format!("{layer}.attention.norm")),
                    up: Linear::new(asset, &format!("{layer}.up")),
                    down: Linear::new(asset, &format!("{layer}.down")),
                    output_norm: asset.numbers(&format!("{layer}.output.norm")),
                })
                .collect(),
        }
    }

    pub(super) fn run(&self, tokens: &[u16]) -> Vec<f32> {
        match self.level {
            #[cfg(target_arch = "x86_64")]
            #[expect(unsafe_code, reason = "the level says that the processor has these instructions")]
            Level::Avx512Vnni => unsafe { self.run_avx512(tokens) },
            #[cfg(target_arch = "x86_64")]
            #[expect(unsafe_code, reason = "the level says that the processor has these instructions")]
            Level::Avx2 => unsafe { self.run_avx2(tokens) },
            Level::Plain => self.run_inlined(tokens),
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,fma")]
    fn run_avx512(&self, tokens: &[u16]) -> Vec<f32> {
        self.run_inlined(tokens)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn run_avx2(&self, tokens: &[u16]) -> Vec<f32> {
        self.run_inlined(tokens)
    }

    #[inline(always)]
    fn run_inlined(&self, tokens: &[u16]) -> Vec<f32> {
        let mut states = self.embed(tokens);
        let mut room = Room::new(tokens.len());
        for (number, layer) in self.layers.iter().enumerate() {
            // Only the first token's state is used in the end, so the last layer asks nothing of the others.
            let wanted = if number + 1 == self.layers.len() { 1 } else { tokens.len() };
            self.attend(layer, &mut states, wanted, &mut room);
            states.truncate(wanted * DIMENSIONS);
            self.feed(layer, &mut states, &mut room);
        }
        let length = math::sum(&states.iter().map(|value| value * value).collect::<Vec<_>>()).sqrt().max(1e-12);
        states.iter().map(|value| value / length).collect()
    }

    #[inline(always)]
    fn embed(&self, tokens: &[u16]) -> Vec<f32> {
        let groups = DIMENSIONS / 64;
        let mut states = vec![0.0; tokens.len() * DIMENSIONS];
        for (at, (token, state)) in tokens.iter().zip(states.chunks_exact_mut(DIMENSIONS)).enumerate() {
            let word = &self.words[usize::from(*token) * DIMENSIONS..][..DIMENSIONS];
            let scales = &self.word_scales[usize::from(*token) * groups..][..groups];
            let position = &self.positions[(at + FIRST_POSITION) * DIMENSIONS..][..DIMENSIONS];
            for ((state, word), scale) in state.chunks_exact_mut(64).zip(word.chunks_exact(64)).zip(scales) {
                for (state, word) in state.iter_mut().zip(word) {
                    *state = f32::from(*word) * scale;
                }
            }
            math::add_norm(state, position, self.norm);
        }
        states
    }

    /// Replaces the first `wanted` states by what attention makes of them.
    #[inline(always)]
    fn attend(&self, layer: &Layer, states: &mut [f32], wanted: usize, room: &mut Room) {
        let count = states.len() / DIMENSIONS;
        room.apply(self.level, &layer.qkv, states, count);
        let width = 3 * DIMENSIONS;
        room.context.clear();
        room.context.resize(wanted * DIMENSIONS, 0.0);
        let factor = 1.0 / (HEAD as f32).sqrt();
        for head in 0..HEADS {
            let at = head * HEAD;
            // Keys transposed, so that the scores of sixteen tokens are computed side by side.
            for (token, row) in room.out.chunks_exact(width).enumerate() {
                for (number, key) in row[DIMENSIONS + at..][..HEAD].iter().enumerate() {
                    room.keys[number * count + token] = *key;
                }
            }
            for asking in 0..wanted {
                let query = &room.out[asking * width + at..][..HEAD];
                let scores = &mut room.scores[..count];
                scores.fill(0.0);
                for (query, keys) in query.iter().zip(room.keys.chunks_exact(count)) {
                    let query = query * factor;
                    for (score, key) in scores.iter_mut().zip(keys) {
                        *score += query * key;
                    }
                }
                math::softmax(scores);
                let context: &mut [f32; HEAD] =
                    (&mut room.context[asking * DIMENSIONS + at..][..HEAD]).try_into().expect("a head's width");
                for (score, row) in scores.iter().zip(room.out.chunks_exact(width)) {
                    let value: &[f32; HEAD] = row[2 * DIMENSIONS + at..][..HEAD].try_into().expect("a head's width");
                    for (context, value) in context.iter_mut().zip(value) {
                        *context += score * value;
                    }
                }
            }
        }
        let context = std::mem::take(&mut room.context);
        room.apply(self.level, &layer.attention, &context, wanted);
        room.context = context;
        for (state, attended) in states.chunks_exact_mut(DIMENSIONS).zip(room.out.chunks_exact(DIMENSIONS)) {
            math::add_norm(state, attended, layer.attention_norm);
        }
    }

    #[inline(always)]
    fn feed(&self, layer: &Layer, states: &mut [f32], room: &mut Room) {
        let count = states.len() / DIMENSIONS;
        room.apply(self.level, &layer.up, states, count);
        math::gelu(&mut room.out[..count * INNER]);
        let inner = std::mem::take(&mut room.out);
        room.out = std::mem::take(&mut room.spare);
        room.apply(self.level, &layer.down, &inner, count);
        room.spare = inner;
        for (state, fed) in states.chunks_exact_mut(DIMENSIONS).zip(room.out.chunks_exact(DIMENSIONS)) {
            math::add_norm(state, fed, layer.output_norm);
        }
    }
}

/// Memory that the layers of one run share.
struct Room {
    quantised: Vec<u8>,
    scales: Vec<f32>,
    out: Vec<f32>,
    spare: Vec<f32>,
    context: Vec<f32>,
    keys: Vec<f32>,
    scores: Vec<f32>,
}

impl Room {
    fn new(count: usize) -> Self {
        Self {
            quantised: Vec::with_capacity(count * INNER),
            scales: Vec::with_capacity(count),
            out: Vec::with_capacity(count * INNER),
            spare: Vec::with_capacity(count * INNER),
            context: Vec::with_capacity(count * DIMENSIONS),
            keys: vec![0.0; count * HEAD],
            scores: vec![0.0; count],
        }
    }

    /// Quantises the first `count` rows and leaves their product with a matrix in `out`.
    #[inline(always)]
    fn apply(&mut self, level: Level, linear: &Linear, rows: &[f32], count: usize) {
        self.quantised.resize(count * linear.inputs, 0);
        self.scales.clear();
        for (row, out) in
            rows.chunks_exact(linear.inputs).take(count).zip(self.quantised.chunks_exact_mut(linear.inputs))
        {
            self.scales.push(math::quantise(row, out));
        }
        self.out.clear();
        self.out.resize(count * linear.outputs, 0.0);
        linear.apply(level, &Quantised { values: &self.quantised, scales: &self.scales }, &mut self.out);
    }
}
