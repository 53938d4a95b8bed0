//! Finding: by lines, as a documentation reader greps. Ranked text search is the store's; fusion will live here.

mod lines;
pub mod words;

pub use lines::{LineMatch, Lines};
