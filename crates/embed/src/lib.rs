//! Texts to vectors. The builtin model lies inside the program: no download, no network, the same numbers everywhere.

pub mod builtin;
