//! The kernels for x86-64: AVX-512 with VNNI, and AVX2.
#![expect(
    unsafe_code,
    reason = "vector instructions: their presence is checked once, the bounds of slices before each loop"
)]

use std::arch::x86_64::*;

use super::{Computation, GROUP, LANES, Linear, MatrixRows, Quantised, Shape, tiles};

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
pub(super) unsafe fn product_avx512(
    shape: Shape,
    a: MatrixRows<'_>,
    b: MatrixRows<'_>,
    c: &mut [f32],
    c_stride: usize,
) {
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
pub(super) unsafe fn product_avx2(shape: Shape, a: MatrixRows<'_>, b: MatrixRows<'_>, c: &mut [f32], c_stride: usize) {
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
