//! YAML scalars: resolves plain ones by the core schema of YAML 1.2, and writes texts so that they read back unchanged.
//! Reading has no `yes` and no dates; writing quotes them nevertheless, for YAML 1.1 parsers.

use crate::model::Value;

/// The value of an unquoted, untagged scalar.
pub(super) fn resolve_plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    resolve_number(text).unwrap_or_else(|| Value::Text(text.to_owned()))
}

/// The number of a plain scalar. Infinities and NaN stay text, since JSON has none; so do integers that would lose digits.
fn resolve_number(text: &str) -> Option<Value> {
    let digits_of = |prefix| text.strip_prefix(prefix).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
    if let Some(digits) = digits_of("0x") {
        return i64::from_str_radix(digits, 16).ok().map(Value::Int);
    }
    if let Some(digits) = digits_of("0o") {
        return i64::from_str_radix(digits, 8).ok().map(Value::Int);
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    if unsigned.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().ok().map(Value::Int);
    }
    let float_bytes = unsigned.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'-' | b'+'));
    let number = text.parse::<f64>().ok().filter(|number| float_bytes && number.is_finite())?;
    Some(Value::Float(number))
}

/// The quoting of a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuoteStyle {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    /// Literal (`|`) or folded (`>`).
    Block,
}

/// Writes a text as one line that reads back unchanged, in the preferred style if possible.
pub(super) fn write(text: &str, preferred: QuoteStyle, in_flow: bool) -> String {
    match preferred {
        QuoteStyle::Plain | QuoteStyle::Block if is_plain_safe(text, in_flow) => text.to_owned(),
        QuoteStyle::SingleQuoted if !text.chars().any(needs_escape) => format!("'{}'", text.replace('\'', "''")),
        _ => write_double_quoted(text),
    }
}

/// Writes a value on one line: collections in brackets, texts in quotation marks where they need them.
pub(super) fn write_flow(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Text(text) => write(text, QuoteStyle::Plain, true),
        Value::List(items) => format!("[{}]", items.iter().map(write_flow).collect::<Vec<_>>().join(", ")),
        Value::Map(entries) => {
            let entry = |(key, value): &(String, Value)| {
                format!("{}: {}", write(key, QuoteStyle::Plain, true), write_flow(value))
            };
            format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        Value::Float(number) => format!("{number:?}"),
        Value::Bool(_) | Value::Int(_) => value.to_plain_text().unwrap_or_default(),
    }
}

/// Whether a text is a date, with or without a time. It is written without quotation marks, since other programs treat it
/// as a date only then.
pub(super) fn is_date(text: &str) -> bool {
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let Some(time) = shape.strip_prefix("0000-00-00") else { return false };
    matches!(time, "" | "T00:00" | "T00:00:00" | "T00:00:00Z" | " 00:00" | " 00:00:00")
}

fn write_double_quoted(text: &str) -> String {
    let mut written = String::with_capacity(text.len() + 2);
    written.push('"');
    for c in text.chars() {
        match c {
            '"' => written.push_str("\\\""),
            '\\' => written.push_str("\\\\"),
            '\n' => written.push_str("\\n"),
            '\t' => written.push_str("\\t"),
            c if needs_escape(c) => written.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => written.push(c),
        }
    }
    written.push('"');
    written
}

/// Characters that YAML does not allow unescaped, or reads as a line break. All of them are in the basic plane.
fn needs_escape(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{FEFF}' | '\u{FFFE}' | '\u{FFFF}')
}

/// Whether a text without quotes reads back unchanged in YAML 1.2 and 1.1.
pub(super) fn is_plain_safe(text: &str, in_flow: bool) -> bool {
    const INDICATORS: &str = "-?:,[]{}#&*!|>'\"%@`=<.~";
    let edge_space = text.trim() != text;
    let structure = text.contains(": ") || text.contains(" #") || text.ends_with(':');
    let flow_structure = in_flow && text.contains([',', '[', ']', '{', '}', ':']);
    let looks_like_a_number = text.starts_with(|c: char| c.is_ascii_digit() || c == '+')
        && text.bytes().all(|b| b.is_ascii_hexdigit() || b"_-+.:TtZzox ".contains(&b));
    let old_word = ["y", "n", "yes", "no", "on", "off"].iter().any(|word| word.eq_ignore_ascii_case(text));
    !(text.is_empty()
        || text.starts_with(|c| INDICATORS.contains(c))
        || edge_space
        || structure
        || flow_structure
        || looks_like_a_number
        || old_word
        || text.chars().any(needs_escape)
        || resolve_plain(text).as_text().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_follow_the_core_schema() {
        for (text, value) in [
            ("", Value::Null),
            ("~", Value::Null),
            ("True", Value::Bool(true)),
            ("-17", Value::Int(-17)),
            ("+17", Value::Int(17)),
            ("0x1F", Value::Int(31)),
            ("0o17", Value::Int(15)),
            ("017", Value::Int(17)),
            ("-9223372036854775808", Value::Int(i64::MIN)),
            ("1.5e3", Value::Float(1500.0)),
            (".5", Value::Float(0.5)),
            ("7.", Value::Float(7.0)),
        ] {
            assert_eq!(resolve_plain(text), value, "{text:?}");
        }
        for text in [
            "y",
            "yes",
            "on",
            "2024-01-01",
            "9223372036854775808",
            "99999999999999999999",
            "1_000",
            ".inf",
            ".nan",
            "0x-5",
            "+-5",
            "1:30",
            "nul",
            ".",
            "-",
            "e5",
            "0x",
        ] {
            assert_eq!(resolve_plain(text), Value::Text(text.into()), "{text:?}");
        }
    }

    #[test]
    fn ambiguous_texts_are_quoted() {
        for (text, written) in [
            ("Plain words, and more", "Plain words, and more"),
            ("C#", "C#"),
            ("日本語", "日本語"),
            ("a:b", "a:b"),
            ("", "\"\""),
            ("2024", "\"2024\""),
            ("2024-01-01", "\"2024-01-01\""),
            ("true", "\"true\""),
            ("Yes", "\"Yes\""),
            ("~", "\"~\""),
            ("a: b", "\"a: b\""),
            ("a #b", "\"a #b\""),
            ("- a", "\"- a\""),
            (" a", "\" a\""),
            ("say \"hi\"", "say \"hi\""),
            ("\"hi\"", "\"\\\"hi\\\"\""),
            ("a\nb", "\"a\\nb\""),
            ("a\u{7}", "\"a\\u0007\""),
        ] {
            assert_eq!(write(text, QuoteStyle::Plain, false), written, "{text:?}");
        }
        assert_eq!(write("a, b", QuoteStyle::Plain, true), "\"a, b\"");
        assert_eq!(write("it's", QuoteStyle::SingleQuoted, false), "'it''s'");
        assert_eq!(write("a\tb", QuoteStyle::SingleQuoted, false), "\"a\\tb\"");
    }
}
