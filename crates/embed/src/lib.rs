//! Texts to vectors. The builtin model lies inside the program: no download, no network, the same numbers everywhere.

mod builtin;

pub use builtin::{Builtin, DIMENSIONS, MAX_TOKENS};
