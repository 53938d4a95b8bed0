//! `quipu install --list`: the clients that start this program, and whether the program and the vault still exist.

use std::path::{Path, PathBuf};

use quipu_core::shell_quoted;
use serde_json::{Value, json};

use super::open_vault::find_folder;
use super::output::{Line, Output};
use super::{Failure, Outcome, Shared};
use crate::install::{CLIENTS, Client, ConfigFile, Home, Launch};

/// Lists the servers in the user's settings and in those of a project.
pub(super) fn list(
    home: &Home,
    project: Option<&Path>,
    shared: &Shared,
    as_json: bool,
    output: &mut Output,
) -> Result<Outcome, Failure> {
    let mut rows = Vec::new();
    let mut outcome = Outcome::Fine;
    for client in CLIENTS {
        let in_project = project.and_then(|project| Some((client.project_file(project)?, Some(project))));
        for (path, project) in std::iter::once((client.file(home), None)).chain(in_project) {
            let file = ConfigFile::read(client, path.clone());
            let servers = match file.and_then(|file| file.servers()) {
                Ok(servers) => servers,
                Err(error) => {
                    output.warning(&format!("{}: {error:#}", client.title), None);
                    outcome = Outcome::Negative;
                    continue;
                }
            };
            for (name, launch) in servers {
                let launch = launch.filter(Launch::is_quipu);
                rows.extend(launch.map(|launch| Connected::of(client, path.clone(), project, name, launch)));
            }
        }
    }
    if rows.iter().any(|row| row.missing.is_some()) {
        outcome = Outcome::Negative;
    }
    if as_json {
        output.json(&rows.iter().map(Connected::to_json).collect::<Vec<_>>())?;
        return Ok(outcome);
    }
    if rows.is_empty() {
        output.aside(&Line::new().plain(none_connected(find_folder(None, shared).ok().as_deref())));
    }
    for row in rows {
        output.line(&row.line(home))?;
    }
    Ok(outcome)
}

/// How to connect the first client, to this vault if there is one.
fn none_connected(vault: Option<&Path>) -> String {
    let (folder, where_dir) = match vault {
        Some(vault) => (shell_quoted(&vault.to_string_lossy()), ""),
        None => ("DIR".to_owned(), " (DIR is the folder of your notes)"),
    };
    let example = &CLIENTS[0];
    format!(
        "no client is connected; `quipu install {} --vault {folder}` connects {}{where_dir}; `quipu install --help` lists the \
         other clients",
        example.name, example.title
    )
}

/// A client that starts this program, or one of its name.
struct Connected {
    client: &'static Client,
    file: PathBuf,
    is_project: bool,
    name: String,
    program: String,
    vault: Option<String>,
    missing: Option<MissingPart>,
}

/// The part of a connection that no longer exists.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MissingPart {
    Program,
    Vault,
}

impl MissingPart {
    fn words(self) -> &'static str {
        match self {
            Self::Program => "the program does not exist",
            Self::Vault => "the vault does not exist",
        }
    }

    /// The value of `state` in JSON.
    fn state(self) -> &'static str {
        match self {
            Self::Program => "program_missing",
            Self::Vault => "vault_missing",
        }
    }
}

impl Connected {
    fn of(client: &'static Client, file: PathBuf, project: Option<&Path>, name: String, launch: Launch) -> Self {
        let Launch { program, arguments } = launch;
        let vault = arguments.get(1).filter(|word| !word.starts_with('-')).cloned();
        let is_gone = |path: &str| {
            // A bare name is looked up in the PATH, and a relative path depends on where the client starts.
            let path = match project {
                Some(project) => project.join(client.expanded(path, project)),
                None => PathBuf::from(path),
            };
            path.is_absolute() && !path.exists()
        };
        let missing = if program.contains('/') && is_gone(&program) {
            Some(MissingPart::Program)
        } else if vault.as_deref().is_some_and(is_gone) {
            Some(MissingPart::Vault)
        } else {
            None
        };
        Self { client, file, is_project: project.is_some(), name, program, vault, missing }
    }

    fn line(&self, home: &Home) -> Line {
        let vault = self
            .vault
            .as_deref()
            .map_or("the folder in which the client starts it".to_owned(), |vault| home.shown(Path::new(vault)));
        let scope = if self.is_project { " (project)" } else { "" };
        let line = Line::new().bold(self.client.title).plain(format!("{scope}  {}: {vault}", self.name));
        let line = line.dim(format!("  by {}", home.shown(Path::new(&self.program))));
        match self.missing {
            None => line,
            Some(missing) => line.yellow(format!("  {}; reconnect it: {}", missing.words(), self.command(missing))),
        }
    }

    /// The command that reconnects the client.
    fn command(&self, missing: MissingPart) -> String {
        let mut command = format!("quipu install {}", self.client.name);
        if self.name != "quipu" {
            command.push_str(&format!(" --name {}", shell_quoted(&self.name)));
        }
        if self.is_project {
            command.push_str(" --scope project");
        }
        match &self.vault {
            Some(vault) if missing != MissingPart::Vault => {
                command.push_str(&format!(" --vault {}", shell_quoted(vault)));
            }
            _ => command.push_str(" --vault DIR"),
        }
        command
    }

    fn to_json(&self) -> Value {
        json!({
            "client": self.client.name,
            "scope": if self.is_project { "project" } else { "user" },
            "file": self.file,
            "name": self.name,
            "program": self.program,
            "vault": self.vault,
            "state": self.missing.map_or("ok", MissingPart::state),
        })
    }
}
