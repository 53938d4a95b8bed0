//! Arithmetic on rows, written so that the compiler turns each loop into vector instructions.
//!
//! Each function is inlined into a [`super::kernel::Computation`], which is compiled once for every level of processor.

/// `a * b + c`. `FUSED` rounds once and needs an instruction for it: without one, the standard library would call a function for
/// each number.
#[inline(always)]
pub(super) fn multiply_add<const FUSED: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// Adding it rounds to a whole number, which then lies in the low bits: 1.5 * 2^23.
const ROUND: f32 = 12_582_912.0;

/// `e^x` to three parts in ten million, without a branch.
#[inline(always)]
fn exp<const FUSED: bool>(x: f32) -> f32 {
    let x = x.clamp(-87.0, 88.0);
    let shifted = multiply_add::<FUSED>(x, std::f32::consts::LOG2_E, ROUND);
    let whole = shifted - ROUND;
    let rest = multiply_add::<FUSED>(whole, -0.693_359_4, x);
    let rest = multiply_add::<FUSED>(whole, 2.121_944_4e-4, rest);
    let series = [0.008_333_452, 0.041_665_796, 0.166_666_55, 0.5, 1.0, 1.0]
        .into_iter()
        .fold(0.001_394_3, |sum, factor| multiply_add::<FUSED>(sum, rest, factor));
    let power = f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
    series * power
}

/// The error function, to five parts in ten million (Abramowitz and Stegun 7.1.26).
#[inline(always)]
fn erf<const FUSED: bool>(x: f32) -> f32 {
    let a = x.abs();
    let t = 1.0 / multiply_add::<FUSED>(0.327_591_1, a, 1.0);
    let series = [-1.453_152, 1.421_413_7, -0.284_496_74, 0.254_829_6]
        .into_iter()
        .fold(1.061_405_4, |sum, factor| multiply_add::<FUSED>(sum, t, factor));
    let y = 1.0 - series * t * exp::<FUSED>(-a * a);
    y.copysign(x)
}

#[inline(always)]
pub(super) fn gelu<const FUSED: bool>(values: &mut [f32]) {
    for value in values {
        *value = 0.5 * *value * (1.0 + erf::<FUSED>(*value * std::f32::consts::FRAC_1_SQRT_2));
    }
}

/// Turns scores into shares that add up to one.
#[inline(always)]
pub(super) fn softmax<const FUSED: bool>(scores: &mut [f32]) {
    let max = fold(scores, f32::MIN, f32::max);
    for score in scores.iter_mut() {
        *score = exp::<FUSED>(*score - max);
    }
    let factor = 1.0 / fold(scores, 0.0, |sum, score| sum + score);
    for score in scores.iter_mut() {
        *score *= factor;
    }
}

/// A sum or a maximum in sixteen lanes: float addition is not associative, so the compiler does not use lanes by itself.
#[inline(always)]
fn fold(values: &[f32], start: f32, join: impl Fn(f32, f32) -> f32 + Copy) -> f32 {
    let mut lanes = [start; 16];
    let (chunks, rest) = values.as_chunks::<16>();
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = join(*lane, *value);
        }
    }
    lanes.iter().chain(rest).copied().fold(start, join)
}

#[inline(always)]
fn sum_of_squares<const FUSED: bool>(values: &[f32]) -> f32 {
    dot::<FUSED>(values, values)
}

/// The sum of the products of two rows of one length.
#[inline(always)]
pub(super) fn dot<const FUSED: bool>(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0; 16];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
    for (a, b) in a.iter().zip(b) {
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            *lane = multiply_add::<FUSED>(*a, *b, *lane);
        }
    }
    lanes.iter().sum::<f32>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f32>()
}

/// Adds a change, then normalises to mean 0 and variance 1, scales and shifts. `norm` holds the scales, then the shifts.
#[inline(always)]
pub(super) fn add_and_norm<const FUSED: bool>(row: &mut [f32], change: &[f32], norm: &[f32]) {
    for (value, change) in row.iter_mut().zip(change) {
        *value += change;
    }
    normalise::<FUSED>(row, 1e-12);
    let (scales, shifts) = norm.split_at(row.len());
    for ((value, scale), shift) in row.iter_mut().zip(scales).zip(shifts) {
        *value = multiply_add::<FUSED>(*value, *scale, *shift);
    }
}

/// Normalises a row to mean 0 and variance 1.
#[inline(always)]
pub(super) fn normalise<const FUSED: bool>(row: &mut [f32], epsilon: f32) {
    let count = row.len() as f32;
    let mean = fold(row, 0.0, |sum, value| sum + value) / count;
    for value in row.iter_mut() {
        *value -= mean;
    }
    let factor = 1.0 / (sum_of_squares::<FUSED>(row) / count + epsilon).sqrt();
    for value in row.iter_mut() {
        *value *= factor;
    }
}

/// Quantises numbers to -127 to 127, stored with 128 added; returns what one unit is worth.
#[inline(always)]
pub(super) fn quantise<const COUNT: usize>(row: &[f32; COUNT], out: &mut [u8; COUNT]) -> f32 {
    let max = fold(row, 1e-30, |max, value| max.max(value.abs()));
    let factor = 127.0 / max;
    for (out, value) in out.iter_mut().zip(row) {
        // The low byte of the shifted number is the value rounded to even, in two's complement.
        *out = ((value * factor + ROUND).to_bits() as u8).wrapping_add(128);
    }
    max / 127.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_and_erf_are_exact_to_single_precision() {
        for step in -800..=800 {
            let x = step as f32 / 10.0;
            for ours in [exp::<false>(x), exp::<true>(x)] {
                let relative = (f64::from(ours) / f64::from(x).exp() - 1.0).abs();
                assert!(relative < 3e-7, "exp({x}) is off by {relative}");
            }
        }
        for (x, expected) in [(0.0, 0.0), (0.5, 0.520_499_9), (-1.0, -0.842_700_8), (2.0, 0.995_322_3)] {
            for ours in [erf::<false>(x), erf::<true>(x)] {
                assert!((ours - expected).abs() < 5e-7, "erf({x}) = {ours}");
            }
        }
    }

    #[test]
    fn quantising_is_off_by_half_a_unit_at_most() {
        let row: [f32; 64] = std::array::from_fn(|number| (number as f32 - 20.0) / 10.0);
        let mut out = [0; 64];
        let unit = quantise(&row, &mut out);
        for (quantised, value) in out.iter().zip(&row) {
            assert!(((f32::from(*quantised) - 128.0) * unit - value).abs() <= unit / 2.0 + 1e-6);
        }
        assert_eq!(out[63], 255, "the largest number is exact");
    }

    #[test]
    fn normalised_row_has_mean_zero_and_variance_one() {
        let mut row: Vec<f32> = (0..50).map(|number| (number * number) as f32).collect();
        let norm = [[1.0; 50], [0.0; 50]].concat();
        add_and_norm::<false>(&mut row, &[3.0; 50], &norm);
        assert!(row.iter().sum::<f32>().abs() < 1e-4);
        assert!((row.iter().map(|value| value * value).sum::<f32>() / 50.0 - 1.0).abs() < 1e-5);
    }

    #[test]
    fn softmax_adds_up_to_one() {
        for scores in [vec![0.0; 3], vec![-1e4, 1e4, 0.0], (0..50).map(|score| score as f32).collect()] {
            let mut shares = scores.clone();
            softmax::<false>(&mut shares);
            assert!((shares.iter().sum::<f32>() - 1.0).abs() < 1e-6, "{scores:?} gave {shares:?}");
        }
    }
}
