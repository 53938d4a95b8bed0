//! `GET /api/status`: how much there is, whether all is well, and what the page may do.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use quipu_tools::Overview;
use serde::Serialize;

use super::answers::{WebRefusal, json_answer};
use super::{Explorer, caller_of, is_local};
use crate::service::{ClientCalls, LastHour, ToolLatency};

#[derive(Serialize)]
struct Status<'e> {
    vault: &'e str,
    /// The vault's folder. Only for `quipu open`: its page is on the machine that has the folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<&'e str>,
    version: &'static str,
    scope: &'static str,
    tools: Vec<&'static str>,
    indexed: bool,
    #[serde(flatten)]
    overview: Overview,
    clients: Vec<ClientCalls>,
    latency: Vec<ToolLatency>,
    uptime_s: u64,
    /// One number a minute, for plots.
    hour: LastHour,
    memory_mb: u64,
}

pub(super) async fn status(State(explorer): State<Arc<Explorer>>, request: Request) -> Result<Response, WebRefusal> {
    let (caller, permit) = caller_of(&request)?;
    let asked = explorer.work(&caller, permit, |explorer| explorer.service.vault().report(), |_| 0);
    let told = asked.await??;
    let offer = explorer.service.vault().offer();
    let may = offer.of_all_toolsets().filter(|tool| caller.scope.allows(tool.access));
    json_answer(&Status {
        vault: &explorer.vault,
        folder: explorer.root.as_ref().and_then(|root| root.to_str()).filter(|_| is_local(&caller)),
        version: env!("CARGO_PKG_VERSION"),
        scope: caller.scope.name(),
        tools: may.map(|tool| tool.name).collect(),
        indexed: told.indexed,
        overview: told.overview,
        clients: told.clients,
        latency: told.latency,
        uptime_s: explorer.started.elapsed().as_secs(),
        hour: told.hour,
        memory_mb: told.memory_mb,
    })
}
