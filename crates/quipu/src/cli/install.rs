//! `quipu install`: connects a client, by putting this program into its settings.

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use jiff::Timestamp;
use quipu_core::ports::{Clock, SystemClock};
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

use super::output::{Line, Output};
use super::{Failure, Outcome, Shared, locate};
use crate::install::{self, CLIENTS, Change, Client, ConfigFile, Home, Launch};

/// Connect a client to a vault, or list what is connected.
///
/// Puts this program and the vault into the client's own settings, with absolute paths, and shows what it changed. All else
/// in them stays as it is, comments included, and a copy of what was there is kept beside. A server that is there already
/// keeps its flags and whatever else its entry says.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quipu install claude-code --vault ~/notes       connect Claude Code to ~/notes
  quipu install cursor --dry-run                  show what would be changed
  quipu install zed --name work -- --read-only    under another name, with flags for `quipu serve`
  quipu install --remove cursor                   take it out again
  quipu install --list                            what is connected where, and whether it still is right

JSON fields:
  {client, file, changed, backup, kept_flags}; for --list [{client, file, name, program, vault, state}]")]
pub(crate) struct Install {
    /// The client to connect.
    #[arg(value_name = "CLIENT", value_parser = client_parser(), required_unless_present = "list")]
    client: Option<&'static Client>,
    /// What the server is called in the client's settings.
    #[arg(long, default_value = "quipu")]
    name: String,
    /// Show what would be changed, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Take the server out of the client's settings.
    #[arg(long)]
    remove: bool,
    /// Replace a server of that name as a whole, or take it out, also when it is another program.
    #[arg(long)]
    force: bool,
    /// List what is connected where.
    #[arg(long, conflicts_with_all = ["client", "remove", "dry_run", "force"])]
    list: bool,
    /// Flags for `quipu serve`, behind --; without any, a server that is there keeps its own.
    #[arg(last = true, value_name = "FLAGS", conflicts_with_all = ["list", "remove"])]
    flags: Vec<String>,
    /// Answer as JSON.
    #[arg(long)]
    json: bool,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

fn client_parser() -> impl TypedValueParser<Value = &'static Client> {
    PossibleValuesParser::new(CLIENTS.iter().map(|client| client.name))
        .map(|name| Client::named(&name).expect("clap lets no other word through"))
}

impl Install {
    pub(super) fn run(self, shared: &Shared, output: &mut Output) -> Result<Outcome, Failure> {
        let Some(home) = Home::of_user() else {
            return Err(
                Failure::failed("there is no home folder in which clients keep their settings").hint("set HOME")
            );
        };
        let Some(client) = self.client else { return self.list(&home, output) };
        let _lock = if self.dry_run { None } else { Some(install::lock()?) };
        let file = ConfigFile::read(client, client.file(&home))?;
        let shown = home.shown(file.path());
        if !self.force
            && let Some(other) = file.stranger(&self.name)?
        {
            let message = format!("{} has a server called {} that starts {other}", client.title, self.name);
            return Err(Failure::failed(message).hint("--name gives this one another name, --force replaces that one"));
        }
        let mut kept = Vec::new();
        let (change, nothing) = if self.remove {
            (file.without(&self.name)?, format!("{} has no server called {}", client.title, self.name))
        } else {
            super::check_served(&self.flags)?;
            if self.flags.is_empty() && !self.force {
                kept = flags_so_far(&file, &self.name)?;
            }
            let vault = as_text(&locate::vault(None, shared)?)?;
            let arguments = ["serve".to_owned(), vault].into_iter().chain(self.flags.clone()).chain(kept.clone());
            let launch = Launch { program: this_program()?, arguments: arguments.collect() };
            let change =
                if self.force { file.with_instead(&self.name, &launch)? } else { file.with(&self.name, &launch)? };
            (change, format!("{} is connected already", client.title))
        };
        let still = Line::new()
            .dim(format!("its flags stay: {}; others behind -- replace them, --force leaves them out", kept.join(" ")));
        let Some(change) = change else {
            if self.json {
                output.json(&told(client, &file, false, None, &kept))?;
            } else {
                output.line(&Line::new().plain(format!("{nothing}: ")).dim(shown))?;
                if !kept.is_empty() {
                    output.line(&still)?;
                }
            }
            return Ok(Outcome::Fine);
        };
        let backup = if self.dry_run { None } else { change.make(now())? };
        if self.json {
            output.json(&told(client, &file, !self.dry_run, backup.as_deref(), &kept))?;
            return Ok(Outcome::Fine);
        }
        show(&file, &change, &shown, output)?;
        let said = match (self.dry_run, self.remove) {
            (true, _) => "nothing was changed".to_owned(),
            (false, true) => format!("{} is no longer connected", client.title),
            (false, false) => format!("{} is connected; {}", client.title, client.afterwards),
        };
        output.line(&Line::new().bold(said))?;
        if !kept.is_empty() {
            output.line(&still)?;
        }
        if let Some(backup) = backup {
            output.line(&Line::new().dim(format!("what was there is kept in {}", home.shown(&backup))))?;
        }
        Ok(Outcome::Fine)
    }

    fn list(&self, home: &Home, output: &mut Output) -> Result<Outcome, Failure> {
        let mut rows = Vec::new();
        let mut outcome = Outcome::Fine;
        for client in CLIENTS {
            let file = ConfigFile::read(client, client.file(home));
            let servers = match file.and_then(|file| file.servers()) {
                Ok(servers) => servers,
                Err(error) => {
                    output.warning(&format!("{}: {error:#}", client.title), None);
                    outcome = Outcome::Negative;
                    continue;
                }
            };
            for (name, launch) in servers {
                if let Some(row) = launch.and_then(|launch| Connected::of(client, name, launch)) {
                    rows.push(row);
                }
            }
        }
        if rows.iter().any(|row| row.trouble.is_some()) {
            outcome = Outcome::Negative;
        }
        if self.json {
            output.json(&rows.iter().map(|row| row.to_json(home)).collect::<Vec<_>>())?;
        } else if rows.is_empty() {
            output.aside(&Line::new().plain("no client is connected; `quipu install CLIENT` connects one"));
        }
        for row in rows.iter().filter(|_| !self.json) {
            output.line(&row.line(home))?;
        }
        Ok(outcome)
    }
}

/// A client that starts this program, or one of its name.
struct Connected {
    client: &'static Client,
    name: String,
    program: String,
    vault: Option<String>,
    /// Why it no longer works.
    trouble: Option<String>,
}

impl Connected {
    fn of(client: &'static Client, name: String, launch: Launch) -> Option<Self> {
        if !launch.is_quipu() {
            return None;
        }
        let Launch { program, arguments } = launch;
        let vault = arguments.get(1).filter(|word| !word.starts_with('-')).cloned();
        let is_gone = |path: &str| Path::new(path).is_absolute() && !Path::new(path).exists();
        let trouble = if is_gone(&program) {
            Some("the program is no longer there".to_owned())
        } else if vault.as_deref().is_some_and(is_gone) {
            Some("the vault is no longer there".to_owned())
        } else {
            None
        };
        Some(Self { client, name, program, vault, trouble })
    }

    fn line(&self, home: &Home) -> Line {
        let vault = self
            .vault
            .as_deref()
            .map_or("the folder it is started in".to_owned(), |vault| home.shown(Path::new(vault)));
        let line = Line::new().bold(self.client.title).plain(format!("  {}: {vault}", self.name));
        let line = line.dim(format!("  by {}", home.shown(Path::new(&self.program))));
        match &self.trouble {
            None => line,
            Some(trouble) => line.yellow(format!("  {trouble}: `quipu install {}` again", self.client.name)),
        }
    }

    fn to_json(&self, home: &Home) -> Value {
        json!({
            "client": self.client.name,
            "file": self.client.file(home),
            "name": self.name,
            "program": self.program,
            "vault": self.vault,
            "state": self.trouble.as_deref().unwrap_or("right"),
        })
    }
}

fn told(client: &Client, file: &ConfigFile, changed: bool, backup: Option<&Path>, kept: &[String]) -> Value {
    json!({
        "client": client.name,
        "file": file.path(),
        "changed": changed,
        "backup": backup,
        "kept_flags": kept,
    })
}

/// The flags of the server of that name. Not to ask for them again is not to want them gone: one may be `--read-only`.
fn flags_so_far(file: &ConfigFile, name: &str) -> Result<Vec<String>, Failure> {
    let known = file.servers()?.into_iter().find(|(known, _)| known == name).and_then(|(_, launch)| launch);
    let words = known.filter(Launch::is_quipu).map(|launch| launch.arguments).unwrap_or_default();
    let mut words = words.into_iter().skip_while(|word| word != "serve").skip(1).peekable();
    // The vault: this time it is the one that was asked for.
    words.next_if(|word| !word.starts_with('-'));
    let mut flags = Vec::new();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--vault" => drop(words.next()),
            _ if word.starts_with("--vault=") => {}
            _ => flags.push(word),
        }
    }
    super::check_served(&flags).map_err(|failure| {
        failure
            .about(&format!("the flags that {name} has in {} cannot stay", file.path().display()))
            .hint("give others behind --, or leave them out with --force")
    })?;
    Ok(flags)
}

/// A path as settings can hold it.
fn as_text(path: &Path) -> Result<String, Failure> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        let message = format!("{} has a name that is not UTF-8, and settings can hold no other", path.display());
        Failure::usage(message).hint("rename it")
    })
}

/// The lines that are different, and a few around them.
fn show(file: &ConfigFile, change: &Change<'_>, shown: &str, output: &mut Output) -> Result<(), Failure> {
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

/// Where this program is, by the name that stays when it is replaced by a newer one: a link in the path, if one leads here.
fn this_program() -> Result<String, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::failed(format!("where this program is cannot be told: {error}")))?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let links_here = |link: &PathBuf| link.is_absolute() && link.canonicalize().is_ok_and(|file| file == program);
    let named = std::env::split_paths(&path).map(|folder| folder.join("quipu")).find(links_here);
    as_text(&named.unwrap_or(program))
}

fn now() -> Timestamp {
    Timestamp::from_nanosecond(SystemClock.now_ns().into()).expect("64 bits of nanoseconds reach 1677 to 2262")
}
