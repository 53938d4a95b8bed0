//! One graph of a database, as clients of this server use it.

use std::sync::Arc;

use anyhow::Context;
use parking_lot::Mutex;
use quipu_core::model::VaultPath;
use quipu_core::ports::{FeedError, Image, LogHeads, NoteFeed};
use quipu_core::{RequestKey, Session};
use quipu_tools::{
    Completion, Offer, RegistryOptions, ResourcePage, ResourceText, ToolError, ToolErrorKind, ToolInfo, ToolResponse,
    WholeGraph,
};
use serde_json::Value;

use super::follower::{FeedPosition, Follower};
use crate::engine::{Engine, EngineOptions, FirstPass};
use crate::served_vault::ServedVault;
use crate::service::{IndexProgress, Metric, Report, TrailPage, VaultChangeListener, VaultService};

/// How a server opens a graph.
#[derive(Debug, Clone)]
pub struct TeamOptions {
    /// Whether lines are read ahead and passages embedded in the background.
    pub background: bool,
    /// Age in days at which versions are deleted from the trash; 0 keeps them.
    pub trash_days: u32,
    /// The tools that clients may use.
    pub offer: RegistryOptions,
}

/// An open graph.
pub struct TeamGraph {
    engine: Engine,
    follower: Follower,
    feed: Arc<dyn NoteFeed>,
    /// Up to here of the logs.
    looked_for_redactions: Mutex<LogHeads>,
    offer: Arc<Offer>,
}

impl TeamGraph {
    /// Starts to read the graph and returns at once: calls say what they lack.
    pub fn open(open: Arc<dyn ServedVault>, feed: Arc<dyn NoteFeed>, options: TeamOptions) -> anyhow::Result<Self> {
        let knowledge = open.knowledge().clone();
        let TeamOptions { background, trash_days, offer } = options;
        let engine = EngineOptions { watches: false, background, trash_days, first_pass: FirstPass::Followed };
        // Before the first call. Unknown, an earlier redaction clears the texts once.
        let heads = feed.redacted_since(LogHeads::LAST).map_or_else(|_| LogHeads::default(), |(heads, _)| heads);
        let engine = Engine::start(open, engine)?;
        let follower = Follower::start(knowledge, feed.clone()).context("while starting to follow the database")?;
        let offer = Arc::new(Offer::of(engine.registry(), offer));
        Ok(Self { engine, follower, feed, looked_for_redactions: Mutex::new(heads), offer })
    }

    /// The engine, with every change that was committed before, or why it may lack some.
    fn current(&self) -> (&Engine, Option<String>) {
        let lag = self.follower.catch_up().map(|lag| lag.to_string());
        (&self.engine, lag)
    }

    /// Clears the texts of the trail if any server has redacted something since they were last shown.
    fn clear_redacted(&self) -> Result<(), FeedError> {
        let mut known = self.looked_for_redactions.lock();
        let (heads, is_redacted) = self.feed.redacted_since(*known)?;
        if is_redacted {
            self.engine.clear_trail();
        }
        *known = heads;
        Ok(())
    }

    /// Before the answer is sent: the client's next call may come to another server. Should it fail, that server refuses more than
    /// it has to, and the next call here records it.
    fn record_shown(&self, session: &Session) {
        if let Err(error) = self.engine.open().knowledge().record_shown(session) {
            tracing::warn!("cannot record what a client was shown: {error}");
        }
    }
}

impl Drop for TeamGraph {
    fn drop(&mut self) {
        self.engine.stop();
    }
}

impl VaultService for TeamGraph {
    fn offer(&self) -> Arc<Offer> {
        self.offer.clone()
    }

    fn call(
        &self,
        tool: &'static ToolInfo,
        arguments: Value,
        session: &Session,
        key: Option<RequestKey>,
    ) -> ToolResponse {
        let lag = self.follower.catch_up();
        // Without a key the store gives every write its own, by which it recognises a transaction that it repeats.
        let mut response = self.engine.call(tool, arguments, session, key);
        response.warnings.extend(lag.map(|lag| lag.to_string()));
        self.record_shown(session);
        response
    }

    fn resources(&self, cursor: Option<&str>, page_size: usize) -> Result<ResourcePage, ToolError> {
        let (engine, lag) = self.current();
        Ok(ResourcePage { lag, ..engine.indexed().resources(cursor, page_size)? })
    }

    fn read_resource(&self, session: &Session, uri: &str) -> Result<Option<ResourceText>, ToolError> {
        let (engine, lag) = self.current();
        let read = engine.indexed().read_resource(session, uri);
        self.record_shown(session);
        Ok(read?.map(|text| ResourceText { lag, ..text }))
    }

    fn complete_note_id(&self, typed: &str, limit: usize) -> Completion {
        let (engine, lag) = self.current();
        Completion { lag, ..engine.indexed().complete_note_id(typed, limit) }
    }

    fn progress(&self) -> IndexProgress {
        IndexProgress { is_over: self.follower.is_loaded(), ..self.engine.progress() }
    }

    fn unready_reason(&self) -> Option<&'static str> {
        self.follower.unready_reason()
    }

    fn metrics(&self) -> Vec<Metric> {
        let FeedPosition { number, is_failing, age } = self.follower.position();
        let position = "The last change of the notes by any server that is in the index.";
        let age_is = "How long ago the index was last level with the database.";
        let mut metrics = vec![
            Metric::gauge("quipu_feed_position", position, number as f64),
            Metric::gauge(
                "quipu_feed_lagging",
                "1 while the changes of other servers cannot be read.",
                f64::from(u8::from(is_failing)),
            ),
            Metric::gauge("quipu_feed_age_seconds", age_is, age.as_secs_f64()),
        ];
        if let Some(Ok(coverage)) = self.engine.open().knowledge().coverage() {
            let what = "Vectors of passages in the memory of this server.";
            metrics.push(Metric::gauge("quipu_vectors", what, coverage.embedded as f64));
        }
        metrics.extend(self.engine.open().metrics());
        metrics
    }

    fn whole_graph(&self) -> Result<WholeGraph, ToolError> {
        // The page that draws it shows the warnings of the report.
        self.current().0.indexed().whole_graph()
    }

    /// A database has notes only.
    fn image(&self, _: &VaultPath, _: &str) -> Result<Option<Image>, ToolError> {
        Ok(None)
    }

    fn report(&self) -> Result<Report, ToolError> {
        let (engine, lag) = self.current();
        let mut report = engine.report()?;
        if let Some(lag) = lag {
            report.overview.warn_first(lag);
        }
        Ok(report)
    }

    fn trail(&self, from: u64) -> Result<TrailPage, ToolError> {
        // Without an answer of the database nothing is shown: it may have been redacted.
        self.clear_redacted().map_err(|error| ToolError::new(ToolErrorKind::Provider, error.to_string()))?;
        Ok(self.engine.trail(from))
    }

    fn on_change(&self, listener: VaultChangeListener) {
        self.engine.on_change(listener);
    }
}
