//! Timestamps in answers.

use jiff::Timestamp;

/// Nanoseconds since 1970 as ISO 8601 in UTC with milliseconds: `2025-01-29T10:30:00.000Z`.
pub(crate) fn iso_utc(nanoseconds: i64) -> String {
    let time = Timestamp::from_nanosecond(i128::from(nanoseconds)).expect("64 bits of nanoseconds reach 1677 to 2262");
    time.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_milliseconds_and_a_z() {
        assert_eq!(iso_utc(1_738_146_600_000_000_000), "2025-01-29T10:30:00.000Z");
        assert_eq!(iso_utc(1_738_146_600_987_654_321), "2025-01-29T10:30:00.987Z");
        assert_eq!(iso_utc(-1), "1969-12-31T23:59:59.999Z");
        iso_utc(i64::MIN);
        iso_utc(i64::MAX);
    }
}
