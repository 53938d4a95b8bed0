//! TLS from two files. By rustls and its `ring` provider, which is in the program for the embedding providers anyway.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, version};

/// What turns a connection into an encrypted one. The files are read once: a renewed certificate needs a new start.
pub(super) fn acceptor(certificates: &Path, key: &Path) -> anyhow::Result<TlsAcceptor> {
    let chain = CertificateDer::pem_file_iter(certificates)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .with_context(|| format!("--tls-cert {}: a file of certificates in PEM is needed", certificates.display()))?;
    let key = PrivateKeyDer::from_pem_file(key)
        .with_context(|| format!("--tls-key {}: a private key in PEM is needed", key.display()))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&version::TLS13, &version::TLS12])
        .context("while setting up TLS")?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .with_context(|| format!("--tls-cert {}: not with this key", certificates.display()))?;
    // No HTTP/2: clients of this protocol gain nothing by it, and its streams would need limits of their own.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
