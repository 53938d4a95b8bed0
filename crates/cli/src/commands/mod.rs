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
mod command_vault;
mod connected;
mod database;
mod database_token;
mod http_options;
mod index_command;
mod logging;
mod note_source;
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

use clap::{Args, CommandFactory, Parser, Subcommand};

use index_command::IndexCommand;
use output::Output;

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

/// The client name of the command line, in memory's log and for its context.
const CLIENT: &str = "quipu";

/// How a command that did not fail ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Fine,
    /// Nothing was found, or the check found a problem. Exit code 1.
    Negative,
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
        Command::IndexCommand(command) => command.run(&shared, output),
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
