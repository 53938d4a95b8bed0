//! The id of a request that cannot be parsed (half a surrogate pair, endless nesting, broken UTF-8), so that its client gets an
//! error: scans the bytes of the outermost object only.

use rmcp::model::RequestId;

/// The value of `id` in the outermost object, if it can be found.
pub(super) fn find(line: &[u8]) -> Option<RequestId> {
    let mut rest = line.trim_ascii_start().strip_prefix(b"{")?;
    loop {
        rest = rest.trim_ascii_start();
        let (key, behind) = rest.split_at(string_length(rest)?);
        let behind = behind.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
        let (value, behind) = behind.split_at(value_length(behind)?);
        if key == b"\"id\"" {
            return serde_json::from_slice(value).ok();
        }
        rest = behind.strip_prefix(b",")?;
    }
}

/// Length of the string at the start, quotes included.
fn string_length(text: &[u8]) -> Option<usize> {
    if text.first() != Some(&b'"') {
        return None;
    }
    let mut at = 1;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// Length of the value at the start, up to the comma or brace that ends it. Counts nesting without recursion.
fn value_length(text: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (0_usize, 0_usize);
    loop {
        match text.get(at)? {
            b'"' => {
                at += string_length(&text[at..])?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' | b',' if depth == 0 => return Some(at),
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Option<String> {
        find(line.as_bytes()).map(|id| id.to_string())
    }

    #[test]
    fn top_level_id_is_found_at_any_position() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for line in [
            r#"{"id":7,"params":{"x":"\ud83d"}}"#.to_owned(),
            r#" { "params" : {"id":1,"x":"\"}\ud83d"} , "id" : 7 }"#.to_owned(),
            format!(r#"{{"params":{deep},"id":7}}"#),
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/ca"#.to_owned(),
        ] {
            assert_eq!(found(&line).as_deref(), Some("7"), "{line:.80}");
        }
        assert_eq!(found(r#"{"id":"\"a","x":"\ud83d"}"#).as_deref(), Some("\"a"));
        assert_eq!(find(b"{\"x\":\"\xc3\",\"id\":7}").map(|id| id.to_string()).as_deref(), Some("7"));
    }

    #[test]
    fn lines_without_a_valid_top_level_id_have_none() {
        for line in [
            "",
            "{",
            "hello",
            r#"[{"id":7}]"#,
            r#"{"params":{"id":7},"x":"\ud83d"}"#,
            r#"{"id":null}"#,
            r#"{"id":{"id":7}}"#,
            r#"{"id":1.5}"#,
            r#"{"id":7"#,
            r#"{"x":"\"#,
            r#"{"x":"id":7}"#,
        ] {
            assert_eq!(found(line), None, "{line}");
        }
    }
}
