//! The toolset `upkeep`: repairs of memory: merge, correct, undo, redact.
