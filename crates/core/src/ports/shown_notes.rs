//! What clients were shown, for servers that answer the same clients.

use super::VaultError;
use crate::model::VaultPath;
use crate::session::ShownVersion;

/// Which versions of notes each client was last shown by any server. A client is known by its name.
pub trait ShownNotes: Send + Sync {
    /// The versions that a client was last shown, in the order of the paths.
    fn shown(&self, client: &str, paths: &[&VaultPath]) -> Result<Vec<Option<ShownVersion>>, VaultError>;

    /// Records versions that a client was shown, `None` for a note that it must read again. Parts of one version add up.
    fn record(&self, client: &str, shown: &[(VaultPath, Option<ShownVersion>)]) -> Result<(), VaultError>;
}
