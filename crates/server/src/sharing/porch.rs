//! Those who have connected and not yet said who they are. There are few of them at any time, since whoever comes says so at
//! once: where many wait in silence, the longest silent has to go, and there is always room for the next.

use std::collections::VecDeque;
use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use parking_lot::{Mutex, MutexGuard};

/// Far above what comes at the same moment.
const MOST: usize = 64;

#[derive(Default)]
pub(super) struct Porch(Mutex<State>);

#[derive(Default)]
struct State {
    came: u64,
    /// In the order in which they came.
    silent: VecDeque<(u64, UnixStream)>,
}

impl Porch {
    /// Somebody comes. Gives the number to leave by.
    pub(super) fn enter(&self, stream: &UnixStream) -> io::Result<u64> {
        let stream = stream.try_clone()?;
        let mut state = self.state();
        state.came += 1;
        let number = state.came;
        state.silent.push_back((number, stream));
        if state.silent.len() > MOST
            && let Some((_, longest)) = state.silent.pop_front()
        {
            // Its own thread sees the end. One that has ended by itself needs no telling.
            let _ = longest.shutdown(Shutdown::Both);
        }
        Ok(number)
    }

    /// Somebody has said who it is, or is gone.
    pub(super) fn leave(&self, number: u64) {
        self.state().silent.retain(|(silent, _)| *silent != number);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn the_longest_silent_goes_and_whoever_spoke_stays() {
        let porch = Porch::default();
        let (spoke, mut other) = UnixStream::pair().unwrap();
        let number = porch.enter(&spoke).unwrap();
        porch.leave(number);
        let mut silent: Vec<(UnixStream, UnixStream)> = (0..=MOST).map(|_| UnixStream::pair().unwrap()).collect();
        for (here, _) in &silent {
            porch.enter(here).unwrap();
        }
        let mut nothing = [0];
        assert_eq!(silent[0].1.read(&mut nothing).unwrap(), 0, "the first is shut out");
        for still in [&mut silent[1].1, &mut other] {
            still.set_nonblocking(true).unwrap();
            assert_eq!(still.read(&mut nothing).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        }
    }
}
