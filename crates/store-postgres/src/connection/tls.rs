//! TLS to the database by rustls, with the modes of PostgreSQL's own programs.

use std::path::PathBuf;
use std::sync::Arc;

use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use super::address::AddressError;

/// How much is encrypted and checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TlsMode {
    /// Nothing.
    Disable,
    /// Encrypted if the server can; not checked. The default on this machine.
    Prefer,
    /// Encrypted; the certificate is checked if a file of roots is named.
    Require,
    /// Encrypted, the certificate checked.
    VerifyCa,
    /// Encrypted, the certificate and the host's name checked. The default for other machines.
    VerifyFull,
}

impl TlsMode {
    const WORDS: [(&str, Self); 5] = [
        ("disable", Self::Disable),
        ("prefer", Self::Prefer),
        ("require", Self::Require),
        ("verify-ca", Self::VerifyCa),
        ("verify-full", Self::VerifyFull),
    ];

    pub(super) fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(known, _)| *known == word).map(|(_, mode)| *mode)
    }

    pub(super) fn words() -> String {
        Self::WORDS.map(|(word, _)| word).join(", ")
    }
}

/// The certificates that are trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Roots {
    /// Root certificates of the system.
    System,
    /// Root certificates of a file.
    File(PathBuf),
}

impl Roots {
    /// By the value of `sslrootcert`.
    pub(super) fn named(value: &str) -> Self {
        if value == "system" { Self::System } else { Self::File(PathBuf::from(value)) }
    }

    fn load(&self) -> Result<RootCertStore, AddressError> {
        let mut store = RootCertStore::empty();
        match self {
            Self::System => {
                let found = rustls_native_certs::load_native_certs();
                let (_, refused) = store.add_parsable_certificates(found.certs);
                if refused > 0 || !found.errors.is_empty() {
                    tracing::debug!(refused, errors = ?found.errors, "some root certificates of the system are unusable");
                }
                if store.is_empty() {
                    let advice = "the system has no root certificates; name a file with sslrootcert=FILE".to_owned();
                    return Err(AddressError::Parameter(advice));
                }
            }
            Self::File(file) => {
                let failed = |cause: String| AddressError::File {
                    what: "cannot use the root certificates in",
                    file: file.clone(),
                    cause,
                };
                let certificates = CertificateDer::pem_file_iter(file).map_err(|error| failed(error.to_string()))?;
                for certificate in certificates {
                    let certificate = certificate.map_err(|error| failed(error.to_string()))?;
                    store.add(certificate).map_err(|error| failed(error.to_string()))?;
                }
                if store.is_empty() {
                    return Err(failed("it has no certificate in PEM form".to_owned()));
                }
            }
        }
        Ok(store)
    }
}

/// Makes the TLS part of connections.
pub(super) fn connector(mode: TlsMode, roots: &Roots) -> Result<MakeRustlsConnect, AddressError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions();
    let builder = builder.expect("ring has cipher suites for every version");
    let checks_name = mode == TlsMode::VerifyFull;
    let checks_certificate =
        matches!(mode, TlsMode::VerifyCa | TlsMode::VerifyFull) || mode == TlsMode::Require && *roots != Roots::System;
    let config = if checks_name {
        builder.with_root_certificates(roots.load()?).with_no_client_auth()
    } else {
        let chain = if checks_certificate { Some(verifier(roots.load()?, &provider)?) } else { None };
        let verifier = Arc::new(WithoutName { chain, provider });
        builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
    };
    Ok(MakeRustlsConnect::new(config))
}

fn verifier(roots: RootCertStore, provider: &Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, AddressError> {
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
    verifier.map_err(|error| AddressError::Parameter(error.to_string()))
}

/// Checks a certificate's chain if there is one to check against, and never the host's name.
#[derive(Debug)]
struct WithoutName {
    chain: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for WithoutName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // The name is checked last: everything else is as it should be.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            outcome => outcome,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
