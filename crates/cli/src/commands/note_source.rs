//! Where the commands on versions of notes find them: in a folder, or in a graph of a database.

use std::sync::Arc;

use quipu_server::served_vault::ServedVault;

use super::command_vault::CommandVault;
use super::database::{GraphOption, settings};
use super::output::Output;
use super::progress::Meter;
use crate::compose::{OpenGraph, OpenMode};
use crate::failure::Failure;

/// Notes and their versions.
pub(super) trait NoteSource {
    /// Opens them without reading them.
    fn open_notes(&self) -> Result<OpenNotes<'_>, Failure>;

    /// Reports a problem that does not stop the command.
    fn warn(&self, message: String);
}

/// Open notes.
pub(super) struct OpenNotes<'a> {
    pub(super) notes: Arc<dyn ServedVault>,
    index: Box<dyn Fn() -> Result<(), Failure> + 'a>,
}

impl OpenNotes<'_> {
    /// Reads the notes that the index does not have.
    pub(super) fn update_index(&self) -> Result<(), Failure> {
        (self.index)()
    }
}

impl NoteSource for CommandVault<'_> {
    fn open_notes(&self) -> Result<OpenNotes<'_>, Failure> {
        let open = self.open(OpenMode::Existing)?;
        let notes = open.clone();
        Ok(OpenNotes { notes, index: Box::new(move || self.index(open.clone()).map(drop)) })
    }

    fn warn(&self, message: String) {
        CommandVault::warn(self, message, None);
    }
}

/// A graph, opened by the command.
pub(super) struct CommandGraph<'a> {
    open: Arc<OpenGraph>,
    name: String,
    output: &'a Output,
}

impl<'a> CommandGraph<'a> {
    /// The graph that is named; `None` if the command is for a folder.
    pub(super) fn find(option: &GraphOption, output: &'a Output) -> Result<Option<Self>, Failure> {
        let Some((database, graph)) = option.find()? else { return Ok(None) };
        let name = graph.name.clone();
        let open = OpenGraph::for_command(database, graph, &settings()?).map_err(super::serve_graph::failure)?;
        Ok(Some(Self { open: Arc::new(open), name, output }))
    }
}

impl NoteSource for CommandGraph<'_> {
    fn open_notes(&self) -> Result<OpenNotes<'_>, Failure> {
        let index = || {
            let meter = Meter::start("reading", "notes", Some(self.output));
            let read = self.open.knowledge.start(&|progress| meter.update(progress));
            meter.finish();
            read.map_err(|error| Failure::failed(format!("cannot read the graph {}: {error}", self.name)))?;
            Ok(())
        };
        Ok(OpenNotes { notes: self.open.clone(), index: Box::new(index) })
    }

    fn warn(&self, message: String) {
        self.output.warning(&message, None);
    }
}
