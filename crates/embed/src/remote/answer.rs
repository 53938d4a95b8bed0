//! What a server calls vectors, checked: one a text, all of one dimension, with a direction. Brought to length one.

use std::sync::OnceLock;

/// No model in use has as many dimensions.
const MOST_DIMENSIONS: usize = 16_384;

pub(super) fn check(
    mut vectors: Vec<Vec<f32>>,
    texts: usize,
    dimensions: &OnceLock<usize>,
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
    let known = *dimensions.get_or_init(|| first);
    if first != known {
        return Err(format!(
            "a vector of {first} dimensions, where there were {known} before; has the model changed? Restart to take it"
        ));
    }
    Ok(vectors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_get_length_one() {
        let huge = check(vec![vec![3e38, 0.0], vec![3.0, 4.0]], 2, &OnceLock::new()).unwrap();
        assert_eq!(huge, [[1.0, 0.0], [0.6, 0.8]]);
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        let known = OnceLock::new();
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
}
