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

/// Where the error function is one, for this model.
const GELU_END: f32 = 4.5;

/// `x` times the share of a normal distribution below it, to six parts in a hundred thousand: an odd polynomial for the error
/// function. What follows rounds to one part in 254.
#[inline(always)]
pub(super) fn gelu<const FUSED: bool>(value: f32) -> f32 {
    let x = larger(smaller(value, GELU_END), -GELU_END);
    let square = x * x;
    let series = [
        -6.629_318_4e-9,
        3.181_993_4e-7,
        -8.903_458e-6,
        1.628_503_2e-4,
        -2.075_182_5e-3,
        1.917_040_5e-2,
        -0.131_969_3,
        0.797_425_2,
    ]
    .into_iter()
    .fold(6.072_834_6e-11, |sum, factor| multiply_add::<FUSED>(sum, square, factor));
    let half = 0.5 * value;
    multiply_add::<FUSED>(half, x * series, half)
}

/// `2^x` to three parts in a million, without a branch, for `x` above -126.
#[inline(always)]
fn exp2<const FUSED: bool>(x: f32) -> f32 {
    let shifted = x + ROUND;
    let rest = x - (shifted - ROUND);
    let series = [0.055_917_864, 0.240_247_45, 0.693_121_8, 0.999_999_3]
        .into_iter()
        .fold(0.009_570_102, |sum, factor| multiply_add::<FUSED>(sum, rest, factor));
    let power = f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
    series * power
}

/// Turns scores into shares that add up to one.
#[inline(always)]
pub(super) fn softmax<const FUSED: bool>(scores: &mut [f32]) {
    let max = fold(scores, f32::MIN, larger);
    for score in scores.iter_mut() {
        *score = exp2::<FUSED>(larger((*score - max) * std::f32::consts::LOG2_E, -120.0));
    }
    let factor = 1.0 / fold(scores, 0.0, |sum, score| sum + score);
    for score in scores.iter_mut() {
        *score *= factor;
    }
}

/// Softmax of scores in units of `unit`, as whole numbers: the largest share is `largest`. Returns their sum.
#[inline(always)]
pub(super) fn shares<const FUSED: bool>(scores: &[i32], unit: f32, largest: f32, shares: &mut [i16]) -> i32 {
    let factor = unit * std::f32::consts::LOG2_E;
    let max = scores.iter().fold(i32::MIN, |max, score| max.max(*score));
    let shift = multiply_add::<FUSED>(-(max as f32), factor, largest.log2());
    for (share, score) in shares.iter_mut().zip(scores) {
        let power = multiply_add::<FUSED>(*score as f32, factor, shift);
        *share = round_i16(exp2::<FUSED>(larger(power, -20.0)));
    }
    shares.iter().map(|share| i32::from(*share)).sum()
}

/// Rounds a number between -32768 and 32767.
#[inline(always)]
pub(super) fn round_i16(value: f32) -> i16 {
    // The low bits of the shifted number are the value rounded to even, in two's complement.
    (value + ROUND).to_bits() as i16
}

/// What one unit is worth when the largest number becomes `max`, and the factor that does so.
#[inline(always)]
pub(super) fn unit(values: &[f32], max: f32) -> (f32, f32) {
    let largest = fold(values, 1e-30, |max, value| larger(value.abs(), max));
    (largest / max, max / largest)
}

/// The larger of two numbers, in one instruction: the standard library's `max` for floats also looks for NaN.
#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

#[inline(always)]
fn smaller(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
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

/// Quantises numbers to -127 to 127 and adds `offset`; returns what one unit is worth. `put` receives each index with bits of
/// which the lower half is the number in two's complement.
#[inline(always)]
pub(super) fn quantise<const COUNT: usize>(row: &[f32; COUNT], offset: f32, mut put: impl FnMut(usize, u32)) -> f32 {
    let (unit, factor) = unit(row, 127.0);
    for (at, value) in row.iter().enumerate() {
        put(at, (value * factor + (ROUND + offset)).to_bits());
    }
    unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_and_gelu_are_within_their_documented_error() {
        for step in -1200..=150 {
            let x = step as f32 / 10.0;
            for ours in [exp2::<false>(x), exp2::<true>(x)] {
                let relative = (f64::from(ours) / f64::from(x).exp2() - 1.0).abs();
                assert!(relative < 3e-6, "2^{x} is off by {relative}");
            }
        }
        let exact =
            [(0.0, 0.0), (0.5, 0.345_731_2), (-1.0, -0.158_655_3), (3.0, 2.995_950_3), (-9.0, 0.0), (20.0, 20.0)];
        for (x, expected) in exact {
            for ours in [gelu::<false>(x), gelu::<true>(x)] {
                assert!((ours - expected).abs() < 6e-5, "gelu({x}) = {ours}");
            }
        }
    }

    #[test]
    fn quantising_is_off_by_half_a_unit_at_most() {
        let row: [f32; 64] = std::array::from_fn(|number| (number as f32 - 20.0) / 10.0);
        let mut out = [0_u8; 64];
        let unit = quantise(&row, 128.0, |at, bits| out[at] = bits as u8);
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

    #[test]
    fn shares_are_in_the_ratio_of_the_exponentials() {
        let scores: [i32; 16] =
            std::array::from_fn(|at| if at == 15 { i32::MIN } else { 100_000 * at as i32 - 700_000 });
        let mut out = [0; 16];
        let sum = shares::<false>(&scores, 1e-5, 8191.0, &mut out);
        assert_eq!((out[14], out[15]), (8191, 0));
        assert_eq!(sum, out.iter().map(|share| i32::from(*share)).sum::<i32>());
        for (at, share) in out[..15].iter().enumerate() {
            let exact = 8191.0 * (at as f32 - 14.0).exp();
            assert!((f32::from(*share) - exact).abs() <= 0.55, "{share} instead of {exact}");
        }
    }
}
