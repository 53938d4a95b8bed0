//! The real vaults and judged sets, which are not in the repository.

use std::path::PathBuf;

/// The folder they were unpacked to, from `QUIPU_DATA`. Without it a test says that it is skipped.
pub fn real_data() -> Option<PathBuf> {
    let folder = std::env::var_os("QUIPU_DATA").map(PathBuf::from);
    if folder.is_none() {
        crate::skip("QUIPU_DATA is not set");
    }
    folder
}
