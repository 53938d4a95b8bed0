//! Attention: sixteen-bit integers with one scale for each of a head's queries, keys and values; exponentials in floats.
//!
//! Eight bits would do for queries and keys, but not for the shares: the many small ones that round to zero matter together.

use super::DIMENSIONS;
use super::kernel::{Computation, Level, Shape};
use super::linear::{Linear, Quantised};
use super::math;

pub(super) const HEADS: usize = DIMENSIONS / HEAD;
pub(super) const HEAD: usize = 32;

/// The largest query or key: a product over a head's width stays below 2^31.
const MAX_KEY: f32 = 8191.0;
/// The largest value of a token, and the largest number that all shares of a query may add up to: below 2^31 together.
const MAX_VALUE: f32 = 1023.0;
const MAX_SHARES: f32 = 2_097_152.0;

/// Queries that are scored at a time, so that their scores stay in the first-level cache.
const QUERIES: usize = 8;

/// The matrices of one head.
pub(super) struct Head {
    pub(super) queries: Linear,
    pub(super) keys: Linear,
    pub(super) values: Linear,
}

impl Head {
    /// Cuts one head out of a layer's matrix of queries, keys and values.
    pub(super) fn new(queries_keys_values: &Linear, head: usize) -> Self {
        let part = |kind: usize| {
            queries_keys_values.part(kind * DIMENSIONS + head * HEAD..kind * DIMENSIONS + (head + 1) * HEAD)
        };
        Self { queries: part(0), keys: part(1), values: part(2) }
    }
}

/// Buffers that are reused.
#[derive(Default)]
pub(super) struct Attention {
    /// The result of a head's matrix.
    floats: Vec<f32>,
    queries: Vec<i16>,
    /// `[HEAD / 2][tokens][2]`, as [`Level::product`] needs them.
    keys: Vec<i16>,
    /// `[tokens / 2][HEAD][2]`
    values: Vec<i16>,
    scores: Vec<i32>,
    shares: Vec<i16>,
    mixed: Vec<i32>,
}

impl Attention {
    /// Fills a row of `context` for each token.
    pub(super) fn run(&mut self, level: Level, heads: &[Head], states: &Quantised<'_>, context: &mut [f32]) {
        let tokens = states.count;
        let padded = tokens.next_multiple_of(32);
        self.keys.resize(HEAD * padded, 0);
        self.values.resize(HEAD * padded, 0);
        self.queries.resize(HEAD * tokens, 0);
        self.scores.resize(QUERIES * padded, 0);
        self.shares.resize(QUERIES * padded, 0);
        self.mixed.resize(QUERIES * HEAD, 0);
        for (number, head) in heads.iter().enumerate() {
            let (query_unit, key_unit, value_unit) = self.prepare(level, head, states);
            let unit = query_unit * key_unit / (HEAD as f32).sqrt();
            for first in (0..tokens).step_by(QUERIES) {
                let rows = QUERIES.min(tokens - first);
                let scores = Shape { rows, depth: HEAD, columns: padded };
                level.product(
                    scores,
                    &self.queries[first * HEAD..][..rows * HEAD],
                    &self.keys,
                    &mut self.scores[..rows * padded],
                );
                let mix = Shape { rows, depth: padded, columns: HEAD };
                let sums = level.run(Shares {
                    scores: &mut self.scores,
                    shares: &mut self.shares,
                    rows,
                    padded,
                    tokens,
                    unit,
                });
                level.product(mix, &self.shares[..rows * padded], &self.values, &mut self.mixed[..rows * HEAD]);
                let context = &mut context[first * DIMENSIONS + number * HEAD..];
                level.run(Unpack { mixed: &self.mixed, sums: &sums[..rows], unit: value_unit, context });
            }
        }
    }

    /// Computes the queries, keys and values of a head; returns what one unit of each is worth.
    fn prepare(&mut self, level: Level, head: &Head, states: &Quantised<'_>) -> (f32, f32, f32) {
        let padded = self.keys.len() / HEAD;
        self.floats.resize(states.count * HEAD, 0.0);
        level.multiply(&head.keys, states, &mut self.floats);
        let keys = level.run(PackKeys { from: &self.floats, to: &mut self.keys, padded });
        level.multiply(&head.values, states, &mut self.floats);
        let values = level.run(PackValues { from: &self.floats, to: &mut self.values });
        level.multiply(&head.queries, states, &mut self.floats);
        let queries = level.run(PackQueries { from: &self.floats, to: &mut self.queries });
        (queries, keys, values)
    }
}

struct PackQueries<'a> {
    from: &'a [f32],
    to: &'a mut [i16],
}

impl Computation for PackQueries<'_> {
    type Outcome = f32;

    #[inline(always)]
    fn run<const FUSED: bool>(self) -> f32 {
        let (unit, factor) = math::unit(self.from, MAX_KEY);
        for (to, from) in self.to.iter_mut().zip(self.from) {
            *to = math::round_i16(from * factor);
        }
        unit
    }
}

/// Transposes the keys of one head, so that the scores of many tokens are computed in parallel.
struct PackKeys<'a> {
    from: &'a [f32],
    to: &'a mut [i16],
    padded: usize,
}

impl Computation for PackKeys<'_> {
    type Outcome = f32;

    #[inline(always)]
    fn run<const FUSED: bool>(self) -> f32 {
        let (unit, factor) = math::unit(self.from, MAX_KEY);
        let (pairs, _) = self.to.as_chunks_mut::<2>();
        for (token, row) in self.from.as_chunks::<HEAD>().0.iter().enumerate() {
            for (line, pair) in row.as_chunks::<2>().0.iter().enumerate() {
                pairs[line * self.padded + token] = pair.map(|key| math::round_i16(key * factor));
            }
        }
        unit
    }
}

/// Interleaves the values of neighbouring tokens; those after the last token are zero.
struct PackValues<'a> {
    from: &'a [f32],
    to: &'a mut [i16],
}

impl Computation for PackValues<'_> {
    type Outcome = f32;

    #[inline(always)]
    fn run<const FUSED: bool>(self) -> f32 {
        let (unit, factor) = math::unit(self.from, MAX_VALUE);
        let (to, _) = self.to.as_chunks_mut::<{ 2 * HEAD }>();
        let (from, odd) = self.from.as_chunks::<{ 2 * HEAD }>();
        for (to, from) in to.iter_mut().zip(from) {
            for (at, pair) in to.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                *pair = [from[at], from[HEAD + at]].map(|value| math::round_i16(value * factor));
            }
        }
        let (last, padding) = to[from.len()..].split_at_mut(odd.len() / HEAD);
        for (pair, value) in last.iter_mut().flat_map(|row| row.as_chunks_mut::<2>().0).zip(odd) {
            *pair = [math::round_i16(value * factor), 0];
        }
        padding.fill([0; 2 * HEAD]);
        unit
    }
}

/// Turns each row of scores into shares, and returns what the shares of each row add up to.
struct Shares<'a> {
    scores: &'a mut [i32],
    shares: &'a mut [i16],
    rows: usize,
    padded: usize,
    tokens: usize,
    /// The scale of the scores.
    unit: f32,
}

impl Computation for Shares<'_> {
    type Outcome = [f32; QUERIES];

    #[inline(always)]
    fn run<const FUSED: bool>(self) -> [f32; QUERIES] {
        let largest = (MAX_SHARES / self.tokens as f32).min(f32::from(i16::MAX));
        let scores = self.scores.chunks_exact_mut(self.padded);
        let mut sums = [0.0; QUERIES];
        for ((scores, shares), sum) in scores.zip(self.shares.chunks_exact_mut(self.padded)).zip(&mut sums[..self.rows])
        {
            scores[self.tokens..].fill(i32::MIN);
            let all = math::shares::<FUSED>(scores, self.unit, largest, shares);
            let padding = &mut shares[self.tokens..];
            *sum = (all - padding.iter().map(|share| i32::from(*share)).sum::<i32>()) as f32;
            padding.fill(0);
        }
        sums
    }
}

struct Unpack<'a> {
    mixed: &'a [i32],
    sums: &'a [f32],
    unit: f32,
    context: &'a mut [f32],
}

impl Computation for Unpack<'_> {
    type Outcome = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let rows = self.mixed.as_chunks::<HEAD>().0.iter().zip(self.context.chunks_mut(DIMENSIONS));
        for ((mixed, context), sum) in rows.zip(self.sums) {
            let factor = self.unit / sum;
            for (context, mixed) in context.iter_mut().zip(mixed) {
                *context = *mixed as f32 * factor;
            }
        }
    }
}
