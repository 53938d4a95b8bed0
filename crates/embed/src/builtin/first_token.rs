//! Attention in the last layer, of which only the first token's state is used.
//!
//! No token needs keys or values of its own: a query multiplied with the matrix of the keys can be compared with the states
//! themselves, and the matrix of the values can be applied after the states are mixed. That saves the matrices of all tokens.

use super::DIMENSIONS;
use super::attention::{HEAD, Head};
use super::kernel::{Computation, Level};
use super::linear::{GROUP, LANES, Linear, Quantiser};
use super::math;

/// The first token's context, from the states of all tokens.
pub(super) fn attend(level: Level, heads: &[Head], states: &[f32], quantiser: &mut Quantiser) -> [f32; DIMENSIONS] {
    let mut context = [0.0; DIMENSIONS];
    for (head, context) in heads.iter().zip(context.as_chunks_mut::<HEAD>().0) {
        let mut query = [0.0; HEAD];
        level.multiply(&head.queries, &quantiser.quantise(level, &states[..DIMENSIONS], DIMENSIONS), &mut query);
        let mixed = level.run(Mix { keys: &head.keys, query, states });
        level.multiply(&head.values, &quantiser.quantise(level, &mixed, DIMENSIONS), context);
    }
    context
}

/// The mean of all states, each weighted by what the query gives it.
struct Mix<'a> {
    keys: &'a Linear,
    query: [f32; HEAD],
    states: &'a [f32],
}

impl Computation for Mix<'_> {
    type Outcome = [f32; DIMENSIONS];

    #[inline(always)]
    fn run<const FUSED: bool>(self) -> [f32; DIMENSIONS] {
        let (states, _) = self.states.as_chunks::<DIMENSIONS>();
        let query = multiply_transposed(self.keys, &self.query);
        // The bias of the keys adds the same to every score, which does not change the shares.
        let factor = 1.0 / (HEAD as f32).sqrt();
        // Loops instead of closures: a closure that is not inlined would be compiled for any processor.
        let mut shares = vec![0.0; states.len()];
        for (share, state) in shares.iter_mut().zip(states) {
            *share = math::dot::<FUSED>(&query, state) * factor;
        }
        math::softmax::<FUSED>(&mut shares);
        let mut mixed = [0.0; DIMENSIONS];
        for (state, share) in states.iter().zip(shares) {
            for (mixed, value) in mixed.iter_mut().zip(state) {
                *mixed = math::multiply_add::<FUSED>(share, *value, *mixed);
            }
        }
        mixed
    }
}

/// `out[input] = Σ vector[output] · weights[output][input]`.
#[inline(always)]
fn multiply_transposed(linear: &Linear, vector: &[f32; HEAD]) -> [f32; DIMENSIONS] {
    let mut out = [0.0; DIMENSIONS];
    let weights = linear.values.as_chunks::<{ LANES * GROUP }>().0;
    let groups = weights.iter().zip(linear.scales.as_chunks::<LANES>().0);
    for (at, (weights, scales)) in groups.enumerate() {
        let (block, group) = (at / (DIMENSIONS / GROUP), at % (DIMENSIONS / GROUP));
        let vector = &vector[block * LANES..][..LANES];
        let mut factors = [0.0; 4 * LANES];
        for (at, factor) in factors.iter_mut().enumerate() {
            *factor = vector[at / 4] * scales[at / 4];
        }
        let out = out[group * GROUP..][..GROUP].as_chunks_mut::<4>().0;
        for (out, weights) in out.iter_mut().zip(weights.as_chunks::<{ 4 * LANES }>().0) {
            let mut sums = factors;
            for (sum, weight) in sums.iter_mut().zip(weights) {
                *sum *= f32::from(*weight);
            }
            for half in [2 * LANES, LANES, LANES / 2, LANES / 4] {
                for at in 0..half {
                    sums[at] += sums[at + half];
                }
            }
            for (out, sum) in out.iter_mut().zip(sums) {
                *out += sum;
            }
        }
    }
    out
}
