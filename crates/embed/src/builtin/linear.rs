//! A matrix of the model with its bias, and the rows that it is multiplied with: int8 on both sides.
//!
//! Both sides have one scale for every 64 numbers. One scale for a whole row of activations would have ten times the error
//! (docs/embedding.md), since a few inputs of each row are far larger than the others.

use std::ops::Range;

use super::asset::Asset;
use super::kernel::{Computation, Level};
use super::math;

/// Inputs that share a scale.
pub(super) const GROUP: usize = 64;

/// Outputs computed in parallel.
pub(super) const LANES: usize = 16;

/// Weights as published, packed so that one VNNI instruction multiplies four inputs with four weights of each of sixteen outputs.
#[derive(Clone, Copy)]
pub(super) struct Linear {
    /// `[outputs / 16][inputs / 4][16][4]`
    pub(super) values: &'static [i8],
    /// `[outputs / 16][inputs / 64][16]`
    pub(super) scales: &'static [f32],
    /// Of the same shape: corrects a group's sum for the 128 that is added to every input.
    pub(super) offsets: &'static [i32],
    pub(super) bias: &'static [f32],
    pub(super) inputs: usize,
    pub(super) outputs: usize,
}

/// Rows quantised for a [`Linear`].
pub(super) struct Quantised<'a> {
    pub(super) count: usize,
    /// Each value plus 128, row after row.
    pub(super) values: &'a [u8],
    /// The scale of each group of 64, row after row.
    pub(super) scales: &'a [f32],
}

impl Linear {
    pub(super) fn new(asset: &Asset, name: &str) -> Self {
        let values: &[i8] = asset.numbers(&format!("{name}.values"));
        let bias: &[f32] = asset.numbers(&format!("{name}.bias"));
        Self {
            values,
            scales: asset.numbers(&format!("{name}.scale")),
            offsets: asset.numbers(&format!("{name}.offset")),
            outputs: bias.len(),
            inputs: values.len() / bias.len(),
            bias,
        }
    }

    /// The matrix of some of the outputs; the range begins and ends at multiples of sixteen.
    pub(super) fn part(&self, outputs: Range<usize>) -> Self {
        let groups = self.inputs / GROUP;
        Self {
            values: &self.values[outputs.start * self.inputs..outputs.end * self.inputs],
            scales: &self.scales[outputs.start * groups..outputs.end * groups],
            offsets: &self.offsets[outputs.start * groups..outputs.end * groups],
            bias: &self.bias[outputs.clone()],
            inputs: self.inputs,
            outputs: outputs.len(),
        }
    }

    /// [`Level::multiply`] in plain loops.
    pub(super) fn multiply_plain(&self, rows: &Quantised<'_>, out: &mut [f32]) {
        let groups = self.inputs / GROUP;
        for block in 0..self.outputs / LANES {
            for row in 0..rows.count {
                let mut sums = [0.0_f32; LANES];
                for group in 0..groups {
                    let input = &rows.values[row * self.inputs + group * GROUP..][..GROUP];
                    let weights = &self.values[(block * self.inputs + group * GROUP) * LANES..][..GROUP * LANES];
                    let dots = dot_products(input, weights);
                    let place = (block * groups + group) * LANES;
                    let input_scale = rows.scales[row * groups + group];
                    for lane in 0..LANES {
                        let factor = self.scales[place + lane] * input_scale;
                        sums[lane] += (dots[lane] + self.offsets[place + lane]) as f32 * factor;
                    }
                }
                let out = &mut out[row * self.outputs + block * LANES..][..LANES];
                for lane in 0..LANES {
                    out[lane] = sums[lane] + self.bias[block * LANES + lane];
                }
            }
        }
    }
}

/// A group's inputs times the weights of sixteen outputs. The four products of each output are added last, and eight are computed
/// at a time: of the forms tried, compilers turn this one into vector instructions, five times as fast as the others.
fn dot_products(input: &[u8], weights: &[i8]) -> [i32; LANES] {
    let mut sums = [[0_i32; 8]; 4 * LANES / 8];
    for (four, weights) in input.as_chunks::<4>().0.iter().zip(weights.as_chunks::<{ 4 * LANES }>().0) {
        let twice: [i16; 8] = std::array::from_fn(|at| i16::from(four[at % 4]));
        for (sums, weights) in sums.iter_mut().zip(weights.as_chunks::<8>().0) {
            for at in 0..8 {
                // The product of two bytes fits sixteen bits.
                sums[at] += i32::from(twice[at] * i16::from(weights[at]));
            }
        }
    }
    std::array::from_fn(|lane| sums.as_flattened()[4 * lane..][..4].iter().sum())
}

/// Quantises rows, with buffers that are reused.
#[derive(Default)]
pub(super) struct Quantiser {
    values: Vec<u8>,
    scales: Vec<f32>,
}

impl Quantiser {
    /// Quantises rows of a width that is a multiple of 64.
    pub(super) fn quantise(&mut self, level: Level, rows: &[f32], width: usize) -> Quantised<'_> {
        self.values.resize(rows.len(), 0);
        self.scales.resize(rows.len() / GROUP, 0.0);
        level.run(QuantiseGroups { rows, values: &mut self.values, scales: &mut self.scales });
        Quantised { count: rows.len() / width, values: &self.values, scales: &self.scales }
    }
}

struct QuantiseGroups<'a> {
    rows: &'a [f32],
    values: &'a mut [u8],
    scales: &'a mut [f32],
}

impl Computation for QuantiseGroups<'_> {
    type Outcome = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let groups = self.rows.as_chunks::<GROUP>().0.iter().zip(self.values.as_chunks_mut::<GROUP>().0);
        for ((row, values), scale) in groups.zip(self.scales) {
            *scale = math::quantise(row, values);
        }
    }
}
