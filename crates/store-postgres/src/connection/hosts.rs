//! Connects to the first of several hosts that accepts writes. The driver can try hosts in turn as well, but has no limit of
//! time for the handshake: a host that stopped after accepting a connection would keep it from the next one.

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use deadpool_postgres::Connect;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Connection, Error, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::{AddressError, CONNECT, DatabaseAddress, place};
use super::tls;

type TlsStream = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

/// The hosts of a database.
#[derive(Clone)]
pub(super) struct Hosts {
    configs: Arc<[Config]>,
    tls: MakeRustlsConnect,
    /// The host that accepted writes last: the others are tried after it.
    preferred: Arc<AtomicUsize>,
}

impl Hosts {
    pub(super) fn new(address: &DatabaseAddress) -> Result<Self, AddressError> {
        let tls = tls::connector(address.tls, &address.roots)?;
        Ok(Self { configs: address.sessions().into(), tls, preferred: Arc::default() })
    }

    /// Whether the host that accepted writes last still answers a new connection, and still is the one.
    pub(super) async fn still_answers(&self) -> bool {
        let before = self.preferred.load(Ordering::Relaxed);
        let Ok(Some(opened)) = timeout(self.longest_attempt(), self.open()).await else { return false };
        match opened {
            Ok((client, connection)) => {
                drop((client, connection));
                self.preferred.load(Ordering::Relaxed) == before
            }
            // It refuses, such as for too many connections.
            Err(error) => error.code().is_some(),
        }
    }

    /// How long [`Hosts::open`] may take.
    pub(super) fn longest_attempt(&self) -> Duration {
        CONNECT * u32::try_from(self.configs.len()).unwrap_or(u32::MAX) + Duration::from_secs(1)
    }

    /// A new connection. Its second part has to be polled. `None` if no host answered in time.
    pub(super) async fn open(&self) -> Option<Result<(Client, Connection<Socket, TlsStream>), Error>> {
        let first = self.preferred.load(Ordering::Relaxed);
        let mut last = None;
        for number in (0..self.configs.len()).map(|offset| (first + offset) % self.configs.len()) {
            let config = &self.configs[number];
            match timeout(CONNECT, config.connect(self.tls.clone())).await {
                Ok(Ok(opened)) => {
                    self.preferred.store(number, Ordering::Relaxed);
                    return Some(Ok(opened));
                }
                Ok(Err(error)) => {
                    tracing::debug!(host = place(config), %error, "cannot connect to a host of the database");
                    last = Some(Err(error));
                }
                Err(_) => tracing::debug!(host = place(config), "a host of the database does not answer"),
            }
        }
        last
    }
}

impl Connect for Hosts {
    fn connect(
        &self,
        _: &Config,
    ) -> Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), Error>> + Send + '_>> {
        Box::pin(async {
            // The driver has no error for an answer that does not come. The pool's own limit of time ends this.
            let Some(opened) = self.open().await else { return pending().await };
            let (client, connection) = opened?;
            let task = tokio::spawn(async move {
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "a connection to the database ended");
                }
            });
            Ok((client, task))
        })
    }
}
