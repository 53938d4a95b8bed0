//! Keys of calls that have none of their own.

use std::io;

use quipu_core::RequestKey;

/// A new key: with it, a transaction whose commit was not answered is recognised when it runs again.
pub(crate) fn random_key() -> io::Result<RequestKey> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    Ok(RequestKey(u128::from_ne_bytes(random)))
}
