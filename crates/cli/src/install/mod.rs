//! Clients and their configurations: which file each reads, what a server looks like in it, and how one is put there
//! without touching anything else.

mod clients;
mod file;
mod json;
mod smoke_test;
mod toml;

pub(crate) use clients::{CLIENTS, Client, Home};
pub(crate) use file::{Change, ConfigFile, lock};
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
    /// Whether it starts a server of this program, whichever copy of it. A copy of another name is known only to itself.
    pub(crate) fn is_quipu(&self) -> bool {
        let program = Path::new(&self.program);
        let is_called = program.file_name().is_some_and(|file| file == "quipu");
        (is_called || is_this(program)) && self.arguments.first().is_some_and(|verb| verb == "serve")
    }
}

/// Whether a path leads to the program that runs. A relative one may lead elsewhere for the client that reads it.
fn is_this(program: &Path) -> bool {
    let here = std::env::current_exe().and_then(|here| here.canonicalize());
    program.is_absolute() && here.is_ok_and(|here| program.canonicalize().is_ok_and(|there| there == here))
}

/// Why a configuration is left as it is.
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

/// A format of configuration: a text with a table of servers by name.
trait Format {
    /// A text with the server in it. Where there is one of that name, it is started so from now on, and the rest of it stays.
    fn with(&self, text: &str, name: &str, launch: &Launch) -> Result<String, EditError>;
    /// A text without it; `None` when it is not there.
    fn without(&self, text: &str, name: &str) -> Result<Option<String>, EditError>;
    /// All servers, and how each is started, as far as that can be told.
    fn servers(&self, text: &str) -> Result<Vec<(String, Option<Launch>)>, EditError>;
}

/// Strings of a list; `None` when something else is in it.
fn strings(list: &Value) -> Option<Vec<String>> {
    list.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}
