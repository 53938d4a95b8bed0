//! The idempotency key of a call.
//!
//! When the owner process dies, the process that forwarded a call to it does not know whether the call was applied. It
//! retries with the same key; the store then applies the call once and returns the same result.

use std::fmt;
use std::str::FromStr;

/// Identifies one call. Two calls with one key are one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestKey(pub u128);

impl RequestKey {
    /// How long the key of an applied call is recorded: far longer than a client waits for a response.
    pub const REMEMBERED_NS: i64 = 10 * 60 * 1_000_000_000;

    /// The maximum age of a call that is applied. The machine may be suspended between two attempts: after
    /// [`Self::REMEMBERED_NS`] the store cannot tell whether the first attempt succeeded. Half of it, so that the record of
    /// the first attempt outlasts the second.
    pub const MAX_AGE_NS: i64 = Self::REMEMBERED_NS / 2;

    /// The low bits are random; above them is the creation time in milliseconds.
    const RANDOM_BITS: u32 = 80;

    /// A key created at a time.
    pub fn new(now_ns: i64, random: u128) -> Self {
        let ms = u128::try_from(now_ns / 1_000_000).unwrap_or_default();
        Self((ms << Self::RANDOM_BITS) | (random & ((1 << Self::RANDOM_BITS) - 1)))
    }

    /// Whether the call is too old to be applied.
    pub fn is_expired(self, now_ns: i64) -> bool {
        let made_ms = i64::try_from(self.0 >> Self::RANDOM_BITS).unwrap_or(i64::MAX);
        now_ns.saturating_sub(made_ms.saturating_mul(1_000_000)) > Self::MAX_AGE_NS
    }
}

/// Thirty-two hexadecimal digits.
impl fmt::Display for RequestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The text is not a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a request's key is 32 hexadecimal digits")]
pub struct InvalidKey;

impl FromStr for RequestKey {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<Self, InvalidKey> {
        let is_hexadecimal = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        u128::from_str_radix(text, 16).ok().filter(|_| is_hexadecimal).map(Self).ok_or(InvalidKey)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_expires_before_its_record() {
        let made_ns = 1_800_000_000_000_000_000;
        let key = RequestKey::new(made_ns, u128::MAX);
        assert!(!key.is_expired(made_ns) && !key.is_expired(made_ns + RequestKey::MAX_AGE_NS));
        assert!(key.is_expired(made_ns + RequestKey::MAX_AGE_NS + 1_000_000));
        assert!(!key.is_expired(0), "a clock that was set back expires no key");
        assert_ne!(key, RequestKey::new(made_ns, 0));
    }

    #[test]
    fn a_key_reads_back_from_its_text() {
        for key in [RequestKey(0), RequestKey(7), RequestKey(u128::MAX)] {
            assert_eq!(key.to_string().parse(), Ok(key));
        }
        for text in ["", "7", "../../../../../../../../etc/pass", "+0000000000000000000000000000007"] {
            assert_eq!(text.parse::<RequestKey>(), Err(InvalidKey), "{text}");
        }
    }
}
