//! Vectors of passages that all servers share: each text is embedded once.
//!
//! A server searches vectors in its own memory. This store stands between that memory and the embedder: what another server has
//! computed is fetched by the hash of the text, and what none has computed is claimed for a while, so that two servers do not
//! compute the same. A claim ends by itself: when its server dies, another takes over. Should the database fail, the server
//! computes what it needs.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use deadpool_postgres::Client;
use parking_lot::Mutex;
use pgvector::HalfVector;
use quipu_core::model::NoteKey;
use quipu_core::ports::{Coverage, Grade, MissingVector, PassageHash, StoreError, VectorHit, VectorQuery, VectorStore};
use tokio_postgres::Row;

use crate::connection::{PostgresDatabase, Scope};
use crate::failure::DatabaseError;
use crate::graphs::Graph;
use crate::request::random_key;
use crate::row::{self, BadRow};

/// How long a claim lasts: a batch of texts takes a second, on a busy machine a few.
pub(crate) const CLAIM: Duration = Duration::from_secs(15);

/// Vectors fetched by one query: a few megabytes.
const FETCHED: usize = 4096;

/// So many passages are looked at for each that is wanted: the first ones may be those of another server.
const WIDER: usize = 16;

/// A store of vectors in this process, completed from the database.
pub struct SharedVectors {
    own: Arc<dyn VectorStore>,
    database: Arc<PostgresDatabase>,
    graph: i64,
    scope: Scope,
    /// This server, in claims.
    holder: String,
    claim: Duration,
    embedded: AtomicU64,
    fetched: AtomicU64,
    /// The dimensions of each space, as last stored or searched by this server: vectors with others are not fetched.
    dimensions: Mutex<HashMap<String, i32>>,
}

impl SharedVectors {
    /// Completes a store. `None` if the database has no table for vectors, because it lacks pgvector.
    pub fn new(
        own: Arc<dyn VectorStore>,
        database: Arc<PostgresDatabase>,
        graph: &Graph,
    ) -> Result<Option<Self>, DatabaseError> {
        let exists = "SELECT to_regclass('quipu.passage_vector') IS NOT NULL";
        let ask = async |client: &Client| row::first(client, exists, &[], |row| row::get(row, 0)).await;
        if database.read(Scope::Shared, ask)? != Some(true) {
            return Ok(None);
        }
        let holder = random_key().map_err(|error| BadRow(error.to_string()))?.to_string();
        let (graph, scope) = (graph.id, Scope::Graph(graph.id));
        let (embedded, fetched) = (AtomicU64::new(0), AtomicU64::new(0));
        let dimensions = Mutex::default();
        Ok(Some(Self { own, database, graph, scope, holder, claim: CLAIM, embedded, fetched, dimensions }))
    }

    /// Vectors that this server has computed for all, and those that it took from others.
    pub fn embedded_and_fetched(&self) -> (u64, u64) {
        (self.embedded.load(Ordering::Relaxed), self.fetched.load(Ordering::Relaxed))
    }

    /// Sets how long a claim lasts; 15 seconds unless set.
    pub fn with_claim(self, claim: Duration) -> Self {
        Self { claim, ..self }
    }

    /// Vectors that any server has stored.
    fn fetch(&self, space: &str, hashes: &[&[u8]]) -> Result<Vec<(PassageHash, Vec<f32>)>, DatabaseError> {
        let dimensions = self.dimensions.lock().get(space).copied();
        let sql = "SELECT hash, vector FROM passage_vector \
                   WHERE graph = $1 AND space = $2 AND hash = ANY ($3) AND ($4::int IS NULL OR vector_dims(vector) = $4)";
        let read = |row: &Row| {
            let hash: &[u8] = row::get(row, 0)?;
            let hash = hash.try_into().map(PassageHash).map_err(|_| BadRow("the hash of a passage".to_owned()))?;
            let vector: HalfVector = row::get(row, 1)?;
            let mut vector: Vec<f32> = vector.to_vec().into_iter().map(f32::from).collect();
            // Half precision moved its end a little off the unit sphere.
            let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
            vector.iter_mut().for_each(|number| *number /= length.max(f32::MIN_POSITIVE));
            Ok((hash, vector))
        };
        let mut found = Vec::new();
        for hashes in hashes.chunks(FETCHED) {
            found.extend(self.database.read(self.scope, async |client| {
                row::list(client, sql, &[&self.graph, &space, &hashes, &dimensions], read).await
            })?);
        }
        // Before this server has made a vector itself, any number of dimensions may be the right one, but only one of them.
        if let Some(length) = found.first().map(|(_, vector)| vector.len()) {
            found.retain(|(_, vector)| vector.len() == length);
        }
        Ok(found)
    }

    /// The passages that no other server holds.
    fn free(&self, space: &str, hashes: &[&[u8]]) -> Result<Vec<Vec<u8>>, DatabaseError> {
        let sql = "SELECT hash FROM unnest($3::bytea[]) AS hash WHERE NOT EXISTS ( \
                   SELECT FROM passage_claim claim WHERE claim.graph = $1 AND claim.space = $2 AND claim.hash = hash.hash \
                   AND claim.holder <> $4 AND claim.until >= now())";
        self.database.read(self.scope, async |client| {
            row::list(client, sql, &[&self.graph, &space, &hashes, &self.holder], |row| row::get(row, 0)).await
        })
    }

    /// Claims passages for this server, unless another holds them; returns those that it has now.
    fn claim(&self, space: &str, hashes: &[&[u8]]) -> Result<Vec<Vec<u8>>, DatabaseError> {
        let seconds = self.claim.as_secs_f64();
        // Rows that another server is claiming right now are not waited for.
        let held = "SELECT hash FROM passage_claim WHERE graph = $1 AND space = $2 AND hash = ANY ($3) \
                    AND (holder = $4 OR until < now()) FOR UPDATE SKIP LOCKED";
        let renew = "UPDATE passage_claim SET holder = $4, until = now() + make_interval(secs => $5) \
                     WHERE graph = $1 AND space = $2 AND hash = ANY ($3)";
        let add = "INSERT INTO passage_claim (graph, space, hash, holder, until) \
                   SELECT $1, $2, hash, $4, now() + make_interval(secs => $5) FROM unnest($3::bytea[]) AS hash \
                   ON CONFLICT (graph, space, hash) DO NOTHING RETURNING hash";
        // Another server may have stored its vectors, and ended its claims, since this one looked for them.
        let known = "DELETE FROM passage_claim claim USING passage_vector vector \
                     WHERE claim.graph = $1 AND claim.space = $2 AND claim.hash = ANY ($3) \
                     AND vector.graph = $1 AND vector.space = $2 AND vector.hash = claim.hash \
                     AND ($4::int IS NULL OR vector_dims(vector.vector) = $4) RETURNING claim.hash";
        let dimensions = self.dimensions.lock().get(space).copied();
        let hash = |row: &Row| row::get::<Vec<u8>>(row, 0);
        self.database.write_quietly(self.scope, async |tx| {
            let mut claimed = row::list(tx, held, &[&self.graph, &space, &hashes, &self.holder], hash).await?;
            row::execute(tx, renew, &[&self.graph, &space, &claimed, &self.holder, &seconds]).await?;
            claimed.extend(row::list(tx, add, &[&self.graph, &space, &hashes, &self.holder, &seconds], hash).await?);
            let known = row::list(tx, known, &[&self.graph, &space, &claimed, &dimensions], hash).await?;
            claimed.retain(|hash| !known.contains(hash));
            Ok(claimed)
        })
    }

    /// Stores vectors for all servers, and ends the claims on them.
    fn store(&self, space: &str, vectors: &[(PassageHash, Vec<f32>)]) -> Result<(), DatabaseError> {
        let hashes: Vec<&[u8]> = vectors.iter().map(|(hash, _)| &hash.0[..]).collect();
        let halves: Vec<HalfVector> = vectors.iter().map(|(_, vector)| HalfVector::from_f32_slice(vector)).collect();
        let put = "INSERT INTO passage_vector (graph, space, hash, vector) \
                   SELECT $1, $2, * FROM unnest($3::bytea[], $4::halfvec[]) \
                   ON CONFLICT (graph, space, hash) DO UPDATE SET vector = excluded.vector";
        let release = "DELETE FROM passage_claim WHERE graph = $1 AND space = $2 AND hash = ANY ($3)";
        self.database.write_quietly(self.scope, async |tx| {
            row::execute(tx, put, &[&self.graph, &space, &hashes, &halves]).await?;
            row::execute(tx, release, &[&self.graph, &space, &hashes]).await?;
            Ok(())
        })
    }

    fn note_dimensions(&self, space: &str, vector: Option<&[f32]>) {
        if let Some(dimensions) = vector.and_then(|vector| i32::try_from(vector.len()).ok()) {
            self.dimensions.lock().insert(space.to_owned(), dimensions);
        }
    }
}

impl VectorStore for SharedVectors {
    fn missing(
        &self,
        space: &str,
        grade: Grade,
        of: Option<&[NoteKey]>,
        limit: usize,
    ) -> Result<Vec<MissingVector>, StoreError> {
        let is_full = grade >= Grade::FULL;
        loop {
            let mut missing =
                self.own.missing(space, grade, of, if is_full { limit.saturating_mul(WIDER) } else { limit })?;
            let hashes: Vec<&[u8]> = missing.iter().map(|passage| &passage.hash.0[..]).collect();
            if hashes.is_empty() {
                return Ok(missing);
            }
            let known = self.fetch(space, &hashes).unwrap_or_else(|error| {
                tracing::debug!(%error, "cannot fetch vectors of other servers");
                Vec::new()
            });
            if !known.is_empty() {
                self.own.put_vectors(space, Grade::FULL, &known)?;
                self.fetched.fetch_add(known.len() as u64, Ordering::Relaxed);
                continue;
            }
            // Coarse vectors cost less than a claim.
            if is_full {
                let free = self.free(space, &hashes).unwrap_or_else(|error| {
                    tracing::debug!(%error, "cannot claim passages");
                    hashes.iter().map(|hash| hash.to_vec()).collect()
                });
                missing.retain(|passage| free.iter().any(|hash| *hash == passage.hash.0));
                missing.truncate(limit);
                let hashes: Vec<&[u8]> = missing.iter().map(|passage| &passage.hash.0[..]).collect();
                if let Ok(claimed) = self.claim(space, &hashes) {
                    missing.retain(|passage| claimed.iter().any(|hash| *hash == passage.hash.0));
                }
            }
            return Ok(missing);
        }
    }

    fn coverage(&self, space: &str) -> Result<Coverage, StoreError> {
        self.own.coverage(space)
    }

    fn put_vectors(&self, space: &str, grade: Grade, vectors: &[(PassageHash, Vec<f32>)]) -> Result<(), StoreError> {
        self.own.put_vectors(space, grade, vectors)?;
        self.note_dimensions(space, vectors.first().map(|(_, vector)| vector.as_slice()));
        if grade >= Grade::FULL && !vectors.is_empty() {
            if let Err(error) = self.store(space, vectors) {
                tracing::debug!(%error, "cannot store vectors for other servers");
            }
            self.embedded.fetch_add(vectors.len() as u64, Ordering::Relaxed);
        }
        Ok(())
    }

    fn nearest(&self, query: &VectorQuery<'_>) -> Result<Vec<VectorHit>, StoreError> {
        self.note_dimensions(query.space, Some(query.vector));
        self.own.nearest(query)
    }

    fn similarities(
        &self,
        query: &VectorQuery<'_>,
        sections: &[(NoteKey, usize)],
    ) -> Result<Vec<Option<f32>>, StoreError> {
        self.own.similarities(query, sections)
    }
}
