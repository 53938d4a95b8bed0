//! Scores in answers.

/// Rounded to three decimals.
pub(crate) fn rounded(score: f64) -> f64 {
    (score * 1000.0).round() / 1000.0
}

/// A score that is stored in thousandths.
pub(crate) fn shown(thousandths: u32) -> f64 {
    f64::from(thousandths) / 1000.0
}
