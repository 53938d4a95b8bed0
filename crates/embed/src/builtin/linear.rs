//! A matrix of the model with its bias, and the rows that it is multiplied with: int8 on both sides.
//!
//! Both sides have one scale for every 64 numbers. One scale for a whole row of activations would have ten times the error
//! (docs/embedding.md), since a few inputs of each row are far larger than the others.

use std::ops::Range;

use super::asset::ModelAsset;
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
    /// In the shape of `scales`: corrects a group's sum for inputs that have 128 added.
    pub(super) offsets: &'static [i32],
    pub(super) bias: &'static [f32],
    pub(super) inputs: usize,
    pub(super) outputs: usize,
}

/// Rows quantised for a [`Linear`].
pub(super) struct Quantised<'a> {
    pub(super) count: usize,
    /// Row after row, in the form that the level takes; empty for a level that takes `wide`.
    pub(super) values: &'a [u8],
    /// Row after row in sixteen bits; empty for a level that takes bytes.
    pub(super) wide: &'a [i16],
    /// The scale of each group of 64, row after row.
    pub(super) scales: &'a [f32],
}

impl Linear {
    pub(super) fn new(asset: &ModelAsset, name: &str) -> Self {
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

    /// The matrix in parts of 64 outputs.
    pub(super) fn parts(&self) -> Vec<Self> {
        (0..self.outputs).step_by(GROUP).map(|first| self.part(first..first + GROUP)).collect()
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
/// at a time: of the forms tried, compilers turn this one into vector instructions, five times as fast as the others. Not inlined,
/// since they give up on it inside a longer function.
#[inline(never)]
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

/// How a level takes quantised numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum InputForm {
    /// Bytes with 128 added.
    Unsigned,
    /// Signed bytes.
    #[cfg(target_arch = "aarch64")]
    Signed,
    /// Sixteen bits.
    Wide,
}

/// Quantises rows, with buffers that are reused.
#[derive(Default)]
pub(super) struct Quantiser {
    values: Vec<u8>,
    wide: Vec<i16>,
    scales: Vec<f32>,
}

impl Quantiser {
    /// Quantises rows of a width that is a multiple of 64.
    pub(super) fn quantise(&mut self, level: Level, rows: &[f32], width: usize) -> Quantised<'_> {
        self.prepare(level, rows.len());
        level.run(self.groups(level, rows, 0, 1));
        self.quantised(rows.len() / width)
    }

    /// The output of a matrix after GELU, quantised. The matrix is computed 64 outputs at a time, given as its parts, so that no
    /// more than a cache holds is ever there in floats.
    pub(super) fn multiply_gelu(
        &mut self,
        level: Level,
        parts: &[Linear],
        rows: &Quantised<'_>,
        floats: &mut Vec<f32>,
    ) -> Quantised<'_> {
        self.prepare(level, rows.count * parts.len() * GROUP);
        floats.resize(rows.count * GROUP, 0.0);
        for (number, part) in parts.iter().enumerate() {
            level.multiply(part, rows, floats);
            level.run(QuantiseGelu(self.groups(level, floats, number, parts.len())));
        }
        self.quantised(rows.count)
    }

    fn prepare(&mut self, level: Level, length: usize) {
        let (bytes, words) = if level.input_form() == InputForm::Wide { (0, length) } else { (length, 0) };
        self.values.resize(bytes, 0);
        self.wide.resize(words, 0);
        self.scales.resize(length / GROUP, 0.0);
    }

    /// Groups of numbers that become every `step`th group from `first`.
    fn groups<'a>(&'a mut self, level: Level, rows: &'a [f32], first: usize, step: usize) -> QuantiseGroups<'a> {
        let Self { values, wide, scales } = self;
        QuantiseGroups { rows, form: level.input_form(), first, step, values, wide, scales }
    }

    fn quantised(&self, count: usize) -> Quantised<'_> {
        Quantised { count, values: &self.values, wide: &self.wide, scales: &self.scales }
    }
}

struct QuantiseGroups<'a> {
    rows: &'a [f32],
    form: InputForm,
    first: usize,
    step: usize,
    values: &'a mut [u8],
    wide: &'a mut [i16],
    scales: &'a mut [f32],
}

impl QuantiseGroups<'_> {
    #[inline(always)]
    fn run_after(self, prepare: impl Fn(f32) -> f32) {
        let groups = self.rows.as_chunks::<GROUP>().0.iter().enumerate();
        let (values, wide) = (self.values.as_chunks_mut::<GROUP>().0, self.wide.as_chunks_mut::<GROUP>().0);
        for (number, group) in groups {
            let at = self.first + number * self.step;
            let group = group.map(&prepare);
            self.scales[at] = match self.form {
                InputForm::Unsigned => math::quantise(&group, 128.0, |lane, bits| values[at][lane] = bits as u8),
                #[cfg(target_arch = "aarch64")]
                InputForm::Signed => math::quantise(&group, 0.0, |lane, bits| values[at][lane] = bits as u8),
                InputForm::Wide => math::quantise(&group, 0.0, |lane, bits| wide[at][lane] = bits as i16),
            };
        }
    }
}

impl Computation for QuantiseGroups<'_> {
    type Outcome = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        self.run_after(|value| value);
    }
}

struct QuantiseGelu<'a>(QuantiseGroups<'a>);

impl Computation for QuantiseGelu<'_> {
    type Outcome = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        self.0.run_after(math::gelu::<FUSED>);
    }
}
