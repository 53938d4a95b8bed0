//! Whether the other end of a pipe or a socket is closed, even with unread bytes in it; does not read.

use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// A pipe reports hang-up always, a socket only with this flag.
#[cfg(target_os = "linux")]
const HANG_UP: PollFlags = PollFlags::RDHUP;
#[cfg(not(target_os = "linux"))]
const HANG_UP: PollFlags = PollFlags::empty();

/// Waits until it is closed. A file has no other end.
pub(crate) fn wait(end: impl AsFd) -> rustix::io::Result<()> {
    loop {
        match poll(&mut [PollFd::new(&end, HANG_UP)], None) {
            Err(Errno::INTR) => {}
            outcome => return outcome.map(drop),
        }
    }
}

/// Whether it is closed now. If that cannot be checked, writing to it will show.
pub(crate) fn is_over(end: impl AsFd) -> bool {
    poll(&mut [PollFd::new(&end, HANG_UP)], Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn closed_connection_is_detected_behind_unread_bytes() {
        let (mut near, far) = UnixStream::pair().unwrap();
        near.write_all(b"unread").unwrap();
        assert!(!is_over(&far));
        drop(near);
        assert!(is_over(&far));
        wait(&far).unwrap();
        let (far, mut near) = std::io::pipe().unwrap();
        near.write_all(b"unread").unwrap();
        assert!(!is_over(&far));
        drop(near);
        assert!(is_over(&far));
    }
}
