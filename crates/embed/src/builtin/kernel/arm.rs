//! The kernels for aarch64: NEON with the dot product of bytes, which Apple's processors and servers of the last years have.
#![expect(
    unsafe_code,
    reason = "vector instructions: their presence is checked once, the bounds of slices before each loop"
)]

use std::arch::aarch64::*;
use std::arch::asm;

use super::{Computation, GROUP, LANES, Linear, Quantised, Shape, tiles};

/// Vectors of four for the sixteen outputs of a block.
const QUARTERS: usize = LANES / 4;

#[target_feature(enable = "neon,dotprod")]
pub(super) fn run_dotprod<C: Computation>(computation: C) -> C::Outcome {
    computation.run::<true>()
}

/// Safety: the lengths fit together as [`super::Level::multiply`] checks.
#[target_feature(enable = "neon,dotprod")]
pub(super) unsafe fn multiply_dotprod(linear: &Linear, rows: &Quantised<'_>, out: &mut [f32]) {
    for block in 0..linear.outputs / LANES {
        for (row, height) in tiles(rows.count, 3) {
            // SAFETY: the tile lies within the rows, the block within the outputs.
            unsafe {
                match height {
                    1 => multiply_tile::<1>(linear, rows, out, block, row),
                    2 => multiply_tile::<2>(linear, rows, out, block, row),
                    _ => multiply_tile::<3>(linear, rows, out, block, row),
                }
            }
        }
    }
}

/// `N` rows times sixteen outputs.
///
/// Safety: rows `row..row + N` and outputs `16 * block..16 * block + 16` exist.
#[target_feature(enable = "neon,dotprod")]
#[inline]
unsafe fn multiply_tile<const N: usize>(
    linear: &Linear,
    rows: &Quantised<'_>,
    out: &mut [f32],
    block: usize,
    row: usize,
) {
    let (width, groups) = (linear.inputs, linear.inputs / GROUP);
    // SAFETY: `width * LANES` weights and `groups * LANES` scales are one block's. A row has `width` inputs and `groups` scales;
    // four inputs are read at a time, and `GROUP` is a multiple of four.
    unsafe {
        let values = linear.values.as_ptr().add(block * width * LANES);
        let scales = linear.scales.as_ptr().add(block * groups * LANES);
        let inputs = rows.values.as_ptr().add(row * width);
        let input_scales = rows.scales.as_ptr().add(row * groups);
        let mut sums = [[vdupq_n_f32(0.0); QUARTERS]; N];
        for group in 0..groups {
            let mut dots = [[vdupq_n_s32(0); QUARTERS]; N];
            for quad in 0..GROUP / 4 {
                let at = group * GROUP + quad * 4;
                let weights: [int8x16_t; QUARTERS] =
                    [0, 16, 32, 48].map(|lane| vld1q_s8(values.add(at * LANES + lane)));
                for (number, dots) in dots.iter_mut().enumerate() {
                    let four = inputs.add(number * width + at).cast::<u32>().read_unaligned();
                    let four = vreinterpretq_s8_u32(vdupq_n_u32(four));
                    for (dot, weights) in dots.iter_mut().zip(weights) {
                        *dot = dot_product(*dot, weights, four);
                    }
                }
            }
            for (number, (sums, dots)) in sums.iter_mut().zip(dots).enumerate() {
                let input_scale = *input_scales.add(number * groups + group);
                for (quarter, (sum, dot)) in sums.iter_mut().zip(dots).enumerate() {
                    let factor = vmulq_n_f32(vld1q_f32(scales.add(group * LANES + quarter * 4)), input_scale);
                    *sum = vfmaq_f32(*sum, vcvtq_f32_s32(dot), factor);
                }
            }
        }
        let bias = linear.bias.as_ptr().add(block * LANES);
        let out = out.as_mut_ptr().add(row * linear.outputs + block * LANES);
        for (number, sums) in sums.into_iter().enumerate() {
            for (quarter, sum) in sums.into_iter().enumerate() {
                let result = vaddq_f32(sum, vld1q_f32(bias.add(quarter * 4)));
                vst1q_f32(out.add(number * linear.outputs + quarter * 4), result);
            }
        }
    }
}

/// Adds to each of four sums the products of four neighbouring bytes. The standard library's function for it is not stable yet.
#[target_feature(enable = "neon,dotprod")]
#[inline]
fn dot_product(sums: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    let mut result = sums;
    // SAFETY: the instruction is there, by the target feature, and touches these registers only.
    unsafe {
        asm!(
            "sdot {result:v}.4s, {a:v}.16b, {b:v}.16b",
            result = inout(vreg) result,
            a = in(vreg) a,
            b = in(vreg) b,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    result
}

/// Safety: the lengths fit together as [`super::Level::product`] checks.
#[target_feature(enable = "neon")]
pub(super) unsafe fn product_dotprod(shape: Shape, a: &[i16], b: &[i16], c: &mut [i32]) {
    for (row, height) in tiles(shape.rows, 3) {
        for column in (0..shape.columns).step_by(LANES) {
            // SAFETY: the tile lies within the rows and columns of the shape, and so within the slices.
            unsafe {
                let a = a.as_ptr().add(row * shape.depth);
                let b = b.as_ptr().add(column * 2);
                let c = c.as_mut_ptr().add(row * shape.columns + column);
                match height {
                    1 => product_tile::<1>(shape, a, b, c),
                    2 => product_tile::<2>(shape, a, b, c),
                    _ => product_tile::<3>(shape, a, b, c),
                }
            }
        }
    }
}

/// Safety: `N` rows of the depth at `a`, pairs of sixteen columns at `b`, room for `N` rows of sixteen at `c`.
#[target_feature(enable = "neon")]
#[inline]
unsafe fn product_tile<const N: usize>(shape: Shape, a: *const i16, b: *const i16, c: *mut i32) {
    let Shape { depth, columns, .. } = shape;
    // The even and the odd half of each pair's products, added up at the end: two columns each.
    let mut sums = [[[vdupq_n_s32(0); 2]; QUARTERS]; N];
    // SAFETY: the caller promises that these exist; two numbers are read at a time, and the depth is even.
    unsafe {
        for k in (0..depth).step_by(2) {
            let values: [int16x8_t; QUARTERS] = [0, 8, 16, 24].map(|lane| vld1q_s16(b.add(k * columns + lane)));
            for (number, sums) in sums.iter_mut().enumerate() {
                let pair = a.add(number * depth + k).cast::<u32>().read_unaligned();
                let pair = vreinterpretq_s16_u32(vdupq_n_u32(pair));
                for (sum, values) in sums.iter_mut().zip(values) {
                    sum[0] = vmlal_s16(sum[0], vget_low_s16(values), vget_low_s16(pair));
                    sum[1] = vmlal_high_s16(sum[1], values, pair);
                }
            }
        }
        for (number, sums) in sums.into_iter().enumerate() {
            for (quarter, [low, high]) in sums.into_iter().enumerate() {
                vst1q_s32(c.add(number * columns + quarter * 4), vpaddq_s32(low, high));
            }
        }
    }
}
