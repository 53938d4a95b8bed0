//! The command line: which commands there are, and what they share. One file per command, named as the command.
//!
//! Only `output` prints, and only here are errors turned into words and exit codes.

mod output;

mod audit;
mod backup;
mod call;
mod completions;
mod doctor;
mod export;
mod import;
mod index;
mod install;
mod restore;
mod search;
mod serve;
mod stale;
mod status;
mod token;
mod trust;
mod undo;
mod verify;

mod change;
mod failure;
mod http_options;
mod locate;
mod logging;
#[cfg(feature = "oauth")]
mod oauth_options;
mod opened;
mod progress;
mod snippet;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};

use failure::Failure;
use output::Output;

/// Gives AI agents a lasting, shared, searchable memory over a folder of Markdown notes.
#[derive(Debug, Parser)]
#[command(
    name = "quipu",
    version,
    arg_required_else_help = true,
    subcommand_required = true,
    after_help = "\
Examples:
  quipu serve ~/notes             give an agent the notes in ~/notes
  quipu search frozen anemometer  look for words in the notes of the current folder
  quipu doctor                    list broken links and other trouble
  quipu search --help             more about one command, with examples

Exit codes:
  0  it went well
  1  it ran and failed, or the answer is no: nothing found, problems with `doctor --check`,
     stale pages with `stale --fail`
  2  the command line or the configuration is wrong; nothing was done"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    shared: Shared,
}

/// What every command understands.
#[derive(Debug, Args)]
#[command(next_help_heading = "Everywhere")]
pub(crate) struct Shared {
    /// The folder of notes [env: QUIPU_VAULT] [default: the nearest folder upwards that has .quipu/, else this one].
    #[arg(long, global = true, value_name = "DIR")]
    vault: Option<PathBuf>,
    /// Tell more on stderr; twice for everything. QUIPU_LOG sets it in detail.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Serve),
    Index(index::Index),
    Status(status::Status),
    Search(search::Search),
    Call(call::Call),
    Stale(stale::Stale),
    Restore(restore::Restore),
    Audit(audit::Audit),
    Undo(undo::Undo),
    Backup(backup::Backup),
    Verify(verify::Verify),
    Import(import::Import),
    Export(export::Export),
    Doctor(doctor::Doctor),
    Install(install::Install),
    Token(token::TokenCommand),
    Trust(trust::Trust),
    Completions(completions::Completions),
}

/// The name under which the command line is in memory's log, and has its context.
const CLIENT: &str = "quipu";

/// How a command that did not fail ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// All is well.
    Fine,
    /// The answer is no: nothing was found, or something is wrong that was asked about. Exit code 1.
    Negative,
}

/// Runs the command the program was started with.
pub(crate) fn run() -> ExitCode {
    let mut output = Output::new();
    let outcome = match Cli::try_parse() {
        Ok(cli) => logging::start(cli.shared.verbose).and_then(|()| run_command(cli, &mut output)),
        Err(error) => return usage(&error, &mut output),
    };
    match outcome.and_then(|outcome| output.finish().map(|()| outcome)) {
        // Whoever reads has seen enough: `quipu status | head -1` is no error.
        Ok(Outcome::Fine) | Err(Failure::PipeClosed) => ExitCode::SUCCESS,
        Ok(Outcome::Negative) => ExitCode::from(1),
        Err(Failure::Told { code, message, hint }) => {
            output.error(&message, hint.as_deref());
            ExitCode::from(code.number())
        }
    }
}

fn run_command(cli: Cli, output: &mut Output) -> Result<Outcome, Failure> {
    let Cli { command, shared } = cli;
    match command {
        Command::Serve(command) => command.run(&shared, output),
        Command::Index(command) => command.run(&shared, output),
        Command::Status(command) => command.run(&shared, output),
        Command::Search(command) => command.run(&shared, output),
        Command::Call(command) => command.run(&shared, output),
        Command::Stale(command) => command.run(&shared, output),
        Command::Restore(command) => command.run(&shared, output),
        Command::Audit(command) => command.run(&shared, output),
        Command::Undo(command) => command.run(&shared, output),
        Command::Backup(command) => command.run(&shared, output),
        Command::Verify(command) => command.run(&shared, output),
        Command::Import(command) => command.run(&shared, output),
        Command::Export(command) => command.run(&shared, output),
        Command::Doctor(command) => command.run(&shared, output),
        Command::Install(command) => command.run(&shared, output),
        Command::Token(command) => command.run(&shared, output),
        Command::Trust(command) => command.run(&shared, output),
        Command::Completions(command) => command.run(Cli::command(), output),
    }
}

/// Help and version go to stdout; a wrong command line, or none, to stderr with exit code 2.
fn usage(error: &clap::Error, output: &mut Output) -> ExitCode {
    output.clap(error);
    ExitCode::from(if error.use_stderr() { 2 } else { 0 })
}
