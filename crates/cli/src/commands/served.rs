//! Implements the server's view of an open vault, including commands that the server runs for other processes.

use std::io;
use std::path::Path;
use std::sync::Arc;

use quipu_core::Knowledge;
use quipu_core::index::{FileBatch, IndexError};
use quipu_core::memory::Memory;
use quipu_server::engine::{Engine, FirstPass};
use quipu_server::served_vault::ServedVault;
use quipu_tools::Registry;
use serde_json::{Value, json};

use super::index_command::answer_peer;
use crate::compose::{InMemoryReason, IndexLocation, OpenVault};

impl ServedVault for OpenVault {
    fn root(&self) -> Option<&Path> {
        Some(self.vault.root())
    }

    fn knowledge(&self) -> &Arc<Knowledge> {
        &self.knowledge
    }

    fn memory(&self) -> Result<&Arc<Memory>, String> {
        self.memory.as_ref().map(|open| &open.memory).map_err(ToString::to_string)
    }

    fn registry(&self) -> Registry {
        self.registry(None)
    }

    fn read(&self, first_pass: FirstPass) -> Result<(), IndexError> {
        match first_pass {
            FirstPass::Done | FirstPass::Followed => Ok(()),
            FirstPass::ReportToTerminal => self.index_for_terminal(),
            FirstPass::ReportToLog => self.index_for_client(),
        }
    }

    fn is_index_taken(&self) -> bool {
        self.index == IndexLocation::Memory(InMemoryReason::InUse)
    }

    fn why_not_kept(&self) -> Option<String> {
        self.why_not_kept()
    }

    fn watch(&self, on_event: Box<dyn Fn(Result<FileBatch, String>) + Send>) -> Result<Box<dyn Send>, String> {
        self.vault.watch(on_event)
    }

    fn prune_trash(&self, before_ns: i64) -> io::Result<usize> {
        self.vault.prune_trash(before_ns)
    }

    fn save(&self) {
        self.save_derived();
        self.settle_memory();
    }

    fn run_command(self: Arc<Self>, engine: &Engine, command: Value) -> Value {
        json!(answer_peer(&self, engine, command))
    }
}
