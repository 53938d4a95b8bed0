//! Memory in one SQLite file. It is the truth about what agents learned: never started anew, never repaired in silence, and
//! backed up before its schema changes.

mod database;

mod apply;
mod backup;
mod check;
mod contexts;
mod failure;
mod file_guard;
mod log;
mod migrate;
mod opening;
mod read;
mod requests;
mod rows;
#[cfg(test)]
mod tests;
mod ties;
mod undo;
mod vectors;
mod wal;

pub use backup::BackupError;
pub use database::MemoryDatabase;
pub use opening::MemoryOpenError;
