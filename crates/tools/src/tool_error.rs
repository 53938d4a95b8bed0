//! Errors of tool calls, and their format in each toolset.
//!
//! Details from a store or the operating system go to the log only: they may contain SQL or paths outside the vault.

use quipu_core::index::IndexError;
use quipu_core::memory::MemoryError;
use quipu_core::model::NoteId;
use quipu_core::notes::NoteError;
use quipu_core::on_one_line;
use quipu_core::ports::{MemoryFailure, StoreError, VaultError, WriteError};
use quipu_core::search::EmbeddingFailed;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::registry::Reply;
use crate::tool::Toolset;
use crate::truncate::echoed;

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolError {
    /// Selects the error code.
    pub kind: ToolErrorKind,
    /// Operation, cause and next step. Safe to show to a client.
    pub message: String,
}

/// The kinds of error. Each toolset has its own code for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToolErrorKind {
    /// The arguments are wrong.
    InvalidArguments,
    /// The name is taken.
    Exists,
    /// Nothing has that name.
    NotFound,
    /// Links would break.
    LinkIntegrity,
    /// Files, index or server failed, or the file is not the version the client has seen.
    Provider,
}

impl ToolError {
    /// An error of this kind.
    pub fn new(kind: ToolErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::InvalidArguments, message)
    }

    /// The error in the toolset's format.
    pub fn reply(&self, toolset: Toolset) -> Reply {
        match toolset {
            Toolset::Notes | Toolset::Work | Toolset::Essential => self.coded(self.notes_code()),
            Toolset::Docs => Reply::Failure(format!("Error: {}", on_one_line(&self.message))),
            Toolset::Pages => {
                Reply::Protocol { code: self.pages_code(), message: on_one_line(&self.message).into_owned() }
            }
            Toolset::Memory | Toolset::Upkeep => self.coded(self.memory_code()),
        }
    }

    fn coded(&self, code: &str) -> Reply {
        Reply::Failure(json!({"error": {"code": code, "message": on_one_line(&self.message)}}).to_string())
    }

    fn notes_code(&self) -> &'static str {
        match self.kind {
            ToolErrorKind::InvalidArguments => "INVALID_PARAMS",
            ToolErrorKind::Exists => "NODE_EXISTS",
            ToolErrorKind::NotFound => "NODE_NOT_FOUND",
            ToolErrorKind::LinkIntegrity => "LINK_INTEGRITY",
            ToolErrorKind::Provider => "PROVIDER_ERROR",
        }
    }

    /// JSON-RPC's codes for invalid parameters and for internal errors.
    fn pages_code(&self) -> i32 {
        match self.kind {
            ToolErrorKind::Provider => -32603,
            _ => -32602,
        }
    }

    fn memory_code(&self) -> &'static str {
        match self.kind {
            ToolErrorKind::NotFound => "ResourceNotFound",
            ToolErrorKind::InvalidArguments | ToolErrorKind::Exists | ToolErrorKind::LinkIntegrity => {
                "InvalidArguments"
            }
            ToolErrorKind::Provider => "InternalServerError",
        }
    }
}

impl From<NoteError> for ToolError {
    fn from(error: NoteError) -> Self {
        let error = match error {
            NoteError::BadId { id, reason } => NoteError::BadId { id: echoed(&id), reason },
            NoteError::BadTitle { title, reason } => NoteError::BadTitle { title: echoed(&title), reason },
            NoteError::NotFound { id } => NoteError::NotFound { id: NoteId::new(&echoed(id.as_str())) },
            NoteError::Ambiguous { id, matches } => NoteError::Ambiguous { id: echoed(&id), matches },
            NoteError::BadDestination { to, reason } => NoteError::BadDestination { to: echoed(&to), reason },
            other => other,
        };
        let kind = match error {
            NoteError::Index(error) => return error.into(),
            NoteError::Write(error) => return error.into(),
            NoteError::BadId { .. }
            | NoteError::BadTitle { .. }
            | NoteError::Ambiguous { .. }
            | NoteError::Edit { .. }
            | NoteError::BadDestination { .. }
            | NoteError::TooManyNotes { .. }
            | NoteError::NoVersion { .. }
            | NoteError::CannotUndo { .. }
            | NoteError::AlreadyUndone { .. }
            | NoteError::NothingToDo => ToolErrorKind::InvalidArguments,
            NoteError::Exists { .. } => ToolErrorKind::Exists,
            NoteError::NotFound { .. } | NoteError::Moved { .. } | NoteError::NoChange { .. } => {
                ToolErrorKind::NotFound
            }
            NoteError::LinkIntegrity { .. }
            | NoteError::LinkNotRewritable { .. }
            | NoteError::LinkCaptured { .. }
            | NoteError::TooManyLinks { .. } => ToolErrorKind::LinkIntegrity,
            NoteError::ChangedElsewhere { .. }
            | NoteError::OtherVersion { .. }
            | NoteError::SeenInPart { .. }
            | NoteError::Frontmatter { .. }
            | NoteError::Memory(_)
            | NoteError::Busy => ToolErrorKind::Provider,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<IndexError> for ToolError {
    fn from(error: IndexError) -> Self {
        match error {
            IndexError::Vault(VaultError::Read { path, source }) => {
                tracing::error!(%path, %source, "cannot read");
                Self::new(ToolErrorKind::Provider, format!("cannot read {}: {}", echoed(&path), said(&source)))
            }
            IndexError::Vault(error @ VaultError::Database { .. }) => {
                Self::new(ToolErrorKind::Provider, error.to_string())
            }
            IndexError::Store(error) => error.into(),
        }
    }
}

impl From<StoreError> for ToolError {
    fn from(error: StoreError) -> Self {
        tracing::error!(source = %error.source, "{error}");
        Self::new(ToolErrorKind::Provider, format!("{error}; the server's log has the details"))
    }
}

impl From<EmbeddingFailed> for ToolError {
    fn from(error: EmbeddingFailed) -> Self {
        match error {
            EmbeddingFailed::Embedder(error) => Self::new(ToolErrorKind::Provider, error.to_string()),
            EmbeddingFailed::Store(error) => error.into(),
        }
    }
}

impl From<MemoryError> for ToolError {
    fn from(error: MemoryError) -> Self {
        let kind = memory_kind(&error);
        match error {
            MemoryError::Failed(failure) => failure.into(),
            MemoryError::NotFound { kind: item, id } => {
                let next_step = match item {
                    "entity" => "search_entities finds entities and their ids".to_owned(),
                    "change" => "recent_changes lists the changes".to_owned(),
                    _ => format!("get_entity lists the {item}s of an entity with their ids"),
                };
                Self::new(kind, format!("{}; {next_step}", MemoryError::NotFound { kind: item, id }))
            }
            MemoryError::NameTaken { name, by } => {
                let name = echoed(&name);
                Self::new(kind, MemoryError::NameTaken { name, by }.to_string())
            }
            MemoryError::UnknownName { name } => {
                Self::new(kind, MemoryError::UnknownName { name: echoed(&name) }.to_string())
            }
            MemoryError::At { place, error } => Self::new(kind, format!("{place}: {}", Self::from(*error).message)),
            error => Self::new(kind, error.to_string()),
        }
    }
}

fn memory_kind(error: &MemoryError) -> ToolErrorKind {
    match error {
        MemoryError::NotFound { .. } => ToolErrorKind::NotFound,
        MemoryError::At { error, .. } => memory_kind(error),
        MemoryError::NameTaken { .. } | MemoryError::RelationExists(_) | MemoryError::ObservationExists(_) => {
            ToolErrorKind::Exists
        }
        MemoryError::Blank { .. }
        | MemoryError::NothingToChange
        | MemoryError::BulkSize { .. }
        | MemoryError::UnknownName { .. }
        | MemoryError::Twice { .. }
        | MemoryError::NoFields
        | MemoryError::MergeIntoItself(_)
        | MemoryError::Absorbed { .. }
        | MemoryError::Undone { .. }
        | MemoryError::Depended { .. } => ToolErrorKind::InvalidArguments,
        MemoryError::Failed(_) | MemoryError::Moved | MemoryError::StillRead(_) => ToolErrorKind::Provider,
    }
}

impl From<MemoryFailure> for ToolError {
    fn from(failure: MemoryFailure) -> Self {
        tracing::error!(source = %failure.source, "{failure}");
        let message = match &failure.advice {
            Some(advice) => format!("{failure}: {advice}"),
            None => format!("{failure}; the server's log has the details"),
        };
        Self::new(ToolErrorKind::Provider, message)
    }
}

impl From<WriteError> for ToolError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Write { path, source } => {
                tracing::error!(%path, %source, "cannot write");
                Self::new(ToolErrorKind::Provider, format!("cannot write {}: {}", echoed(&path), said(&source)))
            }
            WriteError::Refused { path, reason } => {
                Self::new(ToolErrorKind::Provider, format!("cannot write {}: {reason}", echoed(path.as_str())))
            }
            other => Self::new(ToolErrorKind::Provider, other.to_string()),
        }
    }
}

/// The text of an operating system error. For an error made by a library only its kind: its text may contain paths.
fn said(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(_) => error.to_string(),
        None => error.kind().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_toolset_has_its_own_error_format() {
        let error = ToolError::new(ToolErrorKind::NotFound, "no note has the id \"x\"");
        assert_eq!(
            error.reply(Toolset::Notes),
            Reply::Failure(r#"{"error":{"code":"NODE_NOT_FOUND","message":"no note has the id \"x\""}}"#.into())
        );
        assert_eq!(error.reply(Toolset::Docs), Reply::Failure("Error: no note has the id \"x\"".into()));
        assert_eq!(
            error.reply(Toolset::Pages),
            Reply::Protocol { code: -32602, message: "no note has the id \"x\"".into() }
        );
        assert_eq!(
            error.reply(Toolset::Memory),
            Reply::Failure(r#"{"error":{"code":"ResourceNotFound","message":"no note has the id \"x\""}}"#.into())
        );
    }

    #[test]
    fn errors_contain_neither_sql_nor_outside_paths() {
        let store = ToolError::from(StoreError::new("search the index", "no such table: notes at /home/ada/.quipu"));
        assert_eq!(store.message, "cannot search the index; the server's log has the details");

        let made_up = std::io::Error::new(std::io::ErrorKind::PermissionDenied, "at path /home/ada/.tmp1");
        let error = ToolError::from(WriteError::Write { path: "a.md".into(), source: made_up });
        assert_eq!(error.message, "cannot write a.md: permission denied");

        let error = ToolError::from(WriteError::Busy { path: "a.md".into(), holder: "process 7 (quipu)".into() });
        assert!(
            error.message.starts_with("cannot write a.md: process 7 (quipu) holds the write lock"),
            "{}",
            error.message
        );

        let system = std::io::Error::from_raw_os_error(13);
        let error = ToolError::from(IndexError::Vault(VaultError::Read { path: "a.md".into(), source: system }));
        assert_eq!(error.message, "cannot read a.md: Permission denied (os error 13)");
    }
}
