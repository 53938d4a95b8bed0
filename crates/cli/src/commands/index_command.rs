//! Commands that need the index. Each has two halves: `answer` runs where the index is open, in this process or in the owner
//! process; `print` runs in the process that the user started.

use std::path::Path;
use std::sync::Arc;

use clap::Subcommand;
use quipu_server::engine::Engine;
use quipu_server::own_files::own_folder;
use quipu_server::served_vault::VaultSource;
use quipu_server::service::IndexProgress;
use quipu_server::sharing::{self, CommandOutcome, OwnerCommand, OwnerInfo, Retry, WaitPolicy};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::command_vault::{CommandVault, Notice};
use super::database::GraphOption;
use super::note_source::{CommandGraph, NoteSource};
use super::open_vault::VaultLocation;
use super::output::Output;
use super::{Outcome, Shared, progress};
use super::{call, diff, doctor, history, index, picture, query, restore, revert, search, stale, status};
use crate::compose::OpenVault;
use crate::failure::Failure;

/// The commands that need the index: the module and the type of each, its answer, and whether it may be retried.
macro_rules! index_commands {
    ($($module:ident::$command:ident -> $answer:ty, $retry:expr;)*) => {
        /// If the vault has an owner process these commands run there: the index is current, has vectors, and clients see at once
        /// what the command writes.
        #[derive(Debug, Subcommand, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub(super) enum IndexCommand {
            $($command($module::$command),)*
        }

        /// The answer to the command of the same name.
        #[derive(Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub(super) enum IndexAnswer {
            $($command($answer),)*
        }

        impl IndexCommand {
            fn answer(&self, vault: &CommandVault<'_>) -> Result<IndexAnswer, Failure> {
                Ok(match self {
                    $(Self::$command(command) => IndexAnswer::$command(command.answer(vault)?.into()),)*
                })
            }

            fn print(&self, answer: &IndexAnswer, output: &mut Output) -> Result<Outcome, Failure> {
                match (self, answer) {
                    $((Self::$command(command), IndexAnswer::$command(answer)) => command.print(answer, output),)*
                    _ => Err(unreadable("it is the answer to another command")),
                }
            }

            fn retry(&self) -> Retry {
                match self {
                    $(Self::$command(_) => $retry,)*
                }
            }

            fn name(&self) -> &'static str {
                match self {
                    $(Self::$command(_) => stringify!($module),)*
                }
            }
        }
    };
}

// `call` has a key by which it is applied once; a second `restore` or `revert` may restore what the first one replaced.
index_commands! {
    index::Index -> index::IndexedFiles, Retry::Yes;
    status::Status -> Box<status::StatusAnswer>, Retry::Yes;
    search::Search -> search::SearchAnswer, Retry::Yes;
    query::Query -> query::QueryAnswer, Retry::Yes;
    call::Call -> call::CallAnswer, Retry::Yes;
    stale::Stale -> stale::StaleAnswer, Retry::Yes;
    history::History -> history::HistoryAnswer, Retry::Yes;
    diff::Diff -> Value, Retry::Yes;
    revert::Revert -> Value, Retry::No;
    restore::Restore -> restore::RestoreAnswer, Retry::No;
    doctor::Doctor -> doctor::DoctorAnswer, Retry::Yes;
    picture::Picture -> Box<picture::PictureAnswer>, Retry::Yes;
}

/// What a server returns for a command that it ran for another process.
#[derive(Serialize, Deserialize)]
pub(super) struct CommandReply {
    notices: Vec<Notice>,
    answer: Result<IndexAnswer, Failure>,
}

/// Answers a command from a folder or a graph.
type AnswerFrom<'a> = Box<dyn Fn(&dyn NoteSource) -> Result<IndexAnswer, Failure> + 'a>;

impl IndexCommand {
    /// The vault's folder, if the command names one.
    fn folder(&self) -> Option<&Path> {
        match self {
            Self::Index(command) => command.folder.as_deref(),
            Self::Status(command) => command.folder.as_deref(),
            Self::Stale(command) => command.folder.as_deref(),
            Self::Doctor(command) => command.folder.as_deref(),
            _ => None,
        }
    }

    /// For a command that can also use a graph: the option, and its answer.
    fn on_graph(&self) -> Option<(&GraphOption, AnswerFrom<'_>)> {
        match self {
            Self::History(command) => {
                Some((&command.graph, Box::new(|source| command.answer(source).map(IndexAnswer::History))))
            }
            Self::Diff(command) => {
                Some((&command.graph, Box::new(|source| command.answer(source).map(IndexAnswer::Diff))))
            }
            Self::Revert(command) => {
                Some((&command.graph, Box::new(|source| command.answer(source).map(IndexAnswer::Revert))))
            }
            Self::Restore(command) => {
                Some((&command.graph, Box::new(|source| command.answer(source).map(IndexAnswer::Restore))))
            }
            _ => None,
        }
    }

    /// Gets the answer from the owner process, or in this process if there is none, and prints it.
    pub(super) fn run(mut self, shared: &Shared, output: &mut Output) -> Result<Outcome, Failure> {
        match &mut self {
            Self::Call(command) => command.prepare()?,
            Self::Picture(command) => command.check()?,
            _ => {}
        }
        if let Some((option, answer)) = self.on_graph()
            && let Some(graph) = CommandGraph::find(option, output)?
        {
            let answer = answer(&graph)?;
            return self.print(&answer, output);
        }
        let location = VaultLocation::find(self.folder(), shared)?;
        let answer = self.find_answer(location, output)?;
        self.print(&answer, output)
    }

    fn find_answer(&self, location: VaultLocation, output: &Output) -> Result<IndexAnswer, Failure> {
        let request = OwnerCommand {
            name: self.name(),
            command: serde_json::to_value(self).map_err(|error| Failure::failed(error.to_string()))?,
            retry: self.retry(),
            wait: if matches!(self, Self::Status(_)) { WaitPolicy::Never } else { WaitPolicy::UntilFree },
        };
        if let Self::Index(_) = self {
            // The lock is in that folder: without one, other commands could not tell that the index is being made. If the
            // folder cannot be created, the command says so.
            let _ = VaultSource::own_folder(&location);
        }
        let what = || match OwnerInfo::read(&own_folder(&location.root)) {
            Some(holder) => format!("waiting for {holder}, which is using this vault"),
            None => "waiting for the owner process, which is using this vault".to_owned(),
        };
        let outcome = progress::waiting(what, output, || sharing::run_in_owner(&location.root, request));
        match (outcome, self) {
            (CommandOutcome::Reply(reply), _) => {
                let CommandReply { notices, answer } =
                    serde_json::from_value(reply).map_err(|error| unreadable(&error.to_string()))?;
                notices.iter().for_each(|notice| notice.print(output));
                answer
            }
            (CommandOutcome::Failed(message), _) => Err(Failure::failed(message)),
            (CommandOutcome::Busy(holder), Self::Status(command)) => {
                Ok(IndexAnswer::Status(Box::new(command.answer_without_index(&location, &holder)?)))
            }
            (CommandOutcome::Busy(holder), _) => {
                Err(Failure::failed(format!("cannot use the index: {holder} has it open"))
                    .hint("run this again when that process has ended"))
            }
            (CommandOutcome::RunHere(lock), _) => self.answer(&CommandVault::of_user(location, output, lock)),
        }
    }
}

fn unreadable(why: &str) -> Failure {
    Failure::failed(format!("cannot read the reply of the owner process: {why}"))
        .hint("use the same version of quipu for all clients of this vault")
}

/// Answers a command of another process, over the vault that this process has open.
pub(super) fn answer_peer(open: &Arc<OpenVault>, engine: &Engine, command: Value) -> CommandReply {
    let mut notices = Vec::new();
    let answer = answer_in_server(open, engine, command, &mut notices);
    CommandReply { notices, answer }
}

fn answer_in_server(
    open: &Arc<OpenVault>,
    engine: &Engine,
    command: Value,
    notices: &mut Vec<Notice>,
) -> Result<IndexAnswer, Failure> {
    let command: IndexCommand = serde_json::from_value(command).map_err(|error| {
        Failure::failed(format!("cannot run this in the running server: unknown command: {error}"))
            .hint("use the same version of quipu for all clients of this vault")
    })?;
    // `status` never waits.
    if let (IndexCommand::Status(command), IndexProgress { files, is_over: false }) = (&command, engine.progress()) {
        return Ok(IndexAnswer::Status(Box::new(command.answer_while_reading(open, files)?)));
    }
    engine.indexed();
    if let IndexProgress { files, is_over: false } = engine.progress() {
        return Err(Failure::failed(format!(
            "cannot answer yet: the server (process {}) is still reading the vault, {files} files so far",
            std::process::id()
        ))
        .hint("retry in a minute; `quipu status` shows the progress"));
    }
    let vault = CommandVault::of_server(engine, open.clone())?;
    let answer = command.answer(&vault);
    notices.extend(vault.into_notices());
    answer
}
