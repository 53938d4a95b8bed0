//! What happens to one note, by its three versions.

use crate::model::ContentHash;

/// The version of a note; `None` where it does not exist.
pub type SyncVersion = Option<ContentHash>;

/// The action that makes the two sides equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Nothing: they are equal.
    InSync,
    /// The folder's version goes to the graph, or its deletion.
    Send,
    /// The graph's version goes to the folder, or its deletion.
    Fetch,
    /// Both sides changed the note, each in its own way.
    Conflict,
}

/// Compares the versions of a note. A note is deleted only where it is as it was when both sides were in sync: without a base
/// nothing is deleted, and a change is kept against a deletion.
pub fn decide(base: SyncVersion, folder: SyncVersion, graph: SyncVersion) -> Decision {
    if folder == graph {
        Decision::InSync
    } else if graph == base {
        Decision::Send
    } else if folder == base || folder.is_none() {
        Decision::Fetch
    } else if graph.is_none() {
        Decision::Send
    } else {
        Decision::Conflict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(number: u8) -> SyncVersion {
        (number > 0).then_some(ContentHash([number; 32]))
    }

    #[test]
    fn every_case_is_decided() {
        use Decision::{Conflict, Fetch, InSync, Send};
        for (base, folder, graph, expected, why) in [
            (0, 1, 1, InSync, "equal at the first time"),
            (1, 2, 2, InSync, "changed alike"),
            (1, 0, 0, InSync, "deleted on both sides"),
            (1, 1, 1, InSync, "unchanged"),
            (0, 1, 0, Send, "new in the folder"),
            (0, 0, 1, Fetch, "new in the graph"),
            (1, 2, 1, Send, "changed in the folder"),
            (1, 1, 2, Fetch, "changed in the graph"),
            (1, 0, 1, Send, "deleted in the folder"),
            (1, 1, 0, Fetch, "deleted in the graph"),
            (1, 0, 2, Fetch, "a change is kept against a deletion in the folder"),
            (1, 2, 0, Send, "a change is kept against a deletion in the graph"),
            (1, 2, 3, Conflict, "changed differently"),
            (0, 1, 2, Conflict, "different at the first time"),
        ] {
            assert_eq!(decide(version(base), version(folder), version(graph)), expected, "{why}");
        }
    }

    #[test]
    fn nothing_is_deleted_that_is_not_as_in_the_base() {
        for (base, folder, graph) in
            (0..4).flat_map(|base| (0..4).flat_map(move |folder| (0..4).map(move |graph| (base, folder, graph))))
        {
            let (base, folder, graph) = (version(base), version(folder), version(graph));
            match decide(base, folder, graph) {
                Decision::Send if folder.is_none() => assert_eq!(graph, base),
                Decision::Fetch if graph.is_none() => assert_eq!(folder, base),
                _ => {}
            }
        }
    }
}
