//! Refuses requests that two readers may divide differently, before the HTTP library sees them: header lines that end with a
//! bare LF, and more than one header that says how long the body is.
//!
//! The library accepts LF as CRLF, as RFC 9112 allows. A proxy in front may treat the same LF as part of a header's value and
//! forward it; the two then disagree on where a request ends, and one client's request can be hidden in another's (request
//! smuggling). So a bare LF in the headers is replaced by NUL, which the library answers with 400. The same is done with the
//! colon of a second `Content-Length` or `Transfer-Encoding`: the library would drop one of them and continue.
//!
//! To know which bytes are headers, this stream passes on one request at a time: its headers, then as many bytes as the
//! library says its body has. After a chunked body the connection is closed, so nothing after it is read.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::http::{HeaderMap, header};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::half_close::InputEnd;

/// A connection on which every header line ends with CRLF.
pub(super) struct StrictLineEnds<S> {
    inner: S,
    expected: Expected,
    /// Whether this request already has a header with the length of its body.
    has_length: bool,
    body: Body,
    /// Read, and not passed on yet.
    rest: Vec<u8>,
    end: InputEnd,
}

/// Tells the stream the body length of the request whose headers it passed on last.
#[derive(Clone, Default)]
pub(super) struct Body(Arc<Mutex<Option<BodyLength>>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyLength {
    Bytes(u64),
    /// Chunked: the connection must be closed after the response.
    Chunked,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Headers(HeaderLine),
    /// The end of the headers was passed on.
    BodyLength,
    Body(u64),
    /// Everything that follows.
    Anything,
}

/// The state of the current header line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct HeaderLine {
    is_empty: bool,
    ends_with_cr: bool,
    /// Whether a non-empty line came before: an empty line then ends the headers.
    is_behind_another: bool,
    name: Name,
}

impl HeaderLine {
    const FIRST: Self =
        Self { is_empty: true, ends_with_cr: false, is_behind_another: false, name: Name::Begins([true; 2], 0) };
}

/// The headers that give the length of a body.
const LENGTHS: [&[u8]; 2] = [b"content-length", b"transfer-encoding"];

/// The state of a header name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Name {
    /// Which of [`LENGTHS`] it may still be, and how many bytes of it were read.
    Begins([bool; 2], usize),
    /// After its colon, or another header.
    #[default]
    Over,
}

impl Name {
    /// The name with one more byte, and whether that byte is the colon behind one of [`LENGTHS`].
    fn with(self, byte: u8) -> (Self, bool) {
        let Self::Begins(may_be, came) = self else { return (Self::Over, false) };
        if byte == b':' {
            return (Self::Over, (0..2).any(|which| may_be[which] && LENGTHS[which].len() == came));
        }
        let goes_on = |which: usize| may_be[which] && LENGTHS[which].get(came) == Some(&byte.to_ascii_lowercase());
        let may_be = [goes_on(0), goes_on(1)];
        (if may_be == [false; 2] { Self::Over } else { Self::Begins(may_be, came + 1) }, false)
    }
}

impl Body {
    /// To be called once for each request.
    pub(super) fn announce(&self, headers: &HeaderMap) -> BodyLength {
        let length = || headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok();
        let length = match headers.contains_key(header::TRANSFER_ENCODING) {
            true => BodyLength::Chunked,
            false => BodyLength::Bytes(length().unwrap_or(0)),
        };
        *self.0.lock() = Some(length);
        length
    }

    fn is_expected(&self) -> bool {
        matches!(*self.0.lock(), Some(BodyLength::Bytes(1..)))
    }

    fn take(&self) -> Option<BodyLength> {
        self.0.lock().take()
    }
}

impl<S> StrictLineEnds<S> {
    pub(super) fn new(inner: S, body: Body, end: InputEnd) -> Self {
        let expected = Expected::Headers(HeaderLine::FIRST);
        Self { inner, expected, has_length: false, body, rest: Vec::new(), end }
    }

    /// Whether part of the request's body is still to come. Unknown where it is chunked.
    fn expects_body(&self) -> bool {
        matches!(self.expected, Expected::Body(_)) || self.expected == Expected::BodyLength && self.body.is_expected()
    }

    /// How many of these bytes may be passed on now. Replaces a bare LF in headers.
    fn pass(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.expected == Expected::BodyLength {
            self.expected = match self.body.take() {
                Some(BodyLength::Bytes(0)) => Expected::Headers(HeaderLine::FIRST),
                Some(BodyLength::Bytes(length)) => Expected::Body(length),
                Some(BodyLength::Chunked) => Expected::Anything,
                None => return Err(io::Error::other("invalid request headers")),
            };
        }
        match self.expected {
            Expected::Headers(line) => Ok(self.pass_headers(line, bytes)),
            Expected::Body(left) => {
                let passed = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                let left = left - passed as u64;
                self.expected = if left == 0 { Expected::Headers(HeaderLine::FIRST) } else { Expected::Body(left) };
                Ok(passed)
            }
            Expected::BodyLength | Expected::Anything => Ok(bytes.len()),
        }
    }

    fn pass_headers(&mut self, mut line: HeaderLine, bytes: &mut [u8]) -> usize {
        for (place, byte) in bytes.iter_mut().enumerate() {
            let (name, is_length) = line.name.with(*byte);
            line.name = name;
            if is_length && self.has_length || *byte == b'\n' && !line.ends_with_cr {
                *byte = 0;
                // The library rejects the request and closes.
                self.expected = Expected::Anything;
                return place + 1;
            }
            self.has_length |= is_length;
            match *byte {
                b'\n' if line.is_empty && line.is_behind_another => {
                    self.expected = Expected::BodyLength;
                    self.has_length = false;
                    return place + 1;
                }
                b'\n' => line = HeaderLine { is_behind_another: !line.is_empty, ..HeaderLine::FIRST },
                b'\r' => {
                    line = HeaderLine { is_empty: line.is_empty && !line.ends_with_cr, ends_with_cr: true, ..line }
                }
                _ => line = HeaderLine { is_empty: false, ends_with_cr: false, ..line },
            }
        }
        self.expected = Expected::Headers(line);
        bytes.len()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StrictLineEnds<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let is_kept = !self.rest.is_empty();
        if is_kept {
            let length = self.rest.len().min(buffer.remaining());
            buffer.put_slice(&self.rest[..length]);
        } else {
            ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        }
        let new = &mut buffer.filled_mut()[before..];
        if new.is_empty() {
            let is_complete = !self.expects_body();
            return self.end.poll_report(is_complete, context).map(Ok);
        }
        let passed = self.pass(new)?;
        if is_kept {
            self.rest.drain(..passed);
        } else {
            self.rest = new[passed..].to_vec();
        }
        buffer.set_filled(before + passed);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StrictLineEnds<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    /// What is handed over of some bytes, read by read; each request says how long its body is.
    async fn handed_over(bytes: &[u8], lengths: &[u64]) -> Vec<String> {
        let body = Body::default();
        let mut stream = StrictLineEnds::new(bytes, body.clone(), InputEnd::new(|| false));
        let mut lengths = lengths.iter();
        let mut reads = Vec::new();
        loop {
            let mut buffer = [0; 300];
            let length = stream.read(&mut buffer).await.unwrap();
            if length == 0 {
                return reads;
            }
            reads.push(String::from_utf8(buffer[..length].to_vec()).unwrap());
            if stream.expected == Expected::BodyLength {
                let mut headers = HeaderMap::new();
                headers.insert(header::CONTENT_LENGTH, (*lengths.next().unwrap()).into());
                body.announce(&headers);
            }
        }
    }

    #[tokio::test]
    async fn requests_are_passed_on_one_at_a_time() {
        let bytes = b"\r\nPOST / HTTP/1.1\r\nA: b\r\n\r\nx\ny\nGET / HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\n";
        let reads = handed_over(bytes, &[4, 0, 0]).await;
        assert_eq!(
            reads,
            ["\r\nPOST / HTTP/1.1\r\nA: b\r\n\r\n", "x\ny\n", "GET / HTTP/1.1\r\n\r\n", "GET /2 HTTP/1.1\r\n\r\n"]
        );
    }

    #[tokio::test]
    async fn a_bare_line_feed_among_headers_is_replaced() {
        for bytes in
            ["GET / HTTP/1.1\nA: b\r\n\r\n", "GET / HTTP/1.1\r\nA: b\n\r\n", "GET / HTTP/1.1\r\nA: b\r\n\n", "\nGET"]
        {
            let read = handed_over(bytes.as_bytes(), &[]).await.remove(0);
            assert!(read.ends_with('\0'), "{bytes:?}: {read:?}");
        }
    }

    #[tokio::test]
    async fn a_second_header_that_gives_the_length_is_replaced() {
        for (first, second) in [
            ("Content-Length: 1", "Transfer-Encoding: chunked"),
            ("transfer-ENCODING:chunked", "content-LENGTH:1"),
            ("Content-Length: 1", "Content-Length: 1"),
            ("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
        ] {
            let bytes = format!("POST / HTTP/1.1\r\n{first}\r\nA: b\r\n{second}\r\n\r\nx");
            let read = handed_over(bytes.as_bytes(), &[]).await.remove(0);
            let name = second.split(':').next().unwrap();
            assert!(read.ends_with(&format!("{name}\0")), "{bytes:?}: {read:?}");
        }
        let others =
            "POST / HTTP/1.1\r\nContent-Length: 1\r\nX-Content-Length: 1\r\nContent-Lengths: Content-Length: 2\r\n\r\n";
        let next = "GET / HTTP/1.1\r\nContent-Length: 0\r\n\r\n";
        let reads = handed_over(format!("{others}x{next}").as_bytes(), &[1, 0]).await;
        assert_eq!(reads, [others, "x", next], "each request has a length of its own");
    }

    #[tokio::test]
    async fn bare_carriage_return_does_not_end_a_line() {
        let read = handed_over(b"GET / HTTP/1.1\r\nA: b\r\n\r\r\n\r\n", &[0]).await;
        assert_eq!(read, ["GET / HTTP/1.1\r\nA: b\r\n\r\r\n\r\n"]);
    }
}
