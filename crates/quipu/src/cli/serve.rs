//! `quipu serve`: opens the vault, keeps its index current, and lets clients in.
//!
//! It answers at once; indexing and watching begin beside.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use quipu_core::Knowledge;
use quipu_core::index::{IndexError, Scope};
use quipu_core::memory::Memory;
use quipu_core::model::Warning;
use quipu_core::ports::{Clock, SystemClock};
use quipu_tools::{Fault, Toolset};
use quipu_vault::{WatchEvent, WatchOptions, Watcher, watch};
use serde_json::json;

use super::http_options::HttpOptions;
use super::output::{Line, Output};
use super::progress::seconds;
use super::{Failure, Outcome, Shared, opened};
use crate::compose::{OpenVault, Wish};
use crate::embedding::Background;
use crate::serve::http::Settings;

/// Give agents the vault, over standard input and output or over HTTP (MCP).
///
/// A client starts this program and speaks to it. Started by hand it says how to connect one. With --http it serves many
/// clients at once.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  quipu serve ~/notes                          on a terminal: says how to connect a client
  claude mcp add quipu -- quipu serve ~/notes  connects Claude Code
  quipu serve ~/notes --http 127.0.0.1:7777    serves at http://127.0.0.1:7777/mcp
  quipu serve ~/notes --http 0.0.0.0:7777 --tls-cert cert.pem --tls-key key.pem
                                               serves other machines, whose clients need tokens
  quipu serve ~/notes --read-only              offers no tool that changes notes
  quipu serve ~/notes --toolsets notes         offers one toolset only")]
pub(crate) struct Serve {
    /// The folder of notes.
    #[arg(value_name = "VAULT")]
    folder: Option<PathBuf>,
    /// Do not watch for changes made by other programs. Notes that are read are still as they are on disk.
    #[arg(long)]
    no_watch: bool,
    /// Offer only these toolsets, separated by commas [default: all].
    #[arg(long, value_delimiter = ',', value_parser = toolset_parser())]
    toolsets: Option<Vec<Toolset>>,
    /// Offer no tool that changes notes. The index is still kept in .quipu/.
    #[arg(long)]
    read_only: bool,
    #[command(flatten)]
    http: HttpOptions,
}

fn toolset_parser() -> impl TypedValueParser<Value = Toolset> {
    PossibleValuesParser::new(Toolset::ALL.map(Toolset::name))
        .map(|name| Toolset::from_name(&name).expect("clap lets no other word through"))
}

impl Serve {
    pub(super) fn run(self, shared: &Shared, output: &Output) -> Result<Outcome, Failure> {
        let located = opened::locate(self.folder.as_deref(), shared)?;
        let open = Arc::new(located.open(Wish::Keep, self.read_only)?);
        if let Some(why) = open.why_not_kept() {
            tracing::warn!("{why}");
        }
        if let Err(error) = &open.memory {
            let herald = Herald { knowledge: open.knowledge.clone(), root: open.vault.root().display().to_string() };
            herald.warn(&format!("there are no tools of memory: {error}"));
        }
        let toolsets = self.toolsets.as_deref().or(located.config.toolsets.as_deref());
        let registry = Arc::new(open.registry(toolsets, self.read_only));

        let http = self.http.settings();
        let on_terminal = match http {
            None => std::io::stdin().is_terminal(),
            Some(_) => std::io::stderr().is_terminal(),
        };
        if on_terminal {
            greet(&open, http.as_ref(), registry.tools().count(), output);
        }
        let herald = Herald { knowledge: open.knowledge.clone(), root: open.vault.root().display().to_string() };
        let trash_days = if self.read_only { 0 } else { located.config.trash_days };
        let keeper = Keeper { open: open.clone(), herald, watches: !self.no_watch, trash_days, on_terminal };
        // The handle holds the watcher. A first pass that still runs when the client leaves is not waited for.
        let kept_current = std::thread::Builder::new().name("keeper".into()).spawn(move || keeper.keep_current());
        let kept_current = kept_current.context("while starting to index")?;
        if let Ok(remembered) = &open.memory {
            let memory = remembered.memory.clone();
            let started = std::thread::Builder::new().name("memory".into()).spawn(move || make_vectors(&memory));
            drop(started.context("while starting to read memory")?);
        }
        let embedding = Background::start(open.knowledge.clone()).context("while starting to embed")?;
        let outcome = match http {
            None => crate::serve::stdio::serve(open.knowledge.clone(), registry),
            Some(settings) => crate::serve::http::serve(open.knowledge.clone(), registry, open.vault.root(), &settings),
        };
        drop(embedding);
        drop(kept_current);
        open.keep();
        open.settle_memory();
        outcome?;
        Ok(Outcome::Fine)
    }
}

/// Vectors made between two looks at the log.
const VECTORS_AT_ONCE: usize = 16;

/// How long nothing is looked for when nothing was missing, and when making vectors failed.
const IDLE: Duration = Duration::from_secs(2);
const AFTER_FAILURE: Duration = Duration::from_secs(60);

/// Makes the vectors of what agents remember, for as long as the process lives. Words find everything meanwhile.
fn make_vectors(memory: &Memory) {
    let mut missing_before = usize::MAX;
    loop {
        match memory.embed_some(VECTORS_AT_ONCE) {
            Ok(0) => std::thread::sleep(IDLE),
            // A provider whose vectors cannot be used must not be asked for them without end.
            Ok(missing) if missing >= missing_before => std::thread::sleep(AFTER_FAILURE),
            Ok(missing) => {
                missing_before = missing;
                continue;
            }
            Err(error) => {
                tracing::warn!("memory is searched by words alone for a while: {error}");
                std::thread::sleep(AFTER_FAILURE);
            }
        }
        missing_before = usize::MAX;
    }
}

/// Brings the index up to date and keeps it so.
struct Keeper {
    open: Arc<OpenVault>,
    herald: Herald,
    watches: bool,
    /// 0: nothing is removed from the trash.
    trash_days: u32,
    on_terminal: bool,
}

impl Keeper {
    /// Indexes first and places the watches after: on a big vault either takes a while, and a client waits for the first
    /// only. A change that fell between the two is found by a second look at the times. Watching ends when the answer is
    /// dropped.
    fn keep_current(&self) -> Option<Watcher> {
        self.index();
        let watcher = self.watches.then(|| self.start_watching()).flatten();
        self.open.knowledge.expect_changes();
        if self.watches {
            self.herald.take_in(WatchEvent::Rescan);
        }
        self.prune_trash();
        watcher
    }

    /// Last of all, since nobody waits for it.
    fn prune_trash(&self) {
        const DAY_NS: i64 = 24 * 60 * 60 * 1_000_000_000;
        if self.trash_days == 0 {
            return;
        }
        match self.open.vault.prune_kept(SystemClock.now_ns().saturating_sub(DAY_NS * i64::from(self.trash_days))) {
            Ok(0) => {}
            Ok(versions) => tracing::info!(versions, days = self.trash_days, "removed old versions from the trash"),
            // A vault that cannot be written is told of where it matters.
            Err(error) => tracing::debug!(%error, "the trash was not pruned"),
        }
    }

    fn index(&self) {
        let output = Output::new();
        match opened::index(&self.open, &output) {
            Ok((report, took)) if self.on_terminal => {
                let notes = format!("{} notes, indexed in {}", report.total, seconds(took));
                output.aside(&Line::new().plain(notes));
            }
            Ok((report, took)) => tracing::info!(notes = report.total, took = seconds(took), "indexed"),
            Err(error) => self.herald.warn_of("the vault could not be indexed", error),
        }
    }

    /// Where watching is not possible, serving goes on without.
    fn start_watching(&self) -> Option<Watcher> {
        let herald = self.herald.clone();
        let on_change = move |event| {
            // A change during the first pass waits for it: only then is there something to add it to.
            while !herald.knowledge.wait_ready(Duration::from_secs(60)) {}
            herald.take_in(event);
        };
        match watch(&self.open.vault, WatchOptions::default(), on_change) {
            Ok(watcher) => Some(watcher),
            Err(error) => {
                self.herald.warn(&format!("{error}; a change by another program is seen when its note is read"));
                None
            }
        }
    }
}

/// Tells what goes wrong beside the calls: all of it to the log, and to clients what is no secret of this machine.
#[derive(Clone)]
struct Herald {
    knowledge: Arc<Knowledge>,
    /// Where the vault lies, which is nothing to a client.
    root: String,
}

impl Herald {
    fn take_in(&self, event: WatchEvent) {
        let scope = match event {
            WatchEvent::Changed(paths) => Scope::Below(paths),
            WatchEvent::Rescan => Scope::Everything,
            WatchEvent::Warning(message) => return self.warn(&message),
        };
        match self.knowledge.sync(&scope, &|_| {}) {
            Ok(report) => tracing::debug!(?report, "took in changes"),
            Err(error) => self.warn_of("a change could not be taken in", error),
        }
    }

    /// A client is told of an error as when a call fails of it; the log has what the store or the system said.
    fn warn_of(&self, what: &str, error: IndexError) {
        tracing::warn!("{what}: {error}");
        self.tell_clients(format!("{what}: {}", Fault::from(error).message));
    }

    fn warn(&self, message: &str) {
        tracing::warn!("{message}");
        self.tell_clients(message.replace(&self.root, "the vault"));
    }

    fn tell_clients(&self, message: String) {
        self.knowledge.warn(Warning { path: ".".into(), message });
    }
}

/// What somebody who started this by hand wants to know.
fn greet(open: &OpenVault, http: Option<&Settings>, tools: usize, output: &Output) {
    let vault = open.vault.root().display().to_string();
    let way = match http {
        None => "over standard input and output".to_owned(),
        Some(settings) => format!("at {}", settings.url()),
    };
    let (claude, server) = match http {
        None => {
            let program =
                std::env::current_exe().map_or_else(|_| "quipu".to_owned(), |path| path.display().to_string());
            (
                format!("claude mcp add quipu -- {} serve {}", shell_quoted(&program), shell_quoted(&vault)),
                json!({ "command": program, "args": ["serve", vault] }),
            )
        }
        Some(settings) => {
            let url = settings.url();
            let mut claude = format!("claude mcp add --transport http quipu {url}");
            let mut server = json!({ "type": "http", "url": url });
            if settings.needs_token() {
                claude.push_str(" --header 'Authorization: Bearer TOKEN'");
                server["headers"] = json!({ "Authorization": "Bearer TOKEN" });
            }
            (claude, server)
        }
    };
    let say = |line: Line| output.aside(&line);
    say(Line::new().plain("serving ").bold(vault).plain(format!(" {way}, {tools} tools")));
    say(Line::new().dim("This is for a client to speak to; Ctrl-C ends it. To connect one:"));
    say(Line::new().plain(format!("  {claude}")));
    say(Line::new().dim("or, in the configuration of other clients:"));
    say(Line::new().plain(format!("  {}", json!({ "mcpServers": { "quipu": server } }))));
}

/// A word as a shell takes it literally.
fn shell_quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use quipu_core::parse::TitleRule;
    use quipu_core::ports::StoreError;
    use quipu_core::{Parts, Session};
    use quipu_testkit::store_conformance::Shelf;
    use quipu_testkit::{FixedClock, MemShelf, MemSources, MemVault};

    use super::*;

    #[test]
    fn clients_learn_what_is_wrong_but_not_where_on_this_machine() {
        let clock = Arc::new(FixedClock::default());
        let knowledge = Arc::new(Knowledge::new(Parts {
            vault: Arc::new(MemVault::from_fixture(clock.clone(), "")),
            store: Arc::new(MemShelf::default().open()),
            clock,
            sources: Arc::new(MemSources::default()),
            title_rule: TitleRule::default(),
            stale_after: Knowledge::STALE_AFTER,
        }));
        let herald = Herald { knowledge, root: "/home/ada/notes".into() };
        herald.warn("cannot watch: No such file about [\"/home/ada/notes/a\"]");
        let error = StoreError::new("written", "disk I/O error at /home/ada/notes/.quipu/index/catalog.db");
        herald.warn_of("the vault could not be indexed", IndexError::Store(error));
        assert_eq!(
            herald.knowledge.warnings(&Session::default()),
            [
                ".: cannot watch: No such file about [\"the vault/a\"]",
                ".: the vault could not be indexed: the index could not be written; the server's log has the details",
            ]
        );
    }

    #[test]
    fn a_path_survives_the_shell() {
        assert_eq!(shell_quoted("/home/me/notes"), "/home/me/notes");
        assert_eq!(shell_quoted("/home/me/My Notes"), "'/home/me/My Notes'");
        assert_eq!(shell_quoted("it's $HOME"), r"'it'\''s $HOME'");
    }
}
