//! Vectors on disk, by the hash of their text and by their space: one SQLite file beside the catalog.
//!
//! It outlives the catalog: a text that comes back, by a rebuild or otherwise, finds its vector again. Vectors that no note has
//! needed for [`KEPT_DAYS`] are deleted.

use std::collections::BTreeSet;

use quipu_core::ports::{Grade, PassageHash};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior};

use super::fixed_point::{FixedPoint, bytes, cosine};
use super::resident::{CachedVector, Resident};
use crate::index_database::{self, IndexFileError};
use crate::sqlite;
use quipu_own_folder::OwnFolder;

const FILE: &str = "vectors.db";

/// The format on disk; a file of another format is recreated.
pub(crate) const FORMAT: i64 = 1;

/// Coarse and fine parts have tables of their own, so that loading the coarse ones does not read the fine ones, and listing
/// the vectors reads neither.
pub(crate) const SCHEMA: &str = "
    CREATE TABLE space (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dimensions INTEGER NOT NULL);
    CREATE TABLE vector (
        id INTEGER PRIMARY KEY,
        space INTEGER NOT NULL,
        hash BLOB NOT NULL,
        grade INTEGER NOT NULL,
        seen_day INTEGER NOT NULL,
        UNIQUE (space, hash)
    );
    CREATE TABLE coarse (id INTEGER PRIMARY KEY, scale REAL NOT NULL, numbers BLOB NOT NULL);
    CREATE TABLE fine (id INTEGER PRIMARY KEY, numbers BLOB NOT NULL);
";

/// How long an unused vector is kept.
const KEPT_DAYS: i64 = 90;

/// How often the day of a vector in use is updated.
const SEEN_DAYS: i64 = 30;

/// The size of the `-shm` file of an open database, at least.
const SHARED_MEMORY_BYTES: u64 = 32 << 10;

const TODAY: &str = "unixepoch() / 86400";

/// A connection to the file. One connection writes and another reads, so that a search does not wait for a checkpoint.
pub(super) struct Cache {
    db: Connection,
}

/// A space that has vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Space {
    id: i64,
    pub(super) dimensions: usize,
}

/// The vectors that a call of [`Cache::put`] changed.
pub(super) struct Put {
    pub(super) changed: Vec<CachedVector>,
    /// How many of them are new.
    pub(super) new: usize,
}

impl Cache {
    /// Opens the file, or creates it.
    pub(super) fn open(folder: &OwnFolder) -> Result<Self, IndexFileError> {
        Self::prepare(index_database::open(folder, FILE, false)?)
    }

    /// Deletes the file and its journals. It must not be open.
    pub(super) fn remove(folder: &OwnFolder) -> std::io::Result<()> {
        index_database::remove(folder, FILE)
    }

    pub(super) fn exists(folder: &OwnFolder) -> std::io::Result<bool> {
        folder.check(FILE)
    }

    /// Fails if another program truncated the `-shm` file of an open cache. SQLite maps it: reading behind its end would end the
    /// process.
    pub(super) fn check_shared_memory(folder: &OwnFolder) -> Result<(), IndexFileError> {
        let stamp = folder.stamp(&format!("{FILE}-shm"))?;
        if stamp.is_some_and(|stamp| stamp.bytes() < SHARED_MEMORY_BYTES) {
            return Err(IndexFileError::Foreign("has a truncated -shm file beside it".to_owned()));
        }
        Ok(())
    }

    /// Closes it without a checkpoint.
    pub(super) fn abandon(self) -> Result<(), IndexFileError> {
        Ok(sqlite::leave_log(&self.db)?)
    }

    /// An empty cache without a file.
    pub(super) fn in_memory() -> Result<Self, IndexFileError> {
        Self::prepare(Connection::open_in_memory()?)
    }

    fn prepare(mut db: Connection) -> Result<Self, IndexFileError> {
        index_database::prepare(&mut db, SCHEMA, FORMAT)?;
        Ok(Self { db })
    }

    /// `None` for an unknown space.
    pub(super) fn space(&self, name: &str) -> Result<Option<Space>, IndexFileError> {
        find_space(&self.db, name)
    }

    pub(super) fn count(&self, space: Space) -> Result<usize, IndexFileError> {
        Ok(self.db.query_row("SELECT count(*) FROM vector WHERE space = ?1", [space.id], |row| row.get(0))?)
    }

    /// Loads the vectors of a space whose text is in memory, oldest first.
    pub(super) fn load_into(&self, resident: &mut Resident, space: Space) -> Result<(), IndexFileError> {
        // A merge of both tables in the order of their keys.
        let sql = "SELECT hash, id, grade, scale, numbers FROM vector CROSS JOIN coarse USING (id) \
                   WHERE +space = ?1 ORDER BY id";
        let mut statement = self.db.prepare(sql)?;
        let mut rows = statement.query([space.id])?;
        while let Some(row) = rows.next()? {
            if resident.has_text(hash_of(row)?) {
                resident.put_vector(&cached_vector(row, space)?);
            }
        }
        Ok(())
    }

    pub(super) fn find(&self, space: Space, hashes: &[PassageHash]) -> Result<Vec<CachedVector>, IndexFileError> {
        let sql = "SELECT hash, id, grade, scale, numbers FROM vector JOIN coarse USING (id) \
                   WHERE space = ?1 AND hash = ?2";
        let mut statement = self.db.prepare_cached(sql)?;
        let mut found = Vec::new();
        for hash in hashes {
            let mut rows = statement.query((space.id, hash.0.as_slice()))?;
            if let Some(row) = rows.next()? {
                found.push(cached_vector(row, space)?);
            }
        }
        Ok(found)
    }

    /// The exact cosines of a query with vectors.
    pub(super) fn cosines(&self, query: &[f32], ids: impl Iterator<Item = i64>) -> Result<Vec<f32>, IndexFileError> {
        // One transaction, since each takes and releases locks.
        let tx = self.db.unchecked_transaction()?;
        let sql = "SELECT scale, coarse.numbers, fine.numbers FROM coarse JOIN fine USING (id) WHERE id = ?1";
        let mut statement = tx.prepare_cached(sql)?;
        let cosines = ids.map(|id| {
            let mut rows = statement.query([id])?;
            let row = rows.next()?.ok_or(IndexFileError::Vector(id))?;
            let numbers = |column| numbers(row, column, id, query.len());
            Ok(cosine(query, row.get(0)?, numbers(1)?, numbers(2)?))
        });
        cosines.collect()
    }

    /// Sets the dimensions of a space. Vectors of other dimensions are kept aside, in case these dimensions come back.
    pub(super) fn set_dimensions(&mut self, name: &str, dimensions: usize) -> Result<(), IndexFileError> {
        let tx = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        space_for(&tx, name, dimensions)?;
        tx.commit()?;
        Ok(())
    }

    /// Adds vectors and replaces those of a lower grade, in one transaction. All have the same dimensions.
    pub(super) fn put(
        &mut self,
        name: &str,
        grade: Grade,
        vectors: Vec<(PassageHash, FixedPoint)>,
    ) -> Result<Put, IndexFileError> {
        let tx = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut put = Put { changed: Vec::new(), new: 0 };
        for (hash, vector) in vectors {
            let space = space_for(&tx, name, vector.coarse.len())?;
            let known = tx
                .prepare_cached("SELECT id, grade FROM vector WHERE space = ?1 AND hash = ?2")?
                .query_row((space.id, hash.0.as_slice()), |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            let id: i64 = match known {
                Some((_, known)) if Grade(known) >= grade => continue,
                Some((id, _)) => {
                    tx.prepare_cached("UPDATE vector SET grade = ?2 WHERE id = ?1")?.execute((id, grade.0))?;
                    id
                }
                None => {
                    put.new += 1;
                    let sql = format!("INSERT INTO vector VALUES (NULL, ?1, ?2, ?3, {TODAY})");
                    tx.prepare_cached(&sql)?.insert((space.id, hash.0.as_slice(), grade.0))?
                }
            };
            tx.prepare_cached("INSERT OR REPLACE INTO coarse VALUES (?1, ?2, ?3)")?.execute((
                id,
                vector.scale,
                bytes(&vector.coarse),
            ))?;
            tx.prepare_cached("INSERT OR REPLACE INTO fine VALUES (?1, ?2)")?.execute((id, bytes(&vector.fine)))?;
            put.changed.push(CachedVector { hash, id, grade, scale: vector.scale, coarse: vector.coarse });
        }
        tx.commit()?;
        Ok(put)
    }

    /// Updates the day of the vectors of a space that are in use, and deletes those unused for long, in this space and in all
    /// others. Returns how many were deleted.
    pub(super) fn delete_unused(
        &mut self,
        space: Option<Space>,
        is_used: impl Fn(PassageHash) -> bool,
    ) -> Result<usize, IndexFileError> {
        let tx = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let space = space.map_or(-1, |space| space.id);
        let (mut seen, mut unused) = (Vec::new(), Vec::new());
        {
            // Counted from the last use of any vector: after a year away, a rebuild still finds all vectors.
            let sql = format!(
                "SELECT hash, id, space, (SELECT max(seen_day) FROM vector) - seen_day FROM vector \
                 WHERE {TODAY} - seen_day >= ?1"
            );
            let mut statement = tx.prepare(&sql)?;
            let mut rows = statement.query([SEEN_DAYS])?;
            while let Some(row) = rows.next()? {
                let (id, of_space, days): (i64, i64, i64) = (row.get(1)?, row.get(2)?, row.get(3)?);
                if of_space == space && is_used(hash_of(row)?) {
                    seen.push(id);
                } else if days >= KEPT_DAYS {
                    unused.push(id);
                }
            }
            let mut update = tx.prepare(&format!("UPDATE vector SET seen_day = {TODAY} WHERE id = ?1"))?;
            seen.iter().try_for_each(|id| update.execute([id]).map(drop))?;
            for table in ["vector", "coarse", "fine"] {
                let mut delete = tx.prepare(&format!("DELETE FROM {table} WHERE id = ?1"))?;
                unused.iter().try_for_each(|id| delete.execute([id]).map(drop))?;
            }
        }
        tx.commit()?;
        Ok(unused.len())
    }

    /// Deletes the vectors of all other texts, and rewrites the file.
    pub(super) fn rewrite(&mut self, used: &BTreeSet<[u8; 16]>) -> Result<(), IndexFileError> {
        let tx = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let unused: Vec<i64> = {
            let mut statement = tx.prepare("SELECT hash, id FROM vector")?;
            let rows = statement.query_map([], |row| Ok((row.get::<_, [u8; 16]>(0)?, row.get(1)?)))?;
            let unused = rows.filter(|row| row.as_ref().map_or(true, |(hash, _)| !used.contains(hash)));
            unused.map(|row| row.map(|(_, id)| id)).collect::<Result<_, _>>()?
        };
        for table in ["vector", "coarse", "fine"] {
            let mut delete = tx.prepare(&format!("DELETE FROM {table} WHERE id = ?1"))?;
            unused.iter().try_for_each(|id| delete.execute([id]).map(drop))?;
        }
        tx.commit()?;
        index_database::rewrite(&self.db)
    }

    /// Problems that SQLite's check and the lengths of the vectors show, as sentences.
    pub(super) fn check(&self) -> Result<Vec<String>, IndexFileError> {
        let damages = sqlite::integrity_check(&self.db)?.into_iter();
        let mut findings: Vec<String> = damages.map(|line| format!("The vectors are damaged: {line}.")).collect();
        if findings.is_empty() {
            let sql = "SELECT count(*) FROM vector \
                       LEFT JOIN space ON space.id = vector.space \
                       LEFT JOIN coarse ON coarse.id = vector.id \
                       LEFT JOIN fine ON fine.id = vector.id \
                       WHERE (length(hash) = 16 AND length(coarse.numbers) = dimensions \
                              AND length(fine.numbers) = dimensions) IS NOT TRUE";
            let odd: u64 = self.db.query_row(sql, [], |row| row.get(0))?;
            if odd > 0 {
                findings.push(format!("The vectors are damaged: {odd} of them do not have their space's dimensions."));
            }
        }
        Ok(findings)
    }
}

fn find_space(db: &Connection, name: &str) -> Result<Option<Space>, IndexFileError> {
    let mut statement = db.prepare_cached("SELECT id, dimensions FROM space WHERE name = ?1")?;
    let space = statement.query_row([name], |row| Ok(Space { id: row.get(0)?, dimensions: row.get(1)? }));
    Ok(space.optional()?)
}

/// The space of that name and dimensions; a new one is created. A space of other dimensions is renamed: they become the end of
/// its name.
fn space_for(tx: &Transaction<'_>, name: &str, dimensions: usize) -> Result<Space, IndexFileError> {
    match find_space(tx, name)? {
        Some(space) if space.dimensions == dimensions => return Ok(space),
        Some(space) => {
            let sql = "UPDATE space SET name = name || ' of ' || dimensions WHERE id = ?1";
            tx.prepare_cached(sql)?.execute([space.id])?;
        }
        None => {}
    }
    let sql = "UPDATE space SET name = ?1 WHERE name = ?1 || ' of ' || ?2 RETURNING id";
    let back = tx.prepare_cached(sql)?.query_row((name, dimensions), |row| row.get(0)).optional()?;
    let id = match back {
        Some(id) => id,
        None => tx.prepare_cached("INSERT INTO space VALUES (NULL, ?1, ?2)")?.insert((name, dimensions))?,
    };
    Ok(Space { id, dimensions })
}

/// Reads a row of hash, id, grade, scale and coarse numbers.
fn cached_vector(row: &Row<'_>, space: Space) -> Result<CachedVector, IndexFileError> {
    let (id, scale): (i64, f32) = (row.get(1)?, row.get(3)?);
    if !scale.is_finite() {
        return Err(IndexFileError::Vector(id));
    }
    let coarse = numbers(row, 4, id, space.dimensions)?.iter().map(|byte| byte.cast_signed()).collect();
    Ok(CachedVector { hash: hash_of(row)?, id, grade: Grade(row.get(2)?), scale, coarse })
}

fn hash_of(row: &Row<'_>) -> Result<PassageHash, IndexFileError> {
    Ok(PassageHash(row.get(0)?))
}

fn numbers<'a>(row: &'a Row<'_>, column: usize, id: i64, dimensions: usize) -> Result<&'a [u8], IndexFileError> {
    let bytes = row.get_ref(column)?.as_blob().map_err(rusqlite::Error::from)?;
    if bytes.len() != dimensions {
        return Err(IndexFileError::Vector(id));
    }
    Ok(bytes)
}
