//! Graphs: one database holds many, each with its own notes and memory.

use crate::connection::PostgresDatabase;
use crate::failure::DatabaseError;
use crate::row;

/// A graph of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    pub(crate) id: i64,
    /// Its unique name.
    pub name: String,
}

/// Why a graph was not created.
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
    /// The database failed.
    #[error(transparent)]
    Failed(#[from] DatabaseError),
}

/// The longest name in characters.
const LONGEST_NAME: usize = 64;

impl PostgresDatabase {
    /// Creates an empty graph.
    pub fn create_graph(&self, name: &str) -> Result<Graph, GraphError> {
        if !is_name(name) {
            return Err(GraphError::Name(name.to_owned()));
        }
        self.write(async |tx| {
            let insert = "INSERT INTO graph (name) VALUES ($1) ON CONFLICT (name) DO NOTHING RETURNING id";
            let Some(id) = row::first(tx, insert, &[&name], |row| row::get(row, 0)).await? else {
                return Ok(Err(GraphError::Exists(name.to_owned())));
            };
            row::execute(tx, "INSERT INTO memory_head (graph) VALUES ($1)", &[&id]).await?;
            row::execute(tx, "INSERT INTO note_head (graph) VALUES ($1)", &[&id]).await?;
            Ok(Ok(Graph { id, name: name.to_owned() }))
        })?
    }

    /// A graph by its name.
    pub fn graph(&self, name: &str) -> Result<Option<Graph>, DatabaseError> {
        Ok(self.graphs()?.into_iter().find(|graph| graph.name == name))
    }

    /// All graphs, in order of name.
    pub fn graphs(&self) -> Result<Vec<Graph>, DatabaseError> {
        self.read(async |client| {
            let read = |row: &_| Ok(Graph { id: row::get(row, 0)?, name: row::get(row, 1)? });
            row::list(client, "SELECT id, name FROM graph ORDER BY name", &[], read).await
        })
    }
}

/// Names are parts of paths and of the names of databases' channels.
fn is_name(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    name.len() <= LONGEST_NAME
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(is_part)
}
