//! One client: what it asks is handed to the tools and the vault, on a worker thread, with its own session.
//!
//! Over HTTP a connection lasts for a session of the older generation, or for a single request of the newer.

use std::sync::{Arc, OnceLock};

use quipu_core::Session;
use quipu_tools::echoed;
#[expect(deprecated, reason = "older clients set a log level all the same")]
use rmcp::model::SetLevelRequestParams;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, ConstString, CustomRequest,
    CustomResult, ErrorCode, ErrorData, GetPromptRequestMethod, GetPromptRequestParams, GetPromptResponse,
    Implementation, InitializeRequestParams, InitializeResult, ListPromptsRequestMethod, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;

use super::http_answer::HttpAnswer;
use super::in_flight::InFlight;
use super::server::{Interrupted, Server};
use super::unsent::Unsent;
use super::{answer, resources};

type Context = RequestContext<RoleServer>;

/// The library's handler for one connection.
pub(super) struct Connection {
    server: Server,
    session: Arc<Session>,
    way: Way,
    /// As the client first called itself.
    client: OnceLock<String>,
}

/// How the client comes in, and where its answers are counted until they have left.
enum Way {
    Stream { in_flight: Arc<InFlight>, unsent: Arc<Unsent> },
    Http,
}

/// Answers that may wait for the client before no further call of its begins.
const MAX_UNSENT_BYTES: usize = 64 * 1024 * 1024;

impl Connection {
    pub(super) fn over_stream(server: Server, in_flight: Arc<InFlight>) -> Self {
        Self::new(server, Way::Stream { in_flight, unsent: Unsent::new(MAX_UNSENT_BYTES) })
    }

    pub(super) fn over_http(server: Server) -> Self {
        Self::new(server, Way::Http)
    }

    fn new(server: Server, way: Way) -> Self {
        Self { server, session: Arc::default(), way, client: OnceLock::new() }
    }

    /// Runs work on a worker. Its answer is counted there, before anything else can begin in its place.
    async fn on_worker<T: Send + 'static>(
        &self,
        context: &Context,
        weigh: fn(&T) -> usize,
        work: impl FnOnce(&Server) -> T + Send + 'static,
    ) -> Result<T, Interrupted> {
        let (in_flight, unsent) = match &self.way {
            Way::Stream { in_flight, unsent } => (Some(in_flight.clone()), unsent.clone()),
            Way::Http => (None, self.server.unsent().clone()),
        };
        let (id, answer) = (context.id.clone(), HttpAnswer::of(&context.extensions));
        let room = unsent.clone();
        let weighed = move |server: &Server| {
            let outcome = work(server);
            let held = unsent.hold(weigh(&outcome));
            match (in_flight, answer) {
                (Some(in_flight), _) => in_flight.answered(&id, held),
                (None, Some(answer)) => answer.made(held),
                (None, None) => {}
            }
            outcome
        };
        self.server.on_worker(&room, context.ct.cancelled(), weighed).await
    }

    /// What is remembered of whoever asks. A request that stands alone is its client's by name.
    fn session(&self, context: &Context) -> Arc<Session> {
        match context.client_info() {
            Some(client) if matches!(self.way, Way::Http) && self.is_modern(context) => {
                self.server.sessions().of(&client.name)
            }
            _ => self.session.clone(),
        }
    }

    fn meet(&self, client: &Implementation, version: &ProtocolVersion) {
        self.session.introduce(&client.name);
        if self.client.set(client.name.clone()).is_ok() {
            tracing::info!(client = client.name, client_version = client.version, protocol = %version, "client connected");
        }
    }

    /// Whether a request is of the generation without handshake. Also notes who is asking: such clients say so with
    /// every request. One that never said anything is of the older kind.
    fn is_modern(&self, context: &Context) -> bool {
        let version = context.protocol_version();
        if self.client.get().is_none()
            && let (Some(client), Some(version)) = (context.client_info(), &version)
        {
            self.meet(&client, version);
        }
        version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
    }
}

impl ServerHandler for Connection {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().enable_completions().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("quipu", env!("CARGO_PKG_VERSION")).with_title("Quipu"))
            .with_instructions(self.server.instructions())
    }

    /// Remembers the version agreed on, not the one asked for: it decides what later answers look like.
    async fn initialize(
        &self,
        mut request: InitializeRequestParams,
        context: Context,
    ) -> Result<InitializeResult, ErrorData> {
        let agreed = self.negotiate_initialize(&request)?;
        self.meet(&request.client_info, &agreed.protocol_version);
        request.protocol_version = agreed.protocol_version.clone();
        context.peer.set_peer_info(request);
        Ok(agreed)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        refuse_cursor(request)?;
        let tools = self.server.tools(self.is_modern(&context));
        Ok(ListToolsResult::with_all_items(tools.to_vec()))
    }

    async fn call_tool(&self, request: CallToolRequestParams, context: Context) -> Result<CallToolResponse, ErrorData> {
        let modern = self.is_modern(&context);
        let session = self.session(&context);
        let work = move |server: &Server| {
            let arguments = Value::Object(request.arguments.unwrap_or_default());
            answer::result(server.desk().call(&request.name, arguments, &session), modern)
        };
        let result = self.on_worker(&context, answer::weight, work).await??;
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        let work = move |server: &Server| resources::list(server.desk(), cursor.as_deref());
        self.on_worker(&context, |_| 0, work).await?
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        refuse_cursor(request)?;
        Ok(ListResourceTemplatesResult::with_all_items(vec![resources::template()]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let session = self.session(&context);
        let work = move |server: &Server| resources::read(server.desk(), &session, &request.uri);
        let result = self.on_worker(&context, resources::weight, work).await??;
        Ok(result.into())
    }

    async fn complete(&self, request: CompleteRequestParams, context: Context) -> Result<CompleteResult, ErrorData> {
        let work = move |server: &Server| resources::complete(server.desk(), &request);
        let completion = self.on_worker(&context, |_| 0, work).await??;
        Ok(CompleteResult::new(completion))
    }

    /// There are none, and none are announced; the library would answer with an empty list.
    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(no_such_method(ListPromptsRequestMethod::VALUE))
    }

    async fn get_prompt(&self, _: GetPromptRequestParams, _: Context) -> Result<GetPromptResponse, ErrorData> {
        Err(no_such_method(GetPromptRequestMethod::VALUE))
    }

    async fn on_custom_request(&self, request: CustomRequest, _: Context) -> Result<CustomResult, ErrorData> {
        Err(no_such_method(&request.method))
    }

    /// Taken and not followed: this server sends its clients no log messages.
    #[expect(deprecated, reason = "older clients set a log level all the same")]
    async fn set_level(&self, _: SetLevelRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }
}

fn no_such_method(method: &str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no method {}", echoed(method)), None)
}

/// For a list of one page, which gives no cursor.
fn refuse_cursor(request: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match request.and_then(|request| request.cursor) {
        None => Ok(()),
        Some(cursor) => {
            let message = format!("this list has one page and gave no cursor, so {} is none", echoed(&cursor));
            Err(ErrorData::invalid_params(message, None))
        }
    }
}
