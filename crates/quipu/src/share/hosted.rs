//! Answers other processes while a command still has the vault: they need not wait for work that they do not depend on.

use std::sync::Arc;

use super::claim::{Claim, Hold};
use super::place::{Held, Place};
use super::seat::RunCommand;
use crate::compose::own_folder;
use crate::engine::Engine;

/// A vault that a command has open and shares.
pub(crate) struct Hosted(Place);

impl Hosted {
    /// Lets other processes in until [`Hosted::end`].
    pub(crate) fn start(engine: Engine, mut claim: Claim, run_command: RunCommand) -> Self {
        let engine = Arc::new(engine);
        let listener = claim.listen(&own_folder(engine.open().vault.root()));
        claim.write_card(Hold::Shared);
        let held = Held::host(&engine, listener, claim, run_command);
        Self(Place::Owner(engine, Some(held)))
    }

    /// Finishes what others asked, as far as a moment allows. The vault is free when the process ends.
    pub(crate) fn end(self) {
        self.0.give_up();
    }
}
