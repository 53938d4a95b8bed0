//! Loose hashes of names: names that may mean the same note have the same hash. Case, Unicode form, spaces and dashes are
//! ignored. Lookups compare the names themselves afterwards.

use super::fold;

/// The loose hash of the last part of a link's target.
pub(crate) fn hash_of_target(target: &str) -> u64 {
    hash_of_folded(&fold(target))
}

/// Like [`hash_of_target`], for a folded target.
pub(crate) fn hash_of_folded(target: &str) -> u64 {
    loose_hash(without_extension(target).trim_end_matches('/').rsplit('/').next().unwrap_or_default())
}

/// A target without the extension of a note, which links may omit.
pub(crate) fn without_extension(folded: &str) -> &str {
    folded
        .strip_suffix(".md")
        .or_else(|| folded.strip_suffix(".markdown"))
        .filter(|rest| !rest.is_empty())
        .unwrap_or(folded)
}

/// FNV-1a with dashes as spaces. A collision only adds a candidate, which the comparison of names rejects.
pub(crate) fn loose_hash(folded: &str) -> u64 {
    folded.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(if byte == b'-' { b' ' } else { byte })).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
