//! The steps that make the two sides equal, in one direction or in both.

use std::collections::HashMap;

use super::base::BaseChange;
use super::decide::{Decision, SyncVersion, decide};
use crate::model::{ContentHash, VaultPath};

/// One side of a synchronization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The folder of notes.
    Folder,
    /// The graph of a database.
    Graph,
}

/// Which sides are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncDirection {
    /// The graph; the folder is not changed.
    Push,
    /// The folder; the graph is not changed.
    Pull,
    /// Both.
    Mirror,
}

impl SyncDirection {
    fn writes(self, side: Side) -> bool {
        self == Self::Mirror || (self == Self::Push) == (side == Side::Graph)
    }
}

/// The three versions of a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Compared {
    pub(super) path: VaultPath,
    pub(super) base: SyncVersion,
    pub(super) folder: SyncVersion,
    pub(super) graph: SyncVersion,
    /// Whether the base records the folder's version.
    pub(super) is_recorded: bool,
}

/// One write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The side that is written.
    pub side: Side,
    pub path: VaultPath,
    /// The action on the note.
    pub action: Action,
}

/// The action of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Creates the note with the version of the other side.
    Create(ContentHash),
    /// Replaces a version by that of the other side.
    Replace {
        /// The version that must be there.
        old: ContentHash,
        /// The version of the other side.
        new: ContentHash,
    },
    /// Moves the note here from another path: the other side has the same bytes under the new one.
    Move {
        /// The old path.
        from: VaultPath,
        version: ContentHash,
    },
    /// Deletes this version.
    Delete(ContentHash),
    /// Keeps both versions: the graph's under its name, the folder's beside it.
    KeepBoth {
        /// The folder's version.
        folder: ContentHash,
        /// The graph's version.
        graph: ContentHash,
    },
}

/// All steps, in the order in which they are applied: a path is freed before it is taken.
#[derive(Debug, Default)]
pub(super) struct SyncPlan {
    pub(super) steps: Vec<Step>,
    /// What is in sync and not recorded as such.
    pub(super) record: Vec<BaseChange>,
    /// Notes that are equal.
    pub(super) in_sync: usize,
    /// Conflicts that are left as they are.
    pub(super) conflicts: Vec<VaultPath>,
    /// Changes of the side that is not read in this direction.
    pub(super) waiting: usize,
}

pub(super) fn plan(compared: &[Compared], direction: SyncDirection, force: bool) -> SyncPlan {
    let mut plan = SyncPlan::default();
    for note in compared {
        let wanted = match decide(note.base, note.folder, note.graph) {
            Decision::InSync => {
                plan.in_sync(note);
                continue;
            }
            Decision::Send => step(Side::Graph, note),
            Decision::Fetch => step(Side::Folder, note),
            Decision::Conflict => match direction {
                SyncDirection::Push if !force => {
                    plan.conflicts.push(note.path.clone());
                    continue;
                }
                SyncDirection::Push => step(Side::Graph, note),
                SyncDirection::Pull | SyncDirection::Mirror if force => step(Side::Folder, note),
                SyncDirection::Pull | SyncDirection::Mirror => keep_both(note),
            },
        };
        match wanted {
            Some(step) if direction.writes(step.side) => plan.steps.push(step),
            _ => plan.waiting += 1,
        }
    }
    plan.steps = with_moves(&plan.steps);
    plan
}

impl SyncPlan {
    fn in_sync(&mut self, note: &Compared) {
        self.in_sync += usize::from(note.folder.is_some());
        if !note.is_recorded {
            let path = note.path.clone();
            self.record.push(note.folder.map_or(BaseChange::Gone(path.clone()), |it| BaseChange::InSync(path, it)));
        }
    }
}

/// The write that gives a side the version of the other one.
fn step(side: Side, note: &Compared) -> Option<Step> {
    let (own, other) = match side {
        Side::Folder => (note.folder, note.graph),
        Side::Graph => (note.graph, note.folder),
    };
    let action = match (own, other) {
        (None, Some(new)) => Action::Create(new),
        (Some(old), Some(new)) => Action::Replace { old, new },
        (Some(old), None) => Action::Delete(old),
        (None, None) => return None,
    };
    Some(Step { side, path: note.path.clone(), action })
}

fn keep_both(note: &Compared) -> Option<Step> {
    let action = Action::KeepBoth { folder: note.folder?, graph: note.graph? };
    Some(Step { side: Side::Folder, path: note.path.clone(), action })
}

/// Turns a deletion and a creation of the same bytes on one side into a move, so that the note keeps its history. Of several
/// notes with the same bytes none is moved: which one it was is unknown.
fn with_moves(steps: &[Step]) -> Vec<Step> {
    /// The places of deletions and of creations.
    type Ends = (Vec<usize>, Vec<usize>);
    let mut ends: HashMap<(bool, [u8; 32]), Ends> = HashMap::new();
    for (place, step) in steps.iter().enumerate() {
        let of = |version: ContentHash| (step.side == Side::Graph, version.0);
        match step.action {
            Action::Delete(version) => ends.entry(of(version)).or_default().0.push(place),
            Action::Create(version) => ends.entry(of(version)).or_default().1.push(place),
            Action::Replace { .. } | Action::Move { .. } | Action::KeepBoth { .. } => {}
        }
    }
    let pairs = ends.into_values().filter_map(|(deleted, created)| match (&deleted[..], &created[..]) {
        ([deleted], [created]) => Some((*created, *deleted)),
        _ => None,
    });
    let moves: HashMap<usize, usize> = pairs.collect();
    let moved_away: std::collections::HashSet<usize> = moves.values().copied().collect();
    let mut planned: Vec<Step> = Vec::with_capacity(steps.len());
    for (place, step) in steps.iter().enumerate().filter(|(place, _)| !moved_away.contains(place)) {
        let action = match (moves.get(&place), &step.action) {
            (Some(from), Action::Create(version)) => {
                Action::Move { from: steps[*from].path.clone(), version: *version }
            }
            (_, action) => action.clone(),
        };
        planned.push(Step { action, ..step.clone() });
    }
    planned.sort_by_key(|step| match step.action {
        Action::Move { .. } => 0,
        Action::Delete(_) => 1,
        Action::Create(_) | Action::Replace { .. } | Action::KeepBoth { .. } => 2,
    });
    planned
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(path: &str, base: u8, folder: u8, graph: u8) -> Compared {
        let version = |number: u8| (number > 0).then_some(ContentHash([number; 32]));
        let path = VaultPath::parse(path).unwrap();
        let (base, folder, graph) = (version(base), version(folder), version(graph));
        Compared { path, base, folder, graph, is_recorded: base == folder }
    }

    fn shown(plan: &SyncPlan) -> Vec<String> {
        let show = |step: &Step| {
            let action = match &step.action {
                Action::Create(_) => "create".to_owned(),
                Action::Replace { .. } => "replace".to_owned(),
                Action::Move { from, .. } => format!("move {from} to"),
                Action::Delete(_) => "delete".to_owned(),
                Action::KeepBoth { .. } => "keep both".to_owned(),
            };
            format!("{:?}: {action} {}", step.side, step.path)
        };
        plan.steps.iter().map(show).collect()
    }

    #[test]
    fn each_direction_writes_its_side_only() {
        let notes = [note("sent.md", 1, 2, 1), note("fetched.md", 1, 1, 2), note("both.md", 1, 2, 3)];
        let push = plan(&notes, SyncDirection::Push, false);
        assert_eq!(shown(&push), ["Graph: replace sent.md"]);
        assert_eq!((push.waiting, push.conflicts.len()), (1, 1));
        let forced = plan(&notes, SyncDirection::Push, true);
        assert_eq!(shown(&forced), ["Graph: replace sent.md", "Graph: replace both.md"]);
        let pull = plan(&notes, SyncDirection::Pull, false);
        assert_eq!(shown(&pull), ["Folder: replace fetched.md", "Folder: keep both both.md"]);
        assert_eq!(
            shown(&plan(&notes, SyncDirection::Pull, true)),
            ["Folder: replace fetched.md", "Folder: replace both.md"]
        );
        assert_eq!(plan(&notes, SyncDirection::Mirror, false).steps.len(), 3);
    }

    #[test]
    fn renamed_note_is_moved_and_ambiguous_ones_are_not() {
        let renamed = [note("a.md", 1, 0, 1), note("b.md", 0, 1, 0)];
        assert_eq!(shown(&plan(&renamed, SyncDirection::Push, false)), ["Graph: move a.md to b.md"]);
        let ambiguous = [note("a.md", 1, 0, 1), note("b.md", 0, 1, 0), note("c.md", 0, 1, 0)];
        let steps = ["Graph: delete a.md", "Graph: create b.md", "Graph: create c.md"];
        assert_eq!(shown(&plan(&ambiguous, SyncDirection::Push, false)), steps);
        let crossed = [note("a.md", 1, 0, 1), note("b.md", 0, 0, 1)];
        assert_eq!(shown(&plan(&crossed, SyncDirection::Mirror, false)), ["Graph: delete a.md", "Folder: create b.md"]);
    }

    #[test]
    fn only_changes_are_recorded() {
        let notes = [note("known.md", 1, 1, 1), note("new.md", 0, 1, 1), note("gone.md", 1, 0, 0)];
        let plan = plan(&notes, SyncDirection::Push, false);
        assert_eq!((plan.in_sync, plan.record.len(), plan.steps.len()), (2, 2, 0));
    }
}
