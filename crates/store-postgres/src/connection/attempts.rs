//! How a call on the database is made: on a connection of its share, again when the connection is lost or another transaction is in
//! the way, and given up after a bounded wait.

use std::cell::Cell;
use std::pin::pin;
use std::time::{Duration, Instant};

use deadpool_postgres::{Client, Object};
use tokio::time::{timeout, timeout_at};

use super::outage;
use super::shares::Need;
use super::{ADMINISTRATION, FIRST_PAUSE, LONGEST_PAUSE, NOW, PostgresDatabase, pool_error, timestamp};
use crate::failure::DatabaseError;

/// After this time without an answer, a call finds out whether the database answers anything.
const PROBE: Duration = Duration::from_secs(5);

/// How long an attempt may wait during an outage that has lasted longer than the patience.
const SHORTEST: Duration = Duration::from_secs(2);

/// How long a call may take, and which connections it may use.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    /// How long it waits for a database that does not answer, and for other transactions.
    pub(super) patience: Duration,
    /// How long one attempt may take while the database answers others.
    pub(super) longest: Duration,
    pub(super) need: Need,
}

impl Terms {
    /// For what belongs to no graph.
    pub(super) fn shared(patience: Duration) -> Self {
        Self { patience, longest: ADMINISTRATION, need: Need::Shared }
    }
}

impl PostgresDatabase {
    /// Makes a call until it is answered or the patience is over. `then` is a statement that is sent afterwards on the same
    /// connection, without waiting for it.
    pub(super) fn attempt<T>(
        &self,
        terms: Terms,
        mut work: impl AsyncFnMut(&mut Client, &Cell<bool>) -> Result<T, DatabaseError>,
        then: impl Fn(&Result<T, DatabaseError>) -> Option<String>,
    ) -> Result<T, DatabaseError> {
        let runtime = self.runtime.as_ref().expect("taken only when it is dropped");
        let (started, in_doubt) = (Instant::now(), Cell::new(false));
        let patience = terms.patience.saturating_sub(self.outage.start().map(outage::Start::age).unwrap_or_default());
        runtime.block_on(async {
            let mut pause = FIRST_PAUSE;
            loop {
                let left = Terms { patience: patience.saturating_sub(started.elapsed()).max(SHORTEST), ..terms };
                let error = match self.once(left, async |client| work(client, &in_doubt).await, &then).await {
                    Err(error) if error.is_transient() || in_doubt.get() && error.is_unanswered() => error,
                    outcome => return outcome,
                };
                let waited = started.elapsed();
                if waited + pause > patience {
                    let in_doubt = in_doubt.get();
                    let is_away = error.is_outage() || error.is_unanswered() || self.outage.start().is_some();
                    let since = is_away.then(|| timestamp(self.outage.begin(Duration::ZERO).at_ns));
                    return Err(DatabaseError::Unreachable { since, waited, in_doubt, source: error.into() });
                }
                tracing::debug!(%error, "retrying a call on the database");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        })
    }

    /// One attempt of a call.
    pub(super) async fn once<T>(
        &self,
        terms: Terms,
        work: impl AsyncFnMut(&mut Client) -> Result<T, DatabaseError>,
        then: &impl Fn(&Result<T, DatabaseError>) -> Option<String>,
    ) -> Result<T, DatabaseError> {
        let started = Instant::now();
        let outcome = self.ask(terms, work, then).await;
        match &outcome {
            Err(DatabaseError::NoAnswer) => _ = self.outage.begin(started.elapsed()),
            Err(error) if error.is_outage() => _ = self.outage.begin(Duration::ZERO),
            Err(error) if error.is_transient() => {}
            _ => self.outage.end(),
        }
        outcome
    }

    async fn ask<T>(
        &self,
        terms: Terms,
        mut work: impl AsyncFnMut(&mut Client) -> Result<T, DatabaseError>,
        then: &impl Fn(&Result<T, DatabaseError>) -> Option<String>,
    ) -> Result<T, DatabaseError> {
        let until = tokio::time::Instant::now() + terms.patience;
        let share = timeout_at(until, self.shares.acquire(terms.need)).await.map_err(|_| DatabaseError::Busy)?;
        let client = timeout_at(until, self.pool.get()).await.map_err(|_| DatabaseError::NoAnswer)?;
        let mut client = client.map_err(pool_error)?;
        let Some(outcome) = self.answer(terms, work(&mut client)).await else {
            // Its answer may still come: no other call may use the connection. The others may be just as dead.
            drop(Object::take(client));
            drop(self.pool.retain(|_, _| false));
            return Err(DatabaseError::NoAnswer);
        };
        if let Some(statement) = then(&outcome) {
            tokio::spawn(async move {
                if !matches!(timeout(NOW, client.batch_execute(&statement)).await, Ok(Ok(()))) {
                    drop(Object::take(client));
                }
                drop(share);
            });
        }
        outcome
    }

    /// Waits for an answer as long as the database answers others: a long statement is no outage.
    async fn answer<T>(&self, terms: Terms, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        let started = Instant::now();
        loop {
            if let Ok(outcome) = timeout(terms.patience.min(PROBE), &mut work).await {
                return Some(outcome);
            }
            if started.elapsed() >= terms.longest {
                return None;
            }
            tokio::select! {
                outcome = &mut work => return Some(outcome),
                answers = self.hosts.still_answers() => if !answers { return None },
            }
        }
    }
}
