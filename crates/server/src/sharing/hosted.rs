//! Answers other processes while a command still has the vault: they need not wait for work that they do not depend on.

use std::sync::Arc;

use super::claim::{Claim, Hold};
use super::place::{Held, Place};
use crate::engine::Engine;
use crate::own_files::own_folder;

/// A vault that a command has open and shares.
pub struct Hosted(Place);

impl Hosted {
    /// Lets other processes in until [`Hosted::end`].
    pub fn start(engine: Engine, mut claim: Claim) -> Self {
        let engine = Arc::new(engine);
        let listener = claim.listen(&own_folder(engine.open().root()));
        claim.write_card(Hold::Shared);
        let held = Held::host(&engine, listener, claim);
        Self(Place::Owner(engine, Some(held)))
    }

    /// Finishes what others asked, as far as a moment allows. The vault is free when the process ends.
    pub fn end(self) {
        self.0.give_up();
    }
}
