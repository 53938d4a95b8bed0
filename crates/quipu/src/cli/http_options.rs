//! The flags of `serve` that are about HTTP.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use crate::serve::http::Settings;

/// How the server is reached over HTTP, and by whom.
#[derive(Debug, Args)]
#[command(next_help_heading = "Over HTTP")]
pub(crate) struct HttpOptions {
    /// Serve over HTTP at this address. Any but one of this machine alone needs tokens: see `quipu token`.
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    http: Option<SocketAddr>,
    /// Let nobody in without a token, not even from this machine. Use it behind a proxy.
    #[arg(long, requires = "http")]
    require_token: bool,
    /// A name by which clients reach the server, if it is not an address or localhost, also one of a proxy before it. Whoever
    /// comes then needs a token. Can be given several times.
    #[arg(long, value_name = "NAME", requires = "http")]
    allowed_host: Vec<String>,
    /// Let web pages of this origin talk to the server, such as https://app.example.org. Can be given several times.
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    allowed_origin: Vec<String>,
    /// Encrypt, with the certificates in this file (PEM).
    #[arg(long, value_name = "FILE", requires = "http", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of the certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Connections at a time. One more, and whoever has been silent the longest has to leave.
    #[arg(long, value_name = "NUMBER", default_value_t = 1024, requires = "http", value_parser = at_least_one)]
    max_connections: usize,
    /// Requests a second of one token or address [default: 100, and any number on this machine].
    #[arg(long, value_name = "NUMBER", requires = "http", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    #[cfg(feature = "oauth")]
    #[command(flatten)]
    oauth: super::oauth_options::OAuthOptions,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|error| format!("{error}; write it as 127.0.0.1:7777"))
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "it must be a number from 1".to_owned())
}

impl HttpOptions {
    /// What was asked for; `None` when nothing of the kind was.
    pub(super) fn settings(&self) -> Option<Settings> {
        Some(Settings {
            address: self.http?,
            require_token: self.require_token,
            allowed_hosts: self.allowed_host.clone(),
            allowed_origins: self.allowed_origin.clone(),
            tls: self.tls_cert.clone().zip(self.tls_key.clone()),
            max_connections: self.max_connections,
            rate: self.rate,
            #[cfg(feature = "oauth")]
            oauth: self.oauth.settings(),
        })
    }
}
