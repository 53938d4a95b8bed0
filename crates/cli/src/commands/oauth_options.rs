//! The flags of `serve` for tokens from an identity provider.

use std::path::PathBuf;

use clap::Args;
use quipu_server::http::{KeySource, OAuthSettings};

/// The identity provider whose tokens are accepted besides those of `quipu token`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Tokens from an identity provider")]
pub(crate) struct OAuthOptions {
    /// Accept tokens (JWT) that this provider signs; clients need one, or a token created with `quipu token`.
    #[arg(long, value_name = "URL", requires_all = ["http", "oauth_resource", "oauth_keys"])]
    oauth_issuer: Option<String>,
    /// Require tokens issued for this address of the server.
    #[arg(long, value_name = "URL", requires = "oauth_issuer")]
    oauth_resource: Option<String>,
    /// Read the provider's public keys (JWKS) from this file or https address.
    #[arg(long, value_name = "FILE|URL", requires = "oauth_issuer")]
    oauth_keys: Option<String>,
}

impl OAuthOptions {
    pub(super) fn settings(&self) -> Option<OAuthSettings> {
        let keys = self.oauth_keys.clone()?;
        let keys = if keys.contains("://") { KeySource::Url(keys) } else { KeySource::File(PathBuf::from(keys)) };
        Some(OAuthSettings { issuer: self.oauth_issuer.clone()?, resource: self.oauth_resource.clone()?, keys })
    }
}
