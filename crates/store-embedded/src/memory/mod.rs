//! Memory in one SQLite file. It is the only copy of what agents learned: never rebuilt, never repaired silently, and backed
//! up before a migration.

mod database;

mod apply;
mod backup;
mod check;
mod contexts;
mod copy_log;
mod failure;
mod file_guard;
mod last_write;
mod lock_holder;
mod log;
mod migrate;
mod opening;
mod read;
mod redact;
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
