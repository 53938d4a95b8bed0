//! Clients and their settings: which file each reads, the form of a server in it, and how to add one without changing
//! anything else.

mod clients;
mod file;
mod json;
mod smoke_test;
mod toml;

pub(crate) use clients::{CLIENTS, Client, Home};
pub(crate) use file::{ConfigFile, SettingsChange, lock};
pub(crate) use smoke_test::count_tools;

use std::path::Path;

use serde_json::Value;

/// How a client starts the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Launch {
    pub(crate) program: String,
    pub(crate) arguments: Vec<String>,
}

impl Launch {
    /// Whether it starts `quipu serve`, from any copy named `quipu` or from the running program.
    pub(crate) fn is_quipu(&self) -> bool {
        let program = Path::new(&self.program);
        let is_called = program.file_name().is_some_and(|file| file == "quipu");
        (is_called || is_this(program)) && self.arguments.first().is_some_and(|verb| verb == "serve")
    }
}

/// Whether a path leads to the running program. A relative path may lead elsewhere in the client.
fn is_this(program: &Path) -> bool {
    let here = std::env::current_exe().and_then(|here| here.canonicalize());
    program.is_absolute() && here.is_ok_and(|here| program.canonicalize().is_ok_and(|there| there == here))
}

/// Why settings were not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EditError {
    #[error("the file is not valid: {0}; fix it in an editor, or move it away, then run this again")]
    Unreadable(String),
    #[error("`{0}` in the file has an unexpected form; fix it in an editor, then run this again")]
    Unexpected(String),
    #[error("`{0}` is in the file twice; remove one of the two, then run this again")]
    Twice(String),
    #[error("the change would touch more than this server; add the server by hand, or report this as a bug")]
    TooMuch,
}

/// A format of settings: a text with a table of servers by name.
trait SettingsFormat {
    /// The text with the server. An existing entry of that name keeps its other fields.
    fn with(&self, text: &str, name: &str, launch: &Launch) -> Result<String, EditError>;
    /// The text without the fields of a server that do not start it and are not harmless, and the names of these fields.
    fn pruned(&self, text: &str, name: &str) -> Result<(String, Vec<String>), EditError>;
    /// The text without the server; `None` if it has none.
    fn without(&self, text: &str, name: &str) -> Result<Option<String>, EditError>;
    /// All servers, and how each is started where that is known.
    fn servers(&self, text: &str) -> Result<Vec<(String, Option<Launch>)>, EditError>;
}

/// Whether a field of a server in a project's settings stays. The author of the project chose it: a variable such as `LD_PRELOAD`,
/// another folder, or an address in place of the program decides what is run, and other fields let tools run without a question.
fn is_harmless(field: &str, value: &Value) -> bool {
    match field {
        "command" | "args" | "disabled" | "enabled" | "timeout" | "description" => true,
        "type" => value == "stdio",
        _ => false,
    }
}

/// The strings of a list; `None` if it has other items.
fn strings(list: &Value) -> Option<Vec<String>> {
    list.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}
