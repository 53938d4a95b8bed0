//! The command line: the commands, each in the file of its name, and the modules that they share.
//!
//! Only `output` prints, and only this file turns errors into messages and exit codes.

mod output;

mod audit;
mod backup;
mod call;
mod completions;
mod db;
mod diff;
mod doctor;
mod export;
mod graph;
mod history;
mod import;
mod index;
mod install;
mod merge;
mod mirror;
mod open;
mod picture;
mod pull;
mod push;
mod query;
mod restore;
mod revert;
mod search;
mod serve;
mod stale;
mod status;
mod token;
mod trust;
mod undo;
mod verify;
mod watch;

mod ask_tool;
mod change;
mod connected;
mod database;
mod database_token;
mod http_options;
mod logging;
#[cfg(feature = "oauth")]
mod oauth_options;
mod open_vault;
mod progress;
mod serve_graph;
mod served;
mod snippet;
mod sync_folder;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, CommandFactory, Parser, Subcommand};
use quipu_server::engine::Engine;
use quipu_server::own_files::own_folder;
use quipu_server::served_vault::VaultSource;
use quipu_server::sharing::{self, CommandOutcome, OwnerCommand, OwnerInfo, Retry, WaitPolicy};
use serde::{Deserialize, Serialize};

use open_vault::VaultLocation;
use output::{Output, Printed};

use crate::compose::OpenVault;
use crate::failure::Failure;

/// Gives AI agents a lasting, shared, searchable memory over a folder of Markdown notes.
#[derive(Debug, Parser)]
#[command(
    name = "quipu",
    version,
    arg_required_else_help = true,
    subcommand_required = true,
    after_help = "\
Examples:
  quipu serve ~/notes             serve the notes in ~/notes to an agent
  quipu install cursor            connect a client to the notes of the current folder
  quipu search frozen anemometer  search the notes of the current folder
  quipu doctor                    list broken links and other problems
  quipu search --help             show the help of one command, with examples

Exit codes:
  0  success
  1  failure, or a negative answer: nothing found, problems with `doctor --check`,
     stale pages with `stale --fail`
  2  invalid command line or configuration; nothing was changed"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    shared: Shared,
}

/// Options of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Shared {
    /// Use this folder of notes [env: QUIPU_VAULT] [default: the nearest folder upwards with .quipu/, else this one].
    #[arg(long, global = true, value_name = "DIR")]
    vault: Option<PathBuf>,
    /// Log more to stderr; -vv logs everything. QUIPU_LOG=quipu=debug sets levels by module.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// The open vault, where a server runs a command for another process.
    #[arg(skip)]
    served: Option<Arc<OpenVault>>,
}

#[derive(Debug, Subcommand)]
enum Command {
    // Boxed: it has by far the most flags.
    Serve(Box<serve::Serve>),
    Open(open::Open),
    Watch(watch::Watch),
    #[command(flatten)]
    IndexCommand(IndexCommand),
    Audit(audit::Audit),
    Undo(undo::Undo),
    Merge(merge::Merge),
    Backup(backup::Backup),
    Verify(verify::Verify),
    Import(import::Import),
    Export(export::Export),
    Install(install::Install),
    Token(token::TokenCommand),
    Db(db::DbCommand),
    Graph(graph::GraphCommand),
    Push(push::Push),
    Pull(pull::Pull),
    Mirror(mirror::Mirror),
    Trust(trust::Trust),
    Completions(completions::Completions),
}

/// Commands that need the index. If a server has it open they run there: the index is current, has vectors, and clients see
/// at once what the command writes.
#[derive(Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum IndexCommand {
    Index(index::Index),
    Status(status::Status),
    Search(search::Search),
    Query(query::Query),
    Call(call::Call),
    Stale(stale::Stale),
    History(history::History),
    Diff(diff::Diff),
    Revert(revert::Revert),
    Restore(restore::Restore),
    Doctor(doctor::Doctor),
    Picture(picture::Picture),
}

impl IndexCommand {
    /// `server` is the one that runs the command for another process.
    fn run(self, shared: &Shared, server: Option<&Engine>, output: &mut Output) -> Result<Outcome, Failure> {
        match self {
            Self::Index(command) => command.run(shared, None, output),
            Self::Status(command) => command.run(shared, output),
            Self::Search(command) => command.run(shared, output),
            Self::Query(command) => command.run(shared, output),
            Self::Call(command) => command.run(shared, server, output),
            Self::Stale(command) => command.run(shared, output),
            Self::History(command) => command.run(shared, output),
            Self::Diff(command) => command.run(shared, output),
            Self::Revert(command) => command.run(shared, output),
            Self::Restore(command) => command.run(shared, output),
            Self::Doctor(command) => command.run(shared, output),
            Self::Picture(command) => command.run(shared, output),
        }
    }

    /// Makes the command independent of the current folder and of stdin, so that another process can run it. Returns the
    /// vault's folder, if the command names one.
    fn make_portable(&mut self) -> Result<Option<PathBuf>, Failure> {
        match self {
            Self::Index(command) => Ok(command.folder.take()),
            Self::Status(command) => Ok(command.folder.take()),
            Self::Stale(command) => Ok(command.folder.take()),
            Self::Doctor(command) => Ok(command.folder.take()),
            Self::Call(command) => {
                command.read_stdin()?;
                command.give_key(sharing::new_key());
                Ok(None)
            }
            Self::Picture(command) => command.resolve_output().map(|()| None),
            Self::Search(_)
            | Self::Query(_)
            | Self::History(_)
            | Self::Diff(_)
            | Self::Revert(_)
            | Self::Restore(_) => Ok(None),
        }
    }

    /// Whether the command may be retried. `call` has a key by which it is applied once; a second `restore` or `revert`
    /// may restore what the first one replaced.
    fn retry(&self) -> Retry {
        match self {
            Self::Restore(_) | Self::Revert(_) => Retry::No,
            Self::Index(_)
            | Self::Status(_)
            | Self::Search(_)
            | Self::Query(_)
            | Self::History(_)
            | Self::Diff(_)
            | Self::Call(_)
            | Self::Stale(_)
            | Self::Doctor(_)
            | Self::Picture(_) => Retry::Yes,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Index(_) => "index",
            Self::Status(_) => "status",
            Self::Search(_) => "search",
            Self::Query(_) => "query",
            Self::Call(_) => "call",
            Self::Stale(_) => "stale",
            Self::History(_) => "history",
            Self::Diff(_) => "diff",
            Self::Revert(_) => "revert",
            Self::Restore(_) => "restore",
            Self::Doctor(_) => "doctor",
            Self::Picture(_) => "picture",
        }
    }

    /// Runs the command in the server that has the vault open, or in this process if there is none.
    fn run_in_owner(mut self, shared: Shared, output: &mut Output) -> Result<Outcome, Failure> {
        let folder = self.make_portable()?;
        let location = VaultLocation::find(folder.as_deref(), &shared)?;
        let request = OwnerCommand {
            name: self.name(),
            command: serde_json::to_value(&self).map_err(|error| Failure::failed(error.to_string()))?,
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
            None => "waiting for another quipu process, which is using this vault".to_owned(),
        };
        let passed = progress::waiting(what, output, || sharing::run_in_owner(&location.root, request));
        let shared = Shared { vault: Some(location.root.clone()), ..shared };
        match (passed, self) {
            (CommandOutcome::Reply(reply), _) => {
                let CommandReply { printed, code } = serde_json::from_value(reply).map_err(|error| {
                    Failure::failed(format!("cannot read the reply of the server that has this vault open: {error}"))
                        .hint("use the same version of quipu for all clients of this vault")
                })?;
                output.replay(&printed)?;
                Ok(Outcome::Remote(code))
            }
            (CommandOutcome::Failed(message), _) => Err(Failure::failed(message)),
            (CommandOutcome::Busy(holder), Self::Status(command)) => {
                command.run_without_index(&location, &holder, output)
            }
            (CommandOutcome::Busy(holder), _) => {
                Err(Failure::failed(format!("cannot use the index: {holder} has it open"))
                    .hint("run this again when that process has ended"))
            }
            (CommandOutcome::RunHere(lock), Self::Index(command)) => command.run(&shared, lock, output),
            (CommandOutcome::RunHere(lock), command) => {
                let outcome = command.run(&shared, None, output);
                // Held until here, so that no other process opened the index meanwhile.
                drop(lock);
                outcome
            }
        }
    }
}

/// What a server returns for a command that it ran for another process.
#[derive(Serialize, Deserialize)]
struct CommandReply {
    printed: Vec<Printed>,
    code: u8,
}

/// The client name of the command line, in memory's log and for its context.
const CLIENT: &str = "quipu";

/// How a command that did not fail ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Fine,
    /// Nothing was found, or the check found a problem. Exit code 1.
    Negative,
    /// A server ran the command and returned this exit code.
    Remote(u8),
}

/// Runs the command the program was started with.
pub(crate) fn run() -> ExitCode {
    let mut output = Output::new();
    ExitCode::from(match Cli::try_parse() {
        Ok(cli) => {
            let outcome = logging::start(cli.shared.verbose).and_then(|()| run_command(cli, &mut output));
            exit_code(outcome, &mut output)
        }
        Err(error) => usage(&error, &mut output),
    })
}

/// Prints why a command failed, if it did, and returns its exit code.
fn exit_code(outcome: Result<Outcome, Failure>, output: &mut Output) -> u8 {
    match outcome.and_then(|outcome| output.finish().map(|()| outcome)) {
        // The reader closed the pipe: `quipu status | head -1` is not an error.
        Ok(Outcome::Fine) | Err(Failure::PipeClosed) => 0,
        Ok(Outcome::Negative) => 1,
        Ok(Outcome::Remote(code)) => code,
        Err(Failure::Message { code, message, hint }) => {
            output.error(&message, hint.as_deref());
            code.number()
        }
    }
}

fn run_command(cli: Cli, output: &mut Output) -> Result<Outcome, Failure> {
    let Cli { command, shared } = cli;
    match command {
        Command::Serve(command) => command.run(&shared, output),
        Command::Open(command) => command.run(&shared, output),
        Command::Watch(command) => command.run(&shared, output),
        Command::IndexCommand(command) => command.run_in_owner(shared, output),
        Command::Audit(command) => command.run(&shared, output),
        Command::Undo(command) => command.run(&shared, output),
        Command::Merge(command) => command.run(&shared, output),
        Command::Backup(command) => command.run(&shared, output),
        Command::Verify(command) => command.run(&shared, output),
        Command::Import(command) => command.run(&shared, output),
        Command::Export(command) => command.run(&shared, output),
        Command::Install(command) => command.run(&shared, output),
        Command::Token(command) => command.run(&shared, output),
        Command::Db(command) => command.run(output),
        Command::Graph(command) => command.run(output),
        Command::Push(command) => command.run(&shared, output),
        Command::Pull(command) => command.run(&shared, output),
        Command::Mirror(command) => command.run(&shared, output),
        Command::Trust(command) => command.run(&shared, output),
        Command::Completions(command) => command.run(Cli::command(), output),
    }
}

/// Rejects flags with which `serve` would not start, or would not serve the client that starts it.
fn check_serve_flags(flags: &[String]) -> Result<(), Failure> {
    let line = ["quipu", "serve", "."].into_iter().chain(flags.iter().map(String::as_str));
    let hint = "`quipu serve --help` lists the flags";
    match Cli::try_parse_from(line) {
        Ok(Cli { command: Command::Serve(serve), .. }) if serve.is_over_http() => {
            let message = "cannot pass --http: a client uses the server that it starts over standard input and output";
            Err(Failure::usage(message).hint("start `quipu serve --http` yourself, and give the client its address"))
        }
        Ok(_) => Ok(()),
        Err(error) => {
            let said = error.to_string();
            let what = said.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
            Err(Failure::usage(format!("cannot start `quipu serve` with these flags: {what}")).hint(hint))
        }
    }
}

/// Help and version go to stdout; a wrong command line, or none, to stderr with exit code 2.
fn usage(error: &clap::Error, output: &mut Output) -> u8 {
    output.clap(error);
    if error.use_stderr() { 2 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// clap wraps at 100 columns; a line that is wrapped by hand and again by clap breaks the columns of a table.
    #[test]
    fn examples_and_json_fields_fit_the_width_of_the_help() {
        let program = Cli::command();
        for command in program.get_subcommands().chain([&program]) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in help.lines() {
                assert!(line.chars().count() <= 96, "{}: {line}", command.get_name());
            }
        }
    }
}
