//! Which vault a request is for. A server of a database has many graphs: `/g/NAME/…` names one, otherwise it is the one of the
//! client's token, or the server's only one. A graph is opened for its first request, and closed when it is idle.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use axum::routing::any;
use parking_lot::Mutex;
use quipu_tools::echoed;
use tower_service::Service as _;

use super::request_guard::refusal;
use crate::mcp::{self, McpServer};
use crate::service::{Capacity, Measure, Service, VaultService};
use crate::web::{self, Explorer};

/// How long a graph without requests stays open. Opening it again reads all of its notes.
const IDLE: Duration = Duration::from_secs(30 * 60);

/// Where the path of a request names a graph.
const PREFIX: &str = "/g/";

/// The graphs of a server.
pub trait GraphSource: Send + Sync {
    /// Opens a graph without waiting for its notes; `None` if there is none of this name.
    fn open(&self, name: &str) -> anyhow::Result<Option<Arc<dyn VaultService>>>;

    /// The graph of clients that name none and have a token for none.
    fn default_graph(&self) -> Option<&str>;

    /// Metrics of the database.
    fn measures(&self) -> Vec<Measure>;
}

/// The graphs that the token of a request is for; `None` for all.
#[derive(Clone)]
pub(super) struct GrantedGraphs(pub(super) Option<Vec<String>>);

impl GrantedGraphs {
    fn has(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|graphs| graphs.iter().any(|graph| graph == name))
    }

    /// The only one.
    fn only(&self) -> Option<&str> {
        match self.0.as_deref() {
            Some([only]) => Some(only),
            _ => None,
        }
    }
}

/// The vaults of a server.
pub(super) enum Sites {
    One(Arc<Service>),
    Graphs(Graphs),
}

pub(super) struct Graphs {
    source: Arc<dyn GraphSource>,
    capacity: Arc<Capacity>,
    open: Mutex<HashMap<String, Arc<OpenGraph>>>,
}

struct OpenGraph {
    service: Arc<Service>,
    router: Router,
    used: Mutex<Instant>,
}

impl Graphs {
    pub(super) fn new(source: Arc<dyn GraphSource>, capacity: Arc<Capacity>) -> Self {
        Self { source, capacity, open: Mutex::default() }
    }

    fn get(&self, name: &str) -> Option<Arc<OpenGraph>> {
        let open = self.open.lock();
        let graph = open.get(name)?;
        *graph.used.lock() = Instant::now();
        Some(graph.clone())
    }

    /// Opens a graph, if it is not open. Two first requests may open it twice; one of the two is kept.
    fn open(&self, name: &str) -> anyhow::Result<Option<Arc<OpenGraph>>> {
        if let Some(graph) = self.get(name) {
            return Ok(Some(graph));
        }
        let Some(vault) = self.source.open(name)? else { return Ok(None) };
        let service = Service::of_graph(vault, self.capacity.clone());
        let explorer = Explorer::new(service.clone(), name.to_owned(), None);
        let router = mcp::http_routes(McpServer::new(service.clone())).merge(web::routes(explorer));
        let graph = Arc::new(OpenGraph { service, router, used: Mutex::new(Instant::now()) });
        Ok(Some(self.open.lock().entry(name.to_owned()).or_insert(graph).clone()))
    }

    /// Forgets graphs that had no request for a while. One that still answers is closed at its last answer.
    fn close_idle(&self) {
        let idle: Vec<_> = self
            .open
            .lock()
            .extract_if(|_, graph| graph.used.lock().elapsed() > IDLE)
            .map(|(_, graph)| graph)
            .collect();
        // Not under the lock: closing takes a moment.
        drop(idle);
    }

    fn open_graphs(&self) -> Vec<(String, Arc<OpenGraph>)> {
        let mut graphs: Vec<_> = self.open.lock().iter().map(|(name, graph)| (name.clone(), graph.clone())).collect();
        graphs.sort_by(|a, b| a.0.cmp(&b.0));
        graphs
    }
}

impl Sites {
    /// Starts to read the graph that a server is for, before its first request.
    pub(super) fn open_default(self: Arc<Self>) {
        let open = move || {
            if let Self::Graphs(graphs) = &*self
                && let Some(name) = graphs.source.default_graph()
                && let Err(error) = graphs.open(name)
            {
                tracing::warn!("cannot open the graph {name}: {error:#}");
            }
        };
        drop(tokio::task::spawn_blocking(open));
    }

    /// Why answers may be incomplete or out of date, in a word; `None` if all is well. A graph that is read for its first
    /// request does not count: the server is ready for others.
    pub(super) async fn trouble(&self) -> Option<&'static str> {
        let open = match self {
            Self::One(service) => Some(service.clone()),
            Self::Graphs(graphs) => {
                if graphs.open_graphs().iter().any(|(_, graph)| graph.service.vault().lag().is_some()) {
                    return Some("database unreachable");
                }
                let name = graphs.source.default_graph()?;
                graphs.get(name).map(|graph| graph.service.clone())
            }
        };
        match open {
            Some(service) if service.progress().await.is_over => None,
            _ => Some("indexing"),
        }
    }

    /// What is in the vaults, in the Prometheus text format.
    pub(super) async fn write_metrics(&self, page: &mut String) {
        match self {
            Self::One(service) => {
                let measures = service.measures().await.into_iter();
                write_measures(page, measures.map(|measure| (String::new(), measure)).collect());
            }
            Self::Graphs(graphs) => {
                let of_server = graphs.source.measures().into_iter();
                let mut measures: Vec<_> = of_server.map(|measure| (String::new(), measure)).collect();
                for (name, graph) in graphs.open_graphs() {
                    let label = format!("{{graph=\"{name}\"}}");
                    let of_graph = graph.service.measures().await.into_iter();
                    measures.extend(of_graph.map(|measure| (label.clone(), measure)));
                }
                write_measures(page, measures);
            }
        }
    }

    /// Closes idle graphs from time to time. Never ends.
    pub(super) async fn close_idle(&self) {
        let mut ticks = tokio::time::interval(IDLE / 10);
        loop {
            ticks.tick().await;
            if let Self::Graphs(graphs) = self {
                graphs.close_idle();
            }
        }
    }
}

/// Writes values with their labels, those of one metric together.
fn write_measures(page: &mut String, mut measures: Vec<(String, Measure)>) {
    measures.sort_by_key(|(_, measure)| measure.name);
    for family in measures.chunk_by(|(_, a), (_, b)| a.name == b.name) {
        let [(_, Measure { name, what, kind, .. }), ..] = family else { continue };
        let _ = write!(page, "# HELP {name} {what}\n# TYPE {name} {}\n", kind.word());
        for (label, measure) in family {
            let _ = writeln!(page, "{name}{label} {}", measure.value);
        }
    }
}

/// The routes of a server of graphs.
pub(super) fn routes(sites: Arc<Sites>) -> Router {
    Router::new()
        .route("/mcp", any(dispatch))
        .route("/api/{*rest}", any(dispatch))
        .route("/g/{graph}/{*rest}", any(dispatch))
        .with_state(sites)
}

/// Passes a request on to its graph.
async fn dispatch(State(sites): State<Arc<Sites>>, mut request: Request) -> Response {
    let Sites::Graphs(graphs) = &*sites else { return unknown("") };
    let path = request.uri().path();
    let (named, rest) = match path.strip_prefix(PREFIX).and_then(|path| path.split_once('/')) {
        Some((name, rest)) => (Some(name.to_owned()), format!("/{rest}")),
        None => (None, path.to_owned()),
    };
    let granted = request.extensions().get::<GrantedGraphs>().cloned().unwrap_or(GrantedGraphs(Some(Vec::new())));
    let Some(name) = named.or_else(|| granted.only().or(graphs.source.default_graph()).map(str::to_owned)) else {
        return refusal(
            StatusCode::NOT_FOUND,
            "several graphs are open to this client; name one in the path: /g/NAME/mcp",
        );
    };
    if !granted.has(&name) {
        // As for a graph that does not exist: a token must not tell which others there are.
        return unknown(&name);
    }
    let opened = match graphs.get(&name) {
        Some(graph) => Ok(Some(graph)),
        None => {
            let (sites, name) = (sites.clone(), name.clone());
            let opening = tokio::task::spawn_blocking(move || match &*sites {
                Sites::Graphs(graphs) => graphs.open(&name),
                Sites::One(_) => Ok(None),
            });
            opening.await.unwrap_or_else(|error| Err(error.into()))
        }
    };
    let graph = match opened {
        Ok(Some(graph)) => graph,
        Ok(None) => return unknown(&name),
        Err(error) => {
            tracing::warn!("cannot open the graph {name}: {error:#}");
            return refusal(StatusCode::SERVICE_UNAVAILABLE, "the graph cannot be opened now; retry in a moment");
        }
    };
    match rest.parse::<Uri>() {
        Ok(uri) => *request.uri_mut() = uri,
        Err(_) => return unknown(&name),
    }
    match graph.router.clone().call(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

fn unknown(name: &str) -> Response {
    refusal(StatusCode::NOT_FOUND, &format!("there is no graph `{}` for this client", echoed(name)))
}
