//! The pool of connections, and how a call on the database is made: retried while the database is away for a moment, given up
//! after a bounded wait.

mod address;
mod attempts;
mod commits;
mod hosts;
mod outage;
mod password_file;
mod service_file;
mod shares;
mod tls;
mod wakeups;

use std::cell::Cell;
use std::convert::Infallible;
use std::fmt::{self, Write as _};
use std::time::{Duration, Instant};

use deadpool_postgres::{
    Client, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime as PoolRuntime, Timeouts,
    Transaction,
};
use jiff::Timestamp;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::Config;

use crate::failure::DatabaseError;
use crate::graphs::Graph;

pub(crate) use address::chain;
pub use address::{AddressError, DatabaseAddress};
use attempts::Terms;
pub use commits::CommitTimes;
use commits::Commits;
use hosts::Hosts;
use outage::Outage;
use shares::{CONNECTIONS, ConnectionShares, Need};
pub(crate) use wakeups::WakeListener;
pub use wakeups::{Subscription, Wakeups};

/// How long the first connection is tried: a wrong address should be reported soon.
const FIRST_PATIENCE: Duration = Duration::from_secs(10);

/// How long a reader that does not wait for a database may go without an answer.
const NOW: Duration = Duration::from_secs(5);

/// How long an attempt to read may take while the database answers others, and the same for administration.
const LONGEST_READ: Duration = Duration::from_secs(120);
const ADMINISTRATION: Duration = Duration::from_secs(60 * 60);

/// A write that may take longer than this has more time between its statements too.
const LONG_WRITE: Duration = Duration::from_secs(1);

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The start of a transaction that reads.
pub(crate) const READ: &str = "BEGIN READ ONLY";

/// The rows that a call may see: the second wall between graphs. The database's own rules for rows compare each row with the
/// graph that the transaction has set, for every role that does not own the tables.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Scope {
    /// The rows of one graph.
    Graph(i64),
    /// What belongs to no graph: the list of graphs, the schema.
    Shared,
}

impl Scope {
    /// The statement that starts a transaction's view.
    fn set(self) -> String {
        match self {
            Self::Graph(id) => format!("SET LOCAL quipu.graph = '{id}'"),
            Self::Shared => "SET LOCAL quipu.graph = ''".to_owned(),
        }
    }
}

/// One PostgreSQL database. Its connections are opened when needed and reopened when lost.
pub struct PostgresDatabase {
    place: String,
    hosts: Hosts,
    pool: Pool,
    shares: ConnectionShares,
    patience: Duration,
    outage: Outage,
    commits: Commits,
    /// Taken when it is dropped.
    runtime: Option<Runtime>,
}

/// Why a database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address cannot be used. It is not repeated: it may hold a password.
    #[error("cannot use the address of the database: {0}")]
    Address(#[from] AddressError),
    /// The system gives no more threads.
    #[error("cannot start threads for the database: {0}")]
    Threads(std::io::Error),
    /// The database did not answer, or refused.
    #[error("cannot connect to the database {place}: {cause}")]
    Refused {
        /// Its hosts and its name.
        place: String,
        /// The error with its causes.
        cause: String,
    },
}

/// The connections of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolStatus {
    /// Open connections.
    pub open: usize,
    /// Connections that no call uses.
    pub idle: usize,
    /// Calls that wait for a connection.
    pub waiting: usize,
    pub limit: usize,
}

impl PostgresDatabase {
    /// Connects to a database by its URL, see [`DatabaseAddress::parse`].
    pub fn connect(url: &str) -> Result<Self, ConnectError> {
        Self::connect_to(&DatabaseAddress::parse(url)?)
    }

    /// Connects to a database.
    pub fn connect_to(address: &DatabaseAddress) -> Result<Self, ConnectError> {
        let hosts = Hosts::new(address)?;
        let runtime = Builder::new_multi_thread().worker_threads(2).thread_name("quipu-postgres").enable_all().build();
        let runtime = runtime.map_err(ConnectError::Threads)?;
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let create = Some(hosts.longest_attempt());
        let pool = Pool::builder(Manager::from_connect(Config::new(), hosts.clone(), recycling))
            .max_size(CONNECTIONS)
            .runtime(PoolRuntime::Tokio1)
            .timeouts(Timeouts { wait: Some(address.patience), create, recycle: create })
            .build()
            .expect("the pool has a runtime for its timeouts");
        let (place, patience) = (address.to_string(), address.patience);
        let database = Self {
            place,
            hosts,
            pool,
            shares: ConnectionShares::default(),
            patience,
            outage: Outage::default(),
            commits: Commits::default(),
            runtime: Some(runtime),
        };
        let first = Terms { patience: patience.min(FIRST_PATIENCE), ..Terms::shared(patience) };
        let asked = database.attempt(first, async |client, _| Ok(client.batch_execute("").await?), |_| None);
        match asked {
            Ok(()) => Ok(database),
            Err(error) => Err(ConnectError::Refused { place: database.place.clone(), cause: chain(&error) }),
        }
    }

    /// Reads, again when the connection is lost.
    pub(crate) fn read<T>(
        &self,
        scope: Scope,
        work: impl AsyncFnMut(&Client) -> Result<T, DatabaseError>,
    ) -> Result<T, DatabaseError> {
        self.read_from(READ, scope, work)
    }

    /// Keeps the database as it is at this moment for reads that start with what `work` gets, see
    /// [`PostgresDatabase::read_from`].
    pub(crate) fn at_one_moment<T>(&self, work: impl FnOnce(&str) -> T) -> Result<T, DatabaseError> {
        const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        // Idle until the last read, and without a lock that others wait for.
        const HOLD: &str = "SET LOCAL idle_in_transaction_session_timeout = 0";
        let runtime = self.runtime.as_ref().expect("taken only when it is dropped");
        // Taken out of the pool: it is closed at the end, also after an error.
        let holder = runtime.block_on(self.pool.get()).map_err(pool_error).map(Object::take)?;
        let snapshot = runtime.block_on(async {
            holder.batch_execute(&format!("{BEGIN}; {HOLD}")).await?;
            let row = holder.query_one("SELECT pg_export_snapshot()", &[]).await?;
            Ok::<String, DatabaseError>(crate::row::get(&row, 0)?)
        })?;
        Ok(work(&format!("{BEGIN}; SET TRANSACTION SNAPSHOT '{snapshot}'")))
    }

    /// Reads in a transaction with this start.
    pub(crate) fn read_from<T>(
        &self,
        begin: &str,
        scope: Scope,
        mut work: impl AsyncFnMut(&Client) -> Result<T, DatabaseError>,
    ) -> Result<T, DatabaseError> {
        let begin = format!("{begin}; {}", scope.set());
        let terms = match scope {
            Scope::Graph(_) => Terms { patience: self.patience, longest: LONGEST_READ, need: Need::Graph },
            Scope::Shared => Terms::shared(self.patience),
        };
        self.attempt(terms, async |client, _| in_transaction(client, &begin, &mut work).await, end_of_read)
    }

    /// Reads once, without waiting for a database that cannot be reached.
    pub(crate) fn read_now<T>(
        &self,
        scope: Scope,
        mut work: impl AsyncFnMut(&Client) -> Result<T, DatabaseError>,
    ) -> Result<T, DatabaseError> {
        let begin = format!("{READ}; {}", scope.set());
        let runtime = self.runtime.as_ref().expect("taken only when it is dropped");
        let ask = async |client: &mut Client| in_transaction(client, &begin, &mut work).await;
        let terms = Terms { patience: NOW, longest: NOW, need: Need::Shared };
        runtime.block_on(self.once(terms, ask, &end_of_read))
    }

    /// Runs a transaction, again when the connection is lost or another transaction was in the way. It may have been committed
    /// when it runs again: what must happen once has to recognise that. A refusal, the inner error, rolls it back.
    ///
    /// After a commit, the followers of the graph are woken. Not in the transaction: its notification would hold a lock of the
    /// whole database until the commit is on disk, one graph after the other. Should this process die before it, the followers
    /// find the change when they next look.
    pub(crate) fn write<T, R>(
        &self,
        scope: Scope,
        work: impl AsyncFnMut(&Transaction<'_>) -> Result<Result<T, R>, DatabaseError>,
    ) -> Result<Result<T, R>, DatabaseError> {
        self.write_for(scope, Duration::ZERO, work)
    }

    /// Like [`Self::write`], for much at once: it may take `longer` more.
    pub(crate) fn write_for<T, R>(
        &self,
        scope: Scope,
        longer: Duration,
        work: impl AsyncFnMut(&Transaction<'_>) -> Result<Result<T, R>, DatabaseError>,
    ) -> Result<Result<T, R>, DatabaseError> {
        let wake =
            |outcome: &Result<Result<T, R>, _>| matches!(outcome, Ok(Ok(_))).then(|| wakeups::notification(scope));
        let terms = match scope {
            // A write is made again on another connection if this one seems to be dead.
            Scope::Graph(graph) => {
                Terms { patience: self.patience, longest: self.patience / 2 + longer, need: Need::Lock(graph) }
            }
            Scope::Shared => Terms::shared(self.patience),
        };
        let mut set = scope.set();
        if longer > LONG_WRITE {
            // The time between two statements in which this process is busy.
            let _ = write!(set, "; SET LOCAL idle_in_transaction_session_timeout = '{}s'", longer.as_secs() + 5);
        }
        let started = Instant::now();
        let outcome = self.transact(terms, &set, work, wake);
        if let (Scope::Graph(graph), Ok(Ok(_))) = (scope, &outcome) {
            self.commits.add(graph, started.elapsed());
        }
        outcome
    }

    /// Like [`Self::write`], for changes that no follower waits for and no client was shown: no follower is woken, and the commit
    /// does not wait for the disk.
    pub(crate) fn write_quietly<T>(
        &self,
        scope: Scope,
        mut work: impl AsyncFnMut(&Transaction<'_>) -> Result<T, DatabaseError>,
    ) -> Result<T, DatabaseError> {
        let set = format!("{}; SET LOCAL synchronous_commit = off", scope.set());
        let terms = Terms { patience: self.patience, longest: self.patience / 2, need: Need::Graph };
        let outcome = self.transact(terms, &set, async |tx| Ok(Ok::<_, Infallible>(work(tx).await?)), |_| None)?;
        Ok(outcome.unwrap_or_else(|never| match never {}))
    }

    fn transact<T, R>(
        &self,
        terms: Terms,
        set: &str,
        mut work: impl AsyncFnMut(&Transaction<'_>) -> Result<Result<T, R>, DatabaseError>,
        then: impl Fn(&Result<Result<T, R>, DatabaseError>) -> Option<String>,
    ) -> Result<Result<T, R>, DatabaseError> {
        let run = async |client: &mut Client, in_doubt: &Cell<bool>| {
            let tx = client.transaction().await?;
            let (begun, outcome) = tokio::join!(biased; tx.batch_execute(set), work(&tx));
            begun?;
            let outcome = outcome?;
            if outcome.is_ok() {
                in_doubt.set(true);
                tx.commit().await?;
            } else {
                tx.rollback().await?;
            }
            Ok(outcome)
        };
        self.attempt(terms, run, then)
    }

    /// Since when no call has been answered.
    pub fn unreachable_since(&self) -> Option<Timestamp> {
        self.outage.start().map(|start| timestamp(start.at_ns))
    }

    /// How long no call has been answered.
    pub fn unreachable_for(&self) -> Option<Duration> {
        self.outage.start().map(outage::Start::age)
    }

    /// The writes of this process to a graph.
    pub fn commit_times(&self, graph: &Graph) -> CommitTimes {
        self.commits.of(graph.id)
    }

    /// The state of the connection pool.
    pub fn pool(&self) -> PoolStatus {
        let status = self.pool.status();
        PoolStatus { open: status.size, idle: status.available, waiting: self.shares.waiting(), limit: status.max_size }
    }
}

/// Sends the start and the first statement together, in this order: the start costs no round trip.
async fn in_transaction<T>(
    client: &Client,
    begin: &str,
    work: &mut impl AsyncFnMut(&Client) -> Result<T, DatabaseError>,
) -> Result<T, DatabaseError> {
    let (begun, outcome) = tokio::join!(biased; client.batch_execute(begin), work(client));
    begun?;
    outcome
}

fn end_of_read<T>(_: &Result<T, DatabaseError>) -> Option<String> {
    Some("COMMIT".to_owned())
}

fn pool_error(error: PoolError) -> DatabaseError {
    match error {
        PoolError::Backend(error) => DatabaseError::Sql(error),
        error => DatabaseError::Pool(error.to_string()),
    }
}

fn timestamp(at_ns: i64) -> Timestamp {
    Timestamp::from_nanosecond(at_ns.into()).unwrap_or(Timestamp::UNIX_EPOCH)
}

impl fmt::Debug for PostgresDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresDatabase({})", self.place)
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
