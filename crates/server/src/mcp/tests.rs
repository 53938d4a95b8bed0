//! Slow calls, and calls that are called off: over a vault whose files open only when a test says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use quipu_core::model::{FileStat, VaultPath};
use quipu_core::parse::TitleRule;
use quipu_core::ports::{
    FileChange, FileContent, Image, Listing, LoggedFile, LoggedWrite, NamePeriod, NoteHistory, SystemClock,
    TrashedFile, VaultError, VaultFiles, WriteError, WriteFilter, WriteNumber, WriteOrigin,
};
use quipu_core::{Knowledge, Parts, RequestKey, Session};
use quipu_testkit::store_conformance::NoteStorage;
use quipu_testkit::{FixedClock, MemNoteStorage, MemSources, MemVault};
use quipu_tools::{
    Completion, Offer, Registry, RegistryOptions, ResourcePage, ResourceText, ToolError, ToolInfo, ToolResponse,
    WholeGraph,
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, split};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::{McpServer, converse};
use crate::service::{
    Capacity, IndexProgress, LastHour, Report, Service, TrailPage, VaultChangeListener, VaultService,
};

/// While shut, every read of a file waits.
#[derive(Default)]
struct Gate {
    shut: Mutex<bool>,
    opened: Condvar,
    passed: AtomicUsize,
}

impl Gate {
    fn shut(&self) {
        *self.shut.lock() = true;
    }

    fn open(&self) {
        *self.shut.lock() = false;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let mut shut = self.shut.lock();
        self.opened.wait_while(&mut shut, |shut| *shut);
        self.passed.fetch_add(1, Ordering::Relaxed);
    }
}

struct GatedVault {
    files: MemVault,
    gate: Arc<Gate>,
}

impl VaultFiles for GatedVault {
    fn list(&self) -> Result<Listing, VaultError> {
        self.files.list()
    }
    fn list_below(&self, path: &VaultPath) -> Result<Listing, VaultError> {
        self.files.list_below(path)
    }
    fn read(&self, path: &VaultPath) -> Result<Option<FileContent>, VaultError> {
        self.gate.pass();
        self.files.read(path)
    }
    fn find_any_case(&self, path: &VaultPath) -> Result<Vec<VaultPath>, VaultError> {
        self.files.find_any_case(path)
    }
    fn apply_for(&self, changes: &[FileChange], origin: &WriteOrigin<'_>) -> Result<Vec<Option<FileStat>>, WriteError> {
        self.files.apply_for(changes, origin)
    }
    fn applied_request(&self, request: RequestKey) -> Result<Option<VaultPath>, VaultError> {
        self.files.applied_request(request)
    }
    fn trashed(&self) -> Result<Vec<TrashedFile>, VaultError> {
        self.files.trashed()
    }
    fn restore(&self, kept: &TrashedFile) -> Result<FileStat, WriteError> {
        self.files.restore(kept)
    }
}

impl NoteHistory for GatedVault {
    fn writes(&self, filter: &WriteFilter) -> Result<Vec<LoggedWrite>, VaultError> {
        self.files.writes(filter)
    }
    fn kept_bytes(&self, kept: &str) -> Result<Option<Vec<u8>>, VaultError> {
        self.files.kept_bytes(kept)
    }
    fn record_outside(&self, files: &[LoggedFile]) -> Result<(), WriteError> {
        self.files.record_outside(files)
    }
    fn forget(&self, names: &[NamePeriod], unfinished: WriteNumber) -> Result<usize, WriteError> {
        self.files.forget(names, unfinished)
    }
    fn forget_write(&self, number: WriteNumber) -> Result<(), WriteError> {
        self.files.forget_write(number)
    }
}

/// A vault of this process that no other process shares.
struct OneRegistry {
    registry: Registry,
    offer: Arc<Offer>,
}

impl VaultService for OneRegistry {
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
        self.registry.call(tool, arguments, session, key)
    }
    fn resources(&self, cursor: Option<&str>, page_size: usize) -> Result<ResourcePage, ToolError> {
        self.registry.resources(cursor, page_size)
    }
    fn read_resource(&self, session: &Session, uri: &str) -> Result<Option<ResourceText>, ToolError> {
        self.registry.read_resource(session, uri)
    }
    fn complete_note_id(&self, typed: &str, limit: usize) -> Completion {
        self.registry.complete_note_id(typed, limit)
    }
    fn progress(&self) -> IndexProgress {
        IndexProgress { files: 0, is_over: true }
    }
    fn whole_graph(&self) -> Result<WholeGraph, ToolError> {
        self.registry.whole_graph()
    }
    fn image(&self, _: &VaultPath, _: &str) -> Result<Option<Image>, ToolError> {
        Ok(None)
    }

    fn report(&self) -> Result<Report, ToolError> {
        let overview = self.registry.overview()?;
        Ok(Report {
            indexed: true,
            overview,
            clients: Vec::new(),
            latency: Vec::new(),
            hour: LastHour::default(),
            memory_mb: 0,
        })
    }
    fn trail(&self, _: u64) -> Result<TrailPage, ToolError> {
        Ok(TrailPage::default())
    }
    fn on_change(&self, _: VaultChangeListener) {}
}

/// A client in this process. `get_document` is slow while the gate is shut; `nodes_exist` never is.
struct Client {
    gate: Arc<Gate>,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    input: WriteHalf<DuplexStream>,
    stop: oneshot::Sender<()>,
    served: JoinHandle<anyhow::Result<()>>,
}

impl Client {
    fn connect() -> Self {
        Self::connect_to("//- a.md\ntext\n")
    }

    fn connect_to(fixture: &str) -> Self {
        let gate = Arc::<Gate>::default();
        let files = MemVault::from_fixture(Arc::new(FixedClock::default()), fixture);
        let knowledge = Arc::new(Knowledge::new(Parts {
            vault: Arc::new(GatedVault { files, gate: gate.clone() }),
            store: Arc::new(MemNoteStorage::default().open()),
            clock: Arc::new(SystemClock),
            sources: Arc::new(MemSources::default()),
            title_rule: TitleRule::default(),
            stale_after: Knowledge::STALE_AFTER,
        }));
        knowledge.start(&|_| {}).unwrap();
        let registry = Registry::new(knowledge, RegistryOptions::default());
        let offer = Offer::among(registry.tools().map(|tool| tool.name), RegistryOptions::default());
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (reader, writer) = split(theirs);
        let (stop, stopped) = oneshot::channel::<()>();
        let stop_asked = async move {
            // A dropped sender is no wish to stop.
            if stopped.await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        let vault = Arc::new(OneRegistry { registry, offer: Arc::new(offer) });
        let server = McpServer::new(Service::new(vault, Capacity::new()));
        let served = tokio::spawn(converse(server, reader, writer, std::future::pending(), stop_asked));
        let (output, input) = split(ours);
        gate.shut();
        Self { gate, lines: BufReader::new(output).lines(), input, stop, served }
    }

    async fn send(&mut self, message: Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn call(&mut self, id: i64, tool: &str) {
        let arguments = if tool == "get_document" { json!({ "path": "a.md" }) } else { json!({ "ids": ["a.md"] }) };
        let params = json!({ "name": tool, "arguments": arguments });
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })).await;
    }

    async fn receive(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(Duration::from_secs(60), self.lines.next_line()).await.expect("an answer");
        line.unwrap().map(|line| serde_json::from_str(&line).unwrap())
    }

    async fn receive_id(&mut self) -> i64 {
        self.receive().await.unwrap()["id"].as_i64().unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_call_does_not_delay_others() {
    let mut client = Client::connect();
    client.call(1, "get_document").await;
    client.call(2, "nodes_exist").await;
    assert_eq!(client.receive_id().await, 2);
    client.gate.open();
    assert_eq!(client.receive_id().await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_call_is_not_answered_and_its_id_is_reusable() {
    let mut client = Client::connect();
    client.call(1, "get_document").await;
    client.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } })).await;
    client.call(2, "nodes_exist").await;
    assert_eq!(client.receive_id().await, 2);
    client.gate.open();
    client.call(1, "nodes_exist").await;
    let answer = client.receive().await.unwrap();
    assert_eq!(answer["result"]["structuredContent"], json!({ "a.md": true }), "of the second call, not the first");
    client.input.shutdown().await.unwrap();
    assert_eq!(client.receive().await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn long_call_reports_progress_when_requested() {
    let mut client = Client::connect();
    let meta = json!({ "progressToken": "abc" });
    let params = json!({ "name": "get_document", "arguments": { "path": "a.md" }, "_meta": meta });
    client.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })).await;
    for seconds in [1.0, 2.0] {
        let sign = client.receive().await.unwrap();
        assert_eq!(sign["method"], "notifications/progress");
        assert_eq!(
            (&sign["params"]["progressToken"], sign["params"]["progress"].as_f64()),
            (&json!("abc"), Some(seconds))
        );
    }
    client.gate.open();
    assert_eq!(client.receive_id().await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_waiting_for_a_worker_can_be_cancelled() {
    let mut client = Client::connect();
    for id in 0..100 {
        client.call(id, "get_document").await;
    }
    for id in 0..100 {
        let params = json!({ "requestId": id });
        client.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })).await;
    }
    // Once this is answered, everything before it has been read.
    client.send(json!({ "jsonrpc": "2.0", "id": 100, "method": "ping" })).await;
    assert_eq!(client.receive_id().await, 100);
    client.gate.open();
    client.call(101, "nodes_exist").await;
    assert_eq!(client.receive_id().await, 101);
}

#[tokio::test(flavor = "multi_thread")]
async fn request_id_in_use_is_refused() {
    let mut client = Client::connect();
    client.call(1, "get_document").await;
    client.call(1, "nodes_exist").await;
    let refused = client.receive().await.unwrap();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&Value::Null, &json!(-32600)));
    client.gate.open();
    assert_eq!(client.receive().await.unwrap()["result"]["structuredContent"]["content"], "text\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn end_of_input_waits_for_a_slow_call() {
    let mut client = Client::connect();
    client.call(1, "get_document").await;
    client.input.shutdown().await.unwrap();
    client.gate.open();
    assert_eq!(client.receive_id().await, 1);
    assert_eq!(client.receive().await, None);
    client.served.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_does_not_wait_for_a_call_that_never_ends() {
    let mut client = Client::connect();
    client.call(1, "get_document").await;
    client.call(2, "nodes_exist").await;
    assert_eq!(client.receive_id().await, 2);
    client.stop.send(()).unwrap();
    client.served.await.unwrap().unwrap();
    client.gate.open();
}

#[tokio::test(flavor = "multi_thread")]
async fn closed_output_ends_the_connection() {
    let mut client = Client::connect();
    client.gate.open();
    client.call(1, "nodes_exist").await;
    assert_eq!(client.receive_id().await, 1);
    let Client { lines, input, served, .. } = client;
    drop((lines, input));
    served.await.unwrap().unwrap();
}

/// A client that has asked sixty times for a note of two megabytes and read nothing. Its server is at rest.
async fn unread() -> Client {
    let mut client = Client::connect_to(&format!("//- a.md\n{}", "x".repeat(2_000_000)));
    client.gate.open();
    let at_start = client.gate.passed.load(Ordering::Relaxed);
    for id in 0..60 {
        client.call(id, "get_document").await;
    }
    let mut made = 0;
    loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let now = client.gate.passed.load(Ordering::Relaxed) - at_start;
        if now > 0 && now == made {
            // Seventeen of them, each twice, fill the room; sixteen may have begun by then.
            assert!(made <= 17 + 16, "{made} answers were computed for a client that does not read");
            return client;
        }
        made = now;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_wait_for_response_budget_and_no_response_is_lost() {
    let mut client = unread().await;
    let mut answered = Vec::new();
    for _ in 0..60 {
        answered.push(client.receive_id().await);
    }
    answered.sort_unstable();
    assert_eq!(answered, (0..60).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_waiting_for_response_budget_can_be_cancelled_and_ping_is_answered() {
    let mut client = unread().await;
    for id in 0..60 {
        let params = json!({ "requestId": id });
        client.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })).await;
    }
    client.send(json!({ "jsonrpc": "2.0", "id": 100, "method": "ping" })).await;
    let mut before = 0;
    while client.receive_id().await != 100 {
        before += 1;
    }
    assert!(before <= 17 + 16, "{before} answers came that were called off");
}

#[tokio::test(flavor = "multi_thread")]
async fn client_that_closes_its_input_and_reads_nothing_is_disconnected() {
    let mut client = unread().await;
    client.input.shutdown().await.unwrap();
    let start = Instant::now();
    client.served.await.unwrap().unwrap();
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn write_waits_for_the_call_before_it_and_when_cancelled_delays_no_other() {
    let mut client = Client::connect();
    client.call(1, "get_document").await;
    let params = json!({ "name": "create_node", "arguments": { "id": "b.md", "content": "" } });
    client.send(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params })).await;
    client.call(3, "nodes_exist").await;
    client.send(json!({ "jsonrpc": "2.0", "id": 4, "method": "ping" })).await;
    assert_eq!(client.receive_id().await, 4, "the others wait for the first");
    client.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 } })).await;
    assert_eq!(client.receive_id().await, 3);
    client.gate.open();
    assert_eq!(client.receive_id().await, 1);
    let params = json!({ "name": "nodes_exist", "arguments": { "ids": ["b.md"] } });
    client.send(json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params })).await;
    let answer = client.receive().await.unwrap();
    assert_eq!(answer["result"]["structuredContent"], json!({ "b.md": false }), "it never ran");
}
