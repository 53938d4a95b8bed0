//! Numbers in as few bytes as they need: seven bits in each, the lowest first, the highest bit set in all but the last.

pub(super) fn push_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Bytes that are read from the front; every read fails at their end.
pub(super) struct Varints<'b>(pub(super) &'b [u8]);

impl<'b> Varints<'b> {
    pub(super) fn next(&mut self) -> Option<u64> {
        let (mut number, mut shift) = (0_u64, 0);
        loop {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if *byte < 0x80 {
                return Some(number);
            }
            shift += 7;
        }
    }

    /// A number of bytes or of things that take at least a byte each.
    pub(super) fn next_length(&mut self) -> Option<usize> {
        usize::try_from(self.next()?).ok()
    }

    pub(super) fn take(&mut self, length: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_written_and_cut_ones_are_refused() {
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX];
        let mut bytes = Vec::new();
        numbers.iter().for_each(|number| push_varint(&mut bytes, *number));
        let mut read = Varints(&bytes);
        numbers.iter().for_each(|number| assert_eq!(read.next(), Some(*number)));
        assert_eq!(read.next(), None);
        assert_eq!(Varints(&[0xff; 11]).next(), None);
    }
}
