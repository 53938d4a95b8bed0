//! A vector with 16 bits a number: a coarse byte, which is held in memory and scanned, and a fine byte, which stays on disk
//! and is read for the few vectors that the scan finds close.

/// Steps of the coarse byte on each side of zero.
const STEPS: f32 = 127.0;

/// Fine steps in a coarse one.
const FINE_STEPS: f32 = 256.0;

/// Sums that a dot product adds up in parallel. Compilers turn them into vector instructions; a single sum must be added
/// up in order.
pub(super) const SUMS: usize = 16;

/// A vector of length one. Each number is `scale * (coarse + fine / 256)`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FixedPoint {
    pub(super) scale: f32,
    pub(super) coarse: Vec<i8>,
    pub(super) fine: Vec<i8>,
}

impl FixedPoint {
    /// `None` if a number is not finite. A vector without a direction becomes zero, which is close to nothing.
    pub(super) fn new(vector: &[f32]) -> Option<Self> {
        let vector = unit(vector)?;
        let most = vector.iter().fold(0_f32, |most, number| most.max(number.abs()));
        let steps = if most > 0.0 { STEPS * FINE_STEPS / most } else { 0.0 };
        // At most 127 * 256, so both bytes hold their part.
        let (coarse, fine) = vector
            .iter()
            .map(|number| (number * steps).round() as i32)
            .map(|number| {
                let coarse = (number + 128) >> 8;
                (coarse as i8, (number - (coarse << 8)) as i8)
            })
            .unzip();
        Some(Self { scale: most / STEPS, coarse, fine })
    }
}

/// The vector scaled to length one; `None` if a number is not finite.
pub(super) fn unit(vector: &[f32]) -> Option<Vec<f32>> {
    let length = vector.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt();
    let factor = if length > 0.0 { 1.0 / length } else { 0.0 };
    length.is_finite().then(|| vector.iter().map(|number| (f64::from(*number) * factor) as f32).collect())
}

/// The cosine of a query of length one with a vector in its two parts, as bytes. All are of the same dimensions.
pub(super) fn cosine(query: &[f32], scale: f32, coarse: &[u8], fine: &[u8]) -> f32 {
    let number = |coarse: &u8, fine: &u8| {
        f32::from(i16::from(coarse.cast_signed()) * FINE_STEPS as i16 + i16::from(fine.cast_signed()))
    };
    let mut sums = [0_f32; SUMS];
    for ((query, coarse), fine) in query.chunks(SUMS).zip(coarse.chunks(SUMS)).zip(fine.chunks(SUMS)) {
        for (((sum, query), coarse), fine) in sums.iter_mut().zip(query).zip(coarse).zip(fine) {
            *sum += query * number(coarse, fine);
        }
    }
    (sums.iter().sum::<f32>() * (scale / FINE_STEPS)).clamp(-1.0, 1.0)
}

/// Numbers as a database stores them.
pub(super) fn bytes(numbers: &[i8]) -> Vec<u8> {
    numbers.iter().map(|number| number.cast_unsigned()).collect()
}

/// A bound on the error of the coarse product: five standard deviations of the rounding of both vectors, taken as random.
/// One product in a million is farther off.
pub(super) fn coarse_error(query_scale: f32, scale: f32) -> f32 {
    const DEVIATIONS: f32 = 5.0;
    // A step's rounding has the variance 1/12.
    DEVIATIONS * ((query_scale * query_scale + scale * scale) / 12.0).sqrt()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn cosine_equals_that_of_the_original_vectors(
            (a, b) in (1..800_usize).prop_flat_map(|length| {
                let vector = || prop::collection::vec(-1_f32..1.0, length);
                (vector(), vector())
            })
        ) {
            let (kept, query) = (FixedPoint::new(&a).unwrap(), unit(&b).unwrap());
            let exact: f64 = unit(&a).unwrap().iter().zip(&query).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            let found = cosine(&query, kept.scale, &bytes(&kept.coarse), &bytes(&kept.fine));
            prop_assert!((f64::from(found) - exact).abs() < 2e-5, "{} for {}", found, exact);
        }
    }

    #[test]
    fn zero_vector_has_cosine_zero_and_non_finite_vectors_are_refused() {
        let zero = FixedPoint::new(&[0.0; 3]).unwrap();
        assert_eq!(cosine(&[1.0, 0.0, 0.0], zero.scale, &bytes(&zero.coarse), &bytes(&zero.fine)), 0.0);
        assert_eq!(FixedPoint::new(&[1.0, f32::NAN]), None);
        assert_eq!(FixedPoint::new(&[1.0, f32::INFINITY]), None);
    }
}
