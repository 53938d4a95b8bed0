//! An embedding server in the test: real HTTP on a real socket, vectors of the builtin model, and faults on demand.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;
use quipu_core::ports::{Embedder, Role};
use quipu_embed::Builtin;
use serde_json::{Value, json};

/// How the server behaves from now on.
#[derive(Debug, Clone)]
pub(crate) enum Mood {
    Well,
    Slow(Duration),
    /// Some status with a body and headers.
    Status(u16, &'static str, &'static str),
    /// So many answers of a status, then well.
    Passing(Arc<AtomicUsize>, u16),
    /// 200 with something that is not it.
    Says(&'static str),
    /// 200 with this body on a connection that stays open by its headers, and is closed.
    KeepAliveThenClosed(&'static str),
    /// So many answers whose connection ends in the middle of this body, then all of it.
    CutOnce(Arc<AtomicUsize>, &'static str),
    /// A body without end.
    Endless,
    /// Vectors with so many dimensions.
    Dimensions(usize),
    /// Refuses texts of more bytes, as servers with a short context do.
    Short(usize),
}

pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    listening: Option<JoinHandle<()>>,
}

struct Shared {
    model: Builtin,
    mood: Mutex<Mood>,
    requests: AtomicUsize,
    /// The last request: its head and its body.
    last: Mutex<(String, Value)>,
    closed: AtomicBool,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap())
    }

    pub(crate) fn start_at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            model: Builtin::new(),
            mood: Mutex::new(Mood::Well),
            requests: AtomicUsize::new(0),
            last: Mutex::new((String::new(), Value::Null)),
            closed: AtomicBool::new(false),
        });
        let listening = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                for stream in listener.incoming() {
                    if shared.closed.load(Ordering::SeqCst) {
                        return;
                    }
                    let shared = Arc::clone(&shared);
                    // Clients that hang up early are part of the tests.
                    thread::spawn(move || stream.and_then(|stream| shared.serve(stream)).ok());
                }
            }
        });
        Self { address, shared, listening: Some(listening) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn be(&self, mood: Mood) {
        *self.shared.mood.lock() = mood;
    }

    pub(crate) fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::SeqCst)
    }

    pub(crate) fn last_head(&self) -> String {
        self.shared.last.lock().0.clone()
    }

    pub(crate) fn last_body(&self) -> Value {
        self.shared.last.lock().1.clone()
    }
}

/// The port is free again afterwards.
impl Drop for Server {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        TcpStream::connect(self.address).ok();
        if let Some(listening) = self.listening.take() {
            listening.join().ok();
        }
    }
}

impl Shared {
    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        let length = head.lines().find_map(|line| {
            line.to_lowercase().strip_prefix("content-length:").map(|length| length.trim().to_owned())
        });
        let mut body = vec![0; length.unwrap().parse().unwrap()];
        reader.read_exact(&mut body)?;
        let request: Value = serde_json::from_slice(&body).unwrap();
        *self.last.lock() = (head.clone(), request.clone());
        self.requests.fetch_add(1, Ordering::SeqCst);
        let mood = self.mood.lock().clone();
        self.answer(stream, &mood, &head, &request)
    }

    fn answer(&self, stream: TcpStream, mood: &Mood, head: &str, request: &Value) -> std::io::Result<()> {
        match mood {
            Mood::Well => send(stream, 200, "", &self.vectors(head, request, 384)),
            Mood::Slow(time) => {
                thread::sleep(*time);
                if request["input"].is_null() {
                    return send(stream, 200, "", "too late");
                }
                send(stream, 200, "", &self.vectors(head, request, 384))
            }
            Mood::Status(status, headers, body) => send(stream, *status, headers, body),
            Mood::Passing(left, status) => {
                let failing = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
                if failing {
                    send(stream, *status, "", "{}")
                } else {
                    send(stream, 200, "", &self.vectors(head, request, 384))
                }
            }
            Mood::Says(body) => send(stream, 200, "", body),
            Mood::KeepAliveThenClosed(body) => write_all(stream, body.len(), "", body),
            Mood::CutOnce(left, body) => {
                let cuts = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
                let sent = if cuts { &body[..body.len() / 2] } else { body };
                write_all(stream, body.len(), "connection: close\r\n", sent)
            }
            Mood::Endless => endless(stream),
            Mood::Dimensions(dimensions) => send(stream, 200, "", &self.vectors(head, request, *dimensions)),
            Mood::Short(bytes) => {
                let too_long =
                    request["input"].as_array().unwrap().iter().any(|text| text.as_str().unwrap().len() > *bytes);
                if too_long {
                    send(stream, 400, "", r#"{"error":"the input length exceeds the context length"}"#)
                } else {
                    send(stream, 200, "", &self.vectors(head, request, 384))
                }
            }
        }
    }

    fn vectors(&self, head: &str, request: &Value, dimensions: usize) -> String {
        let texts: Vec<&str> = request["input"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
        // Twice as long as they should be: length one is the client's business.
        let vector = |mut vector: Vec<f32>| {
            vector.resize(dimensions, 0.5);
            vector.into_iter().map(|value| value * 2.0).collect::<Vec<f32>>()
        };
        let vectors = self.model.embed(Role::Passage, &texts).unwrap().into_iter().map(vector);
        if head.starts_with("POST /api/embed ") {
            return json!({ "model": request["model"], "embeddings": vectors.collect::<Vec<_>>() }).to_string();
        }
        assert!(head.starts_with("POST /v1/embeddings "), "{head}");
        let entry = |(index, embedding)| json!({ "object": "embedding", "index": index, "embedding": embedding });
        // The wrong way round, as the protocol allows.
        let data: Vec<Value> = vectors.enumerate().map(entry).rev().collect();
        json!({ "object": "list", "data": data, "model": request["model"] }).to_string()
    }
}

fn send(mut stream: TcpStream, status: u16, headers: &str, body: &str) -> std::io::Result<()> {
    let length = body.len();
    write!(stream, "HTTP/1.1 {status} Status\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}")?;
    stream.flush()
}

fn write_all(mut stream: TcpStream, length: usize, headers: &str, body: &str) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n{headers}\r\n{body}")?;
    stream.flush()
}

fn endless(mut stream: TcpStream) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{{\"embeddings\":[[")?;
    loop {
        stream.write_all("0.125,".repeat(10_000).as_bytes())?;
    }
}
