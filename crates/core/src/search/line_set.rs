//! Sets of line numbers: a bit set to compute with, and an encoding that takes less memory.
//!
//! Encoded lines are a list of differences (see [`super::varint`]) or, where more than one line in 32 has the word, a bit set.
//! A list is always shorter than the set: at least 32 lines lie between two entries on average, so nearly all of them take
//! one byte or two. So an entry of the set's length is a set.

use std::ops::Range;

use super::varint::{Varints, push_varint};

/// Lines of one index.
#[derive(Clone)]
pub(super) struct LineSet {
    bits: Vec<u32>,
}

impl LineSet {
    pub(super) fn new(lines: u32) -> Self {
        Self { bits: vec![0; (lines as usize).div_ceil(32)] }
    }

    /// Appends the encoding of rising line numbers of an index with so many lines.
    pub(super) fn encode(lines: &[u32], of: u32, bytes: &mut Vec<u8>) {
        if lines.len() >= (of as usize).div_ceil(32) {
            let mut set = Self::new(of);
            lines.iter().for_each(|line| set.insert(*line));
            return bytes.extend(set.to_bytes());
        }
        let mut before = 0;
        for line in lines {
            push_varint(bytes, u64::from(line - before));
            before = *line;
        }
    }

    /// The length of a set of so many lines in bytes.
    pub(super) fn bytes_of(lines: u32) -> usize {
        (lines as usize).div_ceil(32) * 4
    }

    pub(super) fn to_bytes(&self) -> impl Iterator<Item = u8> {
        self.bits.iter().flat_map(|bits| bits.to_le_bytes())
    }

    fn insert(&mut self, line: u32) {
        // Encoded lines may come from a damaged file.
        if let Some(bits) = self.bits.get_mut(line as usize / 32) {
            *bits |= 1 << (line % 32);
        }
    }

    /// Adds encoded lines.
    pub(super) fn add(&mut self, encoded: &[u8]) {
        if encoded.len() == self.bits.len() * 4 {
            let others = encoded.as_chunks::<4>().0;
            self.bits.iter_mut().zip(others).for_each(|(bits, others)| *bits |= u32::from_le_bytes(*others));
        } else {
            list(encoded).for_each(|line| self.insert(line));
        }
    }

    pub(super) fn keep_only(&mut self, others: &Self) {
        self.bits.iter_mut().zip(&others.bits).for_each(|(bits, others)| *bits &= others);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bits.iter().all(|bits| *bits == 0)
    }

    /// How many lines of the range are in it.
    pub(super) fn count(&self, lines: Range<u32>) -> usize {
        let (mut at, mut count) = (lines.start, 0);
        while at < lines.end {
            let width = (32 - at % 32).min(lines.end - at);
            let here = u64::from(self.bits[at as usize / 32] >> (at % 32)) & ((1 << width) - 1);
            count += here.count_ones();
            at += width;
        }
        count as usize
    }

    fn iter(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.bits).flat_map(|(place, bits)| {
            let mut rest = *bits;
            std::iter::from_fn(move || {
                let line = (rest != 0).then(|| place * 32 + rest.trailing_zeros())?;
                rest &= rest - 1;
                Some(line)
            })
        })
    }
}

/// Encoded lines of an index with so many lines, decoded.
pub(super) fn lines_in(encoded: &[u8], of: u32) -> Vec<u32> {
    if encoded.len() < LineSet::bytes_of(of) {
        return list(encoded).collect();
    }
    let mut set = LineSet::new(of);
    set.add(encoded);
    set.iter().collect()
}

/// The numbers of a list.
fn list(encoded: &[u8]) -> impl Iterator<Item = u32> {
    let (mut rest, mut line) = (Varints(encoded), 0_u32);
    std::iter::from_fn(move || {
        line = line.wrapping_add(rest.next()? as u32);
        Some(line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_decoded_as_encoded_whether_few_or_many() {
        for (step, of) in [(1, 1), (1, 100), (31, 1000), (32, 1000), (33, 1000), (200, 10_000), (9999, 10_000)] {
            let lines: Vec<u32> = (0..of).step_by(step).collect();
            let mut encoded = Vec::new();
            LineSet::encode(&lines, of, &mut encoded);
            assert_eq!(lines_in(&encoded, of), lines);
            let is_list = encoded.len() < LineSet::bytes_of(of);
            assert_eq!(is_list, lines.len() < of.div_ceil(32) as usize, "{step} of {of}");
        }
    }
}
