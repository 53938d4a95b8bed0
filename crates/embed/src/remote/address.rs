//! The url of a provider: validated, with the path of the protocol.

use ureq::http::Uri;

/// A valid url. It has no secrets in it, so errors may show it.
pub(crate) struct Address {
    /// The url of requests.
    pub(super) endpoint: String,
    host: String,
    encrypted: bool,
}

/// Why a url is invalid. The url is not part of it, since it may have a password in it.
#[derive(Debug, thiserror::Error)]
pub enum ProviderAddressError {
    #[error("it does not have the form http://host:port or https://host")]
    NotAUrl,
    #[error("it has a user name or a password in it; set the key in the environment instead")]
    Credentials,
    #[error("it has a query string; set scheme, host, port and path only")]
    Query,
}

/// A url as a message may show it: one that is invalid may have a password in it.
pub fn shown_url(url: &str) -> String {
    Address::parse(url, str::to_owned)
        .map_or_else(|error| format!("an invalid address ({error})"), |address| address.endpoint)
}

impl Address {
    /// `endpoint` adds the path of requests to the path that the user configured.
    pub(crate) fn parse(url: &str, endpoint: impl FnOnce(&str) -> String) -> Result<Self, ProviderAddressError> {
        let uri: Uri = url.trim().parse().map_err(|_| ProviderAddressError::NotAUrl)?;
        let authority = uri.authority().ok_or(ProviderAddressError::NotAUrl)?;
        if authority.as_str().contains('@') {
            return Err(ProviderAddressError::Credentials);
        }
        if uri.query().is_some() {
            return Err(ProviderAddressError::Query);
        }
        let scheme = uri
            .scheme_str()
            .filter(|scheme| matches!(*scheme, "http" | "https"))
            .ok_or(ProviderAddressError::NotAUrl)?;
        let path = uri.path().trim_end_matches('/');
        let host = authority.host().trim_matches(['[', ']']).to_lowercase();
        if host.is_empty() {
            return Err(ProviderAddressError::NotAUrl);
        }
        Ok(Self { endpoint: format!("{scheme}://{authority}{}", endpoint(path)), host, encrypted: scheme == "https" })
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Whether requests cannot be read on the way.
    pub(crate) fn is_private(&self) -> bool {
        self.encrypted || self.is_loopback()
    }

    pub(crate) fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ChatProtocol, Protocol};
    use super::*;

    #[test]
    fn path_of_the_protocol_is_added_once() {
        let endpoint = |url: &str, path: &dyn Fn(&str) -> String| Address::parse(url, path).unwrap().endpoint;
        for (url, protocol, expected) in [
            ("http://localhost:11434", Protocol::Ollama, "http://localhost:11434/api/embed"),
            ("http://box/ollama/", Protocol::Ollama, "http://box/ollama/api/embed"),
            ("https://api.openai.com", Protocol::OpenAi, "https://api.openai.com/v1/embeddings"),
            (" https://host:8443/v1/ ", Protocol::OpenAi, "https://host:8443/v1/embeddings"),
        ] {
            assert_eq!(endpoint(url, &|path| protocol.endpoint(path)), expected);
        }
        for (url, protocol, expected) in [
            ("http://localhost:11434", ChatProtocol::Ollama, "http://localhost:11434/api/chat"),
            ("https://api.openai.com/v1", ChatProtocol::OpenAi, "https://api.openai.com/v1/chat/completions"),
            ("https://api.anthropic.com", ChatProtocol::Anthropic, "https://api.anthropic.com/v1/messages"),
        ] {
            assert_eq!(endpoint(url, &|path| protocol.endpoint(path)), expected);
        }
    }
}
