//! What a front door asks of a vault, wherever that is open.

use quipu_core::Session;
use quipu_tools::{Called, Completion, Fault, Offer, ResourcePage, ResourceText};
use serde_json::Value;

/// A vault, here or in another process.
pub(crate) trait Desk: Send + Sync {
    /// The tools that clients may use. Always the same.
    fn offer(&self) -> &Offer;

    /// Calls a tool; one that is not offered is refused.
    fn call(&self, name: &str, arguments: Value, session: &Session) -> Called;

    /// See [`quipu_tools::Registry::resources`]. This and the next two wait for the vault to be read, as long as a client
    /// might: resources, unlike tool calls, have no way to say that a list is not whole yet.
    fn resources(&self, cursor: Option<&str>, page_size: usize) -> Result<ResourcePage, Fault>;

    /// See [`quipu_tools::Registry::read_resource`].
    fn read_resource(&self, session: &Session, uri: &str) -> Result<Option<ResourceText>, Fault>;

    /// See [`quipu_tools::Registry::complete_note_id`].
    fn complete_note_id(&self, typed: &str, limit: usize) -> Completion;
}
