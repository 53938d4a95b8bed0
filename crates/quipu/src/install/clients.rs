//! The clients there are. Where each keeps its servers, and in which words, is as its makers document it; a new client is a
//! few lines here.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::json::Json;
use super::toml::Toml;
use super::{Format, Launch};

/// A program that can be connected.
pub(crate) struct Client {
    /// The word for it on the command line.
    pub(crate) name: &'static str,
    /// What its makers call it.
    pub(crate) title: &'static str,
    /// What to do before it sees the change.
    pub(crate) afterwards: &'static str,
    file: fn(&Home) -> PathBuf,
    pub(super) format: &'static (dyn Format + Sync),
}

/// The folders under which programs keep their settings.
pub(crate) struct Home {
    home: PathBuf,
    /// `~/.config`, or what `XDG_CONFIG_HOME` says.
    config: PathBuf,
    /// Where desktop programs keep theirs: on macOS elsewhere.
    desktop: PathBuf,
}

impl Home {
    /// Of whoever runs this; `None` where there is none.
    pub(crate) fn of_user() -> Option<Self> {
        let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = variable("HOME")?;
        let config = variable("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        let desktop = if cfg!(target_os = "macos") { home.join("Library/Application Support") } else { config.clone() };
        Some(Self { home, config, desktop })
    }

    /// A path as people write it.
    pub(crate) fn shown(&self, path: &Path) -> String {
        match path.strip_prefix(&self.home) {
            Ok(rest) => format!("~/{}", rest.display()),
            Err(_) => path.display().to_string(),
        }
    }
}

impl Client {
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        CLIENTS.iter().find(|client| client.name == name)
    }

    pub(crate) fn file(&self, home: &Home) -> PathBuf {
        (self.file)(home)
    }
}

fn plain(launch: &Launch) -> Value {
    json!({ "command": launch.program, "args": launch.arguments })
}

fn typed(launch: &Launch) -> Value {
    json!({ "type": "stdio", "command": launch.program, "args": launch.arguments })
}

fn one_list(launch: &Launch) -> Value {
    let command: Vec<&String> = std::iter::once(&launch.program).chain(&launch.arguments).collect();
    json!({ "type": "local", "command": command, "enabled": true })
}

const START_AGAIN: &str = "start it again to use it";

/// All of them, in the order in which they are listed.
pub(crate) const CLIENTS: &[Client] = &[
    Client {
        name: "claude-code",
        title: "Claude Code",
        afterwards: "a new session uses it",
        file: |home| home.home.join(".claude.json"),
        format: &Json { section: "mcpServers", entry: typed },
    },
    Client {
        name: "claude-desktop",
        title: "Claude Desktop",
        afterwards: START_AGAIN,
        file: |home| home.desktop.join("Claude/claude_desktop_config.json"),
        format: &Json { section: "mcpServers", entry: plain },
    },
    Client {
        name: "cursor",
        title: "Cursor",
        afterwards: "its settings show it under MCP",
        file: |home| home.home.join(".cursor/mcp.json"),
        format: &Json { section: "mcpServers", entry: plain },
    },
    Client {
        name: "vscode",
        title: "VS Code",
        afterwards: "`MCP: List Servers` starts it",
        file: |home| home.desktop.join("Code/User/mcp.json"),
        format: &Json { section: "servers", entry: typed },
    },
    Client {
        name: "windsurf",
        title: "Windsurf",
        afterwards: "refresh its list of MCP servers",
        file: |home| home.home.join(".codeium/windsurf/mcp_config.json"),
        format: &Json { section: "mcpServers", entry: plain },
    },
    Client {
        name: "zed",
        title: "Zed",
        afterwards: "the agent panel's settings show it",
        file: |home| home.config.join("zed/settings.json"),
        format: &Json { section: "context_servers", entry: plain },
    },
    Client {
        name: "codex",
        title: "Codex",
        afterwards: START_AGAIN,
        file: |home| home.home.join(".codex/config.toml"),
        format: &Toml { section: "mcp_servers" },
    },
    Client {
        name: "gemini",
        title: "Gemini CLI",
        afterwards: START_AGAIN,
        file: |home| home.home.join(".gemini/settings.json"),
        format: &Json { section: "mcpServers", entry: plain },
    },
    Client {
        name: "opencode",
        title: "opencode",
        afterwards: START_AGAIN,
        file: |home| home.config.join("opencode/opencode.json"),
        format: &Json { section: "mcp", entry: one_list },
    },
    Client {
        name: "lm-studio",
        title: "LM Studio",
        afterwards: "its program tab shows it",
        file: |home| home.home.join(".lmstudio/mcp.json"),
        format: &Json { section: "mcpServers", entry: plain },
    },
];
