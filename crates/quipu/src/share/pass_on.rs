//! A command for the index, taken to where the index is.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::claim::{Asked, Claim, Hold};
use super::link::{Link, NoLink};
use super::wire::{Answer, Looks, Printed, Question};
use crate::compose::own_folder;

/// How long an owner is waited for that is about to come or to go.
const PATIENCE: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_millis(20);

/// What became of a command.
pub(crate) enum Passed {
    /// A server ran it.
    Printed(Printed),
    /// It is to be run here; nobody else opens the index while the claim is held, where there is one.
    Back(Option<Claim>),
}

/// Has a command run by the server that has a vault open, if one has. A vault without our folder is left without.
pub(crate) fn pass_on(root: &Path, command: Value, looks: Looks) -> Passed {
    let own_folder = own_folder(root);
    if !own_folder.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return Passed::Back(None);
    }
    let question = Question::Command { command, looks };
    let until = Instant::now() + PATIENCE;
    loop {
        let card = match Claim::ask(&own_folder, Hold::Passing) {
            Asked::Had(claim) => return Passed::Back(Some(claim)),
            Asked::Impossible(_) => return Passed::Back(None),
            Asked::Taken(card) => card,
        };
        match Link::open(&own_folder, "command", false) {
            Ok((link, _watching)) => {
                return Passed::Printed(match link.ask_patiently(&question) {
                    Ok(Answer::Command(printed)) => printed,
                    // Not asked again: it may have been carried out.
                    _ => Printed::error(
                        "the server that has this vault open ended before it answered; look whether the command was \
                         carried out, and run it again if not",
                    ),
                });
            }
            Err(NoLink::Stranger(owner)) => return Passed::Printed(Printed::error(&owner.is_a_stranger())),
            Err(NoLink::Nobody(_)) => {}
        }
        let is_passing = card.hold == Hold::Passing;
        if card.hold == Hold::Alone || (!is_passing && Instant::now() > until) {
            tracing::debug!(?card, "the vault's owner cannot be asked");
            return Passed::Back(None);
        }
        std::thread::sleep(AGAIN);
    }
}
