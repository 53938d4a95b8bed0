//! The kernels for x86-64: AVX-512 with VNNI, and AVX2.
#![expect(
    unsafe_code,
    reason = "vector instructions: their presence is checked once, the bounds of slices before each loop"
)]

use std::arch::x86_64::*;

use super::{Computation, GROUP, LANES, Linear, Quantised, Shape, tiles};

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
    for output in (0..linear.outputs).step_by(LANES / 2) {
        for (row, height) in tiles(rows.count, 6) {
            // SAFETY: the tile lies within the rows and the outputs.
            unsafe {
                match height {
                    1 => multiply_tile_avx2::<1>(linear, rows, out, output, row),
                    2 => multiply_tile_avx2::<2>(linear, rows, out, output, row),
                    3 => multiply_tile_avx2::<3>(linear, rows, out, output, row),
                    4 => multiply_tile_avx2::<4>(linear, rows, out, output, row),
                    5 => multiply_tile_avx2::<5>(linear, rows, out, output, row),
                    _ => multiply_tile_avx2::<6>(linear, rows, out, output, row),
                }
            }
        }
    }
}

/// `N` rows times eight outputs, half a block. The sums of a group are kept in registers, those of a row in memory.
///
/// Safety: rows `row..row + N` and outputs `output..output + 8` exist, and `output` is a multiple of eight.
#[target_feature(enable = "avx2,fma")]
#[inline]
unsafe fn multiply_tile_avx2<const N: usize>(
    linear: &Linear,
    rows: &Quantised<'_>,
    out: &mut [f32],
    output: usize,
    row: usize,
) {
    let (width, groups) = (linear.inputs, linear.inputs / GROUP);
    let (block, lane) = (output / LANES, output % LANES);
    // SAFETY: as in `multiply_tile_avx512`, for half a block.
    unsafe {
        let values = linear.values.as_ptr().add(block * width * LANES + 4 * lane);
        let scales = linear.scales.as_ptr().add(block * groups * LANES + lane);
        let bias = _mm256_loadu_ps(linear.bias.as_ptr().add(output));
        let inputs = rows.wide.as_ptr().add(row * width);
        let input_scales = rows.scales.as_ptr().add(row * groups);
        let out = out.as_mut_ptr().add(row * linear.outputs + output);
        for group in 0..groups {
            let dots = group_dots_avx2::<N>(values.add(group * GROUP * LANES), inputs.add(group * GROUP), width);
            let scale = _mm256_loadu_ps(scales.add(group * LANES));
            for (number, dots) in dots.into_iter().enumerate() {
                let factor = _mm256_mul_ps(scale, _mm256_set1_ps(*input_scales.add(number * groups + group)));
                // The two sums of each output, then the outputs in their order.
                let dots = _mm256_permute4x64_epi64(_mm256_hadd_epi32(dots[0], dots[1]), 0b11_01_10_00);
                let out = out.add(number * linear.outputs);
                let sum = if group == 0 { bias } else { _mm256_loadu_ps(out) };
                _mm256_storeu_ps(out, _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots), factor, sum));
            }
        }
    }
}

/// The sums of one group of 64 inputs for `N` rows and eight outputs, four in each vector, two sums for each output. The product
/// of bytes that AVX2 has saturates at sixteen bits, and avoiding that takes longer than sixteen-bit products.
///
/// Safety: the group's weights are at `values`, the rows' inputs at `inputs`, `width` apart.
#[target_feature(enable = "avx2,fma")]
#[inline]
unsafe fn group_dots_avx2<const N: usize>(values: *const i8, inputs: *const i16, width: usize) -> [[__m256i; 2]; N] {
    let mut dots = [[_mm256_setzero_si256(); 2]; N];
    for eight in 0..GROUP / 8 {
        // Two steps at a time: less counting.
        for quad in [2 * eight, 2 * eight + 1] {
            // SAFETY: the caller promises that these exist.
            let weights = [0, 16].map(|lane| unsafe { _mm_loadu_si128(values.add(quad * 4 * LANES + lane).cast()) });
            let weights = weights.map(|weights| _mm256_cvtepi8_epi16(weights));
            for (number, dots) in dots.iter_mut().enumerate() {
                // SAFETY: as above.
                let four = unsafe { inputs.add(number * width + quad * 4).cast::<i64>().read_unaligned() };
                let four = _mm256_set1_epi64x(four);
                dots[0] = _mm256_add_epi32(dots[0], _mm256_madd_epi16(four, weights[0]));
                dots[1] = _mm256_add_epi32(dots[1], _mm256_madd_epi16(four, weights[1]));
            }
        }
    }
    dots
}

/// Safety: the lengths fit together as [`super::Level::product`] checks.
#[target_feature(enable = "avx512f,avx512vnni")]
pub(super) unsafe fn product_avx512(shape: Shape, a: &[i16], b: &[i16], c: &mut [i32]) {
    for (row, height) in tiles(shape.rows, 8) {
        for column in (0..shape.columns).step_by(32) {
            let tile = &mut Tile { a, b, c: &mut *c, shape, row, column };
            // SAFETY: the tile lies within the rows and columns of the shape, and so within the slices.
            unsafe {
                match height {
                    1 => product_tile_avx512::<1>(tile),
                    2 => product_tile_avx512::<2>(tile),
                    3 => product_tile_avx512::<3>(tile),
                    4 => product_tile_avx512::<4>(tile),
                    5 => product_tile_avx512::<5>(tile),
                    6 => product_tile_avx512::<6>(tile),
                    7 => product_tile_avx512::<7>(tile),
                    _ => product_tile_avx512::<8>(tile),
                }
            }
        }
    }
}

/// A part of a product.
struct Tile<'a> {
    a: &'a [i16],
    b: &'a [i16],
    c: &'a mut [i32],
    shape: Shape,
    row: usize,
    column: usize,
}

/// Safety: the product has `N` rows and 32 columns from the tile's.
#[target_feature(enable = "avx512f,avx512vnni")]
#[inline]
unsafe fn product_tile_avx512<const N: usize>(tile: &mut Tile<'_>) {
    let Shape { depth, columns, .. } = tile.shape;
    // SAFETY: the caller promises that these exist; two numbers are read at a time, and the depth is even.
    unsafe {
        let a = tile.a.as_ptr().add(tile.row * depth);
        let b = tile.b.as_ptr().add(tile.column * 2);
        let c = tile.c.as_mut_ptr().add(tile.row * columns + tile.column);
        let mut sums = [[_mm512_setzero_si512(); 2]; N];
        for k in (0..depth).step_by(2) {
            let values = [0, 32].map(|lane| _mm512_loadu_si512(b.add(k * columns + lane).cast()));
            for (number, sums) in sums.iter_mut().enumerate() {
                let pair = _mm512_set1_epi32(a.add(number * depth + k).cast::<i32>().read_unaligned());
                sums[0] = _mm512_dpwssd_epi32(sums[0], pair, values[0]);
                sums[1] = _mm512_dpwssd_epi32(sums[1], pair, values[1]);
            }
        }
        for (number, sums) in sums.into_iter().enumerate() {
            _mm512_storeu_si512(c.add(number * columns).cast(), sums[0]);
            _mm512_storeu_si512(c.add(number * columns + 16).cast(), sums[1]);
        }
    }
}

/// Safety: the lengths fit together as [`super::Level::product`] checks.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn product_avx2(shape: Shape, a: &[i16], b: &[i16], c: &mut [i32]) {
    for (row, height) in tiles(shape.rows, 4) {
        for column in (0..shape.columns).step_by(16) {
            let tile = &mut Tile { a, b, c: &mut *c, shape, row, column };
            // SAFETY: the tile lies within the rows and columns of the shape, and so within the slices.
            unsafe {
                match height {
                    1 => product_tile_avx2::<1>(tile),
                    2 => product_tile_avx2::<2>(tile),
                    3 => product_tile_avx2::<3>(tile),
                    _ => product_tile_avx2::<4>(tile),
                }
            }
        }
    }
}

/// Safety: the product has `N` rows and 16 columns from the tile's.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn product_tile_avx2<const N: usize>(tile: &mut Tile<'_>) {
    let Shape { depth, columns, .. } = tile.shape;
    // SAFETY: as in `product_tile_avx512`.
    unsafe {
        let a = tile.a.as_ptr().add(tile.row * depth);
        let b = tile.b.as_ptr().add(tile.column * 2);
        let c = tile.c.as_mut_ptr().add(tile.row * columns + tile.column);
        let mut sums = [[_mm256_setzero_si256(); 2]; N];
        for k in (0..depth).step_by(2) {
            let values = [0, 16].map(|lane| _mm256_loadu_si256(b.add(k * columns + lane).cast()));
            for (number, sums) in sums.iter_mut().enumerate() {
                let pair = _mm256_set1_epi32(a.add(number * depth + k).cast::<i32>().read_unaligned());
                sums[0] = _mm256_add_epi32(sums[0], _mm256_madd_epi16(pair, values[0]));
                sums[1] = _mm256_add_epi32(sums[1], _mm256_madd_epi16(pair, values[1]));
            }
        }
        for (number, sums) in sums.into_iter().enumerate() {
            _mm256_storeu_si256(c.add(number * columns).cast(), sums[0]);
            _mm256_storeu_si256(c.add(number * columns + 8).cast(), sums[1]);
        }
    }
}
