//! The order of one connection's calls, for a client that sends calls without waiting: a write runs after all earlier calls,
//! and all later calls run after it. Reads run in parallel.
//!
//! Positions are assigned where requests are read, in sequence. A waiting call holds no worker, so the first one can always
//! run.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};
use tokio::task::coop::unconstrained;

/// One connection's queue. The library's lock is fair: it serves waiters in order.
#[derive(Clone, Default)]
pub(crate) struct CallOrder(Arc<RwLock<()>>);

/// A position in the queue. Dropping it lets the later ones move up.
pub(crate) struct QueuedCall(Pin<Box<dyn Future<Output = CallTurn> + Send>>);

/// The right to run. Held until the work is done, even if the call was cancelled.
#[expect(dead_code, reason = "held, never read")]
pub(crate) enum CallTurn {
    Reading(OwnedRwLockReadGuard<()>),
    Writing(OwnedRwLockWriteGuard<()>),
}

impl CallOrder {
    /// Takes the next position.
    pub(crate) fn queue(&self, writes: bool) -> QueuedCall {
        let lock = self.0.clone();
        let turn = async move {
            if writes {
                CallTurn::Writing(lock.write_owned().await)
            } else {
                CallTurn::Reading(lock.read_owned().await)
            }
        };
        // The lock assigns the position at the first poll, which is here; `unconstrained` prevents a forced yield.
        let mut turn: Pin<Box<dyn Future<Output = CallTurn> + Send>> = Box::pin(unconstrained(turn));
        match turn.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(turn) => QueuedCall(Box::pin(std::future::ready(turn))),
            Poll::Pending => QueuedCall(turn),
        }
    }
}

impl QueuedCall {
    /// Waits for its turn.
    pub(crate) async fn turn(self) -> CallTurn {
        self.0.await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::task::coop::has_budget_remaining;

    use super::*;

    /// Whether the turn has come. A place that waits is given back.
    async fn has_come(place: QueuedCall) -> Result<CallTurn, QueuedCall> {
        let mut waiting = place.0;
        match tokio::time::timeout(Duration::from_millis(20), &mut waiting).await {
            Ok(turn) => Ok(turn),
            Err(_) => Err(QueuedCall(waiting)),
        }
    }

    async fn comes(place: QueuedCall) -> CallTurn {
        has_come(place).await.unwrap_or_else(|_| panic!("it still waits"))
    }

    async fn waits(place: QueuedCall) -> QueuedCall {
        has_come(place).await.err().expect("it waits")
    }

    #[tokio::test]
    async fn reads_run_concurrently() {
        let order = CallOrder::default();
        let (one, other) = (order.queue(false), order.queue(false));
        let (_one, _other) = (comes(one).await, comes(other).await);
    }

    #[tokio::test]
    async fn write_waits_for_earlier_calls_and_blocks_later_ones() {
        let order = CallOrder::default();
        let (before, write, behind) = (order.queue(false), order.queue(true), order.queue(false));
        let (behind, write) = (waits(behind).await, waits(write).await);
        drop(comes(before).await);
        let behind = waits(behind).await;
        let writing = comes(write).await;
        let behind = waits(behind).await;
        drop(writing);
        comes(behind).await;
    }

    #[tokio::test]
    async fn cancelled_call_frees_its_place_in_the_queue() {
        let order = CallOrder::default();
        let [first, second, third] = [(); 3].map(|()| order.queue(true));
        let third = waits(third).await;
        drop(second);
        drop(first);
        comes(third).await;
    }

    #[tokio::test]
    async fn panicking_call_frees_its_place_in_the_queue() {
        let order = CallOrder::default();
        let (first, second) = (order.queue(true), order.queue(true));
        let first = first.turn().await;
        let work = tokio::task::spawn_blocking(move || {
            let _turn = first;
            panic!("as a tool might");
        });
        assert!(work.await.is_err());
        comes(second).await;
    }

    #[tokio::test]
    async fn places_are_in_order_even_if_the_task_budget_is_exhausted() {
        let order = CallOrder::default();
        while has_budget_remaining() {
            let mut reading = Box::pin(order.0.read());
            let _ = reading.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
        let (first, second) = (order.queue(true), order.queue(true));
        let second = waits(second).await;
        drop(comes(first).await);
        comes(second).await;
    }
}
