//! The mark of one call, by which a store knows it again.
//!
//! A process that passes calls on to another does not learn, when that one dies, whether its last call was carried out.
//! It asks again with the same key: what was done is then not done twice, and the answer is the same.

use std::fmt;
use std::str::FromStr;

/// Names one call for good. Two calls with one key are one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestKey(pub u128);

impl RequestKey {
    /// How long a call that was carried out is remembered: far longer than anybody waits for its answer.
    pub const REMEMBERED_NS: i64 = 10 * 60 * 1_000_000_000;
}

/// Thirty-two hexadecimal digits.
impl fmt::Display for RequestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The text is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a request's key is 32 hexadecimal digits")]
pub struct NoKey;

impl FromStr for RequestKey {
    type Err = NoKey;

    fn from_str(text: &str) -> Result<Self, NoKey> {
        let is_hexadecimal = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        u128::from_str_radix(text, 16).ok().filter(|_| is_hexadecimal).map(Self).ok_or(NoKey)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_survives_being_written_down() {
        for key in [RequestKey(0), RequestKey(7), RequestKey(u128::MAX)] {
            assert_eq!(key.to_string().parse(), Ok(key));
        }
        for text in ["", "7", "../../../../../../../../etc/pass", "+0000000000000000000000000000007"] {
            assert_eq!(text.parse::<RequestKey>(), Err(NoKey), "{text}");
        }
    }
}
