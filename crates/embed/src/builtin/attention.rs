//! Attention, in floats.

use super::DIMENSIONS;
use super::kernel::{Computation, Level, MatrixRows, Shape};
use super::math;

const HEADS: usize = 12;
const HEAD: usize = DIMENSIONS / HEADS;

/// Queries that are scored at a time, so that their scores stay in the first-level cache.
const QUERIES: usize = 8;

/// Buffers that are reused.
#[derive(Default)]
pub(super) struct Attention {
    /// The keys of one head, transposed, so that the scores of many tokens are computed in parallel.
    keys: Vec<f32>,
    scores: Vec<f32>,
}

impl Attention {
    /// Fills a row of `context` for every row of `queries`. A row of `keys_values` holds a token's keys, then its values.
    pub(super) fn run(&mut self, level: Level, queries: &[f32], keys_values: &[f32], context: &mut [f32]) {
        let count = keys_values.len() / (2 * DIMENSIONS);
        let wanted = queries.len() / DIMENSIONS;
        let padded = count.next_multiple_of(32);
        self.keys.clear();
        self.keys.resize(HEAD * padded, 0.0);
        self.scores.resize(QUERIES * padded, 0.0);
        for at in (0..DIMENSIONS).step_by(HEAD) {
            level.run(Transpose { from: &keys_values[at..], to: &mut self.keys, padded });
            for first in (0..wanted).step_by(QUERIES) {
                let rows = QUERIES.min(wanted - first);
                let queries = MatrixRows { values: &queries[first * DIMENSIONS + at..], stride: DIMENSIONS };
                let keys = MatrixRows { values: &self.keys, stride: padded };
                level.product(Shape { rows, depth: HEAD, columns: padded }, queries, keys, &mut self.scores, padded);
                level.run(Softmax { scores: &mut self.scores[..rows * padded], padded, count });
                let shares = MatrixRows { values: &self.scores, stride: padded };
                let values = MatrixRows { values: &keys_values[DIMENSIONS + at..], stride: 2 * DIMENSIONS };
                let context = &mut context[first * DIMENSIONS + at..];
                level.product(Shape { rows, depth: count, columns: HEAD }, shares, values, context, DIMENSIONS);
            }
        }
    }
}

/// Transposes the keys of one head and divides them by the root of the head's width, as attention needs them.
struct Transpose<'a> {
    from: &'a [f32],
    to: &'a mut [f32],
    padded: usize,
}

impl Computation for Transpose<'_> {
    type Outcome = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let factor = 1.0 / (HEAD as f32).sqrt();
        for (token, row) in self.from.chunks(2 * DIMENSIONS).enumerate() {
            for (key, line) in row[..HEAD].iter().zip(self.to.chunks_exact_mut(self.padded)) {
                line[token] = key * factor;
            }
        }
    }
}

/// Applies softmax to each row of scores, without its padding.
struct Softmax<'a> {
    scores: &'a mut [f32],
    padded: usize,
    count: usize,
}

impl Computation for Softmax<'_> {
    type Outcome = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        for row in self.scores.chunks_exact_mut(self.padded) {
            math::softmax::<FUSED>(&mut row[..self.count]);
        }
    }
}
