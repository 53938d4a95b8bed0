//! The line transport for the library's loop. It replaces the library's own, which drops lines that it cannot parse, gives
//! calls five seconds after the end of input, and may split a line when a read is cancelled.
//!
//! A response is made by a worker and counted ([`crate::service`]). While too many bytes are unsent no further call starts,
//! but lines are still read, so that a ping or a cancellation arrives. Responses are sent one at a time; a long one is
//! serialised only when it is next, on a blocking thread. A client that closes its side and reads nothing is dropped.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quipu_tools::Access;
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, GetExtensions, JsonRpcMessage, ProtocolVersion, RequestId,
    ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::Transport;
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

use super::batch::Batch;
use super::in_flight::{InFlight, RequestKind};
use super::lines::{InputLine, LineReader, MAX_LINE_BYTES};
use super::message::{self, Incoming, MessageRefusal};
use super::request_id;
use crate::service::{CallOrder, RequestPermit, ResponseBytes, Service};

/// How long calls in progress may continue after the client has closed its side.
const END_GRACE: Duration = Duration::from_secs(10);

/// How long a client that has closed its side may leave a response unread.
const READ_GRACE: Duration = Duration::from_millis(700);

/// Shorter responses are serialised in less time than a change of thread takes.
const SHORT_BYTES: usize = 64 * 1024;

/// How long closing the output may take.
const CLOSE_GRACE: Duration = Duration::from_millis(500);

/// One client's stream.
pub(super) struct LineTransport<R, W> {
    lines: LineReader<R>,
    output: LineOutput<W>,
    /// Messages of a batch that the library has not received yet.
    waiting: VecDeque<Box<ClientJsonRpcMessage>>,
    /// Set at the end of input: the deadline of calls in progress.
    deadline: Option<Instant>,
    /// Set when calls in progress will not be answered.
    given_up: watch::Sender<bool>,
    /// Knows which calls write.
    service: Arc<Service>,
    order: CallOrder,
}

/// The output, shared by all responses.
struct LineOutput<W> {
    writer: Arc<Mutex<W>>,
    in_flight: Arc<InFlight>,
    /// Whether the handshake negotiated the version that has batches.
    takes_batches: Arc<AtomicBool>,
    /// Set to end the connection: from outside, or because the client no longer reads.
    ending: watch::Sender<bool>,
}

impl<W> Clone for LineOutput<W> {
    fn clone(&self) -> Self {
        Self {
            writer: self.writer.clone(),
            in_flight: self.in_flight.clone(),
            takes_batches: self.takes_batches.clone(),
            ending: self.ending.clone(),
        }
    }
}

impl<R, W> LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(super) fn new(service: Arc<Service>, reader: R, writer: W, ending: watch::Sender<bool>) -> Self {
        let writer = Arc::new(Mutex::new(writer));
        Self {
            lines: LineReader::new(reader),
            output: LineOutput { writer, in_flight: Arc::default(), takes_batches: Arc::default(), ending },
            waiting: VecDeque::new(),
            deadline: None,
            given_up: watch::Sender::new(false),
            service,
            order: CallOrder::default(),
        }
    }

    /// Ready when the input has ended and some responses can no longer be sent.
    pub(super) fn given_up(&self) -> impl Future<Output = ()> + use<R, W> {
        let mut given_up = self.given_up.subscribe();
        async move {
            if given_up.wait_for(|given_up| *given_up).await.is_err() {
                // The transport was dropped, so the connection has ended; the library handles that.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Ready when a client that has closed its side has left a response unread for too long.
    pub(super) fn ignored(&self) -> impl Future<Output = ()> + use<R, W> {
        let in_flight = self.output.in_flight.clone();
        async move {
            in_flight.ignored(READ_GRACE).await;
            tracing::warn!("the client disconnected without reading its answers");
        }
    }

    /// The next line as a message; `None` at the end of input.
    async fn next(&mut self) -> Option<Incoming> {
        let mut ending = self.output.ending.subscribe();
        let line = tokio::select! {
            line = async { self.output.in_flight.room().await; self.lines.next().await } => line,
            _ = ending.wait_for(|ending| *ending) => return None,
        };
        match line {
            Ok(InputLine::Text(text)) => {
                let takes_batches = self.output.takes_batches.load(Ordering::Acquire);
                let (incoming, bytes) = (message::read(text, takes_batches), text.len());
                Some(self.admit(incoming, bytes))
            }
            Ok(InputLine::TooLong(beginning)) => {
                let message = format!("the line is longer than {MAX_LINE_BYTES} bytes");
                // If the id is near the start, its client waits for a response.
                let id = request_id::find(beginning).filter(|id| !self.output.in_flight.has(id));
                Some(Incoming::Refused(vec![MessageRefusal::invalid_request(id, message)]))
            }
            Ok(InputLine::End) => None,
            Err(error) => {
                tracing::warn!(%error, "cannot read from the client");
                None
            }
        }
    }

    /// Records a request as in progress and a cancelled one as done.
    fn admit(&self, mut incoming: Incoming, bytes: usize) -> Incoming {
        let Incoming::Message(message) = &mut incoming else { return incoming };
        match &mut **message {
            JsonRpcMessage::Request(request) => {
                let kind = match request.request {
                    ClientRequest::InitializeRequest(_) => RequestKind::Handshake,
                    ClientRequest::SubscriptionsListenRequest(_) => RequestKind::Stream,
                    _ => RequestKind::Call,
                };
                let permit = self.permit(&request.request);
                request.request.extensions_mut().insert(permit.clone());
                if !self.output.in_flight.begin(&request.id, bytes, kind, permit) {
                    return Incoming::Refused(vec![MessageRefusal::id_in_use(&request.id)]);
                }
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification {
                    cancelled.params.request_id.iter().for_each(|id| self.output.in_flight.finish(id));
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        incoming
    }

    /// The permit of a request, with a position in the order if it runs on a worker; the rest is answered at once. The tool of
    /// a call is looked up here, because writes and reads are ordered differently.
    fn permit(&self, request: &ClientRequest) -> RequestPermit {
        let (tool, place) = match request {
            ClientRequest::CallToolRequest(call) => {
                let tool = self.service.find(&call.params.name);
                let writes = tool.as_ref().is_ok_and(|tool| tool.access != Access::Read);
                (Some(tool), Some(self.order.queue(writes)))
            }
            ClientRequest::ListResourcesRequest(_)
            | ClientRequest::ReadResourceRequest(_)
            | ClientRequest::CompleteRequest(_) => (None, Some(self.order.queue(false))),
            _ => (None, None),
        };
        RequestPermit::in_order(&self.order, tool, place)
    }

    /// Starts the requests of a batch and rejects invalid messages; returns the messages for the library.
    fn open_batch(&self, parts: Vec<Incoming>) -> VecDeque<Box<ClientJsonRpcMessage>> {
        self.output.in_flight.begin_batch();
        let mut messages = VecDeque::new();
        for part in parts {
            match self.admit(part, 0) {
                Incoming::Message(message) => {
                    if let JsonRpcMessage::Request(request) = &*message {
                        self.output.in_flight.in_batch(|batch| batch.expect(request.id.clone()));
                    }
                    messages.push_back(message);
                }
                Incoming::Refused(refusals) => {
                    self.output
                        .in_flight
                        .in_batch(|batch| refusals.into_iter().for_each(|refusal| batch.refuse(refusal)));
                }
                Incoming::Nothing | Incoming::Batch(_) => {}
            }
        }
        let output = self.output.clone();
        // On its own task, like an error: the batch may have no request.
        tokio::spawn(async move { output.finish_batch().await });
        messages
    }
}

impl<R, W> Transport<RoleServer> for LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(&mut self, message: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let output = self.output.clone();
        let id = match &message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        if let JsonRpcMessage::Response(response) = &message
            && let ServerResult::InitializeResult(agreed) = &response.result
        {
            output.takes_batches.store(agreed.protocol_version == ProtocolVersion::V_2025_03_26, Ordering::Release);
        }
        let held = id.as_ref().and_then(|id| output.in_flight.leaves(id));
        async move {
            let is_short = held.as_ref().is_none_or(|held| held.bytes() <= SHORT_BYTES);
            let batched = id.as_ref().filter(|id| output.in_flight.in_batch(|batch| batch.expects(id)) == Some(true));
            let outcome = match batched {
                Some(id) => output.write_into_batch(id, message, held, is_short).await,
                None => output.write(message, is_short).await,
            };
            id.iter().for_each(|id| output.in_flight.finish(id));
            outcome
        }
    }

    /// The library cancels this future when something else happens and calls it again: all state is in `self`, and nothing
    /// is written here.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        while self.deadline.is_none() {
            if let Some(message) = self.waiting.pop_front() {
                return Some(*message);
            }
            match self.next().await {
                Some(Incoming::Batch(parts)) => self.waiting = self.open_batch(parts),
                Some(Incoming::Message(message)) => return Some(*message),
                Some(Incoming::Refused(refusals)) => self.output.refuse(refusals),
                Some(Incoming::Nothing) => {}
                None => self.deadline = Some(Instant::now() + END_GRACE),
            }
        }
        let deadline = self.deadline.expect("the loop above ends when it is set");
        tokio::select! {
            biased;
            () = self.output.in_flight.idle() => return None,
            () = self.ignored() => {}
            () = tokio::time::sleep_until(deadline) => {
                tracing::warn!("the client disconnected while calls were running");
            }
        }
        self.given_up.send_replace(true);
        None
    }

    /// Does not wait for a response that the client has stopped reading.
    async fn close(&mut self) -> io::Result<()> {
        let writer = self.output.writer.clone();
        let shutdown = async { writer.lock().await.shutdown().await };
        tokio::time::timeout(CLOSE_GRACE, shutdown).await.unwrap_or(Ok(()))
    }
}

impl<W: AsyncWrite + Send + Unpin + 'static> LineOutput<W> {
    /// Sends the errors for an invalid line, on its own task because [`LineTransport::receive`] may be cancelled.
    fn refuse(&self, refusals: Vec<MessageRefusal>) {
        self.in_flight.begin_refusal();
        let output = self.clone();
        tokio::spawn(async move {
            for refusal in refusals {
                tracing::debug!(code = refusal.error.code.0, message = %refusal.error.message, "refused a line");
                // A client that no longer reads ends the connection; the error has no receiver.
                let _ = output.write(refusal.into_json(), true).await;
            }
            output.in_flight.finish_refusal();
        });
    }

    async fn write_into_batch(
        &self,
        id: &RequestId,
        message: ServerJsonRpcMessage,
        held: Option<ResponseBytes>,
        is_short: bool,
    ) -> io::Result<()> {
        let answer = text(message, is_short).await?;
        self.in_flight.in_batch(|batch| batch.answer(id.clone(), answer, held));
        self.finish_batch().await
    }

    /// Writes the responses to a batch when all are ready.
    async fn finish_batch(&self) -> io::Result<()> {
        let Some(line) = self.in_flight.in_batch(Batch::line).flatten() else { return Ok(()) };
        let outcome = self.write_line(&mut *self.writer.lock().await, &line).await;
        self.in_flight.finish_batch();
        outcome
    }

    async fn write(&self, message: impl Serialize + Send + 'static, is_short: bool) -> io::Result<()> {
        let mut writer = self.writer.lock().await;
        let mut line = text(message, is_short).await?;
        line.push(b'\n');
        self.write_line(&mut writer, &line).await
    }

    async fn write_line(&self, writer: &mut W, line: &[u8]) -> io::Result<()> {
        let outcome = self.offer(writer, line).await;
        self.in_flight.offer(false);
        if outcome.is_err() {
            self.ending.send_replace(true);
        }
        outcome
    }

    /// In pieces, so that a client that reads slowly differs from one that does not read.
    async fn offer(&self, writer: &mut W, mut rest: &[u8]) -> io::Result<()> {
        while !rest.is_empty() {
            self.in_flight.offer(true);
            match writer.write(rest).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => rest = &rest[written..],
            }
        }
        writer.flush().await
    }
}

async fn text(message: impl Serialize + Send + 'static, is_short: bool) -> io::Result<Vec<u8>> {
    if is_short {
        return Ok(serde_json::to_vec(&message)?);
    }
    Ok(tokio::task::spawn_blocking(move || serde_json::to_vec(&message)).await??)
}
