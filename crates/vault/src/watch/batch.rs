//! Collects kernel events of a short time into a set of paths.

use std::collections::BTreeMap;
use std::path::Path;

use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind};

use super::{Flow, Message};
use crate::rules::is_rule_file;

/// The events of a short time.
#[derive(Debug, Default)]
pub(super) struct EventBatch {
    /// Real paths from the root, and whether the name itself was created, removed or renamed.
    pub(super) paths: BTreeMap<String, bool>,
    /// Whether paths are not enough: the queue overflowed, the rules changed, or the root itself moved.
    pub(super) is_rescan: bool,
}

impl EventBatch {
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
            // A note's name is UTF-8.
            if let Some(path) = path.to_str().filter(|path| !path.is_empty()) {
                *self.paths.entry(path.to_owned()).or_default() |= is_name;
            }
        }
    }
}

/// Whether an event can concern a note. Runs on the thread of the kernel events, so that reads, Quipu's temporary files and
/// git never wake the watcher. Hidden names count only if a link passes through one.
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
