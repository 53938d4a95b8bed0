//! Memory on PostgreSQL. A writer locks its graph's row of last numbers, loads what its changes may touch, makes them in a
//! [`draft::Draft`] and writes the result: some ten statements, however long the list of changes is.

mod check;
mod contexts;
mod copy_log;
mod draft;
mod item;
mod load;
mod log;
mod read;
mod redact;
mod requests;
mod save;
mod store;
mod ties;
mod undo;
mod vectors;

pub use store::PostgresMemory;
