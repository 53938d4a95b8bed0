//! The program: reads the command line, runs one command, and says how it went by its exit code.

mod background;
mod cli;
mod compose;
mod config;
mod engine;
mod exchange;
mod failure;
mod hang_up;
mod install;
mod located;
mod mcp;
mod own_files;
mod serve;
mod share;
mod stamp;
mod tokens;
mod trust;

fn main() -> std::process::ExitCode {
    cli::run()
}
