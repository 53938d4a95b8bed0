//! Scores as they are shown.

/// Three decimals say all there is to say.
pub(crate) fn rounded(score: f64) -> f64 {
    (score * 1000.0).round() / 1000.0
}

/// A score that is kept in the thousandths that are shown.
pub(crate) fn shown(thousandths: u32) -> f64 {
    f64::from(thousandths) / 1000.0
}
