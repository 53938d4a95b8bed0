//! Texts to vectors. The builtin model lies inside the program: no download, no network, the same numbers everywhere. Others
//! are asked over HTTP where the user has named one.

mod builtin;
mod open;
mod remote;

pub use builtin::{Builtin, DIMENSIONS, MAX_TOKENS};
pub use open::{Keys, OpenError, Patience, Provider, Settings, is_on_this_machine, open};
pub use remote::AddressError;
