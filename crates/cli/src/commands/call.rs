//! `quipu call`: calls a tool as an agent does, through the same registry.

use std::io::Read;

use clap::Args;
use quipu_core::{InvalidKey, RequestKey};
use quipu_server::sharing;
use quipu_tools::{Access, Registry, Reply, ToolInfo, ToolResponse, nearest};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::command_vault::CommandVault;
use super::output::{Line, Output};
use super::{Failure, Outcome};
use crate::compose::{InMemoryReason, IndexLocation, OpenMode};

/// Call a tool as an agent does, and print its JSON answer.
///
/// Without a tool, lists the tools.
#[derive(Debug, Args, Serialize, Deserialize)]
#[command(after_help = "\
Examples:
  quipu call                                             list the tools
  quipu call get_node --schema                           print the schema of its arguments
  quipu call get_node '{\"id\": \"station/power.md\"}'
  quipu call list_documents | jq -r '.documents[].path'
  echo '{\"id\": \"new.md\", \"content\": \"Hello.\"}' | quipu call create_node -

When the tool fails, stdout has the response that an agent would get, stderr has its message in
one line, and the exit code is 1. Warnings go to stderr, one line each.")]
pub(crate) struct Call {
    /// Name of the tool.
    tool: Option<String>,
    /// Arguments as a JSON object, or - to read them from stdin.
    #[arg(default_value = "{}", hide_default_value = true)]
    json: String,
    /// Print the JSON Schema of the tool's arguments instead.
    #[arg(long, requires = "tool")]
    schema: bool,
    /// Identifies this call, so that it is applied once even if it is retried.
    #[arg(skip)]
    key: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CallAnswer {
    /// Name and purpose of each tool.
    Tools(Vec<(String, String)>),
    Schema(Value),
    Response(ToolResponse),
}

impl Call {
    /// In a server, the call leaves a trace as any other.
    pub(super) fn answer(&self, vault: &CommandVault<'_>) -> Result<CallAnswer, Failure> {
        let toolsets = vault.location.config.toolsets.as_deref();
        let Some(tool) = &self.tool else {
            return Ok(CallAnswer::Tools(list(&vault.open(OpenMode::Existing)?.registry(toolsets))));
        };
        let arguments = self.arguments()?;
        let mut open = vault.open(OpenMode::Existing)?;
        let mut registry = open.registry(toolsets);
        if let Err(error) = &open.memory {
            vault.warn(format!("the memory tools are unavailable: {error}"), None);
        }
        // Memory must be saved also in a vault without `.quipu/`.
        let remembers = |info: &ToolInfo| info.toolset.is_about_memory() && info.access != Access::Read;
        if registry.tools().any(|info| info.name == tool && remembers(info)) {
            drop(registry);
            drop(open);
            open = vault.open(OpenMode::Create)?;
            registry = open.registry(toolsets);
        }
        let Some(info) = registry.tools().find(|info| info.name == tool) else {
            return Err(unknown(tool, &registry));
        };
        if self.schema {
            return Ok(CallAnswer::Schema(json!(info.input_schema)));
        }
        // A tool that shows no notes need not read a vault that was never indexed.
        if info.needs_index || open.index != IndexLocation::Memory(InMemoryReason::Missing) {
            open.update_index(vault.progress())?;
        }
        let (session, key) = (registry.command_session(super::CLIENT), self.key()?);
        Ok(CallAnswer::Response(match vault.server() {
            Some(engine) => engine.call(info, arguments, &session, key),
            None => registry.call(info, arguments, &session, key),
        }))
    }

    pub(super) fn print(&self, answer: &CallAnswer, output: &mut Output) -> Result<Outcome, Failure> {
        let ToolResponse { reply, warnings } = match answer {
            CallAnswer::Response(response) => response,
            CallAnswer::Schema(schema) => {
                output.json(schema)?;
                return Ok(Outcome::Fine);
            }
            CallAnswer::Tools(tools) => {
                let width = tools.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
                for (name, purpose) in tools {
                    output.line(&Line::new().bold(format!("{name:<width$}")).plain(format!("  {purpose}")))?;
                }
                return Ok(Outcome::Fine);
            }
        };
        for warning in warnings {
            output.warning(warning, None);
        }
        let tool = self.tool.as_deref().unwrap_or_default();
        match reply {
            Reply::Answer(answer) => {
                output.json(answer)?;
                Ok(Outcome::Fine)
            }
            Reply::Failure(text) => {
                let message = message_of(text);
                text.lines().try_for_each(|line| output.line(&Line::new().plain(line)))?;
                Err(Failure::failed(format!("{tool}: {message}")))
            }
            Reply::Protocol { code, message } => {
                output.json(&json!({ "error": { "code": code, "message": message } }))?;
                Err(Failure::failed(format!("{tool}: {message}")))
            }
        }
    }

    /// Makes the call independent of stdin and safe to retry, so that another process can run it.
    pub(super) fn prepare(&mut self) -> Result<(), Failure> {
        if self.json == "-" {
            self.json.clear();
            std::io::stdin()
                .read_to_string(&mut self.json)
                .map_err(|error| Failure::usage(format!("cannot read the arguments from stdin: {error}")))?;
        }
        self.key = Some(sharing::new_key().to_string());
        Ok(())
    }

    fn key(&self) -> Result<Option<RequestKey>, Failure> {
        self.key.as_deref().map(str::parse).transpose().map_err(|error: InvalidKey| Failure::failed(error.to_string()))
    }

    fn arguments(&self) -> Result<Value, Failure> {
        let example = "quote the whole JSON for the shell: '{\"id\": \"station/power.md\"}'";
        match serde_json::from_str(&self.json) {
            Ok(arguments @ Value::Object(_)) => Ok(arguments),
            Ok(_) => Err(Failure::usage("cannot use the arguments: they are JSON, but not an object").hint(example)),
            Err(error) => {
                Err(Failure::usage(format!("cannot use the arguments: they are not JSON: {error}")).hint(example))
            }
        }
    }
}

fn list(registry: &Registry) -> Vec<(String, String)> {
    let purpose =
        |info: &ToolInfo| info.description.split_inclusive(". ").next().unwrap_or_default().trim_end().to_owned();
    registry.tools().map(|info| (info.name.to_owned(), purpose(info))).collect()
}

fn unknown(tool: &str, registry: &Registry) -> Failure {
    let hint = match nearest(tool, registry.tools().map(|info| info.name)) {
        Some(near) => format!("did you mean `{near}`? `quipu call` lists the tools"),
        None => "`quipu call` lists the tools".to_owned(),
    };
    Failure::usage(format!("unknown tool `{tool}`")).hint(hint)
}

/// The message of a tool's error, which is JSON in some toolsets and text in others.
fn message_of(text: &str) -> String {
    let error: Option<Value> = serde_json::from_str(text).ok();
    let message = error.as_ref().and_then(|error| error.pointer("/error/message")).and_then(Value::as_str);
    message.unwrap_or_else(|| text.trim_start_matches("Error: ")).to_owned()
}
