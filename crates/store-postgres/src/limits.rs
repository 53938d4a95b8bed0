//! The limits of a graph, checked in the transaction of a write.

use deadpool_postgres::Transaction;

use crate::failure::DatabaseError;
use crate::row::{self, get};

/// The limit that the graph would exceed with so many more notes and bytes, with its unit. No bytes are always allowed.
///
/// Bytes count for notes, the versions that are kept of them, and the log of memory.
pub(crate) async fn exceeded(
    tx: &Transaction<'_>,
    graph: i64,
    notes: i64,
    bytes: Option<i64>,
) -> Result<Option<String>, DatabaseError> {
    let sql = "SELECT CASE WHEN $2::bigint > 0 AND note.notes + $2 > max_notes THEN max_notes END, \
               CASE WHEN note.bytes + note.kept_bytes + memory.bytes + $3::bigint > max_bytes THEN max_bytes END \
               FROM graph JOIN note_head note ON note.graph = graph.id JOIN memory_head memory ON memory.graph = graph.id \
               WHERE graph.id = $1";
    let read = |row: &_| Ok((get::<Option<i64>>(row, 0)?, get::<Option<i64>>(row, 1)?));
    Ok(match row::first(tx, sql, &[&graph, &notes, &bytes], read).await? {
        Some((Some(limit), _)) => Some(format!("{} notes", grouped(limit))),
        Some((_, Some(limit))) => Some(format!("{} bytes", grouped(limit))),
        _ => None,
    })
}

/// A number that is not negative, with commas between its thousands.
fn grouped(number: i64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        let shown = [0, 999, 1_000, 50_000, 1_234_567].map(grouped);
        assert_eq!(shown, ["0", "999", "1,000", "50,000", "1,234,567"]);
    }
}
