//! The object ids that git may give to a file on disk, computed without git: it would run the filters of the file, and a filter is
//! a program that the repository names or configures.

use std::fs::File;
use std::io::{self, Read};
use std::time::Instant;

use sha1_smol::Sha1;
use sha2::{Digest, Sha256};

use crate::sources::MAX_BYTES;

const PIECE: usize = 64 << 10;
/// Line ends of longer files are not converted: such a file is hardly text.
const MAX_TEXT: u64 = 16 << 20;

/// The algorithm of a repository's object ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IdKind {
    Sha1,
    Sha256,
}

impl IdKind {
    /// The algorithm that gave an id.
    pub(super) fn of(id: &str) -> Self {
        if id.len() == 64 { Self::Sha256 } else { Self::Sha1 }
    }

    fn id(self, bytes: &[u8]) -> String {
        let mut blob = Blob::new(self, bytes.len() as u64);
        blob.update(bytes);
        blob.id()
    }
}

/// The object id of a content whose length is known.
enum Blob {
    Sha1(Sha1),
    Sha256(Sha256),
}

impl Blob {
    fn new(kind: IdKind, bytes: u64) -> Self {
        let mut blob = match kind {
            IdKind::Sha1 => Self::Sha1(Sha1::new()),
            IdKind::Sha256 => Self::Sha256(Sha256::new()),
        };
        blob.update(format!("blob {bytes}\0").as_bytes());
        blob
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha1(hasher) => hasher.update(bytes),
            Self::Sha256(hasher) => hasher.update(bytes),
        }
    }

    fn id(self) -> String {
        match self {
            Self::Sha1(hasher) => hasher.digest().to_string(),
            Self::Sha256(hasher) => format!("{:x}", hasher.finalize()),
        }
    }
}

/// The ids of a file's bytes, of the pointer that Git LFS stores for it, and of its text with LF line ends. Fails after the
/// deadline, and for a file that is too large.
pub(super) fn ids_of(file: &mut File, kind: IdKind, deadline: Instant) -> io::Result<Vec<String>> {
    let bytes = file.metadata()?.len();
    if bytes > MAX_BYTES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let (mut blob, mut content, mut text) = (Blob::new(kind, bytes), Sha256::new(), Vec::new());
    let (mut piece, mut read) = (vec![0; PIECE], 0);
    loop {
        if Instant::now() >= deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let length = file.read(&mut piece)?;
        let piece = &piece[..length];
        read += length as u64;
        if read > bytes || (length == 0 && read < bytes) {
            return Err(io::Error::other("the file changed while it was read"));
        }
        if length == 0 {
            break;
        }
        blob.update(piece);
        content.update(piece);
        if bytes <= MAX_TEXT {
            text.extend_from_slice(piece);
        }
    }
    let pointer =
        format!("version https://git-lfs.github.com/spec/v1\noid sha256:{:x}\nsize {bytes}\n", content.finalize());
    let mut ids = vec![blob.id(), kind.id(pointer.as_bytes())];
    if text.windows(2).any(|pair| pair == b"\r\n") {
        ids.push(kind.id(&with_lf(&text)));
    }
    Ok(ids)
}

fn with_lf(text: &[u8]) -> Vec<u8> {
    let mut bytes = text.iter().copied().peekable();
    let mut kept = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'\r' || bytes.peek() != Some(&b'\n') {
            kept.push(byte);
        }
    }
    kept
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests play the user, who edits files directly")]
mod tests {
    use std::time::Duration;

    use super::*;

    /// From `git hash-object --stdin`, also of a repository with `--object-format=sha256`.
    #[test]
    fn ids_are_those_of_git() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        let ids = |text: &str, kind: IdKind| {
            std::fs::write(&file, text).unwrap();
            ids_of(&mut File::open(&file).unwrap(), kind, Instant::now() + Duration::from_secs(60)).unwrap()
        };
        let (lf, pointer) = ("78981922613b2afb6025042ff6bd878ac1994e85", "06388162f42cc058b9a5b34c6214b4bd73402aea");
        assert_eq!(ids("a\n", IdKind::Sha1), [lf, pointer]);
        assert_eq!(ids("a\r\n", IdKind::Sha1)[2], lf);
        assert_eq!(ids("a\rb\r", IdKind::Sha1).len(), 2, "a single CR is no line end");
        assert_eq!(ids("a\n", IdKind::Sha256)[0], "f8625e43f9e04f24291f77cdbe4c71b3c2a3b0003f60419b3ed06a058d766c8b");
        let late = ids_of(&mut File::open(&file).unwrap(), IdKind::Sha1, Instant::now());
        assert_eq!(late.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
