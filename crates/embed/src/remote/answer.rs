//! What a server calls vectors, checked: one a text, all of one dimension, with a direction. Brought to length one.

use parking_lot::Mutex;

/// No model in use has as many dimensions.
const MOST_DIMENSIONS: usize = 16_384;

/// A provider that answers with another number of dimensions so often in a row has another model now.
const CONVINCING: u32 = 3;

/// How many dimensions a provider's vectors have: those of its first answer, until it has changed them for good. A slip in
/// between is refused, so that it costs one answer and not all vectors.
#[derive(Default)]
pub(super) struct Dimensions {
    known: Mutex<Option<Known>>,
}

struct Known {
    dimensions: usize,
    /// Another number, and how often it came in a row.
    other: (usize, u32),
}

impl Dimensions {
    fn settle(&self, dimensions: usize) -> Result<(), String> {
        // Nothing is ever half written there.
        let mut known = self.known.lock();
        let known = known.get_or_insert(Known { dimensions, other: (0, 0) });
        if known.dimensions == dimensions {
            known.other = (0, 0);
            return Ok(());
        }
        let times = if known.other.0 == dimensions { known.other.1 + 1 } else { 1 };
        known.other = (dimensions, times);
        if times < CONVINCING {
            let before = known.dimensions;
            return Err(format!(
                "a vector of {dimensions} dimensions, where there were {before} before; if that goes on it is taken for \
                 another model"
            ));
        }
        tracing::warn!(before = known.dimensions, now = dimensions, "the embedding provider has another model");
        *known = Known { dimensions, other: (0, 0) };
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
    if first == 0 || first > MOST_DIMENSIONS {
        return Err(format!("a vector of {first} dimensions"));
    }
    for vector in &mut vectors {
        if vector.len() != first {
            return Err(format!("vectors of {first} and of {} dimensions in one answer", vector.len()));
        }
        // In double precision: squares of single floats overflow.
        let length = vector.iter().map(|value| f64::from(*value) * f64::from(*value)).sum::<f64>().sqrt();
        if !length.is_finite() || length < 1e-12 {
            return Err("a vector without a direction (zero or not finite)".to_owned());
        }
        for value in vector {
            *value = (f64::from(*value) / length) as f32;
        }
    }
    // Last, so that only a sound answer settles it.
    dimensions.settle(first)?;
    Ok(vectors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_get_length_one() {
        let huge = check(vec![vec![3e38, 0.0], vec![3.0, 4.0]], 2, &Dimensions::default()).unwrap();
        assert_eq!(huge, [[1.0, 0.0], [0.6, 0.8]]);
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        let known = Dimensions::default();
        check(vec![vec![1.0, 0.0]], 1, &known).unwrap();
        for (vectors, texts, why) in [
            (vec![vec![1.0, 0.0]], 2, "1 vectors for 2 texts"),
            (vec![vec![]], 1, "0 dimensions"),
            (vec![vec![1.0, 0.0], vec![1.0]], 2, "in one answer"),
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
    fn another_number_of_dimensions_is_a_slip_until_it_stays() {
        let known = Dimensions::default();
        let takes = |numbers: usize| check(vec![vec![1.0; numbers]], 1, &known).is_ok();
        assert!(takes(2));
        assert_eq!([takes(3), takes(3), takes(2)], [false, false, true], "and back");
        assert_eq!([takes(3), takes(4), takes(3), takes(3)], [false; 4], "never the same for long");
        assert_eq!([takes(3), takes(2), takes(3)], [true, false, true]);
    }
}
