//! A bit set of line numbers.

use std::ops::Range;

/// Lines of one index.
#[derive(Clone)]
pub(super) struct LineSet {
    pub(super) bits: Vec<u32>,
}

impl LineSet {
    pub(super) fn new(lines: u32) -> Self {
        Self { bits: vec![0; (lines as usize).div_ceil(32)] }
    }

    /// Adds the lines of a word: a list or, where that would be as long, a bit set.
    pub(super) fn add(&mut self, lines: &[u32]) {
        if lines.len() < self.bits.len() {
            lines.iter().for_each(|line| self.bits[*line as usize / 32] |= 1 << (line % 32));
        } else {
            self.bits.iter_mut().zip(lines).for_each(|(bits, others)| *bits |= others);
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

    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
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
