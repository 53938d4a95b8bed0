//! `quipu install`: connects a client by adding this program to its settings, and tests the server.

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use quipu_core::ports::{Clock, SystemClock};
use quipu_core::shell_quoted;
use quipu_tools::Toolset;
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

use super::open_vault::find_folder;
use super::output::{Line, Output};
use super::{Failure, Outcome, Shared, connected};
use crate::install::{self, CLIENTS, Client, ConfigFile, Home, Launch, SettingsChange};

/// Connect a client to a vault, or list connected clients.
///
/// Adds this program and the vault to the client's settings, shows the change, and starts the server once to test it.
/// Everything else in the settings stays, comments included, and a backup of the file is kept. An existing entry keeps its
/// flags and its other fields. With --scope project the entry is added to the project's settings (claude-code, cursor,
/// vscode), with paths relative to the project; there, an existing entry keeps its flags and only the fields that cannot
/// change the program that is run, since it came with the project.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quipu install claude-code --vault ~/notes       connect Claude Code to ~/notes
  quipu install cursor --dry-run                  show what would change
  quipu install codex --toolsets all              offer every tool, not only the essential ones
  quipu install vscode --scope project --vault docs
                                                  connect everyone who works on this project
  quipu install zed --name work -- --read-only    use another name, with flags for `quipu serve`
  quipu install --remove cursor                   disconnect a client
  quipu install --list                            list connected clients and check them

JSON fields:
  {client, scope, file, changed, backup, kept_flags, removed, tools}; removed are the fields
  that a project's entry lost, and tools is the number of tools that the server listed, or
  null if it was not tested
  with --list: [{client, scope, file, name, program, vault, state}]; state is \"ok\",
  \"program_missing\" or \"vault_missing\"")]
pub(crate) struct Install {
    /// Client to connect.
    #[arg(value_name = "CLIENT", value_parser = client_parser(), required_unless_present = "list")]
    client: Option<&'static Client>,
    /// Name the server in the client's settings.
    #[arg(long, default_value = "quipu")]
    name: String,
    /// Change the settings of the user, or those of the project around the current folder.
    #[arg(long, value_enum, default_value_t = InstallScope::User)]
    scope: InstallScope,
    /// Show what would change, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Do not start the server to test it.
    #[arg(long)]
    no_test: bool,
    /// Remove the server from the client's settings.
    #[arg(long)]
    remove: bool,
    /// Replace or remove a server of that name even if it starts another program.
    #[arg(long)]
    force: bool,
    /// List connected clients.
    #[arg(long, conflicts_with_all = ["client", "remove", "dry_run", "force", "scope", "no_test"])]
    list: bool,
    /// Offer only these toolsets, separated by commas, or all; a new entry offers essential, a selection of 13 tools.
    #[arg(long, value_delimiter = ',', value_name = "TOOLSETS", value_parser = toolset_parser(), conflicts_with_all = ["list", "remove"])]
    toolsets: Vec<String>,
    /// Pass these flags to `quipu serve`; without any, an existing entry keeps its flags.
    #[arg(last = true, value_name = "FLAGS", conflicts_with_all = ["list", "remove"])]
    flags: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Whose settings are changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum InstallScope {
    User,
    Project,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

fn client_parser() -> impl TypedValueParser<Value = &'static Client> {
    PossibleValuesParser::new(CLIENTS.iter().map(|client| client.name))
        .map(|name| Client::named(&name).expect("clap rejects other values"))
}

/// The word for all tools, which are offered without a flag.
const ALL: &str = "all";

/// The flag that chooses toolsets.
const TOOLSETS: &str = "--toolsets";

fn toolset_parser() -> PossibleValuesParser {
    PossibleValuesParser::new(Toolset::CHOICES.map(Toolset::name).into_iter().chain([ALL]))
}

impl Install {
    pub(super) fn run(self, shared: &Shared, output: &mut Output) -> Result<Outcome, Failure> {
        let Some(home) = Home::of_user() else {
            return Err(
                Failure::failed("cannot find the home folder, where clients keep their settings").hint("set HOME")
            );
        };
        let Some(client) = self.client else {
            return connected::list(&home, project_folder(&home).as_deref(), shared, self.json, output);
        };
        let project = match self.scope {
            InstallScope::User => None,
            InstallScope::Project => Some(project_folder(&home).ok_or_else(|| {
                Failure::usage("cannot use --scope project: the current folder is the home folder, not a project")
                    .hint("change to the project's folder first")
            })?),
        };
        let path = match &project {
            None => client.file(&home),
            Some(project) => client.project_file(project).ok_or_else(|| {
                Failure::usage(format!(
                    "cannot use --scope project with {}: it has no settings in projects",
                    client.title
                ))
                .hint("omit --scope; claude-code, cursor and vscode have project settings")
            })?,
        };
        let _lock = if self.dry_run { None } else { Some(install::lock()?) };
        let file = ConfigFile::read(client, path)?;
        if let Some(project) = &project
            && !file.is_in(project)?
        {
            let message = format!("cannot change {}: it is a link out of the project", file.path().display());
            return Err(Failure::failed(message).hint("remove the link, or omit --scope to change your own settings"));
        }
        if !self.force
            && let Some(other) = file.foreign_server(&self.name)?
        {
            let (name, title) = (&self.name, client.title);
            let message = format!("cannot use the name {name}: {title} has a server called {name} that starts {other}");
            return Err(Failure::failed(message).hint("choose another name with --name, or replace it with --force"));
        }
        let target = InstallTarget { client, file: &file, shown: home.shown(file.path()), project: project.as_deref() };
        if self.remove { self.disconnect(&target, &home, output) } else { self.connect(&target, &home, shared, output) }
    }

    fn connect(
        &self,
        target: &InstallTarget<'_>,
        home: &Home,
        shared: &Shared,
        output: &mut Output,
    ) -> Result<Outcome, Failure> {
        super::check_serve_flags(&self.flags)?;
        let InstallTarget { client, file, .. } = *target;
        let keeps = self.flags.is_empty() && !self.force;
        let is_new = self.force || existing_server(file, &self.name)?.is_none();
        let mut kept = if keeps { existing_flags(file, &self.name)? } else { Vec::new() };
        let mut removed = Vec::new();
        if !self.toolsets.is_empty() {
            drop_toolsets(&mut kept);
        }
        let chosen = self.chosen_toolsets(is_new);
        let flags = self.flags.iter().chain(&kept).chain(&chosen);
        let launch = target.launch(&find_folder(None, shared)?, flags, output)?;
        let change = match target.project {
            _ if self.force => file.with_replaced(&self.name, &launch)?,
            None => file.with(&self.name, &launch)?,
            Some(_) => {
                let (change, fields) = file.with_harmless(&self.name, &launch)?;
                removed = fields;
                change
            }
        };
        let is_changed = change.is_some() && !self.dry_run;
        let backup = match &change {
            Some(change) if !self.dry_run => change.apply(now(), target.project.is_some())?,
            _ => None,
        };
        let is_missing = target.project.is_some() && !is_in_path(&launch.program);
        if !self.json {
            match &change {
                Some(change) => show(file, change, &target.shown, output)?,
                None => output.line(&Line::new().dim(target.shown.clone()))?,
            }
            output.line(&Line::new().bold(match (&change, self.dry_run) {
                (Some(_), true) => "nothing was changed".to_owned(),
                (Some(_), false) if is_missing => format!("{} has the entry, but cannot start it yet", client.title),
                (None, false) if is_missing => format!("{} already has the entry, but cannot start it", client.title),
                (Some(_), false) => format!("{} is connected; {}", client.title, client.afterwards),
                (None, _) => format!("{} is already connected", client.title),
            }))?;
            if chosen.iter().any(|word| word == Toolset::Essential.name()) && self.toolsets.is_empty() {
                let text =
                    "it offers the essential tools; --toolsets all offers every tool, for clients without a limit";
                output.line(&Line::new().plain(text.to_owned()))?;
            }
            self.print_details(target, &kept, backup.as_deref().map(|backup| home.shown(backup)), output)?;
        }
        if !removed.is_empty() {
            let message = format!(
                "the entry of the project loses {}: the program that is run would depend on it",
                removed.join(", ")
            );
            output.warning(&message, Some("add it again in an editor if you wrote it"));
        }
        let is_tested = !self.dry_run && !self.no_test;
        let tested = is_tested.then(|| if is_missing { Err(target.not_in_path()) } else { target.test(&launch) });
        if is_missing && !is_tested {
            output.warning(&format!("{NOT_IN_PATH} of this machine"), Some(&add_to_path()));
        }
        let tools = tested.as_ref().and_then(|tested| tested.as_ref().ok().copied());
        if self.json {
            output.json(&target.to_json(is_changed, backup.as_deref(), &kept, &removed, tools))?;
        }
        match tested {
            Some(Err(failure)) => Err(failure),
            Some(Ok(tools)) if !self.json => {
                output.line(&Line::new().plain(format!("the server answered and lists {tools} tools")))?;
                Ok(Outcome::Fine)
            }
            Some(Ok(_)) | None => Ok(Outcome::Fine),
        }
    }

    /// The flag for the toolsets that were asked for; a new entry without any offers the essential ones.
    fn chosen_toolsets(&self, is_new: bool) -> Vec<String> {
        let is_given = self.flags.iter().any(|flag| flag == TOOLSETS || flag.starts_with("--toolsets="));
        let names = match &self.toolsets[..] {
            [] if is_new && !is_given => Toolset::Essential.name().to_owned(),
            [] => return Vec::new(),
            names if names.iter().any(|name| name == ALL) => return Vec::new(),
            names => names.join(","),
        };
        vec![TOOLSETS.to_owned(), names]
    }

    /// Prints kept flags, the backup and how to share a project's settings.
    fn print_details(
        &self,
        target: &InstallTarget<'_>,
        kept: &[String],
        backup: Option<String>,
        output: &mut Output,
    ) -> Result<(), Failure> {
        if !kept.is_empty() {
            let kept = kept.join(" ");
            let text = format!("it keeps its flags: {kept}; flags after -- replace them, --force removes them");
            output.line(&Line::new().dim(text))?;
        }
        if let Some(backup) = backup {
            output.line(&Line::new().dim(format!("the previous file is kept in {backup}")))?;
        }
        if target.project.is_some() {
            let text = format!(
                "{} belongs to the project: commit it to share the server; each teammate needs `quipu` in the PATH",
                target.shown
            );
            output.line(&Line::new().dim(text))?;
        }
        Ok(())
    }

    fn disconnect(&self, target: &InstallTarget<'_>, home: &Home, output: &mut Output) -> Result<Outcome, Failure> {
        let InstallTarget { client, file, .. } = *target;
        let others: Vec<String> = file
            .servers()?
            .into_iter()
            .filter(|(name, launch)| *name != self.name && launch.as_ref().is_some_and(Launch::is_quipu))
            .map(|(name, _)| name)
            .collect();
        let change = file.without(&self.name)?;
        let backup = match &change {
            Some(change) if !self.dry_run => change.apply(now(), target.project.is_some())?,
            _ => None,
        };
        if self.json {
            output.json(&target.to_json(change.is_some() && !self.dry_run, backup.as_deref(), &[], &[], None))?;
            return Ok(Outcome::Fine);
        }
        match &change {
            Some(change) => show(file, change, &target.shown, output)?,
            None => output.line(&Line::new().dim(target.shown.clone()))?,
        }
        let title = client.title;
        output.line(&Line::new().bold(match (&change, self.dry_run) {
            (Some(_), true) => "nothing was changed".to_owned(),
            (Some(_), false) if others.is_empty() => format!("{title} is no longer connected"),
            (Some(_), false) => format!("{} is removed from {title}", self.name),
            (None, _) => format!("{title} has no server called {}", self.name),
        }))?;
        for other in others {
            let scope = if target.project.is_some() { " --scope project" } else { "" };
            let command = format!("quipu install --remove {} --name {}{scope}", client.name, shell_quoted(&other));
            output
                .line(&Line::new().plain(format!("{title} is still connected by {other}; `{command}` removes it")))?;
        }
        if let Some(backup) = backup {
            output.line(&Line::new().dim(format!("the previous file is kept in {}", home.shown(&backup))))?;
        }
        Ok(Outcome::Fine)
    }
}

/// The settings to change.
struct InstallTarget<'a> {
    client: &'static Client,
    file: &'a ConfigFile,
    /// Its path for people.
    shown: String,
    /// The project's folder, where these are settings of a project.
    project: Option<&'a Path>,
}

impl InstallTarget<'_> {
    /// How the client starts the server: absolute paths for the user, portable ones in a project.
    fn launch<'f>(
        &self,
        vault: &Path,
        flags: impl Iterator<Item = &'f String>,
        output: &Output,
    ) -> Result<Launch, Failure> {
        let below = self.project.map(|project| vault.strip_prefix(project).ok());
        let vault = match below {
            Some(Some(below)) => self.client.in_project(&as_text(below)?),
            Some(None) => {
                let message =
                    format!("the vault {} is outside the project, so other machines do not have it", vault.display());
                output.warning(&message, Some("choose a folder of the project with --vault, or omit --scope"));
                as_text(vault)?
            }
            None => as_text(vault)?,
        };
        let program = if self.project.is_some() { "quipu".to_owned() } else { this_program()? };
        let arguments = ["serve".to_owned(), vault].into_iter().chain(flags.cloned());
        Ok(Launch { program, arguments: arguments.collect() })
    }

    /// Starts the server as the client does. Returns the number of its tools.
    fn test(&self, launch: &Launch) -> Result<usize, Failure> {
        let folder = self.project.unwrap_or(Path::new("/"));
        let expanded = launch.arguments.iter().map(|argument| self.client.expanded(argument, folder));
        let started = Launch { program: launch.program.clone(), arguments: expanded.collect() };
        install::count_tools(&started, folder).map_err(|why| {
            let words = std::iter::once(&started.program).chain(&started.arguments).map(|word| shell_quoted(word));
            let command = words.collect::<Vec<_>>().join(" ");
            Failure::failed(format!("cannot use the server that {} starts: {why}", self.client.title))
                .hint(format!("run `{command}` to see why; --no-test skips this test"))
        })
    }

    fn not_in_path(&self) -> Failure {
        let title = self.client.title;
        Failure::failed(format!(
            "{NOT_IN_PATH}: {title} starts the server of a project by that name, on this machine and on each teammate's"
        ))
        .hint(add_to_path())
    }

    fn to_json(
        &self,
        changed: bool,
        backup: Option<&Path>,
        kept: &[String],
        removed: &[String],
        tools: Option<usize>,
    ) -> Value {
        json!({
            "client": self.client.name,
            "scope": if self.project.is_some() { "project" } else { "user" },
            "file": self.file.path(),
            "changed": changed,
            "backup": backup,
            "kept_flags": kept,
            "removed": removed,
            "tools": tools,
        })
    }
}

/// The project around the current folder: its repository, else the folder itself; `None` for the home folder.
fn project_folder(home: &Home) -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    let repository = here.ancestors().take_while(|folder| !home.is(folder)).find(|folder| folder.join(".git").exists());
    let folder = repository.unwrap_or(&here);
    (!home.is(folder)).then(|| folder.to_owned())
}

/// The existing server of that name, if it starts this program.
fn existing_server(file: &ConfigFile, name: &str) -> Result<Option<Launch>, Failure> {
    let known = file.servers()?.into_iter().find(|(known, _)| known == name).and_then(|(_, launch)| launch);
    Ok(known.filter(Launch::is_quipu))
}

/// Removes the flag that chooses toolsets.
fn drop_toolsets(flags: &mut Vec<String>) {
    flags.retain(|flag| !flag.starts_with("--toolsets="));
    if let Some(place) = flags.iter().position(|flag| flag == TOOLSETS) {
        flags.drain(place..flags.len().min(place + 2));
    }
}

/// The flags of the existing server of that name, which stay unless the user gives others: one may be `--read-only`.
fn existing_flags(file: &ConfigFile, name: &str) -> Result<Vec<String>, Failure> {
    let words = existing_server(file, name)?.map(|launch| launch.arguments).unwrap_or_default();
    let mut words = words.into_iter().skip_while(|word| word != "serve").skip(1).peekable();
    // Skips the vault, which is replaced.
    words.next_if(|word| !word.starts_with('-'));
    let mut flags = Vec::new();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--vault" => drop(words.next()),
            _ if word.starts_with("--vault=") => {}
            _ => flags.push(word),
        }
    }
    super::check_serve_flags(&flags).map_err(|failure| {
        failure
            .about(&format!("cannot keep the flags that {name} has in {}", file.path().display()))
            .hint("give other flags after --, or remove them with --force")
    })?;
    Ok(flags)
}

/// A path as text, which settings need.
fn as_text(path: &Path) -> Result<String, Failure> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        let message = format!("cannot write the path {} to settings: it is not UTF-8", path.display());
        Failure::usage(message).hint("rename it")
    })
}

/// Prints the difference as lines with some context.
fn show(file: &ConfigFile, change: &SettingsChange<'_>, shown: &str, output: &mut Output) -> Result<(), Failure> {
    output.line(&Line::new().dim(shown.to_owned()))?;
    let difference = TextDiff::from_lines(file.before(), &change.after);
    for group in difference.grouped_ops(2) {
        for piece in group.iter().flat_map(|operation| difference.iter_changes(operation)) {
            let text = piece.value().trim_end_matches(['\n', '\r']).replace('\t', "    ");
            output.line(&match piece.tag() {
                ChangeTag::Equal => Line::new().dim(format!("  {text}")),
                ChangeTag::Delete => Line::new().yellow(format!("- {text}")),
                ChangeTag::Insert => Line::new().bold(format!("+ {text}")),
            })?;
        }
    }
    Ok(())
}

const NOT_IN_PATH: &str = "`quipu` is not in the PATH";

/// The hint for [`NOT_IN_PATH`].
fn add_to_path() -> String {
    let folder = std::env::current_exe().ok().and_then(|program| program.parent().map(Path::to_owned));
    let folder = folder.map_or_else(|| "its folder".to_owned(), |folder| folder.display().to_string());
    format!("add {folder} to the PATH, or omit --scope: the entry then has the path of this program")
}

/// Whether the PATH has a program of this name.
fn is_in_path(program: &str) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_program = |file: PathBuf| {
        file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&path).any(|folder| is_program(folder.join(program)))
}

/// The path of this program. A link in the PATH is preferred: it stays valid when the program is updated.
fn this_program() -> Result<String, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::failed(format!("cannot find the path of this program: {error}")))?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let links_here = |link: &PathBuf| link.is_absolute() && link.canonicalize().is_ok_and(|file| file == program);
    let named = std::env::split_paths(&path).map(|folder| folder.join("quipu")).find(links_here);
    as_text(&named.unwrap_or(program))
}

fn now() -> Timestamp {
    Timestamp::from_nanosecond(SystemClock.now_ns().into()).expect("64 bits of nanoseconds reach 1677 to 2262")
}
