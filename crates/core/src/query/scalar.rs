//! A single value of a field, so that numbers compare as numbers, dates as dates, and text without regard to case.

use std::cmp::Ordering;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use crate::model::{Value, fold};
use crate::parse::wikilink_target;

/// A value for comparisons, sorted by kind.
#[derive(Debug, Clone)]
pub(super) enum Scalar {
    Bool(bool),
    Number(f64),
    Time(Span),
    /// Folded.
    Text(String),
    /// A mapping: it is there, and equals nothing.
    Map,
}

/// The kinds of values, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ScalarKind {
    Bool,
    Number,
    Time,
    Text,
    Map,
}

/// A time with the precision it was written in: a day lasts from midnight to midnight, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    /// Nanoseconds since 1970.
    pub(super) start: i64,
    /// Exclusive.
    pub(super) end: i64,
}

impl Scalar {
    /// The value of a text: a date, or folded text.
    pub(super) fn of_text(text: &str) -> Self {
        Span::parse(text).map_or_else(|| Self::Text(fold(text)), Self::Time)
    }

    /// The values of a property: of a list each item; of null, blank text and an empty list none.
    pub(super) fn each_of(value: &Value, add: &mut dyn FnMut(Self, Option<&Value>)) {
        match value {
            Value::Null => {}
            Value::Bool(flag) => add(Self::Bool(*flag), None),
            Value::Int(number) => add(Self::Number(*number as f64), None),
            Value::Float(number) => add(Self::Number(*number), None),
            Value::Text(text) if text.trim().is_empty() => {}
            Value::Text(text) => add(Self::of_text(link_target(text.trim())), Some(value)),
            Value::List(items) => items.iter().for_each(|item| Self::each_of(item, add)),
            Value::Map(_) => add(Self::Map, None),
        }
    }

    pub(super) fn kind(&self) -> ScalarKind {
        match self {
            Self::Bool(_) => ScalarKind::Bool,
            Self::Number(_) => ScalarKind::Number,
            Self::Time(_) => ScalarKind::Time,
            Self::Text(_) => ScalarKind::Text,
            Self::Map => ScalarKind::Map,
        }
    }
}

impl Ord for Scalar {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Number(a), Self::Number(b)) => a.total_cmp(b),
            (Self::Time(a), Self::Time(b)) => a.cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            _ => self.kind().cmp(&other.kind()),
        }
    }
}

impl PartialOrd for Scalar {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Scalar {}

impl Span {
    /// A moment of known time.
    pub(super) fn instant(at: i64) -> Self {
        Self { start: at, end: at.saturating_add(1) }
    }

    /// An ISO 8601 month, date, or date and time; a time without an offset is in UTC.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let starts_with_year =
            text.len() >= 7 && text.as_bytes()[4] == b'-' && text.as_bytes()[..4].iter().all(u8::is_ascii_digit);
        if !starts_with_year || text.len() > 64 {
            return None;
        }
        if text.len() == 7 {
            let first: Date = format!("{text}-01").parse().ok()?;
            return Self::between(first.into(), first.checked_add(1.month()).ok()?.into());
        }
        if text.len() == 10 {
            let day: Date = text.parse().ok()?;
            return Self::between(day.into(), day.tomorrow().ok()?.into());
        }
        if !matches!(text.as_bytes().get(10), Some(b'T' | b' ')) {
            return None;
        }
        let start = match text.parse::<Timestamp>() {
            Ok(with_offset) => with_offset,
            Err(_) => TimeZone::UTC.to_timestamp(text.parse::<DateTime>().ok()?).ok()?,
        };
        let seconds = if text.len() == 16 { 60 } else { 1 };
        let start = nanoseconds(start)?;
        Some(Self { start, end: start.saturating_add(seconds * 1_000_000_000) })
    }

    fn between(start: DateTime, end: DateTime) -> Option<Self> {
        let at = |time: DateTime| nanoseconds(TimeZone::UTC.to_timestamp(time).ok()?);
        Some(Self { start: at(start)?, end: at(end)? })
    }

    /// The UTC date it starts on, as `2026-11-16`.
    pub(super) fn day(self) -> String {
        let start = Timestamp::from_nanosecond(i128::from(self.start)).unwrap_or(Timestamp::UNIX_EPOCH);
        start.strftime("%Y-%m-%d").to_string()
    }
}

/// The target of a text that is one wikilink, since people write a note's name with brackets and without; else the text.
pub(super) fn link_target(text: &str) -> &str {
    let inner = text.strip_prefix("[[").and_then(|text| text.strip_suffix("]]"));
    inner.and_then(wikilink_target).unwrap_or(text)
}

/// The start of a period: an ISO date or time, or a length of time before now such as `24h` or `7d`.
pub fn start_of_period(text: &str, now_ns: i64) -> Option<i64> {
    let text = text.trim();
    let moment = || Span::parse(text).map(|span| span.start);
    duration(text).map(|length| now_ns.saturating_sub(length)).or_else(moment)
}

/// `None` outside the years 1677 to 2262.
fn nanoseconds(time: Timestamp) -> Option<i64> {
    i64::try_from(time.as_nanosecond()).ok()
}

/// A length of time such as `30m`, `24h`, `7d`, `2w` or `1y`, in nanoseconds.
pub(super) fn duration(text: &str) -> Option<i64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (count, unit) = text.split_at(digits);
    let seconds = match unit {
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        "y" => 365 * 86_400,
        _ => return None,
    };
    count.parse::<i64>().ok()?.checked_mul(seconds)?.checked_mul(1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_have_the_precision_they_are_written_in() {
        const DAY: i64 = 86_400_000_000_000;
        for (text, start, length) in [
            ("1970-01-02", DAY, DAY),
            ("1970-02", 31 * DAY, 28 * DAY),
            ("1970-01-01T00:01", 60_000_000_000, 60_000_000_000),
            ("1970-01-01 00:00:01", 1_000_000_000, 1_000_000_000),
            ("1970-01-01T00:00:01Z", 1_000_000_000, 1_000_000_000),
            ("1970-01-01T01:00:01+01:00", 1_000_000_000, 1_000_000_000),
        ] {
            assert_eq!(Span::parse(text), Some(Span { start, end: start + length }), "{text}");
        }
        for text in [
            "1970",
            "1970-13-01",
            "1970-01-01x",
            "1970-01-01T25:00",
            "1970-1-1",
            "0001-01-01",
            "abcd-01-01",
            "日本語日本",
        ] {
            assert_eq!(Span::parse(text), None, "{text}");
        }
    }

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(duration("7d"), Some(604_800_000_000_000));
        assert_eq!(duration("2w"), duration("14d"));
        for text in ["", "d", "7", "7 d", "-7d", "7days", "9999999999999y"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }
}
