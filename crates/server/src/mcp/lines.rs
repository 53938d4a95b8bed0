//! Bytes to lines, with a limit. Cancelling a read loses nothing: the bytes read so far are kept here.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Maximum bytes of a line. Ten megabytes of arguments are fine; an endless line is not.
pub(super) const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;

/// Bytes that are returned of a longer line.
const BEGINNING: usize = 64 * 1024;

/// Capacity above this is released after a long line.
const KEPT_CAPACITY: usize = 1024 * 1024;

/// Splits a stream at newlines.
pub(super) struct LineReader<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    /// Inside a line that was too long: bytes up to its end are discarded.
    skipping: bool,
    /// Whether `line` was returned to the caller.
    taken: bool,
}

/// The next item of the stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InputLine<'a> {
    /// A line without its newline; the last line of the stream may have none.
    Text(&'a [u8]),
    /// The beginning of a line longer than [`MAX_LINE_BYTES`]; the rest is discarded.
    TooLong(&'a [u8]),
    /// The end of the stream.
    End,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input: BufReader::with_capacity(64 * 1024, input), line: Vec::new(), skipping: false, taken: false }
    }

    /// The next line. Safe to cancel: a later call continues where this one stopped.
    pub(super) async fn next(&mut self) -> io::Result<InputLine<'_>> {
        if std::mem::take(&mut self.taken) {
            self.line.clear();
            self.line.shrink_to(KEPT_CAPACITY);
        }
        loop {
            let available = self.input.fill_buf().await?;
            if available.is_empty() {
                if self.line.is_empty() {
                    return Ok(InputLine::End);
                }
                break;
            }
            let newline = memchr::memchr(b'\n', available);
            let piece = &available[..newline.unwrap_or(available.len())];
            let fits = self.line.len() + piece.len() <= MAX_LINE_BYTES;
            if !self.skipping && fits {
                self.line.extend_from_slice(piece);
            }
            let consumed = piece.len() + usize::from(newline.is_some());
            self.input.consume(consumed);
            match (self.skipping, fits, newline.is_some()) {
                (true, _, ended) => self.skipping = !ended,
                (false, false, ended) => {
                    self.skipping = !ended;
                    self.taken = true;
                    return Ok(InputLine::TooLong(&self.line[..self.line.len().min(BEGINNING)]));
                }
                (false, true, true) => break,
                (false, true, false) => {}
            }
        }
        self.taken = true;
        Ok(InputLine::Text(self.line.strip_suffix(b"\r").unwrap_or(&self.line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(input: &[u8]) -> Vec<String> {
        let mut reader = LineReader::new(input);
        let mut lines = Vec::new();
        loop {
            match reader.next().await.unwrap() {
                InputLine::Text(text) => lines.push(String::from_utf8_lossy(text).into_owned()),
                InputLine::TooLong(beginning) => {
                    assert!(beginning.len() == BEGINNING && beginning[0] == b'x');
                    lines.push("<too long>".to_owned());
                }
                InputLine::End => return lines,
            }
        }
    }

    #[tokio::test]
    async fn a_stream_is_split_at_newlines() {
        assert_eq!(lines(b"one\ntwo\r\n\nlast").await, ["one", "two", "", "last"]);
        assert!(lines(b"").await.is_empty());
    }

    #[tokio::test]
    async fn a_line_over_the_limit_is_reported_once_and_the_next_one_is_whole() {
        let mut input = vec![b'x'; MAX_LINE_BYTES * 2];
        input.extend_from_slice(b"\nnext\n");
        assert_eq!(lines(&input).await, ["<too long>", "next"]);
    }

    #[tokio::test]
    async fn line_of_exactly_the_limit_is_accepted() {
        let mut input = vec![b'x'; MAX_LINE_BYTES];
        input.push(b'\n');
        assert_eq!(lines(&input).await[0].len(), MAX_LINE_BYTES);
    }
}
