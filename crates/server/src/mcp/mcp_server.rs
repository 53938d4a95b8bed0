//! What all MCP connections share: the service, its tools in MCP's format, and change notifications.

use std::sync::Arc;

use parking_lot::RwLock;
use quipu_tools::{Access, Offer};
use rmcp::model::{ErrorData, Tool};

use super::answer::describe;
use super::instructions;
use super::notices::{ChangeFeed, ChangeNotices};
use crate::service::{Service, ServiceError};

/// The MCP server of one vault. Clones share state.
#[derive(Clone)]
pub(crate) struct McpServer(Arc<McpServerState>);

struct McpServerState {
    service: Arc<Service>,
    shown: RwLock<Arc<ShownTools>>,
    notices: Arc<ChangeNotices>,
}

/// The offered tools in MCP's format.
struct ShownTools {
    offer: Arc<Offer>,
    to_writers: ToolList,
    to_readers: ToolList,
}

/// A list of tools with texts that name only tools in the list.
struct ToolList {
    instructions: String,
    accesses: Vec<Access>,
    /// For clients of each generation.
    tools: Vec<Tool>,
    legacy_tools: Vec<Tool>,
}

impl ShownTools {
    fn of(offer: Arc<Offer>) -> Self {
        Self { to_writers: ToolList::of(&offer), to_readers: ToolList::of(&offer.reading()), offer }
    }

    fn to(&self, may_write: bool) -> &ToolList {
        if may_write { &self.to_writers } else { &self.to_readers }
    }
}

impl ToolList {
    fn of(offer: &Offer) -> Self {
        Self {
            instructions: instructions::for_tools(offer.tools()),
            accesses: offer.tools().map(|tool| tool.access).collect(),
            tools: offer.tools().map(|tool| describe(tool, true)).collect(),
            legacy_tools: offer.tools().map(|tool| describe(tool, false)).collect(),
        }
    }
}

impl From<ServiceError> for ErrorData {
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::OutOfScope { tool, needed } => Self::invalid_params(needed.refusal(tool), None),
            // Never sent: a cancelled request has no response.
            ServiceError::Cancelled => Self::internal_error("cancelled", None),
            ServiceError::Failed => Self::internal_error("the call failed inside the server; see its log", None),
        }
    }
}

impl McpServer {
    pub(crate) fn new(service: Arc<Service>) -> Self {
        let notices = Arc::<ChangeNotices>::default();
        let teller = notices.clone();
        service.vault().on_change(Box::new(move |change| teller.tell(change)));
        let shown = RwLock::new(Arc::new(ShownTools::of(service.vault().offer())));
        Self(Arc::new(McpServerState { shown, notices, service }))
    }

    pub(super) fn service(&self) -> &Arc<Service> {
        &self.0.service
    }

    pub(super) fn instructions(&self, may_write: bool) -> String {
        self.shown().to(may_write).instructions.clone()
    }

    /// The current offer in MCP's format.
    fn shown(&self) -> Arc<ShownTools> {
        let offer = self.0.service.vault().offer();
        let shown = self.0.shown.read().clone();
        if Arc::ptr_eq(&shown.offer, &offer) {
            return shown;
        }
        let shown = Arc::new(ShownTools::of(offer));
        *self.0.shown.write() = shown.clone();
        shown
    }

    /// The tools that this access allows, in the registry's order, so that a client can cache the list.
    pub(super) fn tools(&self, modern: bool, may: impl Fn(Access) -> bool) -> Vec<Tool> {
        let shown = self.shown();
        let listed = shown.to(may(Access::Write));
        let all = listed.accesses.iter().zip(if modern { &listed.tools } else { &listed.legacy_tools });
        all.filter(|(access, _)| may(**access)).map(|(_, tool)| tool.clone()).collect()
    }

    /// Receives changes from now on.
    pub(super) fn listen(&self) -> ChangeFeed {
        self.0.notices.listen()
    }
}
