//! TLS from two files, read again when they change: certificates are renewed every few weeks. Uses rustls with its `ring`
//! provider, which the embedding providers need anyway.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;
use parking_lot::Mutex;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, version};

/// How often the files are checked for changes, when connections arrive.
const LOOK: Duration = Duration::from_secs(1);

/// Accepts TLS connections.
pub(super) struct Tls {
    certificates: PathBuf,
    key: PathBuf,
    known: Mutex<LoadedCertificates>,
}

struct LoadedCertificates {
    acceptor: TlsAcceptor,
    /// The stamps of the files it was loaded from.
    stamps: [CertificateStamp; 2],
    /// The stamps of files that could not be used, already reported. They are tried again: the failure may have been a read
    /// error.
    unusable: Option<[CertificateStamp; 2]>,
    looked: Instant,
}

/// Modification time and length of a file; `None` if it is not a file.
type CertificateStamp = Option<(SystemTime, u64)>;

impl Tls {
    pub(super) fn new(certificates: PathBuf, key: PathBuf) -> anyhow::Result<Self> {
        let stamps = [&certificates, &key].map(|file| stamp(file));
        let known = LoadedCertificates {
            acceptor: acceptor(&certificates, &key)?,
            stamps,
            unusable: None,
            looked: Instant::now(),
        };
        Ok(Self { certificates, key, known: Mutex::new(known) })
    }

    /// For the next connection. Files that cannot be used change nothing: perhaps only one of the two is renewed yet.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        let mut known = self.known.lock();
        if known.looked.elapsed() >= LOOK {
            known.looked = Instant::now();
            let stamps = [&self.certificates, &self.key].map(|file| stamp(file));
            if stamps != known.stamps && stamps.iter().all(Option::is_some) {
                match acceptor(&self.certificates, &self.key) {
                    Ok(renewed) => {
                        tracing::info!("the certificate was renewed");
                        known.acceptor = renewed;
                        known.stamps = stamps;
                        known.unusable = None;
                    }
                    Err(error) => {
                        if known.unusable.replace(stamps) != Some(stamps) {
                            tracing::warn!("cannot load the renewed certificate; keeping the current one: {error:#}");
                        }
                    }
                }
            }
        }
        known.acceptor.clone()
    }
}

fn stamp(file: &Path) -> CertificateStamp {
    let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    Some((metadata.modified().ok()?, metadata.len()))
}

fn acceptor(certificates: &Path, key: &Path) -> anyhow::Result<TlsAcceptor> {
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
        .with_context(|| format!("--tls-cert {}: cannot be used with this --tls-key", certificates.display()))?;
    // No HTTP/2: MCP clients gain nothing from it, and its streams would need limits of their own.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test's certificates are put in their place here")]
mod tests {
    use super::*;

    const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/tests/e2e/tls");

    /// A certificate is read at a bad moment, and is whole at the next look, with the time and length it had.
    #[test]
    fn invalid_certificate_files_are_retried() {
        let folder = tempfile::tempdir().unwrap();
        let [certificates, key] = ["cert.pem", "key.pem"].map(|name| folder.path().join(name));
        let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let put = |path: &Path, bytes: &[u8]| {
            std::fs::write(path, bytes).unwrap();
            std::fs::File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
        };
        std::fs::copy(format!("{FILES}/cert.pem"), &certificates).unwrap();
        std::fs::copy(format!("{FILES}/key.pem"), &key).unwrap();
        let tls = Tls::new(certificates.clone(), key.clone()).unwrap();
        let shown_after_a_while = || {
            tls.known.lock().looked = Instant::now().checked_sub(LOOK).unwrap();
            tls.acceptor().config().clone()
        };
        let first = shown_after_a_while();
        let renewed = std::fs::read(format!("{FILES}/renewed-cert.pem")).unwrap();
        put(&certificates, &vec![b' '; renewed.len()]);
        put(&key, &std::fs::read(format!("{FILES}/renewed-key.pem")).unwrap());
        assert!(Arc::ptr_eq(&shown_after_a_while(), &first), "there is no other yet");
        put(&certificates, &renewed);
        let second = shown_after_a_while();
        assert!(!Arc::ptr_eq(&second, &first), "it was renewed");
        assert!(Arc::ptr_eq(&shown_after_a_while(), &second), "what is known is not read again");
    }
}
