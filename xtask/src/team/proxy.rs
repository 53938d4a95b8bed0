//! A TCP proxy between a server and a database, which can cut, delay and refuse connections.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Passes bytes on until it is dropped.
pub(super) struct Proxy {
    pub(super) port: u16,
    state: Arc<State>,
}

struct State {
    to: SocketAddr,
    delay_ms: AtomicU64,
    is_refusing: AtomicBool,
    is_over: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    pub(super) fn to(port: u16) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let own_port = listener.local_addr()?.port();
        let state = Arc::new(State {
            to: SocketAddr::from(([127, 0, 0, 1], port)),
            delay_ms: AtomicU64::new(0),
            is_refusing: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            open: Mutex::default(),
        });
        let accepting = state.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if accepting.is_over.load(Ordering::Relaxed) {
                    break;
                }
                accepting.clone().pass_on(stream);
            }
        });
        Ok(Self { port: own_port, state })
    }

    /// Ends all connections at once.
    pub(super) fn cut(&self) {
        for stream in self.state.open().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Ends all connections and accepts none, or accepts them again.
    pub(super) fn refuse(&self, refuses: bool) {
        self.state.is_refusing.store(refuses, Ordering::Relaxed);
        if refuses {
            self.cut();
        }
    }

    /// Holds every piece of data back for this long.
    pub(super) fn delay(&self, delay: Duration) {
        self.state.delay_ms.store(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::Relaxed);
        self.cut();
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl State {
    fn open(&self) -> std::sync::MutexGuard<'_, Vec<TcpStream>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pass_on(self: Arc<Self>, from: TcpStream) {
        if self.is_refusing.load(Ordering::Relaxed) {
            return;
        }
        // A database that is away closes the connection, as it would without the proxy.
        let Ok(to) = TcpStream::connect(self.to) else { return };
        let (Ok(from_again), Ok(to_again)) = (from.try_clone(), to.try_clone()) else { return };
        let mut open = self.open();
        open.retain(|stream| stream.peer_addr().is_ok());
        open.extend([from.try_clone(), to.try_clone()].into_iter().flatten());
        drop(open);
        let (there, back) = (self.clone(), self);
        thread::spawn(move || there.copy(from, to));
        thread::spawn(move || back.copy(to_again, from_again));
    }

    fn copy(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            thread::sleep(Duration::from_millis(self.delay_ms.load(Ordering::Relaxed)));
            if to.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}
