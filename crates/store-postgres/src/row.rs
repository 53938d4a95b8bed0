//! Values of rows. PostgreSQL's texts cannot hold U+0000, so it is written as an escape.

use std::borrow::Cow;

use deadpool_postgres::GenericClient;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, ToSql};

use crate::failure::DatabaseError;

/// Starts an escape. No text has it, as a noncharacter; if one does, it is escaped as well.
const ESCAPE: char = '\u{10FFFF}';

/// A row that this program did not write.
#[derive(Debug, thiserror::Error)]
#[error("cannot read a row of the database: {0}")]
pub struct BadRow(pub(crate) String);

/// A text as the database keeps it.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace(ESCAPE, "\u{10FFFF}1").replace('\0', "\u{10FFFF}0"))
}

/// The text that was escaped.
pub(crate) fn unescape(text: String) -> String {
    if !text.contains(ESCAPE) {
        return text;
    }
    text.replace("\u{10FFFF}0", "\0").replace("\u{10FFFF}1", "\u{10FFFF}")
}

/// A column of a row.
pub(crate) fn get<'r, T: FromSql<'r>>(row: &'r Row, column: usize) -> Result<T, BadRow> {
    row.try_get(column).map_err(|error| BadRow(error.to_string()))
}

/// A column with a text.
pub(crate) fn text(row: &Row, column: usize) -> Result<String, BadRow> {
    get(row, column).map(unescape)
}

/// All rows of a query.
pub(crate) async fn query(
    db: &impl GenericClient,
    sql: &str,
    values: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, DatabaseError> {
    let statement = db.prepare_cached(sql).await?;
    Ok(db.query(&statement, values).await?)
}

/// All rows of a query, each read by a function.
pub(crate) async fn list<T>(
    db: &impl GenericClient,
    sql: &str,
    values: &[&(dyn ToSql + Sync)],
    read: impl Fn(&Row) -> Result<T, BadRow>,
) -> Result<Vec<T>, DatabaseError> {
    let rows = query(db, sql, values).await?;
    Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
}

/// The first row of a query.
pub(crate) async fn first<T>(
    db: &impl GenericClient,
    sql: &str,
    values: &[&(dyn ToSql + Sync)],
    read: impl Fn(&Row) -> Result<T, BadRow>,
) -> Result<Option<T>, DatabaseError> {
    Ok(list(db, sql, values, read).await?.into_iter().next())
}

/// Runs a statement; returns the number of rows.
pub(crate) async fn execute(
    db: &impl GenericClient,
    sql: &str,
    values: &[&(dyn ToSql + Sync)],
) -> Result<u64, DatabaseError> {
    let statement = db.prepare_cached(sql).await?;
    Ok(db.execute(&statement, values).await?)
}

/// A limit or an offset.
pub(crate) fn bounded(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back_from_its_escape() {
        for text in ["", "plain", "\0", "a\0b\u{10FFFF}0\0", "\u{10FFFF}", "\u{10FFFF}1\u{10FFFF}0", "0\u{10FFFF}\0"] {
            let escaped = escape(text).into_owned();
            assert!(!escaped.contains('\0'));
            assert_eq!(unescape(escaped), text, "{text:?}");
        }
    }
}
