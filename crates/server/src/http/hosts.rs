//! Which names this server answers to, and which web pages may talk to it.
//!
//! A web page can point its own host name to this machine (DNS rebinding), and can send requests from its own origin. The
//! first is visible in `Host`, the second in `Origin`; browsers let a page forge neither.

use std::net::{IpAddr, SocketAddr};

/// The host names and origins that this server accepts.
#[derive(Debug, Clone)]
pub(super) struct AllowedHosts {
    bound: SocketAddr,
    names: Vec<Authority>,
    origins: Vec<WebOrigin>,
    is_tls: bool,
}

/// A host in lower case and a port, if one is written.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Authority {
    host: HostName,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostName {
    Address(IpAddr),
    Name(String),
}

/// Scheme, host and port, as a browser writes them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WebOrigin {
    is_tls: bool,
    host: HostName,
    port: u16,
}

impl AllowedHosts {
    pub(super) fn new(bound: SocketAddr, is_tls: bool, names: &[String], origins: &[String]) -> anyhow::Result<Self> {
        let name = |text: &String| {
            Authority::parse(text)
                .ok_or_else(|| anyhow::anyhow!("--allowed-host {text}: write a name such as notes.example.org"))
        };
        let origin = |text: &String| {
            WebOrigin::parse(text).ok_or_else(|| {
                anyhow::anyhow!("--allowed-origin {text}: write it as a browser does, https://notes.example.org")
            })
        };
        Ok(Self {
            bound,
            is_tls,
            names: names.iter().map(name).collect::<anyhow::Result<_>>()?,
            origins: origins.iter().map(origin).collect::<anyhow::Result<_>>()?,
        })
    }

    /// Whether a `Host` is this server. A literal address cannot be rebound by DNS; which addresses reach this server is only
    /// known on loopback. The port is not compared: it may be forwarded.
    pub(super) fn takes(&self, host: &str) -> bool {
        let Some(authority) = Authority::parse(host) else { return false };
        let is_own = match &authority.host {
            HostName::Address(address) => address.is_loopback() || !self.bound.ip().is_loopback(),
            HostName::Name(name) => name == "localhost",
        };
        let is_named =
            |name: &Authority| name.host == authority.host && (name.port.is_none() || name.port == authority.port);
        is_own || self.names.iter().any(is_named)
    }

    /// Whether pages of this origin may send requests: the server's own, and the configured ones.
    pub(super) fn takes_origin(&self, origin: &str) -> bool {
        let Some(origin) = WebOrigin::parse(origin) else { return false };
        let is_own_host = match &origin.host {
            HostName::Address(address) => *address == self.bound.ip() || address.is_loopback(),
            HostName::Name(name) => name == "localhost",
        };
        let is_own = origin.is_tls == self.is_tls && origin.port == self.bound.port() && is_own_host;
        is_own || self.origins.contains(&origin)
    }
}

impl Authority {
    /// `None` for anything but a host and perhaps a port: a user before an `@`, a path, an escape.
    fn parse(text: &str) -> Option<Self> {
        let (host, port) = match text.rsplit_once(':') {
            // A colon inside the brackets of an IPv6 address does not start a port.
            Some((host, port)) if !port.contains(']') => (host, Some(port)),
            _ => (text, None),
        };
        let digits = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let port = match port {
            Some(port) if digits(port) => Some(port.parse().ok()?),
            Some(_) => return None,
            None => None,
        };
        Some(Self { host: HostName::parse(host)?, port })
    }
}

impl HostName {
    fn parse(text: &str) -> Option<Self> {
        if let Some(address) = text.strip_prefix('[') {
            let address: IpAddr = address.strip_suffix(']')?.parse().ok()?;
            return address.is_ipv6().then_some(Self::Address(address));
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return address.is_ipv4().then_some(Self::Address(address));
        }
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let name = text.strip_suffix('.').unwrap_or(text);
        (!name.is_empty() && name.bytes().all(is_name)).then(|| Self::Name(name.to_ascii_lowercase()))
    }
}

impl WebOrigin {
    /// `null`, sent by pages without an origin, is not one.
    fn parse(text: &str) -> Option<Self> {
        let (is_tls, rest) = match text.split_once("://")? {
            ("http", rest) => (false, rest),
            ("https", rest) => (true, rest),
            _ => return None,
        };
        let Authority { host, port } = Authority::parse(rest)?;
        Some(Self { is_tls, host, port: port.unwrap_or(if is_tls { 443 } else { 80 }) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(bound: &str, names: &[&str], origins: &[&str]) -> AllowedHosts {
        let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        AllowedHosts::new(bound.parse().unwrap(), false, &owned(names), &owned(origins)).unwrap()
    }

    #[test]
    fn loopback_accepts_only_local_host_names() {
        let hosts = hosts("127.0.0.1:7777", &[], &[]);
        for host in
            ["127.0.0.1:7777", "127.0.0.1", "localhost:7777", "LocalHost", "[::1]:7777", "127.8.8.8", "localhost."]
        {
            assert!(hosts.takes(host), "{host}");
        }
        for host in [
            "evil.example",
            "evil@127.0.0.1",
            "evil@127.0.0.1:7777",
            "127.0.0.1:7777@evil.example",
            "127.0.0.1.evil.example",
            "127.0.0.1:",
            "127.0.0.1:x",
            "127.0.0.1:99999",
            "192.168.0.1",
            "::1",
            "[::1",
            "[127.0.0.1]",
            "0x7f.1/",
            "localhost/x",
            "local host",
            "",
            ".",
        ] {
            assert!(!hosts.takes(host), "{host}");
        }
    }

    #[test]
    fn other_addresses_accept_ip_hosts_and_configured_names() {
        let hosts = hosts("0.0.0.0:7777", &["Notes.example.org", "other.example:8443"], &[]);
        for host in
            ["192.168.0.1:7777", "[fe80::1]:7777", "notes.example.org", "notes.example.org:443", "other.example:8443"]
        {
            assert!(hosts.takes(host), "{host}");
        }
        for host in ["evil.example", "other.example", "x.notes.example.org"] {
            assert!(!hosts.takes(host), "{host}");
        }
    }

    #[test]
    fn only_same_or_allowed_origins_are_accepted() {
        let hosts = hosts("127.0.0.1:7777", &[], &["https://app.example", "http://localhost:6274"]);
        for origin in [
            "http://127.0.0.1:7777",
            "http://localhost:7777",
            "https://app.example",
            "https://app.example:443",
            "http://localhost:6274",
        ] {
            assert!(hosts.takes_origin(origin), "{origin}");
        }
        for origin in [
            "http://localhost:3000",
            "http://localhost",
            "https://localhost:7777",
            "http://evil.example:7777",
            "http://evil@localhost:7777",
            "http://app.example",
            "https://app.example:8443",
            "null",
            "file://",
            "",
        ] {
            assert!(!hosts.takes_origin(origin), "{origin}");
        }
    }
}
