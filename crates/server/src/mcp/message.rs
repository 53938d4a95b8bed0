//! Parses one line into a message, or into the error that JSON-RPC requires.
//!
//! The library would drop a line that is not JSON, treat a request with a null id as a notification, and report a known
//! method with wrong parameters as unknown; so messages are checked and typed here.
//!
//! Every request whose id can be found gets a response, even in a line that is not valid JSON, and each one in a batch.

use quipu_tools::echoed;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, CustomRequest, ErrorCode, ErrorData, JsonRpcMessage,
    RequestId,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{batch, request_id};

/// Maximum errors for one rejected batch: a short line must not cause a flood of responses.
const MAX_REFUSALS: usize = 1000;

/// A parsed line.
#[derive(Debug)]
pub(super) enum Incoming {
    /// A valid message.
    Message(Box<ClientJsonRpcMessage>),
    /// An invalid message, answered with an error; a rejected batch is answered with several.
    Refused(Vec<MessageRefusal>),
    /// A valid batch: its responses are sent together.
    Batch(Vec<Incoming>),
    /// Nothing to do: a blank line, a response, a notification without effect here.
    Nothing,
}

/// The error for a rejected message, with its id if it can be found.
#[derive(Debug)]
pub(super) struct MessageRefusal {
    pub(super) id: Option<RequestId>,
    pub(super) error: ErrorData,
}

impl MessageRefusal {
    pub(super) fn invalid_request(id: Option<RequestId>, message: impl Into<String>) -> Self {
        Self { id, error: ErrorData::new(ErrorCode::INVALID_REQUEST, message.into(), None) }
    }

    /// Without an id: the client would take it for the response that is still to come.
    pub(super) fn id_in_use(id: &RequestId) -> Self {
        let id = echoed(&id.to_string());
        Self::invalid_request(None, format!("request {id} is still in progress: use another id"))
    }

    /// The error as a message. JSON-RPC requires `null` for a missing id; the library would omit it.
    pub(super) fn into_json(self) -> Value {
        serde_json::json!({ "jsonrpc": "2.0", "id": self.id, "error": self.error })
    }
}

/// Parses a line. The handshake decides whether batches are accepted.
pub(super) fn read(line: &[u8], takes_batches: bool) -> Incoming {
    if line.trim_ascii().is_empty() {
        return Incoming::Nothing;
    }
    // Broken UTF-8, half a surrogate pair and nesting beyond the parser's limit end here too.
    match serde_json::from_slice(line) {
        Ok(Value::Object(object)) => read_object(object),
        Ok(Value::Array(messages)) if takes_batches => read_batch(messages),
        Ok(Value::Array(messages)) => refuse_batch(
            messages,
            "batches are supported only in protocol 2025-03-26 over stdio: send one message at a time",
        ),
        Ok(_) => refuse(None, "a message is a JSON object"),
        Err(error) => {
            let error = ErrorData::new(ErrorCode::PARSE_ERROR, format!("this is not valid JSON: {error}"), None);
            Incoming::Refused(vec![MessageRefusal { id: request_id::find(line), error }])
        }
    }
}

fn refuse(id: Option<RequestId>, message: &str) -> Incoming {
    Incoming::Refused(vec![MessageRefusal::invalid_request(id, message)])
}

fn read_batch(messages: Vec<Value>) -> Incoming {
    if let Some(fault) = batch::fault_of(&messages) {
        return refuse_batch(messages, &fault);
    }
    let read = |message| match message {
        Value::Object(object) => read_object(object),
        _ => refuse(None, "a message is a JSON object"),
    };
    Incoming::Batch(messages.into_iter().map(read).collect())
}

/// One error per request of a batch, so that the client waits for none of them.
fn refuse_batch(messages: Vec<Value>, why: &str) -> Incoming {
    let id = |message: Value| match message {
        Value::Object(mut object) => object.remove("id").and_then(|id| serde_json::from_value::<RequestId>(id).ok()),
        _ => None,
    };
    let mut refusals: Vec<MessageRefusal> = messages
        .into_iter()
        .filter_map(id)
        .take(MAX_REFUSALS)
        .map(|id| MessageRefusal::invalid_request(Some(id), why))
        .collect();
    if refusals.is_empty() {
        refusals.push(MessageRefusal::invalid_request(None, why));
    }
    Incoming::Refused(refusals)
}

fn read_object(mut object: Map<String, Value>) -> Incoming {
    let has_id = object.contains_key("id");
    let id = object.remove("id").and_then(|id| serde_json::from_value::<RequestId>(id).ok());
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return refuse(id, "`jsonrpc` must be \"2.0\"");
    }
    // This server sends no requests to clients, so a response is ignored.
    let is_answer = object.contains_key("result") || object.contains_key("error");
    let method = match object.remove("method") {
        Some(Value::String(method)) => method,
        Some(_) => return refuse(id, "`method` must be a string"),
        None if is_answer => return Incoming::Nothing,
        None => return refuse(id, "`method` is missing"),
    };
    let params = object.remove("params").filter(|params| !params.is_null());
    let message = match (has_id, id) {
        (false, _) => notification(method, params).map(JsonRpcMessage::notification),
        (true, None) => return refuse(None, "`id` must be a string or an integer"),
        (true, Some(id)) => match request(method, params) {
            Ok(request) => Some(JsonRpcMessage::request(request, id)),
            Err(error) => return Incoming::Refused(vec![MessageRefusal { id: Some(id), error }]),
        },
    };
    message.map_or(Incoming::Nothing, |message| Incoming::Message(Box::new(message)))
}

/// Parses a request by its method.
pub(super) fn request(method: String, params: Option<Value>) -> Result<ClientRequest, ErrorData> {
    if params.as_ref().is_some_and(|params| !params.is_object()) {
        return Err(ErrorData::invalid_params("`params` must be an object", None));
    }
    Ok(match method.as_str() {
        "initialize" => ClientRequest::InitializeRequest(typed(method, params)?),
        "server/discover" => ClientRequest::DiscoverRequest(typed(method, params)?),
        "ping" => ClientRequest::PingRequest(typed(method, params)?),
        "tools/list" => ClientRequest::ListToolsRequest(typed(method, params)?),
        "tools/call" => ClientRequest::CallToolRequest(typed(method, params)?),
        "resources/list" => ClientRequest::ListResourcesRequest(typed(method, params)?),
        "resources/templates/list" => ClientRequest::ListResourceTemplatesRequest(typed(method, params)?),
        "resources/read" => ClientRequest::ReadResourceRequest(typed(method, params)?),
        "resources/subscribe" => ClientRequest::SubscribeRequest(typed(method, params)?),
        "resources/unsubscribe" => ClientRequest::UnsubscribeRequest(typed(method, params)?),
        "subscriptions/listen" => ClientRequest::SubscriptionsListenRequest(typed(method, params)?),
        "prompts/list" => ClientRequest::ListPromptsRequest(typed(method, params)?),
        "prompts/get" => ClientRequest::GetPromptRequest(typed(method, params)?),
        "completion/complete" => ClientRequest::CompleteRequest(typed(method, params)?),
        "logging/setLevel" => ClientRequest::SetLevelRequest(typed(method, params)?),
        // Unknown to this server.
        _ => ClientRequest::CustomRequest(CustomRequest::new(method, params)),
    })
}

/// A notification with an effect here. Others, and invalid ones, are ignored: a notification has no response.
fn notification(method: String, params: Option<Value>) -> Option<ClientNotification> {
    match method.as_str() {
        "notifications/cancelled" => typed(method, params).ok().map(ClientNotification::CancelledNotification),
        "notifications/initialized" => typed(method, params).ok().map(ClientNotification::InitializedNotification),
        _ => None,
    }
}

fn typed<T: DeserializeOwned>(method: String, params: Option<Value>) -> Result<T, ErrorData> {
    let mut message = Map::from_iter([("method".to_owned(), Value::String(method))]);
    message.extend(params.map(|params| ("params".to_owned(), params)));
    // The parser's message may repeat a long value.
    serde_json::from_value(Value::Object(message))
        .map_err(|error| ErrorData::invalid_params(echoed(&error.to_string()), None))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `code id` of what is refused, else the method or `nothing`.
    fn outcome(line: &str) -> String {
        said(read(line.as_bytes(), false))
    }

    fn said(incoming: Incoming) -> String {
        match incoming {
            Incoming::Batch(parts) => parts.into_iter().map(said).collect::<Vec<_>>().join(" | "),
            Incoming::Refused(refusals) => {
                let id = |id: Option<RequestId>| id.map_or("null".to_owned(), |id| id.to_string());
                let refused = refusals.into_iter().map(|one| format!("{} {}", one.error.code.0, id(one.id)));
                refused.collect::<Vec<_>>().join(", ")
            }
            Incoming::Message(message) => match *message {
                JsonRpcMessage::Request(request) => request.request.method().to_owned(),
                other => format!("{other:?}"),
            },
            Incoming::Nothing => "nothing".to_owned(),
        }
    }

    #[test]
    fn invalid_json_is_a_parse_error() {
        assert_eq!(outcome("{"), "-32700 null");
        assert_eq!(outcome("hello"), "-32700 null");
        assert_eq!(outcome(&"[".repeat(100_000)), "-32700 null");
        assert_eq!(outcome(r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\ud800"}}"#), "-32700 1");
        assert!(matches!(
            read(b"{\"jsonrpc\":\"2.0\xff\"}", false),
            Incoming::Refused(refusals) if refusals[0].error.code.0 == -32700
        ));
    }

    #[test]
    fn each_request_in_a_batch_is_refused_under_its_own_id() {
        assert_eq!(outcome(r#"[{"id":1,"method":"ping"},{"method":"x"},3,{"id":"b"}]"#), "-32600 1, -32600 b");
        assert_eq!(outcome(r#"[{"jsonrpc":"2.0","method":"notifications/initialized"}]"#), "-32600 null");
        let flood = format!("[{}1]", r#"{"id":1},"#.repeat(5000));
        assert_eq!(outcome(&flood).split(", ").count(), MAX_REFUSALS);
    }

    #[test]
    fn batch_is_accepted_where_negotiated_and_each_message_is_checked() {
        let batch = |line: &str| said(read(line.as_bytes(), true));
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        assert_eq!(
            batch(&format!(r#"[{ping},3,{{"jsonrpc":"2.0","id":2}},{ping}]"#)),
            "ping | -32600 null | -32600 2 | ping"
        );
        assert_eq!(batch("[]"), "-32600 null");
        assert_eq!(batch(r#"[{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}]"#), "-32600 7");
        let many = vec![ping; batch::MAX_MESSAGES + 1].join(",");
        assert_eq!(batch(&format!("[{many}]")).split(", ").count(), batch::MAX_MESSAGES + 1, "all of them are refused");
    }

    #[test]
    fn error_does_not_repeat_a_long_argument() {
        let long = "x".repeat(100_000);
        let line =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"a","arguments":"{long}"}}}}"#);
        let Incoming::Refused(refusals) = read(line.as_bytes(), false) else { panic!("it is refused") };
        assert!(refusals[0].error.message.len() <= 200);
    }

    #[test]
    fn json_without_a_request_is_an_invalid_request() {
        assert_eq!(outcome("[]"), "-32600 null");
        assert_eq!(outcome("42"), "-32600 null");
        assert_eq!(outcome("{}"), "-32600 null");
        assert_eq!(outcome(r#"{"id":7,"method":"ping"}"#), "-32600 7");
        assert_eq!(outcome(r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#), "-32600 a");
        assert_eq!(outcome(r#"{"jsonrpc":"2.0","id":7}"#), "-32600 7");
        assert_eq!(outcome(r#"{"jsonrpc":"2.0","id":7,"method":5}"#), "-32600 7");
        assert_eq!(outcome(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#), "-32600 null");
        assert_eq!(outcome(r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#), "-32600 null");
        assert_eq!(outcome(r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#), "-32600 null");
    }

    #[test]
    fn wrong_parameters_of_a_known_method_are_invalid_parameters() {
        assert_eq!(outcome(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#), "-32602 1");
        assert_eq!(outcome(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}"#), "-32602 1");
        assert_eq!(outcome(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}"#), "-32602 1");
        let listed = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":[]}}"#;
        assert_eq!(outcome(listed), "-32602 1");
    }

    #[test]
    fn parameters_may_be_absent_or_null_where_none_are_needed() {
        assert_eq!(outcome(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#), "tools/list");
        assert_eq!(outcome(r#"{"jsonrpc":"2.0","id":"x","method":"tools/list","params":null}"#), "tools/list");
        assert_eq!(outcome(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#), "ping");
    }

    #[test]
    fn responses_blank_lines_and_unknown_notifications_are_ignored() {
        assert_eq!(outcome("  \t"), "nothing");
        assert_eq!(outcome(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), "nothing");
        assert_eq!(outcome(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#), "nothing");
        assert_eq!(outcome(r#"{"jsonrpc":"2.0","method":"notifications/whatever","params":[1]}"#), "nothing");
        assert_eq!(outcome(r#"{"jsonrpc":"2.0","method":"tools/list"}"#), "nothing");
    }
}
