//! The pool of connections, and how a call on the database is made: retried while the database is away for a moment, given up
//! after a bounded wait.

use std::cell::Cell;
use std::time::{Duration, Instant};

use deadpool_postgres::{
    Client, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime as PoolRuntime, Timeouts,
    Transaction,
};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::{Config, NoTls};

use crate::failure::DatabaseError;

/// Connections of one process, at most.
const CONNECTIONS: usize = 16;

/// How long a call waits for a database that cannot be reached: longer than a standby needs to take over.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long one attempt to connect may take.
const CONNECT: Duration = Duration::from_secs(5);

/// How long an attempt may go without an answer.
const ATTEMPT: Duration = Duration::from_secs(120);

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The tables are in a schema of their own, beside whatever else the database holds.
const SCHEMA: &str = "-c search_path=quipu,public";

/// One PostgreSQL database. Its connections are opened when they are needed and opened anew when they are lost.
pub struct PostgresDatabase {
    pool: Pool,
    /// Taken when it is dropped.
    runtime: Option<Runtime>,
}

/// Why a database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address cannot be read. It is not repeated: it may hold a password.
    #[error("cannot read the address of the database: {0}; it has the form postgresql://USER@HOST/DATABASE")]
    Address(tokio_postgres::Error),
    /// The system gives no more threads.
    #[error("cannot start threads for the database: {0}")]
    Threads(std::io::Error),
    /// The database did not answer, or refused.
    #[error("cannot connect to the database: {0}")]
    Refused(#[source] DatabaseError),
}

impl PostgresDatabase {
    /// Connects to a database by its address, a URL with one or several hosts.
    pub fn connect(url: &str) -> Result<Self, ConnectError> {
        let mut config: Config = url.parse().map_err(ConnectError::Address)?;
        let options = config.get_options().map_or_else(|| SCHEMA.to_owned(), |given| format!("{given} {SCHEMA}"));
        config.options(options).target_session_attrs(TargetSessionAttrs::ReadWrite);
        if config.get_application_name().is_none() {
            config.application_name("quipu");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        let runtime = Builder::new_multi_thread().worker_threads(2).thread_name("quipu-postgres").enable_all().build();
        let runtime = runtime.map_err(ConnectError::Threads)?;
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let pool = Pool::builder(Manager::from_config(config, NoTls, recycling))
            .max_size(CONNECTIONS)
            .runtime(PoolRuntime::Tokio1)
            .timeouts(Timeouts { wait: Some(PATIENCE), create: Some(CONNECT), recycle: Some(CONNECT) })
            .build()
            .expect("the pool has a runtime for its timeouts");
        let database = Self { pool, runtime: Some(runtime) };
        database.read(async |client| Ok(client.batch_execute("").await?)).map_err(ConnectError::Refused)?;
        Ok(database)
    }

    /// Reads, again when the connection is lost.
    pub(crate) fn read<T>(
        &self,
        mut work: impl AsyncFnMut(&mut Client) -> Result<T, DatabaseError>,
    ) -> Result<T, DatabaseError> {
        self.attempt(async |client, _| work(client).await)
    }

    /// Runs a transaction, again when the connection is lost or another transaction was in the way. It may have been committed
    /// when it runs again: what must happen once has to recognise that. A refusal, the inner error, rolls it back.
    pub(crate) fn write<T, R>(
        &self,
        mut work: impl AsyncFnMut(&Transaction<'_>) -> Result<Result<T, R>, DatabaseError>,
    ) -> Result<Result<T, R>, DatabaseError> {
        self.attempt(async |client, in_doubt| {
            let tx = client.transaction().await?;
            let outcome = work(&tx).await?;
            if outcome.is_ok() {
                in_doubt.set(true);
                tx.commit().await?;
            } else {
                tx.rollback().await?;
            }
            Ok(outcome)
        })
    }

    fn attempt<T>(
        &self,
        mut work: impl AsyncFnMut(&mut Client, &Cell<bool>) -> Result<T, DatabaseError>,
    ) -> Result<T, DatabaseError> {
        let runtime = self.runtime.as_ref().expect("taken only when it is dropped");
        let (started, in_doubt) = (Instant::now(), Cell::new(false));
        runtime.block_on(async {
            let mut pause = FIRST_PAUSE;
            loop {
                let error = match self.once(async |client| work(client, &in_doubt).await).await {
                    Err(error) if error.is_transient() => error,
                    outcome => return outcome,
                };
                let waited = started.elapsed();
                if waited + pause > PATIENCE {
                    let in_doubt = in_doubt.get();
                    return Err(DatabaseError::Unreachable { waited, in_doubt, source: error.into() });
                }
                tracing::debug!(%error, "retrying a call on the database");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        })
    }

    async fn once<T>(
        &self,
        mut work: impl AsyncFnMut(&mut Client) -> Result<T, DatabaseError>,
    ) -> Result<T, DatabaseError> {
        let mut client = self.pool.get().await.map_err(|error| match error {
            PoolError::Backend(error) => DatabaseError::Sql(error),
            error => DatabaseError::Pool(error.to_string()),
        })?;
        match tokio::time::timeout(ATTEMPT, work(&mut client)).await {
            Ok(outcome) => outcome,
            Err(_) => {
                // Its answer may still come: no other call may use the connection.
                drop(Object::take(client));
                Err(DatabaseError::NoAnswer)
            }
        }
    }
}

impl Drop for PostgresDatabase {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Without waiting, because the last owner may be asynchronous code.
            runtime.shutdown_background();
        }
    }
}
