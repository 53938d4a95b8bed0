//! The flags of `serve` for HTTP.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use quipu_server::http::HttpSettings;

/// Seconds in which a load balancer notices that a server of a database stops.
const DATABASE_DRAIN: u64 = 5;

/// How the server is reached over HTTP, and by whom.
#[derive(Debug, Args)]
#[command(next_help_heading = "Over HTTP")]
pub(crate) struct HttpOptions {
    /// Serve over HTTP at this address or name; addresses other than loopback require tokens (`quipu token`).
    #[arg(long, value_name = "ADDRESS", value_parser = listen_address)]
    http: Option<ListenAddress>,
    /// Require a token from every client, even on loopback; use it behind a proxy.
    #[arg(long, requires = "http")]
    require_token: bool,
    /// Accept this Host name, for instance that of a proxy; clients then need tokens (repeatable).
    #[arg(long, value_name = "NAME", requires = "http")]
    allowed_host: Vec<String>,
    /// Accept requests from web pages of this origin, such as https://app.example.org (repeatable).
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    allowed_origin: Vec<String>,
    /// Serve TLS with the certificates in this file (PEM).
    #[arg(long, value_name = "FILE", requires = "http", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Use this private key for the certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Allow this many connections; at the limit, the longest-idle connection is closed.
    #[arg(long, value_name = "NUMBER", default_value_t = 1024, requires = "http", value_parser = at_least_one)]
    max_connections: usize,
    /// Allow this many requests per second for each token or address [default: 100, unlimited on loopback].
    #[arg(long, value_name = "NUMBER", requires = "http", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// Answer for this many seconds after a signal to stop, while /readyz returns 503 [default: 0, with --database 5].
    #[arg(long, value_name = "SECONDS", requires = "http")]
    drain: Option<u64>,
    #[cfg(feature = "oauth")]
    #[command(flatten)]
    oauth: super::oauth_options::OAuthOptions,
}

/// The address to listen on, and the host name it was given as, which requests may then use.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ListenAddress {
    address: SocketAddr,
    name: Option<String>,
}

fn listen_address(text: &str) -> Result<ListenAddress, String> {
    if let Ok(address) = text.parse() {
        return Ok(ListenAddress { address, name: None });
    }
    const FORM: &str = "write it as 127.0.0.1:7777 or localhost:7777";
    let (name, port) = text.rsplit_once(':').ok_or_else(|| format!("the port is missing; {FORM}"))?;
    if name.is_empty() || port.parse::<u16>().is_err() {
        return Err(format!("this is not an address with a port; {FORM}"));
    }
    let found = text.to_socket_addrs().map_err(|error| format!("cannot look up {name}: {error}; {FORM}"))?;
    let mut found: Vec<SocketAddr> = found.collect();
    // IPv4 first, as most clients try it first.
    found.sort_by_key(SocketAddr::is_ipv6);
    let address = *found.first().ok_or_else(|| format!("{name} has no address; {FORM}"))?;
    // The server always accepts this Host name.
    let is_known = name.eq_ignore_ascii_case("localhost");
    Ok(ListenAddress { address, name: (!is_known).then(|| name.to_owned()) })
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "it must be a number of at least 1".to_owned())
}

impl HttpOptions {
    /// Whether the server listens.
    pub(super) fn is_given(&self) -> bool {
        self.http.is_some()
    }

    /// The settings; `None` without --http.
    pub(super) fn settings(&self, serves_database: bool) -> Option<HttpSettings> {
        let ListenAddress { address, name } = self.http.clone()?;
        Some(HttpSettings {
            address,
            require_token: self.require_token,
            allowed_hosts: self.allowed_host.iter().cloned().chain(name).collect(),
            allowed_origins: self.allowed_origin.clone(),
            tls: self.tls_cert.clone().zip(self.tls_key.clone()),
            max_connections: self.max_connections,
            rate: self.rate,
            drain: Duration::from_secs(self.drain.unwrap_or(if serves_database { DATABASE_DRAIN } else { 0 })),
            explorer: Arc::default(),
            #[cfg(feature = "oauth")]
            oauth: self.oauth.settings(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_are_resolved() {
        let local = listen_address("localhost:7797").unwrap();
        assert!(local.address.ip().is_loopback() && local.address.port() == 7797 && local.name.is_none(), "{local:?}");
        assert_eq!(listen_address("[::1]:7").unwrap().address.to_string(), "[::1]:7");
        for wrong in ["localhost", ":7777", "localhost:http", "localhost:99999", "no such name.invalid:7777"] {
            let error = listen_address(wrong).unwrap_err();
            assert!(error.contains("write it as 127.0.0.1:7777 or localhost:7777"), "{error}");
        }
    }
}
