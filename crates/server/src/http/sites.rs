//! Which vault a request is for. A server of a database has many graphs: `/g/NAME/…` names one, otherwise it is the one of the
//! client's token, or the server's only one. A graph is opened for its first request, and closed when it is idle.
//!
//! A name may pass from one graph to another while the server runs, so open graphs and those of tokens are known by id.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, Uri, header};
use axum::response::Response;
use axum::routing::any;
use parking_lot::Mutex;
use quipu_tools::echoed;
use tokio::time::MissedTickBehavior;
use tower_service::Service as _;

use super::limits::{Bucket, Excess};
use super::request_guard::{refusal, unavailable};
use crate::mcp::{self, McpServer};
use crate::service::{Capacity, Metric, Service, UNREACHABLE, VaultService};
use crate::tokens::GraphRef;
use crate::web::{self, Explorer};

/// How long a graph without requests stays open. Opening it again reads all of its notes.
const IDLE: Duration = Duration::from_secs(30 * 60);

/// How often the names of the graphs are read: for this time at most, a name still leads to the graph that had it.
const LOOK: Duration = Duration::from_secs(2);

/// A failover is shorter: a server that waits for it stays ready.
const SHORT_OUTAGE: Duration = Duration::from_secs(5);

/// Where the path of a request names a graph.
const PREFIX: &str = "/g/";

/// The graphs of a server.
pub trait GraphSource: Send + Sync {
    /// The graphs that are served, with their names of now.
    fn graphs(&self) -> anyhow::Result<Vec<GraphRef>>;

    /// The calls a second that are accepted for each graph with such a limit, by its id.
    fn rates(&self) -> anyhow::Result<HashMap<i64, u32>>;

    /// How long the database has been unreachable, if it is.
    fn unreachable_for(&self) -> Option<Duration>;

    /// Opens a graph without waiting for its notes; `None` if there is none of this id.
    fn open(&self, id: i64) -> anyhow::Result<Option<Arc<dyn VaultService>>>;

    /// Metrics of the database.
    fn metrics(&self) -> Vec<Metric>;
}

/// The graphs that the token of a request is for; `None` for all.
#[derive(Clone)]
pub(super) struct GrantedGraphs(pub(super) Option<Vec<GraphRef>>);

impl GrantedGraphs {
    /// Whether every graph of the server is among them.
    fn has_all(&self, known: &[GraphRef]) -> bool {
        known.iter().all(|graph| self.has(graph.id))
    }

    fn has(&self, id: i64) -> bool {
        self.0.as_ref().is_none_or(|graphs| graphs.iter().any(|graph| graph.id == id))
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
    /// The graphs as last read; `None` before the first read.
    known: Mutex<Option<Arc<[GraphRef]>>>,
    /// Calls a second, by id.
    rates: Mutex<HashMap<i64, u32>>,
    /// By id: a name may be given to another graph.
    open: Mutex<HashMap<i64, Arc<OpenSite>>>,
}

struct OpenSite {
    service: Arc<Service>,
    router: Router,
    used: Mutex<Instant>,
    /// Calls that the rate of the graph still allows; `None` until the graph is first limited.
    bucket: Mutex<Option<Bucket>>,
}

/// Why a request has no graph.
enum Absent {
    /// None of this name is open to the client.
    Unknown,
    /// Several are open to the client, and it names none.
    Several,
}

impl Graphs {
    pub(super) fn new(source: Arc<dyn GraphSource>, capacity: Arc<Capacity>) -> Self {
        Self { source, capacity, known: Mutex::default(), rates: Mutex::default(), open: Mutex::default() }
    }

    /// Reads the names of the graphs, and closes those that were deleted.
    fn look(&self) -> anyhow::Result<()> {
        let now: Arc<[GraphRef]> = self.source.graphs()?.into();
        *self.rates.lock() = self.source.rates()?;
        let before = self.known.lock().replace(now.clone()).unwrap_or_default();
        let is_gone =
            |id: i64| [&before, &now].map(|graphs| graphs.iter().any(|graph| graph.id == id)) == [true, false];
        let deleted: Vec<_> = self.open.lock().extract_if(|id, _| is_gone(*id)).collect();
        // Not under the lock: closing takes a moment.
        drop(deleted);
        Ok(())
    }

    /// The graph of a request: the one that it names, or the only one that is open to the client.
    fn choose(&self, named: Option<&str>, granted: &GrantedGraphs) -> Result<GraphRef, Absent> {
        let known = self.known.lock().clone().unwrap_or_default();
        let is_known = |graph: &&GraphRef| known.iter().any(|known| known.id == graph.id);
        let graphs = granted.0.as_deref().unwrap_or(&known);
        let mut fitting = graphs.iter().filter(is_known).filter(|graph| named.is_none_or(|name| graph.name == name));
        match (fitting.next(), fitting.next()) {
            (Some(graph), None) => Ok(graph.clone()),
            (Some(_), Some(_)) => Err(Absent::Several),
            (None, _) => Err(Absent::Unknown),
        }
    }

    /// The graph of every client, if there is only one.
    fn only(&self) -> Option<GraphRef> {
        self.choose(None, &GrantedGraphs(None)).ok()
    }

    fn get(&self, id: i64) -> Option<Arc<OpenSite>> {
        let open = self.open.lock();
        let graph = open.get(&id)?;
        *graph.used.lock() = Instant::now();
        Some(graph.clone())
    }

    /// Opens a graph, if it is not open. Two first requests may open it twice; one of the two is kept.
    fn open(&self, graph: &GraphRef) -> anyhow::Result<Option<Arc<OpenSite>>> {
        if let Some(open) = self.get(graph.id) {
            return Ok(Some(open));
        }
        let Some(vault) = self.source.open(graph.id)? else { return Ok(None) };
        let service = Service::of_graph(vault, self.capacity.clone());
        let explorer = Explorer::new(service.clone(), graph.name.clone(), None);
        let router = mcp::http_routes(McpServer::new(service.clone())).merge(web::routes(explorer));
        let open = Arc::new(OpenSite { service, router, used: Mutex::new(Instant::now()), bucket: Mutex::default() });
        Ok(Some(self.open.lock().entry(graph.id).or_insert(open).clone()))
    }

    /// Opens the graph of a request. A graph or a name that is not known may be new.
    fn open_for(
        &self,
        named: Option<&str>,
        granted: &GrantedGraphs,
    ) -> anyhow::Result<Result<(i64, Arc<OpenSite>), Absent>> {
        let chosen = match self.choose(named, granted) {
            Err(Absent::Unknown) => {
                self.look()?;
                self.choose(named, granted)
            }
            chosen => chosen,
        };
        let graph = match chosen {
            Ok(graph) => graph,
            Err(absent) => return Ok(Err(absent)),
        };
        Ok(self.open(&graph)?.map(|open| (graph.id, open)).ok_or(Absent::Unknown))
    }

    /// Counts a call of a graph; the error says when its rate allows the next.
    fn count_call(&self, id: i64, site: &OpenSite) -> Result<(), Excess> {
        let Some(rate) = self.rates.lock().get(&id).copied() else { return Ok(()) };
        site.bucket.lock().get_or_insert_with(|| Bucket::full(rate)).take(f64::from(rate), Instant::now().into())
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

    /// The open graphs with their names, in order of name.
    fn open_graphs(&self) -> Vec<(GraphRef, Arc<OpenSite>)> {
        let known = self.known.lock().clone().unwrap_or_default();
        let open = self.open.lock();
        let mut graphs: Vec<_> =
            known.iter().filter_map(|graph| Some((graph.clone(), open.get(&graph.id)?.clone()))).collect();
        graphs.sort_by(|a, b| a.0.name.cmp(&b.0.name));
        graphs
    }

    /// Reads the list of graphs at intervals, opens the only one before its first request, and closes idle ones.
    fn maintain(&self) -> anyhow::Result<()> {
        self.look()?;
        if let Some(only) = self.only() {
            self.open(&only)?;
        }
        self.close_idle();
        Ok(())
    }
}

impl Sites {
    /// Why answers may be incomplete or out of date, in a word; `None` if all is well.
    ///
    /// One graph of several does not count: neither while it is read for its first request, which every server does at the same
    /// time when a balancer moves its clients, nor when its changes cannot be read. The server is ready for the others.
    pub(super) async fn unready_reason(&self) -> Option<&'static str> {
        let open = match self {
            Self::One(service) => Some(service.clone()),
            Self::Graphs(graphs) => {
                if graphs.source.unreachable_for().is_some_and(|time| time > SHORT_OUTAGE) {
                    return Some(UNREACHABLE);
                }
                let is_known = graphs.known.lock().is_some();
                match graphs.only() {
                    None if is_known => return None,
                    only => only.and_then(|only| graphs.get(only.id)).map(|graph| graph.service.clone()),
                }
            }
        };
        match open {
            Some(service) => match service.vault().unready_reason() {
                None if !service.progress().await.is_over => Some("indexing"),
                reason => reason,
            },
            None => Some("indexing"),
        }
    }

    /// Whether a client may see figures of the whole server: they tell of the load of every graph.
    pub(super) fn is_of_all(&self, granted: &GrantedGraphs) -> bool {
        match self {
            Self::One(_) => true,
            Self::Graphs(graphs) => granted.has_all(&graphs.known.lock().clone().unwrap_or_default()),
        }
    }

    /// The metrics of the graphs that the token may use, in the Prometheus text format.
    pub(super) async fn write_metrics(&self, page: &mut String, granted: &GrantedGraphs) {
        match self {
            Self::One(service) => {
                let metrics = service.metrics().await.into_iter();
                write_metrics(page, metrics.map(|metric| (String::new(), metric)).collect());
            }
            Self::Graphs(graphs) => {
                let is_of_all = self.is_of_all(granted);
                let of_server = graphs.source.metrics().into_iter().filter(|_| is_of_all);
                let mut metrics: Vec<_> = of_server.map(|metric| (String::new(), metric)).collect();
                let open = graphs.open_graphs().into_iter().filter(|(graph, _)| granted.has(graph.id));
                for (graph, open) in open {
                    let label = format!("{{graph=\"{}\"}}", graph.name);
                    let of_graph = open.service.metrics().await.into_iter();
                    metrics.extend(of_graph.map(|metric| (label.clone(), metric)));
                }
                write_metrics(page, metrics);
            }
        }
    }

    /// Keeps the graphs as they are in the database. Never ends.
    pub(super) async fn maintain(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(LOOK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut was_done = true;
        loop {
            ticks.tick().await;
            let sites = self.clone();
            let maintained = tokio::task::spawn_blocking(move || match &*sites {
                Self::Graphs(graphs) => graphs.maintain(),
                Self::One(_) => Ok(()),
            });
            let done = maintained.await.unwrap_or_else(|error| Err(error.into()));
            // Once for each outage.
            if let Some(error) = done.as_ref().err().filter(|_| was_done) {
                tracing::warn!("cannot look at the graphs: {error:#}");
            }
            was_done = done.is_ok();
        }
    }
}

/// Writes values with their labels, those of one metric together.
fn write_metrics(page: &mut String, mut metrics: Vec<(String, Metric)>) {
    metrics.sort_by_key(|(_, metric)| metric.name);
    for family in metrics.chunk_by(|(_, a), (_, b)| a.name == b.name) {
        let [(_, Metric { name, what, kind, .. }), ..] = family else { continue };
        let _ = write!(page, "# HELP {name} {what}\n# TYPE {name} {}\n", kind.word());
        for (label, metric) in family {
            let _ = writeln!(page, "{name}{label} {}", metric.value);
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
    let Sites::Graphs(graphs) = &*sites else { return unknown(None) };
    let path = request.uri().path();
    let (named, rest) = match path.strip_prefix(PREFIX).and_then(|path| path.split_once('/')) {
        Some((name, rest)) => (Some(name.to_owned()), format!("/{rest}")),
        None => (None, path.to_owned()),
    };
    let granted = request.extensions().get::<GrantedGraphs>().cloned().unwrap_or(GrantedGraphs(Some(Vec::new())));
    let open = graphs.choose(named.as_deref(), &granted).ok().and_then(|graph| Some((graph.id, graphs.get(graph.id)?)));
    let opened = match open {
        Some(open) => Ok(Ok(open)),
        None => {
            let (sites, named) = (sites.clone(), named.clone());
            let opening = tokio::task::spawn_blocking(move || match &*sites {
                Sites::Graphs(graphs) => graphs.open_for(named.as_deref(), &granted),
                Sites::One(_) => Ok(Err(Absent::Unknown)),
            });
            opening.await.unwrap_or_else(|error| Err(error.into()))
        }
    };
    let (id, graph) = match opened {
        Ok(Ok(open)) => open,
        // As for a graph that does not exist: a token must not tell which others there are.
        Ok(Err(Absent::Unknown)) => return unknown(named.as_deref()),
        Ok(Err(Absent::Several)) => {
            return refusal(
                StatusCode::NOT_FOUND,
                "several graphs are open to this client; name one in the path: /g/NAME/mcp, /g/NAME/ for the explorer",
            );
        }
        Err(error) => {
            tracing::warn!("cannot open the graph {}: {error:#}", echoed(named.as_deref().unwrap_or_default()));
            return unavailable("cannot open the graph: the server's log has the cause; retry in a moment");
        }
    };
    // A client of an older protocol opens its stream of events with GET, which is no call.
    let is_call = request.method() == Method::POST || rest.starts_with("/api/");
    if is_call && let Err(Excess::TooMany(seconds)) = graphs.count_call(id, &graph) {
        return too_many(seconds);
    }
    match rest.parse::<Uri>() {
        Ok(uri) => *request.uri_mut() = uri,
        Err(_) => return unknown(named.as_deref()),
    }
    match graph.router.clone().call(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// The response beyond the rate of a graph.
fn too_many(seconds: u64) -> Response {
    let message = "the graph has more calls than its limit allows; retry in a moment";
    let mut response = refusal(StatusCode::TOO_MANY_REQUESTS, message);
    response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    response
}

fn unknown(name: Option<&str>) -> Response {
    let which = name.map_or_else(String::new, |name| format!(" `{}`", echoed(name)));
    refusal(StatusCode::NOT_FOUND, &format!("there is no graph{which} for this client"))
}
