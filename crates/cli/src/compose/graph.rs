//! A graph of a PostgreSQL database: notes and memory are rows, the index is in the memory of this process.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use jiff::Timestamp;
use quipu_core::memory::{Memory, MemoryParts};
use quipu_core::ports::{Embedder, NoSources, NoteFeed, SystemClock, TextModel, VaultFiles, VectorStore};
use quipu_core::search::Meaning;
use quipu_core::{Knowledge, Parts};
use quipu_server::service::Metric;
use quipu_server::tokens::{Denied, Grant, GraphRef, NeedsLookup, TokenScope, TokenSource};
use quipu_store_embedded::EmbeddedStore;
use quipu_store_postgres::{
    CommitTimes, ConnectError, Graph, Lookup, PostgresDatabase, PostgresMemory, PostgresShownNotes, PostgresTokens,
    PostgresVault, SchemaError, SharedVectors, TokenRecord, Wakeups,
};
use quipu_tools::{Registry, RegistryOptions};

use super::{ComposeError, open_embedder, open_text_model};
use crate::config::Config;

/// How long a call waits for the first index: a server that has just started answers with what it has read so far.
const PATIENCE: Duration = Duration::from_secs(2);

/// So many vectors of passages a server is meant to hold in its open graphs: 10 GB. More are held too.
const VECTORS_LIMIT: usize = 5_000_000;

/// The database of a team.
pub(crate) struct Database {
    postgres: Arc<PostgresDatabase>,
    /// One listening connection wakes the followers of all graphs.
    wakeups: Arc<Wakeups>,
}

/// Why a database cannot be served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenDatabaseError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("cannot read the database: {0}")]
    Read(#[from] quipu_store_postgres::DatabaseError),
    #[error("cannot use the database: {0}")]
    Schema(#[from] SchemaError),
}

impl Database {
    /// Connects, and checks that this program can use the schema.
    pub(crate) fn connect(url: &str) -> Result<Self, OpenDatabaseError> {
        let database = PostgresDatabase::connect(url)?;
        database.schema()?.check()?;
        let wakeups = Arc::new(database.wakeups());
        Ok(Self { postgres: Arc::new(database), wakeups })
    }

    /// All graphs, in order of name.
    pub(crate) fn graphs(&self) -> Result<Vec<GraphRef>, OpenDatabaseError> {
        Ok(self.postgres.graphs()?.into_iter().map(reference).collect())
    }

    /// The calls a second that this server accepts for graphs with such a limit, by id.
    pub(crate) fn graph_rates(&self) -> Result<Vec<(i64, u32)>, OpenDatabaseError> {
        Ok(self.postgres.graph_rates()?)
    }

    /// The user of this process, if row-level security does not bind it.
    pub(crate) fn unbound_user(&self) -> Result<Option<String>, OpenDatabaseError> {
        let server = self.postgres.server()?;
        Ok((!server.is_bound).then_some(server.user))
    }

    /// How long no call has been answered.
    pub(crate) fn unreachable_for(&self) -> Option<Duration> {
        self.postgres.unreachable_for()
    }

    /// The tokens that servers of this database accept.
    pub(crate) fn tokens(&self) -> DatabaseTokens {
        DatabaseTokens { database: self.postgres.clone(), tokens: PostgresTokens::new(self.postgres.clone()) }
    }

    /// Opens a graph for a server without reading it; `None` if there is none of this id.
    pub(crate) fn open(&self, id: i64, config: &Config) -> Result<Option<OpenGraph>, ComposeError> {
        let graph = self.postgres.graph_by_id(id).map_err(|error| anyhow::anyhow!(OpenDatabaseError::Read(error)))?;
        let Some(graph) = graph else { return Ok(None) };
        let text_model = config.llm.provider().map(|provider| open_text_model(&provider)).transpose()?;
        let serving = Serving {
            wakeups: self.wakeups.clone(),
            // The settings come from the environment alone, so the providers are the user's choice.
            embedder: open_embedder(config.embedding.provider())?,
            text_model,
        };
        OpenGraph::new(self.postgres.clone(), graph, config, Some(serving)).map(Some)
    }

    /// How this process uses the database.
    pub(crate) fn metrics(&self) -> Vec<Metric> {
        let pool = self.postgres.pool();
        let away = self.postgres.unreachable_for().unwrap_or_default();
        let gauge = |name, what, value: usize| Metric::gauge(name, what, value as f64);
        vec![
            gauge("quipu_database_connections", "Open connections to the database.", pool.open),
            gauge("quipu_database_connections_idle", "Those that no call uses.", pool.idle),
            gauge("quipu_database_connections_limit", "The most that this server opens.", pool.limit),
            gauge("quipu_database_waiting", "Calls that wait for a connection to the database.", pool.waiting),
            gauge("quipu_vectors_limit", "The most vectors of passages that a server is meant for.", VECTORS_LIMIT),
            Metric::gauge(
                "quipu_database_unreachable_seconds",
                "How long the database has been unreachable; 0 while it answers.",
                away.as_secs_f64(),
            ),
        ]
    }
}

fn reference(graph: Graph) -> GraphRef {
    GraphRef { id: graph.id(), name: graph.name }
}

/// The tokens in a database, each for some of its graphs. A revoked one is rejected within two seconds.
pub(crate) struct DatabaseTokens {
    database: Arc<PostgresDatabase>,
    tokens: PostgresTokens,
}

impl TokenSource for DatabaseTokens {
    fn ensure_some(&self) -> anyhow::Result<()> {
        let hint = "the database has no token; create one with `quipu token new --name NAME --graph GRAPH`";
        ensure!(!self.database.tokens()?.is_empty(), hint);
        Ok(())
    }

    fn check(&self, presented: &str, now: Timestamp) -> Result<Grant, Denied> {
        let found = self.tokens.find(presented).map_err(|error| {
            tracing::warn!("cannot check a token: {error}");
            Denied::Unchecked(error.to_string())
        })?;
        grant_of(found, now)
    }

    fn check_at_once(&self, presented: &str, now: Timestamp) -> Result<Result<Grant, Denied>, NeedsLookup> {
        match self.tokens.remembered(presented) {
            Ok(found) => Ok(grant_of(found, now)),
            Err(Lookup::Renewal(..)) => Err(NeedsLookup::Renewal),
            Err(Lookup::Unknown) => Err(NeedsLookup::Unknown),
        }
    }
}

fn grant_of(found: Option<Arc<TokenRecord>>, now: Timestamp) -> Result<Grant, Denied> {
    let token = found.ok_or(Denied::Unknown)?;
    if token.expires.is_some_and(|expires| expires <= now) {
        return Err(Denied::Expired);
    }
    let scope = TokenScope::from_name(&token.scope).ok_or(Denied::Changed)?;
    let graphs = token.graphs.iter().cloned().map(reference).collect();
    Ok(Grant { id: token.id.clone(), name: token.name.clone(), scope, graphs: Some(graphs) })
}

/// The notes of a graph without its index, and their change feed.
pub(crate) struct GraphFiles {
    pub(crate) files: Arc<dyn VaultFiles>,
    pub(crate) feed: Arc<dyn NoteFeed>,
}

impl GraphFiles {
    pub(crate) fn open(database: Arc<PostgresDatabase>, graph: &Graph) -> Self {
        let vault = Arc::new(PostgresVault::new(database, graph));
        Self { files: vault.clone(), feed: vault }
    }
}

/// Opens the memory of a graph without its notes.
pub(crate) fn memory_of_graph(
    database: Arc<PostgresDatabase>,
    graph: &Graph,
    config: &Config,
    embedder: Option<Arc<dyn Embedder>>,
) -> Arc<Memory> {
    Arc::new(Memory::new(MemoryParts {
        store: Arc::new(PostgresMemory::new(database, graph)),
        embedder,
        clock: Arc::new(SystemClock),
        types: config.memory_types.clone(),
        rule: config.duplicates,
    }))
}

/// Vectors that each server computes for all; `None` if the database lacks pgvector.
fn share_vectors(
    database: &Arc<PostgresDatabase>,
    graph: &Graph,
    store: &Arc<EmbeddedStore>,
) -> Result<Option<Arc<SharedVectors>>, ComposeError> {
    let shared = SharedVectors::new(store.clone(), database.clone(), graph);
    Ok(shared.map_err(|error| anyhow::anyhow!(OpenDatabaseError::Read(error)))?.map(Arc::new))
}

/// An open graph.
pub(crate) struct OpenGraph {
    pub(crate) knowledge: Arc<Knowledge>,
    pub(crate) memory: Arc<Memory>,
    /// The notes, and their change feed.
    pub(crate) vault: Arc<PostgresVault>,
    vectors: Option<Arc<SharedVectors>>,
    database: Arc<PostgresDatabase>,
    graph: Graph,
}

/// What a server needs of a graph, and a command does not.
struct Serving {
    wakeups: Arc<Wakeups>,
    embedder: Option<Arc<dyn Embedder>>,
    text_model: Option<Arc<dyn TextModel>>,
}

impl OpenGraph {
    /// Opens a graph for a command, without vectors and without reading it.
    pub(crate) fn for_command(
        database: Arc<PostgresDatabase>,
        graph: Graph,
        config: &Config,
    ) -> Result<Self, ComposeError> {
        Self::new(database, graph, config, None)
    }

    fn new(
        database: Arc<PostgresDatabase>,
        graph: Graph,
        config: &Config,
        serving: Option<Serving>,
    ) -> Result<Self, ComposeError> {
        let mut vault = PostgresVault::new(database.clone(), &graph);
        if let Some(serving) = &serving {
            vault = vault.with_wakeups(serving.wakeups.clone());
        }
        let vault = Arc::new(vault);
        let store = Arc::new(EmbeddedStore::in_memory().context("cannot create an index in memory")?);
        let mut knowledge = Knowledge::new(Parts {
            vault: vault.clone(),
            store: store.clone(),
            clock: Arc::new(SystemClock),
            sources: Arc::new(NoSources),
            title_rule: config.title_from.clone(),
            stale_after: config.stale_after,
        });
        let (mut embedder, mut vectors) = (None, None);
        if let Some(serving) = serving {
            knowledge = knowledge.among_servers(Arc::new(PostgresShownNotes::new(database.clone(), &graph)));
            if let Some(embedder) = &serving.embedder {
                vectors = share_vectors(&database, &graph, &store)?;
                let store: Arc<dyn VectorStore> = match &vectors {
                    Some(shared) => shared.clone(),
                    None => store,
                };
                knowledge =
                    knowledge.with_meaning(Meaning::new(embedder.clone(), store).alone(config.by_meaning_alone));
            }
            if let Some(model) = serving.text_model {
                knowledge = knowledge.with_text_model(model);
            }
            embedder = serving.embedder;
        }
        let memory = memory_of_graph(database.clone(), &graph, config, embedder);
        let knowledge = Arc::new(knowledge.with_memory(memory.clone()));
        Ok(Self { knowledge, memory, vault, vectors, database, graph })
    }

    /// Every tool over this graph.
    pub(crate) fn registry(&self) -> Registry {
        let options = RegistryOptions::default();
        Registry::with_memory(self.knowledge.clone(), self.memory.clone(), options).with_patience(PATIENCE)
    }

    /// Counters of this server's work on the graph.
    pub(crate) fn metrics(&self) -> Vec<Metric> {
        let CommitTimes { commits, total } = self.database.commit_times(&self.graph);
        let mut metrics = vec![
            Metric::counter("quipu_commits_total", "Writes that this server has committed.", commits as f64),
            Metric::counter("quipu_commit_seconds_total", "Time that these took.", total.as_secs_f64()),
        ];
        if let Some(vectors) = &self.vectors {
            let (embedded, fetched) = vectors.embedded_and_fetched();
            let (ours, others) = ("Passages that this server embedded for all.", "Vectors fetched from other servers.");
            metrics.push(Metric::counter("quipu_passages_embedded_total", ours, embedded as f64));
            metrics.push(Metric::counter("quipu_vectors_fetched_total", others, fetched as f64));
        }
        metrics
    }
}
