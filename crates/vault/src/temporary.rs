//! The names of temporary files, in a form that no other program's file has.

use std::process;

use quipu_core::ports::{Clock, SystemClock};

/// The names also start with a dot, so the vault's rules exclude them.
const SUFFIX: &str = ".quipu-tmp";
/// Nanoseconds since 1970 have this many digits until 2262.
const TIME_DIGITS: usize = 16;

/// A name for the `index`-th file of a write. Unique, since only one writer runs at a time; short, since a note's own name
/// may have the maximal length.
pub(crate) fn name(index: usize) -> String {
    format!(".{:016x}-{}-{index}{SUFFIX}", SystemClock.now_ns(), process::id())
}

/// Whether a name has the form of [`name`].
pub(crate) fn is_ours(name: &str) -> bool {
    let Some(stem) = name.strip_prefix('.').and_then(|name| name.strip_suffix(SUFFIX)) else { return false };
    let is_hex = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_number = |text: &str| (1..=10).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    match stem.split('-').collect::<Vec<_>>().as_slice() {
        [time, process, index] => time.len() == TIME_DIGITS && is_hex(time) && is_number(process) && is_number(index),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{is_ours, name};

    #[test]
    fn recognizes_only_its_own_names() {
        assert!(is_ours(&name(0)) && is_ours(&name(4321)));
        for other in [
            ".anything.quipu-tmp",
            ".quipu-tmp",
            ".18a-77-0.quipu-tmp",
            "18a0b1c2d3e4f506-77-0.quipu-tmp",
            ".18a0b1c2d3e4f506-77.quipu-tmp",
            ".18a0b1c2d3e4f506-77-.quipu-tmp",
            ".18A0B1C2D3E4F506-77-0.quipu-tmp",
            ".18a0b1c2d3e4f506-77-0-1.quipu-tmp",
            ".18a0b1c2d3e4f506-77-0.quipu-tmp~",
            "../.18a0b1c2d3e4f506-77-0.quipu-tmp",
            "a.md",
        ] {
            assert!(!is_ours(other), "{other}");
        }
    }
}
