//! The catalog: one SQLite file with a row for each note, and what is needed to complete the text index after a crash.
//!
//! `seq` counts applied lists of changes. A row's `seq` is that of the list that last changed its text, so a touch does not
//! change it; [`OWED`] marks a note whose text is missing from the text index.

use std::sync::Arc;

use parking_lot::Mutex;
use quipu_core::model::{FileStat, Note, NoteKey};
use quipu_core::ports::NoteChange;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use crate::index_database::{self, IndexFileError};
use crate::row::{self, RowError};
use crate::sqlite;
use crate::vectors::{self, ListedPassage, NotePassages};
use quipu_own_folder::OwnFolder;

/// The format on disk: rows, tables, and the words of the text index. Any change of these needs a new number; a store of
/// another format starts empty.
pub(crate) const FORMAT: i64 = 8;

const FILE: &str = "catalog.db";

/// The `seq` of a row whose text is missing from the text index: later than any, until the note is put again.
const OWED: i64 = i64::MAX;

/// More lists of changes than can be applied. A cloned vault may bring a larger number, to make it overflow.
const MAX_SEQ: i64 = 1 << 53;

/// Keys are given out without gaps, so a key is lower than the largest number of notes that the index ever had. Memory is
/// reserved for all of them: a cloned vault may bring few notes with large keys. An index that lost more notes than this is
/// rebuilt, which is quick for the few that are left.
const MAX_FREE_KEYS: i64 = 1 << 20;

pub(crate) const SCHEMA: &str = "
    CREATE TABLE meta (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        epoch TEXT NOT NULL,
        fingerprint TEXT NOT NULL,
        seq INTEGER NOT NULL
    );
    CREATE TABLE note (
        key INTEGER PRIMARY KEY,
        seq INTEGER NOT NULL,
        modified_ns INTEGER NOT NULL,
        size INTEGER NOT NULL,
        hash BLOB NOT NULL,
        sections INTEGER NOT NULL,
        passages BLOB NOT NULL,
        row BLOB NOT NULL
    );
    CREATE TABLE removed (key INTEGER PRIMARY KEY, seq INTEGER NOT NULL);
    CREATE TABLE links (one INTEGER PRIMARY KEY CHECK (one = 1), bytes BLOB NOT NULL);
    INSERT INTO meta VALUES (1, lower(hex(randomblob(16))), '', 0);
";

/// Rows that one task decodes: few enough to keep all cores busy, enough to make the tasks' overhead negligible.
const DECODE_BATCH: usize = 1024;

/// The open catalog, the only connection to its file.
pub(crate) struct Catalog {
    db: Connection,
    /// `None` in memory.
    folder: Option<Arc<OwnFolder>>,
    epoch: String,
    seq: u64,
}

pub(crate) struct LoadedRows {
    pub(crate) notes: Vec<(NoteKey, Note)>,
    /// The notes whose text is missing from the text index.
    pub(crate) owed: Vec<NoteKey>,
}

impl Catalog {
    /// Opens the file, or creates it.
    pub(crate) fn open(folder: &Arc<OwnFolder>) -> Result<Self, IndexFileError> {
        // The folder has one owner, so no other connection reads the write-ahead log.
        Self::prepare(index_database::open(folder, FILE, true)?, Some(folder.clone()))
    }

    /// An empty catalog without a file.
    pub(crate) fn in_memory() -> Result<Self, IndexFileError> {
        Self::prepare(Connection::open_in_memory()?, None)
    }

    /// Deletes the file and those beside it. It must not be open.
    pub(crate) fn remove_file(folder: &OwnFolder) -> Result<(), IndexFileError> {
        Ok(index_database::remove(folder, FILE)?)
    }

    fn prepare(mut db: Connection, folder: Option<Arc<OwnFolder>>) -> Result<Self, IndexFileError> {
        index_database::prepare(&mut db, SCHEMA, FORMAT)?;
        let (epoch, seq) = db.query_row("SELECT epoch, seq FROM meta", [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        if !(0..=MAX_SEQ).contains(&seq) {
            return Err(IndexFileError::Number(seq));
        }
        Ok(Self { db, folder, epoch, seq: seq.cast_unsigned() })
    }

    /// Changes whenever the catalog is emptied or recreated.
    pub(crate) fn epoch(&self) -> &str {
        &self.epoch
    }

    /// The number of the last applied list.
    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    /// Replaces a damaged file by a new one.
    pub(crate) fn recreate(&mut self) -> Result<(), IndexFileError> {
        let folder = self.folder.take();
        // Closes the damaged file before it is deleted.
        *self = Self::in_memory()?;
        if let Some(folder) = folder {
            Self::remove_file(&folder)?;
            *self = Self::open(&folder)?;
        }
        Ok(())
    }

    /// Empties the catalog unless its notes were indexed under this fingerprint.
    pub(crate) fn keep_only(&mut self, fingerprint: &str) -> Result<(), IndexFileError> {
        let known: String = self.db.query_row("SELECT fingerprint FROM meta", [], |row| row.get(0))?;
        if known == fingerprint {
            return Ok(());
        }
        let tx = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        tx.execute_batch("DELETE FROM note; DELETE FROM removed; DELETE FROM links;")?;
        let epoch = tx.query_row(
            "UPDATE meta SET fingerprint = ?1, epoch = lower(hex(randomblob(16))), seq = 0 RETURNING epoch",
            [fingerprint],
            |row| row.get(0),
        )?;
        tx.commit()?;
        (self.epoch, self.seq) = (epoch, 0);
        Ok(())
    }

    /// Marks the notes whose text is missing, given that the text index has everything up to the list `text_seq`, or
    /// nothing. Returns the keys that the text index must delete.
    ///
    /// Afterwards the text index may claim to be at [`Catalog::seq`], since the catalog knows what it is missing.
    pub(crate) fn mark_missing_texts(&mut self, text_seq: Option<u64>) -> Result<Vec<NoteKey>, IndexFileError> {
        // It has every list, and has deleted what was marked before: no need to look at each note.
        if text_seq == Some(self.seq) {
            return Ok(Vec::new());
        }
        let tx = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let outdated = match text_seq {
            Some(seq) => keys_after(&tx, seq)?,
            None => Vec::new(),
        };
        if outdated.is_empty() && text_seq.is_some() {
            return Ok(outdated);
        }
        tx.execute("UPDATE note SET seq = ?2 WHERE seq > ?1", (text_seq.unwrap_or(0), OWED))?;
        // A new number, so that the text index is ahead, which is noticed, if a power cut loses this transaction. A text
        // index that cannot be trusted also gets a new epoch, so that none of its old numbers can look right.
        let sql = if text_seq.is_some() {
            "UPDATE meta SET seq = seq + 1 RETURNING epoch, seq"
        } else {
            "UPDATE meta SET seq = seq + 1, epoch = lower(hex(randomblob(16))) RETURNING epoch, seq"
        };
        let (epoch, seq) = tx.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        tx.commit()?;
        (self.epoch, self.seq) = (epoch, seq);
        Ok(outdated)
    }

    /// Every note. Missing texts must have been marked.
    pub(crate) fn load(&self) -> Result<LoadedRows, IndexFileError> {
        let mut owed = Vec::new();
        let (mut count, mut most) = (0, 0);
        let decoded = Mutex::new(Ok(Vec::new()));
        rayon::in_place_scope(|scope| -> Result<(), IndexFileError> {
            let mut statement = self.db.prepare("SELECT key, seq, modified_ns, size, hash, row FROM note")?;
            let mut rows = statement.query([])?;
            let mut batch = RawRows::default();
            while let Some(row) = rows.next()? {
                let key = NoteKey(row.get(0)?);
                (count, most) = (count + 1, most.max(i64::from(key.0)));
                if row.get::<_, i64>(1)? == OWED {
                    owed.push(key);
                }
                let stat = FileStat { modified_ns: row.get(2)?, size: row.get::<_, i64>(3)?.cast_unsigned() };
                let hash = row.get_ref(4)?.as_blob().map_err(rusqlite::Error::from)?;
                let bytes = row.get_ref(5)?.as_blob().map_err(rusqlite::Error::from)?;
                batch.push(key, stat, hash, bytes);
                if batch.rows.len() == DECODE_BATCH {
                    let full = std::mem::take(&mut batch);
                    scope.spawn(|_| full.decode_into(&decoded));
                }
            }
            batch.decode_into(&decoded);
            Ok(())
        })?;
        check_keys(count, most)?;
        let notes = decoded.into_inner()?;
        Ok(LoadedRows { notes, owed })
    }

    /// Adds the passages of at most `limit` notes from a key on; returns the next key, if there may be more notes.
    pub(crate) fn passages_from(
        &self,
        from: i64,
        limit: usize,
        read: &mut Vec<NotePassages>,
    ) -> Result<Option<i64>, IndexFileError> {
        sqlite::start_operation();
        let sql = "SELECT key, modified_ns, passages FROM note WHERE key >= ?1 ORDER BY key LIMIT ?2";
        let mut statement = self.db.prepare_cached(sql)?;
        let mut rows = statement.query((from, i64::try_from(limit).unwrap_or(i64::MAX)))?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            let key = NoteKey(row.get(0)?);
            let bytes = row.get_ref(2)?.as_blob().map_err(rusqlite::Error::from)?;
            let passages = vectors::decode(bytes).ok_or(IndexFileError::Passages(key.0))?;
            read.push(NotePassages { key, modified_ns: row.get(1)?, passages });
            count += 1;
        }
        let last = read.last().filter(|_| count == limit);
        Ok(last.map(|last| i64::from(last.key.0) + 1))
    }

    /// Applies a list of changes, with the passages of their notes, in one transaction. Returns for each change whether its
    /// key had a note before; a touch or a removal without one does nothing. `text_seq` is the last list that the text
    /// index has, so older removals are no longer needed.
    pub(crate) fn apply(
        &mut self,
        changes: &[NoteChange<'_>],
        passages: &[Vec<ListedPassage>],
        text_seq: u64,
    ) -> Result<Vec<bool>, IndexFileError> {
        let tx = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let seq = tx.query_row("UPDATE meta SET seq = seq + 1 RETURNING seq", [], |row| row.get(0))?;
        tx.prepare_cached("DELETE FROM removed WHERE seq <= ?1")?.execute([text_seq])?;
        let with_passages = changes.iter().zip(passages);
        let replaced = with_passages.map(|(change, passages)| apply_one(&tx, change, passages, seq));
        let replaced = replaced.collect::<Result<_, _>>()?;
        tx.commit()?;
        self.seq = seq;
        Ok(replaced)
    }

    /// Stores the resolved links, replacing earlier ones.
    pub(crate) fn store_links(&self, links: &[u8]) -> Result<(), IndexFileError> {
        self.db.execute("INSERT OR REPLACE INTO links VALUES (1, ?1)", [links])?;
        Ok(())
    }

    /// The resolved links that were stored last.
    pub(crate) fn links(&self) -> Result<Option<Vec<u8>>, IndexFileError> {
        Ok(self.db.query_row("SELECT bytes FROM links", [], |row| row.get(0)).optional()?)
    }

    /// The numbers of notes and of sections.
    pub(crate) fn counts(&self) -> Result<(u64, u64), IndexFileError> {
        let sql = "SELECT count(*), coalesce(sum(sections), 0) FROM note";
        Ok(self.db.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?)
    }

    /// The notes whose texts are missing from the text index.
    pub(crate) fn owed(&self) -> Result<Vec<NoteKey>, IndexFileError> {
        let mut statement = self.db.prepare_cached("SELECT key FROM note WHERE seq = ?1 ORDER BY key")?;
        let keys = statement.query_map([OWED], |row| row.get(0).map(NoteKey))?;
        Ok(keys.collect::<Result<_, _>>()?)
    }

    /// Rewrites the file, so that nothing of deleted notes is left in it.
    pub(crate) fn rewrite(&self) -> Result<(), IndexFileError> {
        self.db.execute_batch("DELETE FROM links")?;
        index_database::rewrite(&self.db)
    }

    /// Problems that SQLite's check and reading every row show, as sentences.
    pub(crate) fn check(&self) -> Result<Vec<String>, IndexFileError> {
        let damages = sqlite::integrity_check(&self.db)?.into_iter();
        let mut findings: Vec<String> = damages.map(|line| format!("The catalog is damaged: {line}.")).collect();
        if findings.is_empty()
            && let Err(error) =
                self.load().map(drop).and_then(|()| self.passages_from(0, usize::MAX, &mut Vec::new()).map(drop))
        {
            findings.push(format!("The catalog is damaged: {error}."));
        }
        Ok(findings)
    }
}

/// Fails if keys are larger than so many notes can have.
fn check_keys(notes: i64, most: i64) -> Result<(), IndexFileError> {
    let limit = (notes.saturating_mul(16) + MAX_FREE_KEYS).min(i64::from(u32::MAX));
    if most < limit { Ok(()) } else { Err(IndexFileError::Number(most)) }
}

/// The keys of notes that were put or removed after the list `seq`.
fn keys_after(tx: &Transaction<'_>, seq: u64) -> Result<Vec<NoteKey>, IndexFileError> {
    let sql = "SELECT key FROM note WHERE seq > ?1 UNION SELECT key FROM removed WHERE seq > ?1";
    let mut statement = tx.prepare(sql)?;
    let keys = statement.query_map([seq], |row| row.get(0).map(NoteKey))?;
    Ok(keys.collect::<Result<_, _>>()?)
}

/// Makes one change; returns whether its key had a note before.
fn apply_one(
    tx: &Transaction<'_>,
    change: &NoteChange<'_>,
    passages: &[ListedPassage],
    seq: u64,
) -> Result<bool, IndexFileError> {
    let was_there = match *change {
        NoteChange::Put { key, note, .. } => {
            let replaced = tx.prepare_cached("DELETE FROM note WHERE key = ?1")?.execute([key.0])? > 0;
            tx.prepare_cached("INSERT INTO note VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?.execute((
                key.0,
                seq,
                note.stat.modified_ns,
                note.stat.size.cast_signed(),
                note.hash.0.as_slice(),
                note.sections.len(),
                vectors::encode(passages),
                row::encode(note)?,
            ))?;
            replaced
        }
        NoteChange::Touch { key, stat } => tx
            .prepare_cached("UPDATE note SET modified_ns = ?2, size = ?3 WHERE key = ?1")?
            .execute((key.0, stat.modified_ns, stat.size.cast_signed()))
            .map(|rows| rows > 0)?,
        NoteChange::Remove { key } => {
            let removed = tx.prepare_cached("DELETE FROM note WHERE key = ?1")?.execute([key.0])? > 0;
            if removed {
                tx.prepare_cached("INSERT OR REPLACE INTO removed VALUES (?1, ?2)")?.execute((key.0, seq))?;
            }
            removed
        }
    };
    Ok(was_there)
}

/// Rows as SQLite returns them, their bytes in one buffer.
#[derive(Default)]
struct RawRows {
    rows: Vec<(NoteKey, FileStat, usize, usize)>,
    bytes: Vec<u8>,
}

impl RawRows {
    fn push(&mut self, key: NoteKey, stat: FileStat, hash: &[u8], row: &[u8]) {
        self.bytes.extend_from_slice(hash);
        let hash_end = self.bytes.len();
        self.bytes.extend_from_slice(row);
        self.rows.push((key, stat, hash_end, self.bytes.len()));
    }

    fn decode_into(self, decoded: &Mutex<Result<Vec<(NoteKey, Note)>, RowError>>) {
        let mut start = 0;
        let notes: Result<Vec<_>, RowError> = self
            .rows
            .iter()
            .map(|&(key, stat, hash_end, end)| {
                let note = row::decode(&self.bytes[hash_end..end], stat, &self.bytes[start..hash_end])?;
                start = end;
                Ok((key, note))
            })
            .collect();
        let mut all = decoded.lock();
        match (&mut *all, notes) {
            (Ok(all), Ok(notes)) => all.extend(notes),
            (Ok(_), Err(error)) => *all = Err(error),
            (Err(_), _) => {}
        }
    }
}
