//! Writes beside other writers: nobody's edit is lost, nothing changes that was not asked to, and all of it is seen at once.

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
