//! One matrix of the model times the rows of a text, in int8: the whole cost of an embedding is here.
//!
//! Weights are the published int8 values with one scale for every 64 inputs. They are packed so that one instruction multiplies
//! four inputs with four weights of each of sixteen outputs. The instruction sets are chosen once, at run time.

use super::asset::Asset;

/// Inputs that share a scale.
const GROUP: usize = 64;

/// Outputs computed side by side.
const LANES: usize = 16;

/// What the processor can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Plain,
}

impl Level {
    pub(super) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512vnni")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512f")
            {
                return Self::Avx512Vnni;
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                return Self::Avx2;
            }
        }
        Self::Plain
    }
}

/// A matrix with its bias.
pub(super) struct Linear {
    /// `[outputs / 16][inputs / 4][16][4]`
    values: &'static [i8],
    /// `[outputs / 16][inputs / 64][16]`
    scales: &'static [f32],
    /// The same shape: what the 128 added to every input adds to a group's sum, negated.
    offsets: &'static [i32],
    bias: &'static [f32],
    pub(super) inputs: usize,
    pub(super) outputs: usize,
}

/// Rows quantised for a [`Linear`].
pub(super) struct Quantised<'a> {
    /// Each value plus 128, row after row.
    pub(super) values: &'a [u8],
    /// What one unit of each row is worth.
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

    /// `out[row][output] = bias + row · weights`.
    pub(super) fn apply(&self, level: Level, rows: &Quantised<'_>, out: &mut [f32]) {
        match level {
            #[cfg(target_arch = "x86_64")]
            #[expect(unsafe_code, reason = "the level says that the processor has these instructions")]
            Level::Avx512Vnni => unsafe { x86::apply_avx512(self, rows, out) },
            #[cfg(target_arch = "x86_64")]
            #[expect(unsafe_code, reason = "the level says that the processor has these instructions")]
            Level::Avx2 => unsafe { x86::apply_avx2(self, rows, out) },
            Level::Plain => self.apply_plain(rows, out),
        }
    }

    fn groups(&self) -> usize {
        self.inputs / GROUP
    }

    fn apply_plain(&self, rows: &Quantised<'_>, out: &mut [f32]) {
        for block in 0..self.outputs / LANES {
            for (row, scale) in rows.scales.iter().enumerate() {
                let input = &rows.values[row * self.inputs..][..self.inputs];
                let mut sums = [0.0_f32; LANES];
                for group in 0..self.groups() {
                    let mut dots = [0_i32; LANES];
                    for quad in 0..GROUP / 4 {
                        let at = group * GROUP + quad * 4;
                        let weights = &self.values[(block * self.inputs + at) * LANES..][..4 * LANES];
                        for (dot, weights) in dots.iter_mut().zip(weights.chunks_exact(4)) {
                            for (value, weight) in input[at..at + 4].iter().zip(weights) {
                                *dot += i32::from(*value) * i32::from(*weight);
                            }
                        }
                    }
                    let place = (block * self.groups() + group) * LANES;
                    for lane in 0..LANES {
                        sums[lane] += (dots[lane] + self.offsets[place + lane]) as f32 * self.scales[place + lane];
                    }
                }
                let out = &mut out[row * self.outputs + block * LANES..][..LANES];
                for lane in 0..LANES {
                    out[lane] = sums[lane] * scale + self.bias[block * LANES + lane];
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{GROUP, LANES, Linear, Quantised};

    /// Rows that share each weight load: enough independent sums to hide the multiplier's latency.
    const ROWS: usize = 8;

    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub(super) fn apply_avx512(linear: &Linear, rows: &Quantised<'_>, out: &mut [f32]) {
        let count = rows.scales.len();
        for block in 0..linear.outputs / LANES {
            let mut row = 0;
            while row + ROWS <= count {
                block_avx512::<ROWS>(linear, rows, out, block, row);
                row += ROWS;
            }
            while row < count {
                block_avx512::<1>(linear, rows, out, block, row);
                row += 1;
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    #[inline]
    fn block_avx512<const N: usize>(linear: &Linear, rows: &Quantised<'_>, out: &mut [f32], block: usize, row: usize) {
        let groups = linear.inputs / GROUP;
        let inputs = &rows.values[row * linear.inputs..][..N * linear.inputs];
        let mut sums = [_mm512_setzero_ps(); N];
        for group in 0..groups {
            let place = (block * groups + group) * LANES;
            let offset = load_i32(&linear.offsets[place..]);
            let mut dots = [offset; N];
            for quad in 0..GROUP / 4 {
                let at = group * GROUP + quad * 4;
                let weights = load_i8(&linear.values[(block * linear.inputs + at) * LANES..]);
                for (number, dot) in dots.iter_mut().enumerate() {
                    let four = &inputs[number * linear.inputs + at..][..4];
                    let four = i32::from_le_bytes([four[0], four[1], four[2], four[3]]);
                    *dot = _mm512_dpbusd_epi32(*dot, _mm512_set1_epi32(four), weights);
                }
            }
            let scale = load_f32(&linear.scales[place..]);
            for (sum, dot) in sums.iter_mut().zip(dots) {
                *sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), scale, *sum);
            }
        }
        let bias = load_f32(&linear.bias[block * LANES..]);
        for (number, sum) in sums.iter().enumerate() {
            let scale = _mm512_set1_ps(rows.scales[row + number]);
            let result = _mm512_fmadd_ps(*sum, scale, bias);
            store(result, &mut out[(row + number) * linear.outputs + block * LANES..]);
        }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    #[expect(unsafe_code, reason = "the slice has the 64 bytes that are read")]
    fn load_i8(values: &[i8]) -> __m512i {
        let values: &[i8; 64] = values.first_chunk().expect("a block has 64 weights");
        unsafe { _mm512_loadu_si512(values.as_ptr().cast()) }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    #[expect(unsafe_code, reason = "the slice has the 16 numbers that are read")]
    fn load_i32(values: &[i32]) -> __m512i {
        let values: &[i32; LANES] = values.first_chunk().expect("a group has 16 offsets");
        unsafe { _mm512_loadu_si512(values.as_ptr().cast()) }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    #[expect(unsafe_code, reason = "the slice has the 16 numbers that are read")]
    fn load_f32(values: &[f32]) -> __m512 {
        let values: &[f32; LANES] = values.first_chunk().expect("a group has 16 scales");
        unsafe { _mm512_loadu_ps(values.as_ptr()) }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    #[expect(unsafe_code, reason = "the slice has room for the 16 numbers that are written")]
    fn store(result: __m512, out: &mut [f32]) {
        let out: &mut [f32; LANES] = out.first_chunk_mut().expect("a block has 16 outputs");
        unsafe { _mm512_storeu_ps(out.as_mut_ptr(), result) }
    }

    /// No VNNI: bytes are widened to sixteen bits, whose products cannot overflow when added in pairs.
    #[target_feature(enable = "avx2,fma")]
    pub(super) fn apply_avx2(linear: &Linear, rows: &Quantised<'_>, out: &mut [f32]) {
        let count = rows.scales.len();
        for block in 0..linear.outputs / LANES {
            let mut row = 0;
            while row + 2 <= count {
                block_avx2::<2>(linear, rows, out, block, row);
                row += 2;
            }
            if row < count {
                block_avx2::<1>(linear, rows, out, block, row);
            }
        }
    }

    #[target_feature(enable = "avx2,fma")]
    #[inline]
    fn block_avx2<const N: usize>(linear: &Linear, rows: &Quantised<'_>, out: &mut [f32], block: usize, row: usize) {
        let groups = linear.inputs / GROUP;
        let inputs = &rows.values[row * linear.inputs..][..N * linear.inputs];
        let mut sums = [[_mm256_setzero_ps(); 2]; N];
        for group in 0..groups {
            let place = (block * groups + group) * LANES;
            // Four registers of four outputs each, every output in two halves.
            let mut dots = [[_mm256_setzero_si256(); 4]; N];
            for quad in 0..GROUP / 4 {
                let at = group * GROUP + quad * 4;
                let weights = widen(&linear.values[(block * linear.inputs + at) * LANES..]);
                for (number, dots) in dots.iter_mut().enumerate() {
                    let four = &inputs[number * linear.inputs + at..][..4];
                    let [a, b, c, d] = [four[0], four[1], four[2], four[3]].map(i64::from);
                    let input = _mm256_set1_epi64x(a | b << 16 | c << 32 | d << 48);
                    for (dot, weights) in dots.iter_mut().zip(weights) {
                        *dot = _mm256_add_epi32(*dot, _mm256_madd_epi16(weights, input));
                    }
                }
            }
            for (sums, dots) in sums.iter_mut().zip(dots) {
                for (half, sum) in sums.iter_mut().enumerate() {
                    // Adds the halves; the instruction interleaves its operands by 128 bits, the permutation undoes that.
                    let joined = _mm256_hadd_epi32(dots[2 * half], dots[2 * half + 1]);
                    let joined = _mm256_permute4x64_epi64::<0b11_01_10_00>(joined);
                    let offset = load_eight(&linear.offsets[place + 8 * half..]);
                    let scale = load_eight_f32(&linear.scales[place + 8 * half..]);
                    *sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_add_epi32(joined, offset)), scale, *sum);
                }
            }
        }
        for (number, sums) in sums.iter().enumerate() {
            let scale = _mm256_set1_ps(rows.scales[row + number]);
            for (half, sum) in sums.iter().enumerate() {
                let bias = load_eight_f32(&linear.bias[block * LANES + 8 * half..]);
                let place = (row + number) * linear.outputs + block * LANES + 8 * half;
                store_eight(_mm256_fmadd_ps(*sum, scale, bias), &mut out[place..]);
            }
        }
    }

    /// 64 weights as sixteen-bit numbers.
    #[target_feature(enable = "avx2")]
    #[inline]
    #[expect(unsafe_code, reason = "the slice has the 64 bytes that are read")]
    fn widen(values: &[i8]) -> [__m256i; 4] {
        let values: &[i8; 64] = values.first_chunk().expect("a block has 64 weights");
        let quarter = |number: usize| unsafe { _mm_loadu_si128(values[16 * number..].as_ptr().cast()) };
        [0, 1, 2, 3].map(|number| _mm256_cvtepi8_epi16(quarter(number)))
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    #[expect(unsafe_code, reason = "the slice has the eight numbers that are read")]
    fn load_eight(values: &[i32]) -> __m256i {
        let values: &[i32; 8] = values.first_chunk().expect("half a group has eight offsets");
        unsafe { _mm256_loadu_si256(values.as_ptr().cast()) }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    #[expect(unsafe_code, reason = "the slice has the eight numbers that are read")]
    fn load_eight_f32(values: &[f32]) -> __m256 {
        let values: &[f32; 8] = values.first_chunk().expect("half a group has eight numbers");
        unsafe { _mm256_loadu_ps(values.as_ptr()) }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    #[expect(unsafe_code, reason = "the slice has room for the eight numbers that are written")]
    fn store_eight(result: __m256, out: &mut [f32]) {
        let out: &mut [f32; 8] = out.first_chunk_mut().expect("half a block has eight outputs");
        unsafe { _mm256_storeu_ps(out.as_mut_ptr(), result) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every level computes what the plain one computes, but for the order of a few float additions.
    #[test]
    fn all_levels_agree() {
        let asset = Asset::open();
        let mut levels = vec![Level::Plain, Level::detect()];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            levels.push(Level::Avx2);
        }
        for name in ["0.qkv", "3.down"] {
            let linear = Linear::new(&asset, name);
            // Eleven rows: more than one full block of rows, and a rest.
            let values: Vec<u8> = (0..11 * linear.inputs).map(|at| (at * 37 % 251) as u8).collect();
            let scales: Vec<f32> = (0..11).map(|row| 0.001 + row as f32 * 0.0001).collect();
            let rows = Quantised { values: &values, scales: &scales };
            let outcomes: Vec<Vec<f32>> = levels
                .iter()
                .map(|level| {
                    let mut out = vec![0.0; 11 * linear.outputs];
                    linear.apply(*level, &rows, &mut out);
                    out
                })
                .collect();
            for (level, outcome) in levels.iter().zip(&outcomes) {
                for (ours, plain) in outcome.iter().zip(&outcomes[0]) {
                    assert!((ours - plain).abs() <= 1e-4 * plain.abs().max(1.0), "{level:?} {name}: {ours} {plain}");
                }
            }
        }
    }
}
