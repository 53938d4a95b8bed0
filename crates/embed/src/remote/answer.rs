//! Validation of the vectors in a response: one for each text, all with the same dimensions, none zero. They are scaled to
//! length one.

use parking_lot::Mutex;

/// More than any model in use has.
const MAX_DIMENSIONS: usize = 16_384;

/// After this many responses in a row with other dimensions, the provider is taken to have another model.
const CHANGE_AFTER: u32 = 3;

/// The dimensions of a provider's vectors: those of its first response, until it changes them permanently. A single response with
/// other dimensions is refused, so that it does not make all vectors useless.
#[derive(Default)]
pub(super) struct Dimensions {
    known: Mutex<Option<KnownDimensions>>,
}

struct KnownDimensions {
    dimensions: usize,
    /// Other dimensions, and the number of responses in a row that had them.
    other: (usize, u32),
}

impl Dimensions {
    fn settle(&self, dimensions: usize) -> Result<(), String> {
        let mut known = self.known.lock();
        let known = known.get_or_insert(KnownDimensions { dimensions, other: (0, 0) });
        if known.dimensions == dimensions {
            known.other = (0, 0);
            return Ok(());
        }
        let times = if known.other.0 == dimensions { known.other.1 + 1 } else { 1 };
        known.other = (dimensions, times);
        if times < CHANGE_AFTER {
            let before = known.dimensions;
            return Err(format!(
                "a vector of {dimensions} dimensions, where there were {before} before; if it stays so, all texts are \
                 embedded again"
            ));
        }
        tracing::warn!(before = known.dimensions, now = dimensions, "the embedding provider has another model now");
        *known = KnownDimensions { dimensions, other: (0, 0) };
        Ok(())
    }
}

pub(super) fn check(
    mut vectors: Vec<Vec<f32>>,
    texts: usize,
    dimensions: &Dimensions,
) -> Result<Vec<Vec<f32>>, String> {
    if vectors.len() != texts {
        return Err(format!("{} vectors for {texts} texts", vectors.len()));
    }
    let Some(first) = vectors.first().map(Vec::len) else { return Ok(vectors) };
    if first == 0 || first > MAX_DIMENSIONS {
        return Err(format!("a vector of {first} dimensions"));
    }
    for vector in &mut vectors {
        if vector.len() != first {
            return Err(format!("vectors of {first} and of {} dimensions in one response", vector.len()));
        }
        // In double precision, since squares of single floats overflow.
        let length = vector.iter().map(|value| f64::from(*value) * f64::from(*value)).sum::<f64>().sqrt();
        if !length.is_finite() || length < 1e-12 {
            return Err("a vector without a direction (zero or not finite)".to_owned());
        }
        for value in vector {
            *value = (f64::from(*value) / length) as f32;
        }
    }
    // Last, so that only a valid response counts.
    dimensions.settle(first)?;
    Ok(vectors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_scaled_to_length_one() {
        let huge = check(vec![vec![3e38, 0.0], vec![3.0, 4.0]], 2, &Dimensions::default()).unwrap();
        assert_eq!(huge, [[1.0, 0.0], [0.6, 0.8]]);
    }

    #[test]
    fn invalid_vectors_are_refused() {
        let known = Dimensions::default();
        check(vec![vec![1.0, 0.0]], 1, &known).unwrap();
        for (vectors, texts, why) in [
            (vec![vec![1.0, 0.0]], 2, "1 vectors for 2 texts"),
            (vec![vec![]], 1, "0 dimensions"),
            (vec![vec![1.0, 0.0], vec![1.0]], 2, "in one response"),
            (vec![vec![0.0, 0.0]], 1, "without a direction"),
            (vec![vec![f32::NAN, 0.0]], 1, "without a direction"),
            (vec![vec![f32::INFINITY, 0.0]], 1, "without a direction"),
            (vec![vec![1.0, 0.0, 0.0]], 1, "where there were 2 before"),
        ] {
            let error = check(vectors, texts, &known).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn changed_dimensions_are_accepted_only_when_they_stay() {
        let known = Dimensions::default();
        let takes = |numbers: usize| check(vec![vec![1.0; numbers]], 1, &known).is_ok();
        assert!(takes(2));
        assert_eq!([takes(3), takes(3), takes(2)], [false, false, true], "and back");
        assert_eq!([takes(3), takes(4), takes(3), takes(3)], [false; 4], "never the same for long");
        assert_eq!([takes(3), takes(2), takes(3)], [true, false, true]);
    }
}
