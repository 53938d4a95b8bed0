//! The protocol between two processes of this program that share a vault: a length, then that many bytes of JSON, one request
//! and one response at a time. Only the handshake, [`Hello`] and [`Welcome`], must be understood by every version.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::time::Duration;

use quipu_core::memory::EntityId;
use quipu_core::model::{ContentHash, NoteId, VaultPath};
use quipu_core::{Extent, Session, SessionChanges, ShownVersion};
use quipu_tools::{Completion, ResourcePage, ResourceText, ToolError, ToolResponse, WholeGraph};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::service::{IndexProgress, Report, TrailPage, VaultChange};

/// The protocol version. Processes of different versions cannot share a vault.
pub(super) const WIRE: u32 = 2;

/// How often an owner sends a heartbeat to its subscribers, and after which silence it counts as stopped or hanging.
pub(super) const HEARTBEAT: Duration = Duration::from_millis(500);
pub(super) const OWNER_TIMEOUT: Duration = Duration::from_secs(3);

/// Above the longest response of any tool, and the longest line a client may send.
const MAX_FRAME: u32 = 256 << 20;

/// Above any [`Hello`], which comes before anything is known of the other process.
const MAX_HELLO: u32 = 64 << 10;

/// The first message of the connecting process.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) wire: u32,
    pub(super) version: String,
    /// Identifies the process.
    pub(super) process: String,
    pub(super) purpose: ConnectionPurpose,
}

/// The purpose of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ConnectionPurpose {
    /// One request after the other.
    #[serde(rename = "asking")]
    Requests,
    /// Only the owner sends, changes and heartbeats. The connection ends when either process exits.
    #[serde(rename = "staying")]
    Subscription {
        /// Whether the owner must watch the files.
        watch_files: bool,
    },
}

/// The owner's answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Welcome {
    pub(super) wire: u32,
    pub(super) version: String,
    pub(super) pid: u32,
    /// Which vault: see [`super::owner_lock::identity`].
    #[serde(default)]
    pub(super) vault: (u64, u64),
    /// The names of the vault's tools.
    #[serde(default)]
    pub(super) tools: Vec<String>,
}

/// A request to the owner.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OwnerRequest<'a> {
    /// The sender borrows the arguments, which can be megabytes: it may have to send them again.
    CallTool {
        key: String,
        tool: String,
        arguments: Cow<'a, Value>,
        session: SessionCopy,
    },
    Resources {
        cursor: Option<String>,
        page_size: usize,
    },
    ReadResource {
        uri: String,
        session: SessionCopy,
    },
    CompleteNoteId {
        typed: String,
        limit: usize,
    },
    IndexProgress,
    WholeGraph,
    Report,
    Trail {
        from: u64,
    },
    /// A command of the command line, which defines its form and that of its reply.
    Command {
        command: Value,
    },
}

/// A response, and what changed in the session meanwhile.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ResponseMessage {
    pub(super) answer: OwnerResponse,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) session: Option<SessionDelta>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OwnerResponse {
    Tool(ToolResponse),
    Resources(Result<ResourcePage, ToolError>),
    Resource(Result<Option<ResourceText>, ToolError>),
    Completion(Completion),
    IndexProgress(IndexProgress),
    WholeGraph(Box<Result<WholeGraph, ToolError>>),
    Report(Box<Result<Report, ToolError>>),
    Trail(TrailPage),
    Command(Value),
    /// The session is not known here: send all of it.
    UnknownSession,
    /// The request failed, and a retry would not help.
    Failed(String),
}

/// [`VaultChange`] as JSON: what an owner sends to its subscribers.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ChangeNotice {
    listing: bool,
    notes: Option<Vec<String>>,
}

impl From<VaultChange> for ChangeNotice {
    /// The tools of an owner never change.
    fn from(VaultChange { listing, notes, tools: _ }: VaultChange) -> Self {
        Self { listing, notes: notes.map(|notes| notes.iter().map(ToString::to_string).collect()) }
    }
}

impl From<ChangeNotice> for VaultChange {
    fn from(ChangeNotice { listing, notes }: ChangeNotice) -> Self {
        // Spelled as they came: two files may differ only in case. An id that cannot be read may be any note.
        let exact = |id: &String| VaultPath::parse(id).ok().map(|path| NoteId::exact(&path));
        let notes = notes.and_then(|notes| notes.iter().map(exact).collect());
        Self { listing, notes, tools: false }
    }
}

impl Welcome {
    /// The error for a process of another version.
    pub(super) fn other_version_message(&self) -> String {
        let Self { pid, version, .. } = self;
        format!(
            "the vault is open in process {pid} of quipu {version}, with which this one, {}, cannot share it; end the \
             clients that use it, or let all of them use the same program",
            env!("CARGO_PKG_VERSION")
        )
    }
}

/// A session, as far as the owner must know it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SessionCopy {
    pub(super) number: u64,
    pub(super) client: String,
    /// The revision of the owner's copy in the last response.
    pub(super) known: u64,
    /// All of it, for an owner that has no copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) whole: Option<SessionDelta>,
}

/// [`SessionChanges`] as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SessionDelta {
    /// The revision after these changes.
    pub(super) edition: u64,
    /// Path, version in hexadecimal and whether it was whole.
    shown: Vec<(String, Option<(String, bool)>)>,
    /// Path, and the characters shown of a version that was not shown whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parts: Vec<(String, Vec<(usize, usize)>)>,
    /// Outer: whether it changed. Inner: whether there is one.
    context: Option<ContextDelta>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct ContextDelta {
    entity: Option<i64>,
}

impl SessionDelta {
    /// What came to a session since a revision of it.
    pub(super) fn of(session: &Session, since: u64) -> Self {
        let SessionChanges { revision, shown, context } = session.changes_since(since);
        let mut parts = Vec::new();
        let mut written = |path: &VaultPath, version: ShownVersion| {
            let is_whole = version.extent == Extent::Whole;
            if let Extent::Parts(shown) = version.extent
                && !shown.is_empty()
            {
                parts.push((path.to_string(), shown.into_iter().map(|part| (part.start, part.end)).collect()));
            }
            (hex(&version.hash.0), is_whole)
        };
        let shown = shown.into_iter().map(|(path, version)| {
            let version = version.map(|version| written(&path, version));
            (path.to_string(), version)
        });
        Self {
            edition: revision,
            shown: shown.collect(),
            parts,
            context: context.map(|entity| ContextDelta { entity: entity.map(|id| id.0) }),
        }
    }

    /// The changes as the domain's type. What cannot be read is left out: the client is then held to what the server knows.
    pub(super) fn into_domain(self) -> SessionChanges {
        let mut parts: HashMap<String, Vec<(usize, usize)>> = self.parts.into_iter().collect();
        let shown = self.shown.into_iter().filter_map(|(path, version)| {
            let parts = parts.remove(&path).unwrap_or_default();
            let path = VaultPath::parse(&path).ok()?;
            let version = match version {
                Some((hash, true)) => Some(ShownVersion { hash: ContentHash(unhex(&hash)?), extent: Extent::Whole }),
                Some((hash, false)) => {
                    let extent = Extent::Parts(parts.into_iter().map(|(start, end)| start..end).collect());
                    Some(ShownVersion { hash: ContentHash(unhex(&hash)?), extent })
                }
                None => None,
            };
            Some((path, version))
        });
        SessionChanges {
            revision: self.edition,
            shown: shown.collect(),
            context: self.context.map(|context| context.entity.map(EntityId)),
        }
    }
}

fn hex(bytes: &[u8; 32]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

/// Sends one message.
pub(super) fn send(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, message)?;
    let length = u32::try_from(frame.len() - 4).ok().filter(|length| *length <= MAX_FRAME);
    let length = length.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the message is too long"))?;
    frame[..4].copy_from_slice(&length.to_le_bytes());
    to.write_all(&frame)
}

/// Receives one message; `None` at the end of the stream.
pub(super) fn receive<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<T>> {
    decode(receive_frame(from)?)
}

/// Receives the first message of a connection.
pub(super) fn receive_hello(from: &mut impl Read) -> io::Result<Option<Hello>> {
    decode(receive_within(from, MAX_HELLO)?)
}

fn decode<T: DeserializeOwned>(frame: Option<Vec<u8>>) -> io::Result<Option<T>> {
    Ok(frame.map(|frame| serde_json::from_slice(&frame)).transpose()?)
}

/// Receives the bytes of one message, so that one of another version can be refused and not only dropped.
pub(super) fn receive_frame(from: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    receive_within(from, MAX_FRAME)
}

fn receive_within(from: &mut impl Read, limit: u32) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    let read = loop {
        match from.read(&mut length) {
            // A signal, or a process that was stopped and goes on.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => break read?,
        }
    };
    if read == 0 {
        return Ok(None);
    }
    from.read_exact(&mut length[read..])?;
    let length = u32::from_le_bytes(length);
    if length > limit {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the other process does not use the protocol of quipu"));
    }
    // Grows with what comes: a length alone must not take memory.
    let mut frame = Vec::new();
    from.take(u64::from(length)).read_to_end(&mut frame)?;
    if frame.len() < length as usize {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(frame))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_first_message_is_refused_by_its_length() {
        let hello =
            Hello { wire: WIRE, version: "1".into(), process: "7".into(), purpose: ConnectionPurpose::Requests };
        let mut stream = Vec::new();
        send(&mut stream, &hello).unwrap();
        assert_eq!(receive_hello(&mut stream.as_slice()).unwrap().unwrap().process, "7");
        let long = Hello { process: "7".repeat(70_000), ..hello };
        stream.clear();
        send(&mut stream, &long).unwrap();
        let mut rest = stream.as_slice();
        assert_eq!(receive_hello(&mut rest).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(rest.len(), stream.len() - 4, "nothing of it is read");
    }

    #[test]
    fn a_message_arrives_as_it_was_sent() {
        let mut stream = Vec::new();
        let question = OwnerRequest::CompleteNoteId { typed: "ümläut/".into(), limit: 7 };
        send(&mut stream, &question).unwrap();
        send(&mut stream, &question).unwrap();
        let mut stream = stream.as_slice();
        for _ in 0..2 {
            let received: OwnerRequest = receive(&mut stream).unwrap().unwrap();
            assert_eq!(format!("{received:?}"), format!("{question:?}"));
        }
        assert!(receive::<OwnerRequest>(&mut stream).unwrap().is_none());
    }

    #[test]
    fn invalid_message_is_an_error_and_allocates_nothing() {
        for bytes in [&b"GET / HTTP/1.1\r\n"[..], &[1, 0], &[9, 0, 0, 0, b'{'], &[2, 0, 0, 0, b'{', b'{']] {
            assert!(receive::<OwnerRequest>(&mut &bytes[..]).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn ids_of_changed_notes_keep_their_case() {
        let exact = |path: &str| NoteId::exact(&VaultPath::parse(path).unwrap());
        let twins = vec![exact("Moloch.md"), exact("moloch.md")];
        let change = VaultChange { listing: false, notes: Some(twins), tools: false };
        let sent = serde_json::to_string(&ChangeNotice::from(change.clone())).unwrap();
        assert_eq!(VaultChange::from(serde_json::from_str::<ChangeNotice>(&sent).unwrap()), change);
        let unreadable = ChangeNotice { listing: false, notes: Some(vec!["a.md".into(), "../b.md".into()]) };
        assert_eq!(VaultChange::from(unreadable).notes, None, "any note may have changed");
    }

    #[test]
    fn session_survives_encoding() {
        let session = Session::named("ada");
        session.take_over(SessionChanges {
            revision: 0,
            shown: vec![
                (
                    VaultPath::parse("Ä/b.md").unwrap(),
                    Some(ShownVersion { hash: ContentHash::of(b"1"), extent: Extent::Whole }),
                ),
                (
                    VaultPath::parse("long.md").unwrap(),
                    Some(ShownVersion { hash: ContentHash::of(b"2"), extent: Extent::Parts(vec![0..10, 20..30]) }),
                ),
                (VaultPath::parse("c.md").unwrap(), None),
            ],
            context: Some(Some(EntityId(7))),
        });
        let changes = SessionDelta::of(&session, 0);
        let json = serde_json::to_string(&changes).unwrap();
        let there: SessionDelta = serde_json::from_str(&json).unwrap();
        let mut expected = session.changes_since(0);
        let mut arrived = there.into_domain();
        expected.shown.sort_by(|one, other| one.0.cmp(&other.0));
        arrived.shown.sort_by(|one, other| one.0.cmp(&other.0));
        assert_eq!(arrived, expected);
    }
}
