//! Dot products of rows of bytes, by the widest instructions that the processor has.
//!
//! Which those are is asked at run time, so one program serves every processor. The only file with `unsafe` in it: loads
//! through pointers, and calls of functions that the compiler may not use on its own.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "vector instructions are called after asking the processor for them")
)]

/// Bytes in a lane: those of the widest register and of a cache line.
pub(super) const LANE_BYTES: usize = 64;

/// What rows are made of, so that every load is whole and aligned. The bytes are never -128: see `dot_avx2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(64))]
pub(super) struct Lane(pub(super) [i8; LANE_BYTES]);

impl Lane {
    pub(super) const ZERO: Self = Self([0; LANE_BYTES]);
}

/// Which instructions are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Level(Instructions);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Instructions {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni,
}

impl Level {
    /// Those of this processor, best last. One is made nowhere else, so to have it means that it may be used.
    pub(super) fn available() -> impl Iterator<Item = Self> {
        let plain = [Some(Instructions::Plain)];
        #[cfg(target_arch = "x86_64")]
        let wide = [
            is_x86_feature_detected!("avx2").then_some(Instructions::Avx2),
            (is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vnni"))
                .then_some(Instructions::Avx512Vnni),
        ];
        #[cfg(not(target_arch = "x86_64"))]
        let wide = [];
        plain.into_iter().chain(wide).flatten().map(Self)
    }

    /// The fastest.
    pub(super) fn best() -> Self {
        Self::available().last().unwrap_or(Self(Instructions::Plain))
    }
}

/// The dot product of a query with each of the rows, which lie one after the other.
pub(super) fn dots(level: Level, query: &[Lane], rows: &[Lane], dots: &mut [i32]) {
    assert_eq!(rows.len(), query.len() * dots.len(), "there is a row for each product");
    match level.0 {
        Instructions::Plain => dots_plain(query, rows, dots),
        // SAFETY: a level is made only where the processor has its instructions.
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx2 => unsafe { x86::dots_avx2(query, rows, dots) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Instructions::Avx512Vnni => unsafe { x86::dots_avx512_vnni(query, rows, dots) },
    }
}

fn dots_plain(query: &[Lane], rows: &[Lane], dots: &mut [i32]) {
    for (row, dot) in rows.chunks_exact(query.len()).zip(dots) {
        *dot = query.iter().zip(row).map(|(a, b)| lane_plain(a, b)).sum();
    }
}

/// A loop that compilers make vector instructions of, NEON among them.
fn lane_plain(a: &Lane, b: &Lane) -> i32 {
    a.0.iter().zip(&b.0).map(|(a, b)| i32::from(i16::from(*a) * i16::from(*b))).sum()
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256i, _mm_add_epi32, _mm_cvtsi128_si32, _mm_shuffle_epi32, _mm256_abs_epi8, _mm256_add_epi32,
        _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_load_si256, _mm256_madd_epi16, _mm256_maddubs_epi16,
        _mm256_set1_epi16, _mm256_setzero_si256, _mm256_sign_epi8, _mm512_dpbusd_epi32, _mm512_load_si512,
        _mm512_reduce_add_epi32, _mm512_set1_epi8, _mm512_setzero_si512, _mm512_xor_si512,
    };

    use super::Lane;

    #[target_feature(enable = "avx2")]
    pub(super) fn dots_avx2(query: &[Lane], rows: &[Lane], dots: &mut [i32]) {
        for (row, dot) in rows.chunks_exact(query.len()).zip(dots) {
            *dot = dot_avx2(query, row);
        }
    }

    /// The instruction multiplies unsigned with signed bytes, so the query's signs are moved to the row. It adds pairs of
    /// products in 16 bits, which hold them as long as no byte is -128.
    #[target_feature(enable = "avx2")]
    fn dot_avx2(query: &[Lane], row: &[Lane]) -> i32 {
        let ones = _mm256_set1_epi16(1);
        let mut sums = [_mm256_setzero_si256(); 2];
        for (query, row) in query.iter().zip(row) {
            let (query, row) = (halves(query), halves(row));
            for half in 0..2 {
                let row = _mm256_sign_epi8(row[half], query[half]);
                let pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(query[half]), row);
                sums[half] = _mm256_add_epi32(sums[half], _mm256_madd_epi16(pairs, ones));
            }
        }
        let sum = _mm256_add_epi32(sums[0], sums[1]);
        let sum = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum));
        let sum = _mm_add_epi32(sum, _mm_shuffle_epi32::<0b01_00_11_10>(sum));
        _mm_cvtsi128_si32(_mm_add_epi32(sum, _mm_shuffle_epi32::<0b10_11_00_01>(sum)))
    }

    #[target_feature(enable = "avx2")]
    fn halves(lane: &Lane) -> [__m256i; 2] {
        let start = lane.0.as_ptr().cast::<__m256i>();
        // SAFETY: a lane is two aligned halves of 32 bytes.
        unsafe { [_mm256_load_si256(start), _mm256_load_si256(start.add(1))] }
    }

    /// The instruction multiplies unsigned with signed bytes, so 128 is added to the row's, and what that adds to the sum
    /// is taken off again: it is the same for every row.
    #[target_feature(enable = "avx512f,avx512vnni")]
    pub(super) fn dots_avx512_vnni(query: &[Lane], rows: &[Lane], dots: &mut [i32]) {
        let query_sum: i32 = query.iter().flat_map(|lane| lane.0).map(i32::from).sum();
        let add_128 = _mm512_set1_epi8(i8::MIN);
        for (row, dot) in rows.chunks_exact(query.len()).zip(dots) {
            let mut sum = _mm512_setzero_si512();
            for (query, row) in query.iter().zip(row) {
                // SAFETY: a lane is 64 aligned bytes.
                let (query, row) =
                    unsafe { (_mm512_load_si512(query.0.as_ptr().cast()), _mm512_load_si512(row.0.as_ptr().cast())) };
                sum = _mm512_dpbusd_epi32(sum, _mm512_xor_si512(row, add_128), query);
            }
            *dot = _mm512_reduce_add_epi32(sum) - 128 * query_sum;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn all_instructions_give_the_same_products(
            bytes in prop::collection::vec(prop_oneof![Just(-127_i8), Just(127), -127..=127_i8], 64..64 * 40),
            width in 1..8_usize,
        ) {
            let lanes: Vec<Lane> =
                bytes.as_chunks::<LANE_BYTES>().0.iter().map(|bytes| Lane(*bytes)).collect();
            let width = width.min(lanes.len());
            let query = &lanes[..width];
            let rows = &lanes[..lanes.len() / width * width];
            let expected: Vec<i32> = rows
                .chunks_exact(width)
                .map(|row| {
                    let pairs = row.iter().flat_map(|lane| lane.0).zip(query.iter().flat_map(|lane| lane.0));
                    pairs.map(|(a, b)| i32::from(a) * i32::from(b)).sum()
                })
                .collect();
            for level in Level::available() {
                let mut found = vec![0; expected.len()];
                dots(level, query, rows, &mut found);
                prop_assert_eq!(&found, &expected, "{:?}", level);
            }
        }
    }
}
