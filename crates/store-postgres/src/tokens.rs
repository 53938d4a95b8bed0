//! Tokens of clients over HTTP, for all servers of a database. A token is 256 random bits, shown once; the table has a hash.
//!
//! Unlike the file of a vault's tokens, the table has no keyed seal: an account that can write this table can write the notes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio_postgres::Row;

use crate::connection::{PostgresDatabase, Scope};
use crate::failure::DatabaseError;
use crate::graphs::Graph;
use crate::row::{self, BadRow, escape};

/// The prefix of a token, so that people and secret scanners recognise one.
const PREFIX: &str = "quipu_";

/// How long a server goes without asking again: a revoked token is rejected after this time at the latest.
const FRESH: Duration = Duration::from_secs(2);

/// How long a token that a server knows is accepted while the database cannot be reached: reads are answered meanwhile, with a
/// warning.
const KEPT_IN_OUTAGE: Duration = Duration::from_secs(10 * 60);

/// The prefix is followed by this many hexadecimal digits.
const DIGITS: usize = 64;

/// Unknown tokens that a server remembers, at most.
const REMEMBERED: usize = 10_000;

/// A token of a database, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    /// Identifies it without revealing it.
    pub id: String,
    pub name: String,
    /// `read`, `write` or `admin`.
    pub scope: String,
    /// The graphs that it is for, in order of name.
    pub graphs: Vec<Graph>,
    /// When it was created.
    pub created: Timestamp,
    /// When it expires, if ever.
    pub expires: Option<Timestamp>,
}

/// A token to be created.
#[derive(Debug, Clone, Copy)]
pub struct NewToken<'t> {
    pub name: &'t str,
    /// `read`, `write` or `admin`.
    pub scope: &'t str,
    /// The names of its graphs, at least one.
    pub graphs: &'t [String],
    /// Now.
    pub created: Timestamp,
    /// When it expires, if ever.
    pub expires: Option<Timestamp>,
}

/// Why a token was not created or revoked.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The name is taken.
    #[error("there is a token called {0:?}: revoke it first")]
    Exists(String),
    /// There is no such graph.
    #[error("there is no graph {0:?}; `quipu graph list` lists the graphs")]
    NoGraph(String),
    /// There is no such token.
    #[error("there is no token {0:?}; `quipu token list` lists the tokens")]
    Unknown(String),
    /// The system gives no random bytes.
    #[error("cannot create a token: {0}")]
    Random(String),
    #[error(transparent)]
    Failed(#[from] DatabaseError),
}

const TOKEN: &str = "token.id, token.name, scope, created_ns, expires_ns, ids, names, uids";

/// With the graphs of each token.
const TOKENS: &str = "token CROSS JOIN LATERAL (SELECT coalesce(array_agg(graph.id ORDER BY name), '{}') AS ids, \
    coalesce(array_agg(name ORDER BY name), '{}') AS names, coalesce(array_agg(uid::text ORDER BY name), '{}') AS uids \
    FROM token_graph JOIN graph ON graph.id = token_graph.graph WHERE token_graph.token = token.id) AS granted";

impl PostgresDatabase {
    /// Creates a token. Its text is returned here and never again.
    pub fn create_token(&self, new: &NewToken<'_>) -> Result<(String, TokenRecord), TokenError> {
        let mut random = [0; 32];
        getrandom::fill(&mut random).map_err(|error| TokenError::Random(error.to_string()))?;
        let text = format!("{PREFIX}{}", blake3::Hash::from_bytes(random).to_hex());
        let hash = hashed(&text);
        let id = blake3::Hash::from_bytes(hash).to_hex()[..8].to_owned();
        let (created, expires) = (nanoseconds(new.created), new.expires.map(nanoseconds));
        let record = self.write(Scope::Shared, async |tx| {
            let insert = "INSERT INTO token (id, name, scope, hash, created_ns, expires_ns) \
                          VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING";
            let name = escape(new.name);
            let values: [&(dyn tokio_postgres::types::ToSql + Sync); 6] =
                [&id, &name, &new.scope, &&hash[..], &created, &expires];
            row::execute(tx, insert, &values).await?;
            // An earlier attempt whose commit was not answered has made it already.
            let sql = format!("SELECT {TOKEN} FROM {TOKENS} WHERE hash = $1");
            if row::first(tx, &sql, &[&&hash[..]], record).await?.is_none() {
                return Ok(Err(TokenError::Exists(new.name.to_owned())));
            }
            for graph in new.graphs {
                let bind = "INSERT INTO token_graph (token, graph) SELECT $1, id FROM graph WHERE name = $2 \
                            ON CONFLICT (token, graph) DO UPDATE SET graph = excluded.graph";
                if row::execute(tx, bind, &[&id, graph]).await? == 0 {
                    return Ok(Err(TokenError::NoGraph(graph.clone())));
                }
            }
            let made = row::first(tx, &sql, &[&&hash[..]], record).await?;
            Ok(made.ok_or_else(|| TokenError::Unknown(new.name.to_owned())))
        })??;
        Ok((text, record))
    }

    /// All tokens, oldest first.
    pub fn tokens(&self) -> Result<Vec<TokenRecord>, DatabaseError> {
        let sql = format!("SELECT {TOKEN} FROM {TOKENS} ORDER BY created_ns, token.id");
        self.read(Scope::Shared, async |client| row::list(client, &sql, &[], record).await)
    }

    /// Removes a token by its id or name.
    pub fn revoke_token(&self, which: &str) -> Result<TokenRecord, TokenError> {
        let sql = format!(
            "SELECT {TOKEN} FROM {TOKENS} WHERE token.id = $1 OR token.name = $1 ORDER BY token.id <> $1 LIMIT 1"
        );
        let read = async |client: &deadpool_postgres::Client| row::first(client, &sql, &[&escape(which)], record).await;
        let found = self.read(Scope::Shared, read)?;
        let token = found.ok_or_else(|| TokenError::Unknown(which.to_owned()))?;
        // By id, so that it may be made again when its commit was not answered.
        self.write(Scope::Shared, async |tx| {
            row::execute(tx, "DELETE FROM token WHERE id = $1", &[&token.id]).await?;
            Ok(Ok::<_, TokenError>(()))
        })??;
        Ok(token)
    }
}

/// Looks up the tokens that clients present. Blocks for a query at most every two seconds for each token.
pub struct PostgresTokens {
    database: Arc<PostgresDatabase>,
    seen: Mutex<SeenTokens>,
}

/// What the table had, and when it was asked. Apart, so that guesses displace no token.
#[derive(Default)]
struct SeenTokens {
    known: HashMap<TokenHash, (Instant, Arc<TokenRecord>)>,
    unknown: HashMap<TokenHash, Instant>,
}

type TokenHash = [u8; 32];

/// What the table has to be asked for.
#[derive(Debug)]
pub enum Lookup {
    /// Whether a token that was valid at this time still is.
    Renewal(Instant, Arc<TokenRecord>),
    /// A text that may be a guess.
    Unknown,
}

impl PostgresTokens {
    /// The tokens of a database.
    pub fn new(database: Arc<PostgresDatabase>) -> Self {
        Self { database, seen: Mutex::default() }
    }

    /// The answer of [`PostgresTokens::find`] where it needs no query.
    pub fn remembered(&self, presented: &str) -> Result<Option<Arc<TokenRecord>>, Lookup> {
        if !has_form(presented) {
            return Ok(None);
        }
        let hash = hashed(presented);
        let seen = self.seen.lock();
        match (seen.known.get(&hash), seen.unknown.get(&hash)) {
            (Some((asked, found)), _) if asked.elapsed() < FRESH => Ok(Some(found.clone())),
            (Some((asked, found)), _) => Err(Lookup::Renewal(*asked, found.clone())),
            (None, Some(asked)) if asked.elapsed() < FRESH => Ok(None),
            (None, _) => Err(Lookup::Unknown),
        }
    }

    /// The token with this secret; it may have expired. A created token is found at once or, if it was asked for before,
    /// within two seconds; a revoked one is found for two seconds at most, or ten minutes while the database cannot be reached.
    pub fn find(&self, presented: &str) -> Result<Option<Arc<TokenRecord>>, DatabaseError> {
        let kept = match self.remembered(presented) {
            Ok(found) => return Ok(found),
            Err(Lookup::Renewal(asked, kept)) => Some(kept).filter(|_| asked.elapsed() < KEPT_IN_OUTAGE),
            Err(Lookup::Unknown) => None,
        };
        let hash = hashed(presented);
        let asked = Instant::now();
        let sql = format!("SELECT {TOKEN} FROM {TOKENS} WHERE hash = $1");
        let read = async |client: &deadpool_postgres::Client| row::first(client, &sql, &[&&hash[..]], record).await;
        let found = match kept {
            // The follower of the graph and the list of graphs notice the end of an outage.
            Some(kept) if self.database.unreachable_since().is_some() => return Ok(Some(kept)),
            Some(kept) => match self.database.read_now(Scope::Shared, read) {
                Err(error) if error.is_transient() => return Ok(Some(kept)),
                found => found?,
            },
            None => self.database.read(Scope::Shared, read)?,
        };
        let found = found.map(Arc::new);
        self.seen.lock().remember(hash, asked, found.clone());
        Ok(found)
    }
}

impl SeenTokens {
    fn remember(&mut self, hash: TokenHash, asked: Instant, found: Option<Arc<TokenRecord>>) {
        match found {
            Some(found) => {
                self.unknown.remove(&hash);
                self.known.insert(hash, (asked, found));
            }
            None => {
                self.known.remove(&hash);
                if self.unknown.len() >= REMEMBERED {
                    self.unknown.clear();
                }
                self.unknown.insert(hash, asked);
            }
        }
    }
}

/// Whether a text may be a token.
fn has_form(presented: &str) -> bool {
    let digits = presented.strip_prefix(PREFIX).unwrap_or_default();
    digits.len() == DIGITS && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn hashed(token: &str) -> TokenHash {
    blake3::derive_key("quipu 2026-11 token of a database", token.as_bytes())
}

fn nanoseconds(time: Timestamp) -> i64 {
    i64::try_from(time.as_nanosecond()).unwrap_or(i64::MAX)
}

fn record(row: &Row) -> Result<TokenRecord, BadRow> {
    let time = |ns: i64| Timestamp::from_nanosecond(ns.into()).unwrap_or_default();
    let ids = row::get::<Vec<i64>>(row, 5)?.into_iter();
    let (names, uids) = (row::get::<Vec<String>>(row, 6)?, row::get::<Vec<String>>(row, 7)?);
    let graphs = ids.zip(names).zip(uids).map(|((id, name), uid)| Graph { id, uid, name });
    Ok(TokenRecord {
        id: row::get(row, 0)?,
        name: row::text(row, 1)?,
        scope: row::get(row, 2)?,
        created: time(row::get(row, 3)?),
        expires: row::get::<Option<i64>>(row, 4)?.map(time),
        graphs: graphs.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_displace_no_token_and_only_well_formed_tokens_are_looked_up() {
        let token = TokenRecord {
            id: "a".into(),
            name: "a".into(),
            scope: "read".into(),
            graphs: Vec::new(),
            created: Timestamp::UNIX_EPOCH,
            expires: None,
        };
        let (mut seen, now) = (SeenTokens::default(), Instant::now());
        seen.remember([255; 32], now, Some(Arc::new(token)));
        for guess in 0..REMEMBERED as u64 + 1 {
            let mut hash = [0; 32];
            hash[..8].copy_from_slice(&guess.to_le_bytes());
            seen.remember(hash, now, None);
        }
        assert!(seen.known.contains_key(&[255; 32]) && seen.unknown.len() == 1, "{}", seen.unknown.len());
        seen.remember([255; 32], now, None);
        assert!(seen.known.is_empty(), "revoked");
        let digits = "0123456789abcdef".repeat(4);
        assert!(has_form(&format!("quipu_{digits}")));
        for other in [&digits[..], "", "quipu_", &format!("quipu_{}", &digits[1..]), &format!("quipu_{digits}0")] {
            assert!(!has_form(other), "{other}");
        }
        assert!(!has_form(&format!("quipu_{}", digits.to_uppercase())));
    }
}
