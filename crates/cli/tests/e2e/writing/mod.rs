//! Writes beside other writers: no edit is lost, only what was requested changes, and the next call sees it.

mod bytes;
mod editing;
mod elsewhere;
mod moving;
mod names;
mod rename;
mod restore;
mod spelling;
mod two_agents;
mod visible;
