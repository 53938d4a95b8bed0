//! Embedders: texts to vectors. The builtin model is part of the program: no download, no network, the same vectors everywhere.
//! Other models are used over HTTP if the user configured one, and so is a language model.

mod builtin;
mod open;
mod open_chat;
mod purpose;
mod remote;

pub use builtin::{Builtin, DIMENSIONS, MAX_TOKENS};
pub use open::{EmbedderSettings, Keys, Provider, SettingsError, Timeouts, open};
pub use open_chat::{ChatKind, ChatProvider, ChatTimeouts, open_chat};
pub use purpose::Purpose;
pub use remote::{ProviderAddressError, shown_url};
