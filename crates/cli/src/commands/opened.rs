//! What most commands begin with: find the vault, read its settings, open it, and bring the index up to date.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quipu_core::index::{IndexError, Progress, Scope, SyncReport};

use super::output::{Line, Output};
use super::progress::{Meter, seconds};
use super::{Failure, Shared};
use crate::compose::{IndexPlace, OpenVault, WhyMemory, Wish};
use crate::located::Located;

/// An index that takes longer to make is worth keeping.
const NOTICEABLE: Duration = Duration::from_secs(2);

/// A vault whose index is up to date.
pub(crate) struct Ready {
    pub(crate) open: Arc<OpenVault>,
    /// What the index had to take in.
    pub(crate) report: SyncReport,
    pub(crate) took: Duration,
}

impl Ready {
    /// How many notes there are, as every command counts them.
    pub(crate) fn notes(&self) -> usize {
        notes(&self.open)
    }

    /// That there is nothing to look at, and what to do.
    pub(crate) fn without_notes(&self) -> Line {
        let root = self.open.vault.root().display();
        Line::new().plain(format!(
            "there are no notes in {root}; give another folder with --vault, or put Markdown files here"
        ))
    }

    /// What to say and to do where the index could not take everything in.
    pub(crate) fn unsaved(&self) -> Option<(String, &'static str)> {
        let SyncReport { unsaved, total, .. } = self.report;
        let advice = "make room on the disk, or run `quipu index --rebuild`; no note was touched";
        (unsaved > 0).then(|| (format!("{unsaved} of {total} notes could not be saved in the index"), advice))
    }
}

/// Finds the vault and reads its settings.
pub(crate) fn locate(given: Option<&Path>, shared: &Shared) -> Result<Located, Failure> {
    Located::at(super::locate::vault(given, shared)?, shared.served.clone())
}

/// Opens the vault and waits until the index is up to date.
pub(crate) fn ready(located: &Located, wish: Wish, output: &Output) -> Result<Ready, Failure> {
    let open = located.open(wish)?;
    let (report, took) = start(&open, output)?;
    if open.index == IndexPlace::Memory(WhyMemory::NotYet) && took > NOTICEABLE {
        output.aside(&Line::new().dim("`quipu index` keeps an index in .quipu/, so that the next answer is quick"));
    }
    Ok(Ready { open, report, took })
}

/// Brings an open vault's index up to date, or says why not to the person who typed the command.
pub(crate) fn start(open: &OpenVault, output: &Output) -> Result<(SyncReport, Duration), Failure> {
    index(open, output)
        .map_err(|error| Failure::from(error).about(&format!("cannot index {}", open.vault.root().display())))
}

/// Brings an open vault's index up to date, showing how far it is.
pub(crate) fn index(open: &OpenVault, output: &Output) -> Result<(SyncReport, Duration), IndexError> {
    let meter = Meter::start("indexing", "files read", output);
    let progress = |progress: Progress| meter.update(progress, output);
    let report = match open.knowledge.wait_ready(Duration::ZERO) {
        false => open.knowledge.start(&progress),
        // A server has read the vault already.
        true => open.knowledge.sync(&Scope::Everything, &progress),
    };
    let took = meter.finish(output);
    let report = report?;
    open.keep();
    for notice in open.store.notices() {
        tracing::warn!("{notice}");
    }
    Ok((report, took))
}

fn notes(open: &OpenVault) -> usize {
    open.knowledge.snapshot().files().len()
}

/// Reads the vault for a server that somebody started by hand.
pub(super) fn read_before_a_person(open: &OpenVault) -> Result<(), IndexError> {
    let output = Output::new();
    let (_, took) = index(open, &output)?;
    output.aside(&Line::new().plain(format!("{} notes, indexed in {}", notes(open), seconds(took))));
    Ok(())
}

/// Reads the vault for a server that a client started.
pub(super) fn read_for_a_client(open: &OpenVault) -> Result<(), IndexError> {
    let (_, took) = index(open, &Output::new())?;
    tracing::info!(notes = notes(open), took = seconds(took), "indexed");
    Ok(())
}
