//! Connections that have not sent their first message yet. A process sends it at once, so there are few. At the limit the
//! oldest is closed, so that there is always room for the next.

use std::collections::VecDeque;
use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use parking_lot::{Mutex, MutexGuard};

/// Far above what connects at the same moment.
const MAX_PENDING: usize = 64;

#[derive(Default)]
pub(super) struct PendingHandshakes(Mutex<HandshakeQueue>);

#[derive(Default)]
struct HandshakeQueue {
    last_number: u64,
    /// Oldest first.
    pending: VecDeque<(u64, UnixStream)>,
}

impl PendingHandshakes {
    /// Adds a connection, and gives its number.
    pub(super) fn add(&self, stream: &UnixStream) -> io::Result<u64> {
        let stream = stream.try_clone()?;
        let mut state = self.state();
        state.last_number += 1;
        let number = state.last_number;
        state.pending.push_back((number, stream));
        if state.pending.len() > MAX_PENDING
            && let Some((_, oldest)) = state.pending.pop_front()
        {
            // Its own thread sees the end.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        Ok(number)
    }

    /// Removes a connection that has sent its message or has ended.
    pub(super) fn remove(&self, number: u64) {
        self.state().pending.retain(|(pending, _)| *pending != number);
    }

    fn state(&self) -> MutexGuard<'_, HandshakeQueue> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn at_the_limit_the_oldest_connection_without_a_message_is_closed() {
        let handshakes = PendingHandshakes::default();
        let (spoke, mut other) = UnixStream::pair().unwrap();
        let number = handshakes.add(&spoke).unwrap();
        handshakes.remove(number);
        let mut silent: Vec<(UnixStream, UnixStream)> =
            (0..=MAX_PENDING).map(|_| UnixStream::pair().unwrap()).collect();
        for (here, _) in &silent {
            handshakes.add(here).unwrap();
        }
        let mut nothing = [0];
        assert_eq!(silent[0].1.read(&mut nothing).unwrap(), 0, "the first is closed");
        for still in [&mut silent[1].1, &mut other] {
            still.set_nonblocking(true).unwrap();
            assert_eq!(still.read(&mut nothing).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        }
    }
}
