//! A tool called by a command, which shows its answer.

use quipu_tools::{Registry, Reply};
use serde_json::Value;

use super::note_source::NoteSource;
use super::{CLIENT, Failure};

/// The answer of a tool. Reports its warnings. `verb` begins the message of an error: "cannot VERB: …".
pub(super) fn ask(
    registry: &Registry,
    (tool, verb): (&str, &str),
    arguments: Value,
    source: &dyn NoteSource,
) -> Result<Value, Failure> {
    let tool = registry.find(tool).map_err(|_| {
        Failure::failed(format!("cannot {verb}: this vault has no tool {tool}")).hint("`quipu call` lists its tools")
    })?;
    let response = registry.call(tool, arguments, &registry.command_session(CLIENT), None);
    for warning in response.warnings {
        source.warn(warning);
    }
    match response.reply {
        Reply::Answer(answer) => Ok(answer),
        Reply::Failure(text) => {
            let error: Option<Value> = serde_json::from_str(&text).ok();
            let said = |field: &str| error.as_ref().and_then(|error| error.pointer(field)).and_then(Value::as_str);
            let message = format!("cannot {verb}: {}", said("/error/message").unwrap_or(&text));
            Err(match said("/error/code") {
                Some("INVALID_PARAMS" | "InvalidArguments") => Failure::usage(message),
                _ => Failure::failed(message),
            })
        }
        Reply::Protocol { message, .. } => Err(Failure::failed(message)),
    }
}
