//! Notes on PostgreSQL: rows of exact bytes in place of files. A writer locks its graph's row of last numbers, checks its
//! changes against what it finds at their paths, and writes the result in a few statements.

mod files;
mod history;
mod read;
mod save;
mod shown;
mod vault;

pub use shown::PostgresShownNotes;
pub use vault::PostgresVault;
