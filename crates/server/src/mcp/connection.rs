//! One client connection: runs its requests on worker threads, with the client's session.
//!
//! Over HTTP a connection lasts for one session in the older protocol generation and for one request in the newer.

use std::sync::{Arc, OnceLock};

use axum::http::request::Parts;
use quipu_core::{RequestKey, Session};
use quipu_tools::{Access, Offer, echoed};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CustomRequest, CustomResult,
    DiscoverResult, ErrorCode, ErrorData, Extensions, GetPromptRequestParams, GetPromptResponse, Implementation,
    InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig, SubscriptionFilter,
};
#[expect(deprecated, reason = "older clients set a log level and follow single notes all the same")]
use rmcp::model::{SetLevelRequestParams, SubscribeRequestParams, UnsubscribeRequestParams};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;

use super::mcp_server::McpServer;
use super::notices::FollowedNotes;
use super::{answer, message, progress, prompts, resources};
use crate::service::{Caller, Request, RequestPermit, Service};

pub(super) type McpContext = RequestContext<RoleServer>;

/// The library's handler for one connection.
pub(super) struct McpConnection {
    server: McpServer,
    session: Arc<Session>,
    /// The client, where the connection is a stream; over HTTP each request has its caller.
    stream_caller: Option<Caller>,
    /// The name that the client gave first.
    client: OnceLock<String>,
    /// The notes that a client of the older generation subscribed to, and the task that notifies it.
    followed: Arc<FollowedNotes>,
    notifier: OnceLock<NotifierTask>,
}

/// Ends with the connection.
struct NotifierTask(tokio::task::JoinHandle<()>);

impl Drop for NotifierTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl McpConnection {
    pub(super) fn over_stream(server: McpServer) -> Self {
        Self::new(server, Some(Caller::of_stream()))
    }

    pub(super) fn over_http(server: McpServer) -> Self {
        Self::new(server, None)
    }

    fn new(server: McpServer, stream_caller: Option<Caller>) -> Self {
        Self {
            server,
            session: Arc::default(),
            stream_caller,
            client: OnceLock::new(),
            followed: Arc::default(),
            notifier: OnceLock::new(),
        }
    }

    fn service(&self) -> &Arc<Service> {
        self.server.service()
    }

    /// The caller of a request. Over HTTP the authentication layer attached it.
    fn caller<'a>(&'a self, context: &'a McpContext) -> Result<&'a Caller, ErrorData> {
        let caller = self.stream_caller.as_ref().or_else(|| attached(&context.extensions));
        caller.ok_or_else(|| ErrorData::internal_error("the request has no caller", None))
    }

    /// Runs something other than a tool call on a worker.
    async fn on_worker<T: Send + 'static>(
        &self,
        context: &McpContext,
        weigh: fn(&T) -> usize,
        work: impl FnOnce(&Service) -> T + Send + 'static,
    ) -> Result<T, ErrorData> {
        let outcome = self.service().run(self.caller(context)?, permit(context), context.ct.cancelled(), work, weigh);
        Ok(outcome.await?)
    }

    /// The caller's session. A request without a connection of its own is matched by client name and token.
    fn session(&self, context: &McpContext) -> Arc<Session> {
        let is_modern = self.is_modern(context);
        let Some(caller) = attached::<Caller>(&context.extensions) else { return self.session.clone() };
        match context.client_info() {
            Some(client) if is_modern => self.service().sessions().of(&caller.id, &caller.name(&client.name)),
            _ => {
                // A client without a name appears in the log under its token's name; a name given earlier is kept.
                self.session.introduce(&caller.name(""));
                self.session.clone()
            }
        }
    }

    /// Gives the session the client's name, and logs the client once.
    fn record_client(&self, client: &Implementation, version: &ProtocolVersion, context: &McpContext) {
        let name = name(client, context);
        self.session.introduce(&name);
        if self.client.set(name.clone()).is_ok() {
            let client_version = echoed(&client.version);
            tracing::info!(client = name, client_version, protocol = %version, "client connected");
        }
    }

    fn may(&self, context: &McpContext, access: Access) -> bool {
        self.caller(context).is_ok_and(|caller| caller.may(access))
    }

    /// The tools that the caller may use.
    fn offer(&self, context: &McpContext) -> Offer {
        let offer = self.service().vault().offer();
        if self.may(context, Access::Write) { (*offer).clone() } else { offer.reading() }
    }

    fn instructions(&self, context: &McpContext) -> String {
        self.server.instructions(self.may(context, Access::Write))
    }

    /// Whether a request is of the generation without a handshake. Also records the client's name, which such requests
    /// carry; a client that never gave one is of the older generation.
    fn is_modern(&self, context: &McpContext) -> bool {
        let version = context.protocol_version();
        if self.client.get().is_none()
            && let (Some(client), Some(version)) = (context.client_info(), &version)
        {
            self.record_client(&client, version, context);
        }
        version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
    }
}

impl ServerHandler for McpConnection {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_completions();
        ServerConfig::new(capabilities.build())
            .with_server_info(Implementation::new("quipu", env!("CARGO_PKG_VERSION")).with_title("Quipu"))
            .with_instructions(self.server.instructions(true))
    }

    /// Records the negotiated version, not the requested one: it decides the format of later responses.
    async fn initialize(
        &self,
        mut request: InitializeRequestParams,
        context: McpContext,
    ) -> Result<InitializeResult, ErrorData> {
        // The library keeps the message until the session ends.
        if !permit(&context).is_small() {
            let message = "the first message is too long; shorten `clientInfo` and `capabilities`";
            return Err(ErrorData::invalid_params(message, None));
        }
        let mut agreed = self.negotiate_initialize(&request)?;
        agreed.instructions = Some(self.instructions(&context));
        self.record_client(&request.client_info, &agreed.protocol_version, &context);
        request.protocol_version = agreed.protocol_version.clone();
        context.peer.set_peer_info(request);
        Ok(agreed)
    }

    async fn discover(&self, context: McpContext) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        let mut found = DiscoverResult::from_server_info(versions, self.get_info());
        found.instructions = Some(self.instructions(&context));
        Ok(found)
    }

    /// From here on the client may receive notifications.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.notifier.get_or_init(|| {
            let told = self.server.listen().tell_peer(context.peer, self.followed.clone());
            NotifierTask(tokio::spawn(told))
        });
    }

    async fn subscribe(&self, request: SubscribeRequestParams, _: McpContext) -> Result<(), ErrorData> {
        self.followed.add(&request.uri)
    }

    async fn unsubscribe(&self, request: UnsubscribeRequestParams, _: McpContext) -> Result<(), ErrorData> {
        self.followed.remove(&request.uri);
        Ok(())
    }

    /// The notifications offered to newer clients. The library leaves out what is not announced above.
    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut accepted = requested.clone();
        accepted.resource_subscriptions = accepted.resource_subscriptions.map(FollowedNotes::acceptable);
        Some(accepted)
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        // The library keeps the requested filter until the stream ends.
        let context = subscription.request_context();
        if !permit(context).is_small() {
            let message = "the subscription request is too long; subscribe to fewer notes";
            return Err(ErrorData::invalid_params(message, None));
        }
        (self.caller(context)?.begin_stream)();
        let listening = self.server.listen();
        let followed = FollowedNotes::default();
        for uri in subscription.accepted().resource_subscriptions.iter().flatten() {
            followed.add(uri)?;
        }
        tokio::select! {
            () = listening.tell_sink(subscription.sink(), &followed) => {}
            () = subscription.cancelled() => {}
        }
        Ok(())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: McpContext,
    ) -> Result<ListToolsResult, ErrorData> {
        refuse_cursor(request)?;
        let tools = self.server.tools(self.is_modern(&context), |access| self.may(&context, access));
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: McpContext,
    ) -> Result<CallToolResponse, ErrorData> {
        let modern = self.is_modern(&context);
        let permit = permit(&context);
        let call = Request {
            caller: self.caller(&context)?.clone(),
            session: self.session(&context),
            tool: permit.tool().unwrap_or_else(|| self.service().find(&request.name)),
            arguments: Value::Object(request.arguments.unwrap_or_default()),
            key: request_key(&context)?,
            permit,
        };
        let shape = move |response| answer::result(response, modern);
        tokio::select! {
            result = self.service().call(call, context.ct.cancelled(), shape, answer::weight) => Ok(result??.into()),
            () = progress::tell(&context, self.service()) => unreachable!("it never ends"),
        }
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: McpContext,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        let work = move |service: &Service| resources::list(service.vault(), cursor.as_deref());
        self.on_worker(&context, |_| 0, work).await?
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _: McpContext,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        refuse_cursor(request)?;
        Ok(ListResourceTemplatesResult::with_all_items(vec![resources::template()]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: McpContext,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let session = self.session(&context);
        let work = move |service: &Service| resources::read(service.vault(), &session, &request.uri);
        let result = self.on_worker(&context, resources::weight, work).await??;
        Ok(result.into())
    }

    async fn complete(&self, request: CompleteRequestParams, context: McpContext) -> Result<CompleteResult, ErrorData> {
        let work = move |service: &Service| resources::complete(service.vault(), &request);
        self.on_worker(&context, |_| 0, work).await?
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: McpContext,
    ) -> Result<ListPromptsResult, ErrorData> {
        refuse_cursor(request)?;
        Ok(ListPromptsResult::with_all_items(prompts::list(&self.offer(&context))))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: McpContext,
    ) -> Result<GetPromptResponse, ErrorData> {
        Ok(prompts::get(&self.offer(&context), &request.name, request.arguments.as_ref())?.into())
    }

    /// An unknown method, or over HTTP one with parameters that the library could not parse.
    async fn on_custom_request(&self, request: CustomRequest, context: McpContext) -> Result<CustomResult, ErrorData> {
        let CustomRequest { method, params, .. } = request;
        let unknown = no_such_method(&method);
        if self.is_modern(&context) && OF_OLDER_GENERATION.contains(&method.as_str()) {
            return Err(unknown);
        }
        Err(message::request(method, params).err().unwrap_or(unknown))
    }

    /// Accepted without effect: this server sends no log messages.
    #[expect(deprecated, reason = "older clients set a log level all the same")]
    async fn set_level(&self, _: SetLevelRequestParams, _: McpContext) -> Result<(), ErrorData> {
        Ok(())
    }
}

/// The name of a client: the one it gives, and that of its token.
fn name(client: &Implementation, context: &McpContext) -> String {
    attached::<Caller>(&context.extensions).map_or_else(|| client.name.clone(), |caller| caller.name(&client.name))
}

/// What the HTTP layers attached to a request.
fn attached<T: Clone + Send + Sync + 'static>(extensions: &Extensions) -> Option<&T> {
    extensions.get::<Parts>()?.extensions.get::<T>()
}

/// The permit of a request, attached by the stream's transport or by the HTTP layers.
fn permit(context: &McpContext) -> RequestPermit {
    let extensions = &context.extensions;
    extensions.get::<RequestPermit>().or_else(|| attached(extensions)).cloned().unwrap_or_default()
}

/// In `_meta` of a call: the key of a client that repeats a call whose response it did not get.
const REQUEST_KEY: &str = "quipu/request-key";

/// A UUID of version 7: it starts with the time, by which the server knows a call that is too old to be recognised.
fn request_key(context: &McpContext) -> Result<Option<RequestKey>, ErrorData> {
    let Some(given) = context.meta.0.0.get(REQUEST_KEY) else { return Ok(None) };
    let key =
        given.as_str().and_then(|text| text.replace('-', "").parse().ok()).filter(|key: &RequestKey| key.is_uuid_v7());
    let invalid = || ErrorData::invalid_params(format!("`{REQUEST_KEY}` must be a UUID of version 7"), None);
    key.map(Some).ok_or_else(invalid)
}

/// Methods that the generation without a handshake has removed.
const OF_OLDER_GENERATION: [&str; 5] =
    ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

fn no_such_method(method: &str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no method {}", echoed(method)), None)
}

/// For lists of one page, which return no cursor.
fn refuse_cursor(request: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match request.and_then(|request| request.cursor) {
        None => Ok(()),
        Some(cursor) => {
            let message = format!("unknown cursor {}: this list has only one page", echoed(&cursor));
            Err(ErrorData::invalid_params(message, None))
        }
    }
}
