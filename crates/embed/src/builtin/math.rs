//! Elementwise arithmetic, written so that the compiler turns each loop into vector instructions.
//!
//! Each function is compiled once for every level of [`Level`] and inlined there; nothing here names an instruction.

/// `e^x` to one part in ten million, without a branch.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0; // 1.5 * 2^23: adding it rounds to a whole number in the low bits.
    let x = x.clamp(-87.0, 88.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let whole = shifted - ROUND;
    let rest = (x - whole * 0.693_359_4) + whole * 2.121_944_4e-4;
    let series = 1.0
        + rest
            * (1.0
                + rest
                    * (0.5
                        + rest
                            * (0.166_666_55 + rest * (0.041_665_796 + rest * (0.008_333_452 + rest * 0.001_394_3)))));
    let power = f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
    series * power
}

/// The error function, to 1.5e-7 (Abramowitz and Stegun 7.1.26).
#[inline(always)]
fn erf(x: f32) -> f32 {
    let a = x.abs();
    let t = 1.0 / (1.0 + 0.327_591_1 * a);
    let series = t * (0.254_829_6 + t * (-0.284_496_74 + t * (1.421_413_7 + t * (-1.453_152 + t * 1.061_405_4))));
    let y = 1.0 - series * exp(-a * a);
    y.copysign(x)
}

#[inline(always)]
pub(super) fn gelu(values: &mut [f32]) {
    for value in values {
        *value = 0.5 * *value * (1.0 + erf(*value * std::f32::consts::FRAC_1_SQRT_2));
    }
}

/// Turns scores into shares that add up to one.
#[inline(always)]
pub(super) fn softmax(scores: &mut [f32]) {
    let max = scores.iter().fold(f32::MIN, |max, score| max.max(*score));
    for score in scores.iter_mut() {
        *score = exp(*score - max);
    }
    let factor = 1.0 / sum(scores);
    for score in scores.iter_mut() {
        *score *= factor;
    }
}

/// A sum in sixteen lanes: float addition is not associative, so the compiler needs to be told that lanes are fine.
#[inline(always)]
pub(super) fn sum(values: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; 16];
    let chunks = values.chunks_exact(16);
    let rest: f32 = chunks.remainder().iter().sum();
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += value;
        }
    }
    lanes.iter().sum::<f32>() + rest
}

/// Adds `residual`, then normalises to mean 0 and variance 1, scales and shifts.
#[inline(always)]
pub(super) fn add_norm(row: &mut [f32], residual: &[f32], norm: &[f32]) {
    for (value, residual) in row.iter_mut().zip(residual) {
        *value += residual;
    }
    let count = row.len() as f32;
    let mean = sum(row) / count;
    let mut lanes = [0.0_f32; 16];
    for chunk in row.chunks_exact(16) {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += (value - mean) * (value - mean);
        }
    }
    let deviation = 1.0 / (lanes.iter().sum::<f32>() / count + 1e-12).sqrt();
    let (weights, biases) = norm.split_at(row.len());
    for ((value, weight), bias) in row.iter_mut().zip(weights).zip(biases) {
        *value = (*value - mean) * deviation * weight + bias;
    }
}

/// Quantises a row to whole numbers of -127 to 127, stored with 128 added; returns the factor that undoes it.
#[inline(always)]
pub(super) fn quantise(row: &[f32], out: &mut [u8]) -> f32 {
    const ROUND: f32 = 12_582_912.0;
    let mut lanes = [0.0_f32; 16];
    for chunk in row.chunks_exact(16) {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = lane.max(value.abs());
        }
    }
    let max = lanes.iter().fold(1e-30_f32, |max, lane| max.max(*lane));
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
            let relative = (f64::from(exp(x)) / f64::from(x).exp() - 1.0).abs();
            assert!(relative < 3e-7, "exp({x}) is off by {relative}");
        }
        for (x, expected) in [(0.0, 0.0), (0.5, 0.520_499_9), (-1.0, -0.842_700_8), (2.0, 0.995_322_3)] {
            assert!((erf(x) - expected).abs() < 5e-7, "erf({x}) = {}", erf(x));
        }
    }

    #[test]
    fn quantising_keeps_the_largest_value_exactly() {
        let row: Vec<f32> = (0..64).map(|number| (number as f32 - 20.0) / 10.0).collect();
        let mut out = vec![0; 64];
        let scale = quantise(&row, &mut out);
        for (quantised, value) in out.iter().zip(&row) {
            assert!(((f32::from(*quantised) - 128.0) * scale - value).abs() <= scale / 2.0 + 1e-6);
        }
        assert_eq!(out[63], 255);
    }
}
