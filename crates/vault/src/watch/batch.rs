//! The kernel's events of a moment, reduced to paths.

use std::collections::BTreeMap;
use std::path::Path;

use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind};

use super::{Flow, Message};
use crate::rules::is_rule_file;

/// What happened in a short while.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Real paths from the root, and whether the name itself came, went or changed hands.
    pub(super) paths: BTreeMap<String, bool>,
    /// Paths cannot tell it: the queue ran over, the rules changed, or the root itself moved.
    pub(super) is_rescan: bool,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.paths.is_empty() && !self.is_rescan
    }

    pub(super) fn add(&mut self, message: &Message, root: &Path) -> Flow {
        match message {
            Message::Stop => return Flow::Stop,
            Message::Fault => self.is_rescan = true,
            Message::Event(event) => self.add_event(event, root),
        }
        Flow::On
    }

    fn add_event(&mut self, event: &notify::Event, root: &Path) {
        self.is_rescan |= event.need_rescan();
        let is_name =
            matches!(event.kind, EventKind::Create(_) | EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)));
        for path in &event.paths {
            let Ok(path) = path.strip_prefix(root) else { continue };
            self.is_rescan |= path.file_name().is_some_and(is_rule_file);
            self.is_rescan |= is_name && path.as_os_str().is_empty();
            // A name that is not UTF-8 is no note's.
            if let Some(path) = path.to_str().filter(|path| !path.is_empty()) {
                *self.paths.entry(path.to_owned()).or_default() |= is_name;
            }
        }
    }
}

/// Whether an event can concern a note at all. Asked on the kernel's thread, so that reading files, our own temporary
/// files and git at work never wake the watcher. Hidden names count only where a link leads to one.
pub(super) fn is_of_interest(event: &notify::Event, root: &Path, sees_hidden: bool) -> bool {
    let is_change = match event.kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        _ => true,
    };
    let is_seen = |path: &Path| {
        let path = path.strip_prefix(root).unwrap_or(path);
        sees_hidden
            || path.file_name().is_some_and(is_rule_file)
            || !path.iter().any(|part| part.as_encoded_bytes().starts_with(b"."))
    };
    is_change && (event.need_rescan() || event.paths.iter().any(|path| is_seen(path)))
}
