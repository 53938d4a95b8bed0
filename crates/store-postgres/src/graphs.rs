//! Graphs: one database holds many, each with its own notes and memory.

use jiff::Timestamp;

use crate::connection::{PostgresDatabase, Scope};
use crate::failure::DatabaseError;
use crate::row;

/// A graph of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    pub(crate) id: i64,
    pub(crate) uid: String,
    pub name: String,
}

impl Graph {
    /// Identifies the graph in its database, also after it was renamed or deleted.
    pub fn id(&self) -> i64 {
        self.id
    }

    /// Identifies the graph also after it was renamed, and among those of all databases.
    pub fn uid(&self) -> &str {
        &self.uid
    }
}

/// How much a graph may hold and be called; no limit where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GraphLimits {
    pub max_notes: Option<i64>,
    /// Bytes of notes, kept versions and memory.
    pub max_bytes: Option<i64>,
    /// Calls a second at each server.
    pub max_rate: Option<i64>,
}

/// A graph, and how much it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphUsage {
    pub graph: Graph,
    /// When it was created.
    pub created: Timestamp,
    pub notes: i64,
    /// Bytes of notes, kept versions and memory.
    pub bytes: i64,
    /// How much it may hold.
    pub limits: GraphLimits,
}

/// Why a graph was not created or changed.
#[derive(Debug, thiserror::Error)]
pub enum GraphError {
    /// The name is taken.
    #[error("there is a graph {0:?} already; choose another name")]
    Exists(String),
    /// The name is not one.
    #[error(
        "cannot name a graph {0:?}: a name has 1 to 64 of the characters a-z, 0-9, `-` and `_`, and starts with a letter"
    )]
    Name(String),
    /// There is no such graph.
    #[error("there is no graph {0:?}; `quipu graph list` lists the graphs")]
    Unknown(String),
    #[error(transparent)]
    Failed(#[from] DatabaseError),
}

/// The longest name in characters.
const LONGEST_NAME: usize = 64;

impl PostgresDatabase {
    /// Creates an empty graph.
    pub fn create_graph(&self, name: &str) -> Result<Graph, GraphError> {
        check_name(name)?;
        let uid = self.read(Scope::Shared, async |client| {
            row::first(client, "SELECT gen_random_uuid()::text", &[], |row| row::get::<String>(row, 0)).await
        })?;
        self.write(Scope::Shared, async |tx| {
            let insert = "INSERT INTO graph (name, uid) VALUES ($1, $2::text::uuid) ON CONFLICT (name) DO NOTHING";
            row::execute(tx, insert, &[&name, &uid]).await?;
            // An earlier attempt whose commit was not answered has made it already.
            let made = "SELECT id, name, uid::text FROM graph WHERE name = $1 AND uid = $2::text::uuid";
            let Some(graph) = row::first(tx, made, &[&name, &uid], graph).await? else {
                return Ok(Err(GraphError::Exists(name.to_owned())));
            };
            for head in ["memory_head", "note_head"] {
                let insert = format!("INSERT INTO {head} (graph) VALUES ($1) ON CONFLICT (graph) DO NOTHING");
                row::execute(tx, &insert, &[&graph.id]).await?;
            }
            Ok(Ok(graph))
        })?
    }

    /// A graph by its name.
    pub fn graph(&self, name: &str) -> Result<Option<Graph>, DatabaseError> {
        self.read(Scope::Shared, async |client| {
            row::first(client, "SELECT id, name, uid::text FROM graph WHERE name = $1", &[&name], graph).await
        })
    }

    /// A graph by its id.
    pub fn graph_by_id(&self, id: i64) -> Result<Option<Graph>, DatabaseError> {
        self.read(Scope::Shared, async |client| {
            row::first(client, "SELECT id, name, uid::text FROM graph WHERE id = $1", &[&id], graph).await
        })
    }

    /// All graphs, in order of name.
    pub fn graphs(&self) -> Result<Vec<Graph>, DatabaseError> {
        self.read(Scope::Shared, async |client| {
            row::list(client, "SELECT id, name, uid::text FROM graph ORDER BY name", &[], graph).await
        })
    }

    /// All graphs in order of name, and how much each holds. Only the owner of the tables sees the sizes.
    pub fn graph_usage(&self) -> Result<Vec<GraphUsage>, DatabaseError> {
        let sql = "SELECT id, name, uid::text, (extract(epoch FROM created_at) * 1000000)::bigint, \
                   coalesce(notes, 0), coalesce(note.bytes + kept_bytes + memory.bytes, 0), max_notes, max_bytes, max_rate \
                   FROM graph LEFT JOIN note_head note ON note.graph = id LEFT JOIN memory_head memory ON memory.graph = id \
                   ORDER BY name";
        let read = |row: &_| {
            Ok(GraphUsage {
                graph: graph(row)?,
                created: Timestamp::from_microsecond(row::get(row, 3)?).unwrap_or_default(),
                notes: row::get(row, 4)?,
                bytes: row::get(row, 5)?,
                limits: GraphLimits {
                    max_notes: row::get(row, 6)?,
                    max_bytes: row::get(row, 7)?,
                    max_rate: row::get(row, 8)?,
                },
            })
        };
        self.read(Scope::Shared, async |client| row::list(client, sql, &[], read).await)
    }

    /// Gives a graph another name. Servers know it under the new one within two seconds.
    pub fn rename_graph(&self, name: &str, new_name: &str) -> Result<(), GraphError> {
        check_name(new_name)?;
        let id = self.named(name)?.id;
        self.write(Scope::Shared, async |tx| {
            let taken = "SELECT id FROM graph WHERE name = $1 AND id <> $2 FOR UPDATE";
            if row::first(tx, taken, &[&new_name, &id], |row| row::get::<i64>(row, 0)).await?.is_some() {
                return Ok(Err(GraphError::Exists(new_name.to_owned())));
            }
            let rename = "UPDATE graph SET name = $2 WHERE id = $1";
            Ok(found(row::execute(tx, rename, &[&id, &new_name]).await?, name))
        })?
    }

    /// The calls a second that each server accepts, by the id of the graph, for graphs with such a limit.
    pub fn graph_rates(&self) -> Result<Vec<(i64, u32)>, DatabaseError> {
        let sql = "SELECT id, max_rate FROM graph WHERE max_rate IS NOT NULL";
        let read = |row: &_| Ok((row::get(row, 0)?, u32::try_from(row::get::<i64>(row, 1)?).unwrap_or(u32::MAX)));
        self.read(Scope::Shared, async |client| row::list(client, sql, &[], read).await)
    }

    /// Sets how much a graph may hold and be called.
    pub fn limit_graph(&self, name: &str, limits: GraphLimits) -> Result<(), GraphError> {
        self.write(Scope::Shared, async |tx| {
            let sql = "UPDATE graph SET max_notes = $2, max_bytes = $3, max_rate = $4 WHERE name = $1";
            let GraphLimits { max_notes, max_bytes, max_rate } = limits;
            Ok(found(row::execute(tx, sql, &[&name, &max_notes, &max_bytes, &max_rate]).await?, name))
        })?
    }

    /// Permanently deletes a graph with its notes, their versions and its memory.
    pub fn delete_graph(&self, name: &str) -> Result<(), GraphError> {
        let id = self.named(name)?.id;
        self.write(Scope::Shared, async |tx| {
            row::execute(tx, "DELETE FROM graph WHERE id = $1", &[&id]).await?;
            Ok(Ok(()))
        })?
    }

    /// The graph of a name. A change is then made by id, so that it may be made again when its commit was not answered.
    fn named(&self, name: &str) -> Result<Graph, GraphError> {
        self.graph(name)?.ok_or_else(|| GraphError::Unknown(name.to_owned()))
    }
}

fn graph(row: &tokio_postgres::Row) -> Result<Graph, row::BadRow> {
    Ok(Graph { id: row::get(row, 0)?, name: row::get(row, 1)?, uid: row::get(row, 2)? })
}

fn found(rows: u64, name: &str) -> Result<(), GraphError> {
    if rows == 0 { Err(GraphError::Unknown(name.to_owned())) } else { Ok(()) }
}

/// Names are parts of paths.
fn check_name(name: &str) -> Result<(), GraphError> {
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    let is_name = name.len() <= LONGEST_NAME
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(is_part);
    if is_name { Ok(()) } else { Err(GraphError::Name(name.to_owned())) }
}
