//! The supported clients, with the settings files and fields that their documentation names. A new client is a few lines.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::json::Json;
use super::toml::Toml;
use super::{Launch, SettingsFormat};

/// A program that can be connected.
pub(crate) struct Client {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// When the change takes effect.
    pub(crate) afterwards: &'static str,
    file: fn(&Home) -> PathBuf,
    /// Settings that are shared with a project, if the client has them.
    project: Option<ProjectFile>,
    pub(super) format: &'static (dyn SettingsFormat + Sync),
}

/// A client's settings in a project.
struct ProjectFile {
    /// From the project's folder.
    path: &'static str,
    /// The variable that the client replaces by that folder; empty if it starts servers in the folder.
    folder: &'static str,
}

/// The folders under which programs keep their settings.
pub(crate) struct Home {
    home: PathBuf,
    /// `~/.config`, or what `XDG_CONFIG_HOME` says.
    config: PathBuf,
    /// The settings of desktop programs, which macOS keeps elsewhere.
    desktop: PathBuf,
}

impl Home {
    /// The folders of the current user; `None` without `HOME`.
    pub(crate) fn of_user() -> Option<Self> {
        let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = variable("HOME")?;
        let config = variable("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        let desktop = if cfg!(target_os = "macos") { home.join("Library/Application Support") } else { config.clone() };
        Some(Self { home, config, desktop })
    }

    /// Whether this is the home folder.
    pub(crate) fn is(&self, folder: &Path) -> bool {
        self.home == folder || self.home.canonicalize().is_ok_and(|home| home == folder)
    }

    /// A path with `~` for the home folder.
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

    /// The user's settings.
    pub(crate) fn file(&self, home: &Home) -> PathBuf {
        (self.file)(home)
    }

    /// The settings of a project; `None` if the client has none.
    pub(crate) fn project_file(&self, project: &Path) -> Option<PathBuf> {
        self.project.as_ref().map(|file| project.join(file.path))
    }

    /// A path below the project's folder, portable between machines.
    pub(crate) fn in_project(&self, below: &str) -> String {
        let folder = self.project.as_ref().map_or("", |file| file.folder);
        match (folder, below) {
            ("", "") => ".".to_owned(),
            ("", below) => below.to_owned(),
            (folder, "") => folder.to_owned(),
            (folder, below) => format!("{folder}/{below}"),
        }
    }

    /// The inverse: an argument in a project's settings as the client expands it.
    pub(crate) fn expanded(&self, argument: &str, project: &Path) -> String {
        match self.project.as_ref().map(|file| file.folder).filter(|folder| !folder.is_empty()) {
            Some(folder) => argument.replace(folder, &project.display().to_string()),
            None => argument.to_owned(),
        }
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

const RESTART: &str = "restart it to use the server";

/// The variable of Cursor and VS Code for the folder of the project.
const WORKSPACE: &str = "${workspaceFolder}";

/// All of them, in the order in which they are listed.
pub(crate) const CLIENTS: &[Client] = &[
    Client {
        name: "claude-code",
        title: "Claude Code",
        afterwards: "a new session uses it",
        file: |home| home.home.join(".claude.json"),
        project: Some(ProjectFile { path: ".mcp.json", folder: "" }),
        format: &Json { section: "mcpServers", entry: typed },
    },
    Client {
        name: "claude-desktop",
        title: "Claude Desktop",
        afterwards: RESTART,
        file: |home| home.desktop.join("Claude/claude_desktop_config.json"),
        project: None,
        format: &Json { section: "mcpServers", entry: plain },
    },
    Client {
        name: "cursor",
        title: "Cursor",
        afterwards: "its settings show it under MCP",
        file: |home| home.home.join(".cursor/mcp.json"),
        project: Some(ProjectFile { path: ".cursor/mcp.json", folder: WORKSPACE }),
        format: &Json { section: "mcpServers", entry: plain },
    },
    Client {
        name: "vscode",
        title: "VS Code",
        afterwards: "`MCP: List Servers` starts it",
        file: |home| home.desktop.join("Code/User/mcp.json"),
        project: Some(ProjectFile { path: ".vscode/mcp.json", folder: WORKSPACE }),
        format: &Json { section: "servers", entry: typed },
    },
    Client {
        name: "windsurf",
        title: "Windsurf",
        afterwards: "refresh its list of MCP servers",
        file: |home| home.home.join(".codeium/windsurf/mcp_config.json"),
        project: None,
        format: &Json { section: "mcpServers", entry: plain },
    },
    Client {
        name: "zed",
        title: "Zed",
        afterwards: "the agent panel's settings show it",
        file: |home| home.config.join("zed/settings.json"),
        project: None,
        format: &Json { section: "context_servers", entry: plain },
    },
    Client {
        name: "codex",
        title: "Codex",
        afterwards: RESTART,
        file: |home| home.home.join(".codex/config.toml"),
        project: None,
        format: &Toml { section: "mcp_servers" },
    },
    Client {
        name: "gemini",
        title: "Gemini CLI",
        afterwards: RESTART,
        file: |home| home.home.join(".gemini/settings.json"),
        project: None,
        format: &Json { section: "mcpServers", entry: plain },
    },
    Client {
        name: "opencode",
        title: "opencode",
        afterwards: RESTART,
        file: |home| home.config.join("opencode/opencode.json"),
        project: None,
        format: &Json { section: "mcp", entry: one_list },
    },
    Client {
        name: "lm-studio",
        title: "LM Studio",
        afterwards: "its program tab shows it",
        file: |home| home.home.join(".lmstudio/mcp.json"),
        project: None,
        format: &Json { section: "mcpServers", entry: plain },
    },
];
