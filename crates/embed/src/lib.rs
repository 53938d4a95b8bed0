//! Embedders: texts to vectors. The builtin model is part of the program: no download, no network, the same vectors everywhere.
//! Other models are used over HTTP if the user configured one.

mod builtin;
mod open;
mod remote;

pub use builtin::{Builtin, DIMENSIONS, MAX_TOKENS};
pub use open::{EmbedderSettings, Keys, Provider, SettingsError, Timeouts, is_on_this_machine, open};
pub use remote::AddressError;
