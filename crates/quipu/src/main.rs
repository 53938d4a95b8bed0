//! The program: reads the command line, runs one command, and says how it went by its exit code.

mod background;
mod cli;
mod compose;
mod config;
mod exchange;
mod mcp;
mod serve;

fn main() -> std::process::ExitCode {
    cli::run()
}
