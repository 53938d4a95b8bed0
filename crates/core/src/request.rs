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
        now_ns.saturating_sub(self.made_ns()) > Self::MAX_AGE_NS
    }

    /// Whether the key is from a time so far ahead that its record may be deleted before the key expires.
    pub fn is_ahead(self, now_ns: i64) -> bool {
        self.made_ns().saturating_sub(now_ns) > Self::MAX_AGE_NS
    }

    fn made_ns(self) -> i64 {
        i64::try_from(self.0 >> Self::RANDOM_BITS).unwrap_or(i64::MAX).saturating_mul(1_000_000)
    }

    /// Whether it is a UUID of version 7, the one that starts with a time.
    pub fn is_uuid_v7(self) -> bool {
        self.0 >> 76 & 0xF == 7 && self.0 >> 62 & 0b11 == 0b10
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
        let latest_ns = made_ns - RequestKey::MAX_AGE_NS;
        assert!(!key.is_ahead(made_ns) && !key.is_ahead(latest_ns) && key.is_ahead(latest_ns - 1_000_000));
        assert!(RequestKey(u128::MAX).is_ahead(made_ns), "a key without a time is not remembered for ever");
        assert_ne!(key, RequestKey::new(made_ns, 0));
    }

    #[test]
    fn only_version_7_starts_with_a_time() {
        let is_v7 = |text: &str| text.parse::<RequestKey>().unwrap().is_uuid_v7();
        assert!(is_v7("0198c6a1d2f07abc8def0123456789ab"));
        assert!(!is_v7("9b2f5c1ed2f04abc8def0123456789ab"), "version 4");
        assert!(!is_v7("0198c6a1d2f07abccdef0123456789ab"), "another variant");
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
