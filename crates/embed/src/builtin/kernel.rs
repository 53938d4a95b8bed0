//! The two products that an embedding consists of, in the instructions of the processor at hand. All unsafe code is here.
//!
//! `multiply` is int8, for the model's matrices; `product` is f32, for attention. Everything else is plain loops, which
//! [`Level::run`] has the compiler turn into the same instructions.
#![expect(
    unsafe_code,
    reason = "vector instructions: their presence is checked once, the bounds of slices before each loop"
)]

use super::linear::{GROUP, LANES, Linear, Quantised};
use super::math;

/// What the processor can do. Made by detection only, so that having one proves that its instructions are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Level(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Names no instruction; the compiler uses what every processor of the architecture has. The only level on aarch64,
    /// where that includes NEON.
    Plain,
}

/// Something to be compiled for each level. `run` must be `#[inline(always)]`, and what it calls too.
pub(super) trait Computation {
    type Outcome;

    /// `FUSED`: multiplying and adding is one instruction; see [`math::multiply_add`].
    fn run<const FUSED: bool>(self) -> Self::Outcome;
}

/// Rows of numbers, `stride` apart.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) values: &'a [f32],
    pub(super) stride: usize,
}

/// How much of the rows a product takes.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) rows: usize,
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
        beyond_plain().into_iter().chain([Kind::Plain]).map(Self).collect()
    }

    pub(super) fn run<C: Computation>(self, computation: C) -> C::Outcome {
        match self.0 {
            // SAFETY: a level exists only where its instructions do.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512Vnni => unsafe { x86::run_avx512(computation) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { x86::run_avx2(computation) },
            Kind::Plain => computation.run::<{ cfg!(target_arch = "aarch64") }>(),
        }
    }

    /// `out[row][output] = bias[output] + rows[row] · weights[output]`.
    pub(super) fn multiply(self, linear: &Linear, rows: &Quantised<'_>, out: &mut [f32]) {
        let (count, groups) = (rows.count, linear.inputs / GROUP);
        assert!(linear.inputs.is_multiple_of(GROUP) && linear.outputs.is_multiple_of(2 * LANES));
        assert!(linear.values.len() == linear.outputs * linear.inputs && linear.bias.len() == linear.outputs);
        assert!(linear.scales.len() == linear.outputs * groups && linear.offsets.len() == linear.outputs * groups);
        assert!(rows.values.len() == count * linear.inputs && rows.scales.len() == count * groups);
        assert!(out.len() == count * linear.outputs);
        match self.0 {
            // SAFETY: a level exists only where its instructions do; every length was just checked.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512Vnni => unsafe { x86::multiply_avx512(linear, rows, out) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { x86::multiply_avx2(linear, rows, out) },
            Kind::Plain => linear.multiply_plain(rows, out),
        }
    }

    /// `c[row][column] = Σ a[row][k] · b[k][column]`. `c` has the stride that is given last.
    pub(super) fn product(self, shape: Shape, a: Rows<'_>, b: Rows<'_>, c: &mut [f32], c_stride: usize) {
        let Shape { rows, depth, columns } = shape;
        let length = |rows: usize, stride: usize, width: usize| (rows - 1) * stride + width;
        assert!(rows > 0 && depth > 0 && columns > 0 && columns.is_multiple_of(32));
        assert!(a.values.len() >= length(rows, a.stride, depth) && b.values.len() >= length(depth, b.stride, columns));
        assert!(c.len() >= length(rows, c_stride, columns));
        match self.0 {
            // SAFETY: a level exists only where its instructions do; every length was just checked.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512Vnni => unsafe { x86::product_avx512(shape, a, b, c, c_stride) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { x86::product_avx2(shape, a, b, c, c_stride) },
            Kind::Plain => product_plain(shape, a, b, c, c_stride),
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn beyond_plain() -> Vec<Kind> {
    let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    let avx512 = avx2
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vnni");
    [avx512.then_some(Kind::Avx512Vnni), avx2.then_some(Kind::Avx2)].into_iter().flatten().collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn beyond_plain() -> Vec<Kind> {
    Vec::new()
}

fn product_plain(shape: Shape, a: Rows<'_>, b: Rows<'_>, c: &mut [f32], c_stride: usize) {
    for row in 0..shape.rows {
        for column in (0..shape.columns).step_by(32) {
            let mut sums = [0.0_f32; 32];
            for (k, factor) in a.values[row * a.stride..][..shape.depth].iter().enumerate() {
                for (sum, value) in sums.iter_mut().zip(&b.values[k * b.stride + column..][..32]) {
                    *sum = math::multiply_add::<{ cfg!(target_arch = "aarch64") }>(*factor, *value, *sum);
                }
            }
            c[row * c_stride + column..][..32].copy_from_slice(&sums);
        }
    }
}

/// Splits rows into tiles of `most` at most, all of about one height.
#[cfg(target_arch = "x86_64")]
fn tiles(rows: usize, most: usize) -> impl Iterator<Item = (usize, usize)> {
    let tiles = rows.div_ceil(most);
    (0..tiles).map(move |tile| {
        let start = tile * rows / tiles;
        (start, (tile + 1) * rows / tiles - start)
    })
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Computation, GROUP, LANES, Linear, Quantised, Rows, Shape, tiles};

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma")]
    pub(super) fn run_avx512<C: Computation>(computation: C) -> C::Outcome {
        computation.run::<true>()
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn run_avx2<C: Computation>(computation: C) -> C::Outcome {
        computation.run::<true>()
    }

    /// Safety: the lengths fit together as [`super::Level::multiply`] checks.
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub(super) unsafe fn multiply_avx512(linear: &Linear, rows: &Quantised<'_>, out: &mut [f32]) {
        for pair in 0..linear.outputs / (2 * LANES) {
            for (row, height) in tiles(rows.count, 6) {
                // SAFETY: the tile lies within the rows, the pair within the outputs.
                unsafe {
                    match height {
                        1 => multiply_tile_avx512::<1>(linear, rows, out, pair, row),
                        2 => multiply_tile_avx512::<2>(linear, rows, out, pair, row),
                        3 => multiply_tile_avx512::<3>(linear, rows, out, pair, row),
                        4 => multiply_tile_avx512::<4>(linear, rows, out, pair, row),
                        5 => multiply_tile_avx512::<5>(linear, rows, out, pair, row),
                        _ => multiply_tile_avx512::<6>(linear, rows, out, pair, row),
                    }
                }
            }
        }
    }

    /// `N` rows times two blocks of sixteen outputs: as many independent sums as the registers hold.
    ///
    /// Safety: rows `row..row + N` and outputs `32 * pair..32 * pair + 32` exist.
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    #[inline]
    unsafe fn multiply_tile_avx512<const N: usize>(
        linear: &Linear,
        rows: &Quantised<'_>,
        out: &mut [f32],
        pair: usize,
        row: usize,
    ) {
        let (width, groups) = (linear.inputs, linear.inputs / GROUP);
        // SAFETY: `width * LANES` weights and `groups * LANES` scales and offsets are one block's; the pair has two blocks.
        // A row has `width` inputs and `groups` scales; four inputs are read at a time, and `GROUP` is a multiple of four.
        unsafe {
            let values = linear.values.as_ptr().add(2 * pair * width * LANES);
            let scales = linear.scales.as_ptr().add(2 * pair * groups * LANES);
            let offsets = linear.offsets.as_ptr().add(2 * pair * groups * LANES);
            let inputs = rows.values.as_ptr().add(row * width);
            let input_scales = rows.scales.as_ptr().add(row * groups);
            let mut sums = [[_mm512_setzero_ps(); 2]; N];
            for group in 0..groups {
                let place = [group * LANES, (groups + group) * LANES];
                let offset = place.map(|place| _mm512_loadu_si512(offsets.add(place).cast()));
                let mut dots = [offset; N];
                for quad in 0..GROUP / 4 {
                    let at = group * GROUP + quad * 4;
                    let weights = [at, width + at].map(|at| _mm512_loadu_si512(values.add(at * LANES).cast()));
                    for (number, dots) in dots.iter_mut().enumerate() {
                        let four = _mm512_set1_epi32(inputs.add(number * width + at).cast::<i32>().read_unaligned());
                        dots[0] = _mm512_dpbusd_epi32(dots[0], four, weights[0]);
                        dots[1] = _mm512_dpbusd_epi32(dots[1], four, weights[1]);
                    }
                }
                let scale = place.map(|place| _mm512_loadu_ps(scales.add(place)));
                for (number, (sums, dots)) in sums.iter_mut().zip(dots).enumerate() {
                    let input_scale = _mm512_set1_ps(*input_scales.add(number * groups + group));
                    for half in 0..2 {
                        let factor = _mm512_mul_ps(scale[half], input_scale);
                        sums[half] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots[half]), factor, sums[half]);
                    }
                }
            }
            let bias = linear.bias.as_ptr().add(2 * pair * LANES);
            let out = out.as_mut_ptr().add(row * linear.outputs + 2 * pair * LANES);
            for (number, sums) in sums.into_iter().enumerate() {
                for (half, sum) in sums.into_iter().enumerate() {
                    let result = _mm512_add_ps(sum, _mm512_loadu_ps(bias.add(half * LANES)));
                    _mm512_storeu_ps(out.add(number * linear.outputs + half * LANES), result);
                }
            }
        }
    }

    /// Safety: the lengths fit together as [`super::Level::multiply`] checks.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn multiply_avx2(linear: &Linear, rows: &Quantised<'_>, out: &mut [f32]) {
        for block in 0..linear.outputs / LANES {
            for (row, height) in tiles(rows.count, 3) {
                // SAFETY: the tile lies within the rows, the block within the outputs.
                unsafe {
                    match height {
                        1 => multiply_tile_avx2::<1>(linear, rows, out, block, row),
                        2 => multiply_tile_avx2::<2>(linear, rows, out, block, row),
                        _ => multiply_tile_avx2::<3>(linear, rows, out, block, row),
                    }
                }
            }
        }
    }

    /// `N` rows times sixteen outputs. Without VNNI there is a product of unsigned with signed bytes that saturates at sixteen
    /// bits; with the sign moved from the weight to the input it cannot get there: 2 · 128 · 127 < 2^15.
    ///
    /// Safety: rows `row..row + N` and outputs `16 * block..16 * block + 16` exist.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    unsafe fn multiply_tile_avx2<const N: usize>(
        linear: &Linear,
        rows: &Quantised<'_>,
        out: &mut [f32],
        block: usize,
        row: usize,
    ) {
        let (width, groups) = (linear.inputs, linear.inputs / GROUP);
        // SAFETY: as in `multiply_tile_avx512`, for one block, eight outputs at a time.
        unsafe {
            let values = linear.values.as_ptr().add(block * width * LANES);
            let scales = linear.scales.as_ptr().add(block * groups * LANES);
            let inputs = rows.values.as_ptr().add(row * width);
            let input_scales = rows.scales.as_ptr().add(row * groups);
            let mut sums = [[_mm256_setzero_ps(); 2]; N];
            for group in 0..groups {
                let mut dots = [[_mm256_setzero_si256(); 2]; N];
                for quad in 0..GROUP / 4 {
                    let at = group * GROUP + quad * 4;
                    for half in 0..2 {
                        let weights = _mm256_loadu_si256(values.add(at * LANES + half * 32).cast());
                        let positive = _mm256_abs_epi8(weights);
                        for (number, dots) in dots.iter_mut().enumerate() {
                            let four = inputs.add(number * width + at).cast::<i32>().read_unaligned();
                            // Inputs have 128 added, for VNNI; flipping the top bit takes it off again.
                            let four = _mm256_set1_epi32(four ^ 0x8080_8080_u32.cast_signed());
                            let pairs = _mm256_maddubs_epi16(positive, _mm256_sign_epi8(four, weights));
                            dots[half] = _mm256_add_epi32(dots[half], _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
                        }
                    }
                }
                for (number, (sums, dots)) in sums.iter_mut().zip(dots).enumerate() {
                    let input_scale = _mm256_set1_ps(*input_scales.add(number * groups + group));
                    for half in 0..2 {
                        let scale = _mm256_loadu_ps(scales.add(group * LANES + half * 8));
                        let factor = _mm256_mul_ps(scale, input_scale);
                        sums[half] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots[half]), factor, sums[half]);
                    }
                }
            }
            let bias = linear.bias.as_ptr().add(block * LANES);
            let out = out.as_mut_ptr().add(row * linear.outputs + block * LANES);
            for (number, sums) in sums.into_iter().enumerate() {
                for (half, sum) in sums.into_iter().enumerate() {
                    let result = _mm256_add_ps(sum, _mm256_loadu_ps(bias.add(half * 8)));
                    _mm256_storeu_ps(out.add(number * linear.outputs + half * 8), result);
                }
            }
        }
    }

    /// Safety: the lengths fit together as [`super::Level::product`] checks.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn product_avx512(shape: Shape, a: Rows<'_>, b: Rows<'_>, c: &mut [f32], c_stride: usize) {
        for (row, height) in tiles(shape.rows, 8) {
            for column in (0..shape.columns).step_by(32) {
                // SAFETY: the tile lies within the rows and columns of the shape, and so within the slices.
                unsafe {
                    let a = Tile { first: a.values.as_ptr().add(row * a.stride), stride: a.stride };
                    let b = Tile { first: b.values.as_ptr().add(column), stride: b.stride };
                    let c = c.as_mut_ptr().add(row * c_stride + column);
                    match height {
                        1 => product_tile_avx512::<1>(shape.depth, a, b, c, c_stride),
                        2 => product_tile_avx512::<2>(shape.depth, a, b, c, c_stride),
                        3 => product_tile_avx512::<3>(shape.depth, a, b, c, c_stride),
                        4 => product_tile_avx512::<4>(shape.depth, a, b, c, c_stride),
                        5 => product_tile_avx512::<5>(shape.depth, a, b, c, c_stride),
                        6 => product_tile_avx512::<6>(shape.depth, a, b, c, c_stride),
                        7 => product_tile_avx512::<7>(shape.depth, a, b, c, c_stride),
                        _ => product_tile_avx512::<8>(shape.depth, a, b, c, c_stride),
                    }
                }
            }
        }
    }

    #[derive(Clone, Copy)]
    struct Tile {
        first: *const f32,
        stride: usize,
    }

    /// Safety: `N` rows of `depth` numbers at `a`, `depth` rows of 32 at `b`, room for `N` rows of 32 at `c`.
    #[target_feature(enable = "avx512f")]
    #[inline]
    unsafe fn product_tile_avx512<const N: usize>(depth: usize, a: Tile, b: Tile, c: *mut f32, c_stride: usize) {
        let mut sums = [[_mm512_setzero_ps(); 2]; N];
        // SAFETY: the caller promises that these exist.
        unsafe {
            for k in 0..depth {
                let values = [0, 16].map(|lane| _mm512_loadu_ps(b.first.add(k * b.stride + lane)));
                for (number, sums) in sums.iter_mut().enumerate() {
                    let factor = _mm512_set1_ps(*a.first.add(number * a.stride + k));
                    sums[0] = _mm512_fmadd_ps(factor, values[0], sums[0]);
                    sums[1] = _mm512_fmadd_ps(factor, values[1], sums[1]);
                }
            }
            for (number, sums) in sums.into_iter().enumerate() {
                _mm512_storeu_ps(c.add(number * c_stride), sums[0]);
                _mm512_storeu_ps(c.add(number * c_stride + 16), sums[1]);
            }
        }
    }

    /// Safety: the lengths fit together as [`super::Level::product`] checks.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn product_avx2(shape: Shape, a: Rows<'_>, b: Rows<'_>, c: &mut [f32], c_stride: usize) {
        for (row, height) in tiles(shape.rows, 4) {
            for column in (0..shape.columns).step_by(16) {
                // SAFETY: the tile lies within the rows and columns of the shape, and so within the slices.
                unsafe {
                    let a = Tile { first: a.values.as_ptr().add(row * a.stride), stride: a.stride };
                    let b = Tile { first: b.values.as_ptr().add(column), stride: b.stride };
                    let c = c.as_mut_ptr().add(row * c_stride + column);
                    match height {
                        1 => product_tile_avx2::<1>(shape.depth, a, b, c, c_stride),
                        2 => product_tile_avx2::<2>(shape.depth, a, b, c, c_stride),
                        3 => product_tile_avx2::<3>(shape.depth, a, b, c, c_stride),
                        _ => product_tile_avx2::<4>(shape.depth, a, b, c, c_stride),
                    }
                }
            }
        }
    }

    /// Safety: `N` rows of `depth` numbers at `a`, `depth` rows of 16 at `b`, room for `N` rows of 16 at `c`.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    unsafe fn product_tile_avx2<const N: usize>(depth: usize, a: Tile, b: Tile, c: *mut f32, c_stride: usize) {
        let mut sums = [[_mm256_setzero_ps(); 2]; N];
        // SAFETY: the caller promises that these exist.
        unsafe {
            for k in 0..depth {
                let values = [0, 8].map(|lane| _mm256_loadu_ps(b.first.add(k * b.stride + lane)));
                for (number, sums) in sums.iter_mut().enumerate() {
                    let factor = _mm256_set1_ps(*a.first.add(number * a.stride + k));
                    sums[0] = _mm256_fmadd_ps(factor, values[0], sums[0]);
                    sums[1] = _mm256_fmadd_ps(factor, values[1], sums[1]);
                }
            }
            for (number, sums) in sums.into_iter().enumerate() {
                _mm256_storeu_ps(c.add(number * c_stride), sums[0]);
                _mm256_storeu_ps(c.add(number * c_stride + 8), sums[1]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::asset::Asset;
    use super::*;

    /// Every level computes what the plain one computes, but for the order of a few float additions.
    #[test]
    fn all_levels_agree_on_the_models_matrices() {
        let asset = Asset::open();
        for name in ["0.qkv", "3.down"] {
            let linear = Linear::new(&asset, name);
            // From one row to more than two tiles, every remainder on the way.
            for count in 1..15 {
                let values: Vec<u8> = (0..count * linear.inputs).map(|at| (1 + at * 37 % 255) as u8).collect();
                let scales: Vec<f32> =
                    (0..count * linear.inputs / GROUP).map(|at| 0.001 + at as f32 * 0.0001).collect();
                let rows = Quantised { count, values: &values, scales: &scales };
                agree(|level| {
                    let mut out = vec![0.0; count * linear.outputs];
                    level.multiply(&linear, &rows, &mut out);
                    out
                });
            }
        }
    }

    #[test]
    fn all_levels_agree_on_products() {
        let numbers: Vec<f32> = (0..6000).map(|at| (at * 29 % 101) as f32 / 50.0 - 1.0).collect();
        for rows in 1..20 {
            for (depth, columns) in [(1, 32), (32, 96), (45, 32)] {
                let a = Rows { values: &numbers, stride: 47 };
                let b = Rows { values: &numbers[7..], stride: 99 };
                agree(|level| {
                    let mut c = vec![0.0; rows * 100];
                    level.product(Shape { rows, depth, columns }, a, b, &mut c, 100);
                    c
                });
            }
        }
    }

    fn agree(compute: impl Fn(Level) -> Vec<f32>) {
        let plain = compute(Level(Kind::Plain));
        assert!(plain.iter().any(|value| *value != 0.0));
        for level in Level::available() {
            for (ours, plain) in compute(level).iter().zip(&plain) {
                assert!((ours - plain).abs() <= 1e-4 * plain.abs().max(1.0), "{level:?}: {ours} instead of {plain}");
            }
        }
    }
}
