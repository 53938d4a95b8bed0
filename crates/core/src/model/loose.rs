//! The loose form of names: a hash under which everything falls that may mean the same note, and a little more.
//!
//! Case, Unicode form, spaces and dashes do not count. Whoever looks up by it compares real names afterwards.

use super::fold;

/// The hash of a link's target: that of its last part.
pub(crate) fn hash_of_target(target: &str) -> u64 {
    hash_of_folded(&fold(target))
}

/// The same, of a target that is folded.
pub(crate) fn hash_of_folded(target: &str) -> u64 {
    loose_hash(without_extension(target).trim_end_matches('/').rsplit('/').next().unwrap_or_default())
}

/// A target may leave the extension out; the two extensions of notes are one.
pub(crate) fn without_extension(folded: &str) -> &str {
    folded
        .strip_suffix(".md")
        .or_else(|| folded.strip_suffix(".markdown"))
        .filter(|rest| !rest.is_empty())
        .unwrap_or(folded)
}

/// FNV-1a with dashes as spaces. A collision only adds a candidate that the rules then refuse.
pub(crate) fn loose_hash(folded: &str) -> u64 {
    folded.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(if byte == b'-' { b' ' } else { byte })).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
