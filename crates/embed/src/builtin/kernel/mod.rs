//! The two matrix products of an embedding, in the vector instructions of the processor.
//!
//! `multiply` is int8, for the model's matrices; `product` is int16, for attention. Both are written in intrinsics: plain loops are
//! fifteen times slower here. Everything else is plain loops, which [`Level::run`] compiles to the same instructions.
#![cfg_attr(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    expect(unsafe_code, reason = "calls of functions for processors that have been found to be of that kind")
)]

#[cfg(target_arch = "aarch64")]
mod arm;
#[cfg(target_arch = "x86_64")]
mod x86;

use super::linear::{GROUP, InputForm, LANES, Linear, Quantised};

/// A level of vector instructions. Created by detection only, so that a value proves that the processor has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Level(LevelKind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LevelKind {
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "aarch64")]
    Dotprod,
    /// Instructions that every processor of the architecture has.
    Plain,
}

/// A computation that is compiled for each level. `run` and everything that it calls must be `#[inline(always)]`.
pub(super) trait Computation {
    type Outcome;

    /// `FUSED`: multiplying and adding is one instruction; see [`super::math::multiply_add`].
    fn run<const FUSED: bool>(self) -> Self::Outcome;
}

/// The sizes of a product.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) rows: usize,
    /// Even.
    pub(super) depth: usize,
    /// A multiple of 32.
    pub(super) columns: usize,
}

impl Level {
    pub(super) fn best() -> Self {
        Self::available()[0]
    }

    /// Every level that this processor has, the fastest first.
    pub(super) fn available() -> Vec<Self> {
        detected_levels().into_iter().chain([LevelKind::Plain]).map(Self).collect()
    }

    pub(super) fn run<C: Computation>(self, computation: C) -> C::Outcome {
        match self.0 {
            // SAFETY: a level exists only where its instructions do.
            #[cfg(target_arch = "x86_64")]
            LevelKind::Avx512Vnni => unsafe { x86::run_avx512(computation) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            LevelKind::Avx2 => unsafe { x86::run_avx2(computation) },
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            LevelKind::Dotprod => unsafe { arm::run_dotprod(computation) },
            LevelKind::Plain => computation.run::<{ cfg!(target_arch = "aarch64") }>(),
        }
    }

    /// The form of quantised inputs that [`Level::multiply`] takes.
    pub(super) fn input_form(self) -> InputForm {
        match self.0 {
            // The instruction of VNNI multiplies unsigned with signed bytes.
            #[cfg(target_arch = "x86_64")]
            LevelKind::Avx512Vnni => InputForm::Unsigned,
            #[cfg(target_arch = "x86_64")]
            LevelKind::Avx2 => InputForm::Wide,
            #[cfg(target_arch = "aarch64")]
            LevelKind::Dotprod => InputForm::Signed,
            LevelKind::Plain => InputForm::Unsigned,
        }
    }

    /// `out[row][output] = bias[output] + rows[row] · weights[output]`.
    pub(super) fn multiply(self, linear: &Linear, rows: &Quantised<'_>, out: &mut [f32]) {
        let (count, groups) = (rows.count, linear.inputs / GROUP);
        assert!(linear.inputs.is_multiple_of(GROUP) && linear.outputs.is_multiple_of(2 * LANES));
        assert!(linear.values.len() == linear.outputs * linear.inputs && linear.bias.len() == linear.outputs);
        assert!(linear.scales.len() == linear.outputs * groups && linear.offsets.len() == linear.outputs * groups);
        let inputs = if self.input_form() == InputForm::Wide { rows.wide.len() } else { rows.values.len() };
        assert!(inputs == count * linear.inputs && rows.scales.len() == count * groups);
        assert!(out.len() == count * linear.outputs);
        match self.0 {
            // SAFETY: a level exists only where its instructions do; every length was just checked.
            #[cfg(target_arch = "x86_64")]
            LevelKind::Avx512Vnni => unsafe { x86::multiply_avx512(linear, rows, out) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            LevelKind::Avx2 => unsafe { x86::multiply_avx2(linear, rows, out) },
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            LevelKind::Dotprod => unsafe { arm::multiply_dotprod(linear, rows, out) },
            LevelKind::Plain => linear.multiply_plain(rows, out),
        }
    }

    /// `c[row][column] = Σ a[row][k] · b[k][column]`, where `b` is laid out as `[depth / 2][columns][2]`. No sum may exceed an
    /// `i32`.
    pub(super) fn product(self, shape: Shape, a: &[i16], b: &[i16], c: &mut [i32]) {
        let Shape { rows, depth, columns } = shape;
        assert!(depth.is_multiple_of(2) && columns.is_multiple_of(32));
        assert!(a.len() == rows * depth && b.len() == depth * columns && c.len() == rows * columns);
        match self.0 {
            // SAFETY: a level exists only where its instructions do; every length was just checked.
            #[cfg(target_arch = "x86_64")]
            LevelKind::Avx512Vnni => unsafe { x86::product_avx512(shape, a, b, c) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            LevelKind::Avx2 => unsafe { x86::product_avx2(shape, a, b, c) },
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            LevelKind::Dotprod => unsafe { arm::product_dotprod(shape, a, b, c) },
            LevelKind::Plain => product_plain(shape, a, b, c),
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn detected_levels() -> Vec<LevelKind> {
    let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    let avx512 = avx2
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vnni");
    [avx512.then_some(LevelKind::Avx512Vnni), avx2.then_some(LevelKind::Avx2)].into_iter().flatten().collect()
}

#[cfg(target_arch = "aarch64")]
fn detected_levels() -> Vec<LevelKind> {
    let dotprod = std::arch::is_aarch64_feature_detected!("neon") && std::arch::is_aarch64_feature_detected!("dotprod");
    dotprod.then_some(LevelKind::Dotprod).into_iter().collect()
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn detected_levels() -> Vec<LevelKind> {
    Vec::new()
}

fn product_plain(shape: Shape, a: &[i16], b: &[i16], c: &mut [i32]) {
    let (pairs, _) = b.as_chunks::<2>();
    for (a, c) in a.chunks_exact(shape.depth).zip(c.chunks_exact_mut(shape.columns)) {
        c.fill(0);
        for ([first, second], pairs) in a.as_chunks::<2>().0.iter().zip(pairs.chunks_exact(shape.columns)) {
            for (sum, pair) in c.iter_mut().zip(pairs) {
                *sum += i32::from(*first) * i32::from(pair[0]) + i32::from(*second) * i32::from(pair[1]);
            }
        }
    }
}

/// Splits rows into tiles of at most `most` rows and similar heights.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn tiles(rows: usize, most: usize) -> impl Iterator<Item = (usize, usize)> {
    let tiles = rows.div_ceil(most);
    (0..tiles).map(move |tile| {
        let start = tile * rows / tiles;
        (start, (tile + 1) * rows / tiles - start)
    })
}

#[cfg(test)]
mod tests {
    use super::super::asset::ModelAsset;
    use super::super::linear::Quantiser;
    use super::*;

    /// Every level computes what the plain one computes, but for the order of a few float additions.
    #[test]
    fn all_levels_agree_on_the_models_matrices() {
        let asset = ModelAsset::model();
        for name in ["0.qkv", "3.down"] {
            let linear = Linear::new(&asset, name);
            // From one row to more than two tiles, every remainder on the way.
            for count in 1..15 {
                let rows: Vec<f32> = (0..count * linear.inputs).map(|at| (at * 37 % 255) as f32 - 127.0).collect();
                agree(|level| {
                    let mut quantiser = Quantiser::default();
                    let rows = quantiser.quantise(level, &rows, linear.inputs);
                    let mut out = vec![0.0; count * linear.outputs];
                    level.multiply(&linear, &rows, &mut out);
                    out
                });
            }
        }
    }

    #[test]
    fn all_levels_agree_on_products() {
        let numbers: Vec<i16> = (0..6000).map(|at| (at * 2909 % 16001 - 8000) as i16).collect();
        for rows in 1..20 {
            for (depth, columns) in [(2, 32), (32, 96), (46, 32)] {
                let (a, b) = (&numbers[..rows * depth], &numbers[7..][..depth * columns]);
                agree(|level| {
                    let mut c = vec![0; rows * columns];
                    level.product(Shape { rows, depth, columns }, a, b, &mut c);
                    c.into_iter().map(|value| value as f32).collect()
                });
            }
        }
    }

    fn agree(compute: impl Fn(Level) -> Vec<f32>) {
        let plain = compute(Level(LevelKind::Plain));
        assert!(plain.iter().any(|value| *value != 0.0));
        for level in Level::available() {
            for (ours, plain) in compute(level).iter().zip(&plain) {
                assert!((ours - plain).abs() <= 1e-4 * plain.abs().max(1.0), "{level:?}: {ours} instead of {plain}");
            }
        }
    }
}
