//! The program: reads the command line, runs one command, and says how it went by its exit code.

mod commands;
mod compose;
mod config;
mod exchange;
mod failure;
mod install;
mod picture;
mod trust;

fn main() -> std::process::ExitCode {
    commands::run()
}
