//! A command for the index, taken to where the index is.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::claim::{Asked, Card, Claim, Hold};
use super::link::{Link, Lost, NoLink};
use super::new_key;
use super::wire::{Answer, Looks, Notice, Printed, Question, receive};
use crate::own_files::own_folder;

/// How long an owner is waited for that is about to come or to go.
const PATIENCE: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_millis(20);

/// How long a command that waits for nothing tries to reach an owner.
const IMPATIENCE: Duration = Duration::from_secs(1);

/// What became of a command.
pub enum Passed {
    /// A server ran it.
    Printed(Printed),
    /// It is to be run here; nobody else opens the index while the claim is held, where there is one.
    Back(Option<Claim>),
    /// Another process has the index and cannot be asked now: only for a command that does not wait.
    Busy(Card),
}

/// Whether a command waits for another command that has the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    UntilFree,
    Never,
}

/// A command for whoever has the index.
pub struct Errand {
    /// The command's name on the command line.
    pub name: &'static str,
    pub command: Value,
    pub again: Again,
    pub wait: Wait,
    pub looks: Looks,
}

/// Whether a command may be asked of a second server when the first ended without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// It only looks, or has a key by which it is done once.
    Yes,
    No,
}

/// Has a command run by the server that has a vault open, if one has. A vault without our folder is left without.
pub fn pass_on(root: &Path, errand: Errand) -> Passed {
    let Errand { name, command, again, wait, looks } = errand;
    let patience = match wait {
        Wait::UntilFree => PATIENCE,
        Wait::Never => IMPATIENCE,
    };
    let own_folder = own_folder(root);
    if !own_folder.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return Passed::Back(None);
    }
    let question = Question::Command { command, looks };
    let mut until = Instant::now() + patience;
    loop {
        let card = match Claim::ask(&own_folder, Hold::Passing, name) {
            Asked::Had(claim) => return Passed::Back(Some(claim)),
            Asked::Impossible(_) => return Passed::Back(None),
            Asked::Taken(card) => card,
        };
        match Link::open(&own_folder, &new_key().to_string(), false) {
            Ok((link, watching)) => match ask(link, watching, &question) {
                Ok(printed) => return Passed::Printed(printed),
                Err(Lost(error)) if again == Again::Yes => {
                    tracing::debug!(%error, "the vault's owner ended before it answered");
                    until = Instant::now() + patience;
                }
                Err(_) => {
                    return Passed::Printed(Printed::error(
                        "the server that has this vault open ended before it answered; look whether the command was \
                         carried out, and run it again if not",
                    ));
                }
            },
            Err(NoLink::Stranger(owner)) => return Passed::Printed(Printed::error(&owner.is_a_stranger())),
            Err(NoLink::Nobody(_)) => {}
        }
        let is_passing = card.hold == Hold::Passing;
        if wait == Wait::Never && (is_passing || Instant::now() > until) {
            return Passed::Busy(card);
        }
        if card.hold == Hold::Alone || (!is_passing && Instant::now() > until) {
            tracing::debug!(?card, "the vault's owner cannot be asked");
            return Passed::Back(None);
        }
        std::thread::sleep(AGAIN);
    }
}

/// Asks the owner, for as long as it gives signs of life: a command may take as long as it takes.
fn ask(link: Link, mut watching: UnixStream, question: &Question<'_>) -> Result<Printed, Lost> {
    let link = Arc::new(link);
    let asked = link.clone();
    std::thread::Builder::new().name("watching".into()).spawn(move || {
        while let Ok(Some(_)) = receive::<Notice>(&mut watching) {}
        asked.give_up();
    })?;
    match link.ask_patiently(question)? {
        Answer::Command(printed) => Ok(printed),
        Answer::Failed(why) => Ok(Printed::error(&why)),
        other => {
            tracing::error!(?other, "the vault's owner answered something else");
            Ok(Printed::error(
                "the server that has this vault open answered something else; let all clients of this \
                               vault use the same version of quipu",
            ))
        }
    }
}
