//! What two processes of this program say to each other about one vault: a length, then that much JSON, one question and
//! one answer at a time. Only the first exchange, [`Hello`] and [`Welcome`], must be understood by every version.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::time::Duration;

use quipu_core::memory::EntityId;
use quipu_core::model::{ContentHash, NoteId, VaultPath};
use quipu_core::{Extent, Session, SessionChanges, ShownVersion};
use quipu_tools::{Completion, ResourcePage, ResourceText, ToolError, ToolResponse};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::service::{Change, IndexProgress};

/// The way of speaking. Processes that differ in it cannot work together.
pub(super) const WIRE: u32 = 1;

/// How often an owner says that it is still there, to those who stay. One that is silent for some of these is stopped or
/// hangs, and is not waited for.
pub(super) const HEARTBEAT: Duration = Duration::from_millis(500);
pub(super) const SILENCE: Duration = Duration::from_secs(3);

/// Above the longest answer of any tool, and the longest line a client may send.
const MAX_FRAME: u32 = 256 << 20;

/// Who calls.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) wire: u32,
    pub(super) version: String,
    /// Names the process, for as long as it lives.
    pub(super) process: String,
    /// What the connection is for.
    pub(super) purpose: Purpose,
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Purpose {
    /// One question after the other.
    Asking,
    /// Only the owner speaks, of changes; its end is the end of either process.
    Staying {
        /// Whether the vault's files are to be watched.
        watch_files: bool,
    },
}

/// Who answers.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Welcome {
    pub(super) wire: u32,
    pub(super) version: String,
    pub(super) pid: u32,
    /// Which vault: see [`super::claim::identity`].
    #[serde(default)]
    pub(super) vault: (u64, u64),
    /// The names of the vault's tools.
    #[serde(default)]
    pub(super) tools: Vec<String>,
}

/// What a process that passes its client's wishes on may ask.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Question<'a> {
    /// Borrowed by the sender, which may have to ask again: arguments can be megabytes.
    Call {
        key: String,
        tool: String,
        arguments: Cow<'a, Value>,
        session: SessionHere,
    },
    Resources {
        cursor: Option<String>,
        page_size: usize,
    },
    ReadResource {
        uri: String,
        session: SessionHere,
    },
    CompleteNoteId {
        typed: String,
        limit: usize,
    },
    #[serde(rename = "reading")]
    IndexProgress,
    Command {
        command: Value,
        looks: Looks,
    },
}

/// How the terminal of a command looks.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Looks {
    pub colour_stdout: bool,
    pub colour_stderr: bool,
}

/// What is answered, and what became of the session meanwhile.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Answered {
    pub(super) answer: Answer,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) session: Option<Changes>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    Called(ToolResponse),
    Resources(Result<ResourcePage, ToolError>),
    Resource(Result<Option<ResourceText>, ToolError>),
    Completion(Completion),
    #[serde(rename = "reading")]
    IndexProgress(IndexProgress),
    Command(Printed),
    /// The session is not known here: say all of it.
    WhoAreYou,
    /// There is none, and asking again would give no other.
    Failed(String),
}

/// [`Change`] as JSON: what an owner says, unasked, to whoever stays.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Notice {
    listing: bool,
    notes: Option<Vec<String>>,
}

impl From<Change> for Notice {
    /// The tools of an owner never change.
    fn from(Change { listing, notes, tools: _ }: Change) -> Self {
        Self { listing, notes: notes.map(|notes| notes.iter().map(ToString::to_string).collect()) }
    }
}

impl From<Notice> for Change {
    fn from(Notice { listing, notes }: Notice) -> Self {
        // Spelled as they came: two files may differ only in case. An id that cannot be read may be any note.
        let exact = |id: &String| VaultPath::parse(id).ok().map(|path| NoteId::exact(&path));
        let notes = notes.and_then(|notes| notes.iter().map(exact).collect());
        Self { listing, notes, tools: false }
    }
}

/// What a command printed, and how it ended.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Printed {
    pub stdout: String,
    pub stderr: String,
    pub code: u8,
}

impl Printed {
    /// What a command prints that fails.
    pub(super) fn error(message: &str) -> Self {
        Self { stdout: String::new(), stderr: format!("error: {message}\n"), code: 1 }
    }
}

impl Welcome {
    /// That this process cannot share a vault with the one that says this.
    pub(super) fn is_a_stranger(&self) -> String {
        let Self { pid, version, .. } = self;
        format!(
            "the vault is open in process {pid} of quipu {version}, with which this one, {}, cannot share it; end the \
             clients that use it, or let all of them use the same program",
            env!("CARGO_PKG_VERSION")
        )
    }
}

/// A session, as far as the process at the other end must be told of it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SessionHere {
    pub(super) number: u64,
    pub(super) client: String,
    /// The edition of the owner's copy that was last heard of.
    pub(super) known: u64,
    /// All of it, for an owner that has no copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) whole: Option<Changes>,
}

/// [`SessionChanges`] as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Changes {
    pub(super) edition: u64,
    /// Path, version in hexadecimal and whether it was whole.
    shown: Vec<(String, Option<(String, bool)>)>,
    /// Path, and the characters shown of a version that was not shown whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parts: Vec<(String, Vec<(usize, usize)>)>,
    /// Outer: whether it changed. Inner: whether there is one.
    context: Option<Context>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Context {
    entity: Option<i64>,
}

impl Changes {
    /// What came to a session since an edition of it.
    pub(super) fn of(session: &Session, since: u64) -> Self {
        let SessionChanges { edition, shown, context } = session.changes_since(since);
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
            edition,
            shown: shown.collect(),
            parts,
            context: context.map(|entity| Context { entity: entity.map(|id| id.0) }),
        }
    }

    /// The same for the domain. What cannot be read is left out: the client is then held to what the server knows.
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
            edition: self.edition,
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
    let frame = receive_frame(from)?;
    Ok(frame.map(|frame| serde_json::from_slice(&frame)).transpose()?)
}

/// Receives the bytes of one message, so that one of another version can be refused and not only dropped.
pub(super) fn receive_frame(from: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
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
    if length > MAX_FRAME {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the other end speaks another language"));
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
    fn a_message_arrives_as_it_was_sent() {
        let mut stream = Vec::new();
        let question = Question::CompleteNoteId { typed: "ümläut/".into(), limit: 7 };
        send(&mut stream, &question).unwrap();
        send(&mut stream, &question).unwrap();
        let mut stream = stream.as_slice();
        for _ in 0..2 {
            let received: Question = receive(&mut stream).unwrap().unwrap();
            assert_eq!(format!("{received:?}"), format!("{question:?}"));
        }
        assert!(receive::<Question>(&mut stream).unwrap().is_none());
    }

    #[test]
    fn what_is_no_message_is_an_error_and_takes_no_memory() {
        for bytes in [&b"GET / HTTP/1.1\r\n"[..], &[1, 0], &[9, 0, 0, 0, b'{'], &[2, 0, 0, 0, b'{', b'{']] {
            assert!(receive::<Question>(&mut &bytes[..]).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn ids_of_changed_notes_keep_their_case() {
        let exact = |path: &str| NoteId::exact(&VaultPath::parse(path).unwrap());
        let twins = vec![exact("Moloch.md"), exact("moloch.md")];
        let change = Change { listing: false, notes: Some(twins), tools: false };
        let sent = serde_json::to_string(&Notice::from(change.clone())).unwrap();
        assert_eq!(Change::from(serde_json::from_str::<Notice>(&sent).unwrap()), change);
        let unreadable = Notice { listing: false, notes: Some(vec!["a.md".into(), "../b.md".into()]) };
        assert_eq!(Change::from(unreadable).notes, None, "any note may have changed");
    }

    #[test]
    fn a_session_travels() {
        let session = Session::named("ada");
        session.take_over(SessionChanges {
            edition: 0,
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
        let changes = Changes::of(&session, 0);
        let json = serde_json::to_string(&changes).unwrap();
        let there: Changes = serde_json::from_str(&json).unwrap();
        let mut expected = session.changes_since(0);
        let mut arrived = there.into_domain();
        expected.shown.sort_by(|one, other| one.0.cmp(&other.0));
        arrived.shown.sort_by(|one, other| one.0.cmp(&other.0));
        assert_eq!(arrived, expected);
    }
}
