//! Several servers, one database: the second topology. Every server is equal and keeps nothing that another cannot rebuild. It has the
//! notes of a graph in an index of its own, which follows the change feed of the database ([`follower`]). A call first waits
//! until the index has every change that was committed before the call came ([`team_graph`]): so a client sees what any
//! server acknowledged, whichever server it asks next.
//!
//! There is no owner, no lock and no socket between servers. What must happen once, the database decides.

mod follower;
mod team_graph;

pub use team_graph::{TeamGraph, TeamOptions};
