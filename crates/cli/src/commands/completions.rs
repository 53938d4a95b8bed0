//! `quipu completions`: a script that completes commands and flags in a shell.

use clap::Args;
use clap_complete::Shell;

use super::output::Output;
use super::{Failure, Outcome};

/// Print a completion script for a shell.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quipu completions bash > ~/.local/share/bash-completion/completions/quipu
  quipu completions zsh > ~/.zfunc/_quipu
  quipu completions fish > ~/.config/fish/completions/quipu.fish")]
pub(crate) struct Completions {
    /// Name of the shell.
    shell: Shell,
}

impl Completions {
    pub(super) fn run(self, mut command: clap::Command, output: &mut Output) -> Result<Outcome, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "quipu", &mut script);
        output.verbatim(&script)?;
        Ok(Outcome::Fine)
    }
}
