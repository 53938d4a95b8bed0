//! The three protocols of language models. Each asks for an answer by a JSON schema, and none lets the answer act.

use serde::Deserialize;
use serde_json::{Value, json};

/// The longest answer, in tokens: more than any answer that a caller accepts.
const MAX_TOKENS: u32 = 4_096;

/// Tokens that Ollama reads. Its default silently drops the beginning of a longer prompt.
const OLLAMA_CONTEXT: u32 = 16_384;

/// The name of the answer where a protocol wants one.
const ANSWER: &str = "answer";

/// A request to a model.
pub(super) struct Question {
    /// The instruction; written by Quipu alone.
    pub(super) instruction: String,
    /// What to do it with. As JSON, no text in it can pretend to be the end of the data.
    pub(super) data: Value,
    /// The JSON schema of the answer.
    pub(super) schema: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChatProtocol {
    Ollama,
    OpenAi,
    Anthropic,
}

#[derive(Deserialize)]
struct OllamaChatResponse {
    message: TextMessage,
    done_reason: Option<String>,
}

#[derive(Deserialize)]
struct OpenAiChatResponse {
    choices: Vec<OpenAiChoice>,
}

#[derive(Deserialize)]
struct OpenAiChoice {
    message: TextMessage,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct TextMessage {
    #[serde(default)]
    content: Option<String>,
}

#[derive(Deserialize)]
struct AnthropicResponse {
    content: Vec<AnthropicContent>,
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct AnthropicContent {
    #[serde(default)]
    input: Option<Value>,
}

/// Why a response has no answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// The response is not one of this protocol.
    Invalid(String),
    /// The model did not answer this request.
    Refused(&'static str),
}

impl ChatProtocol {
    /// The path of requests, below the path that the user configured.
    pub(crate) fn endpoint(self, path: &str) -> String {
        let versionless = path.strip_suffix("/v1").unwrap_or(path);
        match self {
            Self::Ollama => format!("{path}/api/chat"),
            Self::OpenAi => format!("{versionless}/v1/chat/completions"),
            Self::Anthropic => format!("{versionless}/v1/messages"),
        }
    }

    pub(super) fn headers(self, key: Option<&String>) -> Vec<(&'static str, String)> {
        let key = |name: &'static str, prefix: &str| key.map(|key| (name, format!("{prefix}{key}")));
        match self {
            Self::Ollama | Self::OpenAi => key("authorization", "Bearer ").into_iter().collect(),
            Self::Anthropic => {
                [("anthropic-version", "2023-06-01".to_owned())].into_iter().chain(key("x-api-key", "")).collect()
            }
        }
    }

    /// Without a temperature or a limit of tokens for OpenAI: some of its models refuse one of them.
    pub(super) fn request(self, model: &str, question: &Question) -> Vec<u8> {
        let Question { instruction, data, schema } = question;
        let user = json!({ "role": "user", "content": data.to_string() });
        let messages = json!([{ "role": "system", "content": instruction }, user]);
        let request = match self {
            Self::Ollama => json!({
                "model": model, "messages": messages, "stream": false, "think": false, "format": schema,
                "options": { "temperature": 0, "num_predict": MAX_TOKENS, "num_ctx": OLLAMA_CONTEXT },
            }),
            Self::OpenAi => json!({
                "model": model, "messages": messages,
                "response_format": {
                    "type": "json_schema", "json_schema": { "name": ANSWER, "strict": true, "schema": schema },
                },
            }),
            // The "tool" is a form to fill in: nothing runs.
            Self::Anthropic => json!({
                "model": model, "system": instruction, "messages": [user], "max_tokens": MAX_TOKENS,
                "tools": [{ "name": ANSWER, "description": "The answer.", "input_schema": schema }],
                "tool_choice": { "type": "tool", "name": ANSWER },
            }),
        };
        request.to_string().into_bytes()
    }

    /// The answer in a response, not validated.
    pub(super) fn answer(self, response: &[u8]) -> Result<Value, NoAnswer> {
        let (answer, reason) = match self {
            Self::Ollama => {
                let response: OllamaChatResponse = self.parse(response)?;
                (response.message.json(), response.done_reason)
            }
            Self::OpenAi => {
                let response: OpenAiChatResponse = self.parse(response)?;
                let choice = response.choices.into_iter().next();
                choice.map_or((None, None), |choice| (choice.message.json(), choice.finish_reason))
            }
            Self::Anthropic => {
                let response: AnthropicResponse = self.parse(response)?;
                (response.content.into_iter().find_map(|content| content.input), response.stop_reason)
            }
        };
        match reason.as_deref() {
            Some("length" | "max_tokens") => Err(NoAnswer::Refused("the answer was cut at the limit of the model")),
            Some("refusal" | "content_filter") => Err(NoAnswer::Refused("the model refused to answer")),
            _ => answer.ok_or(NoAnswer::Refused("the answer is not JSON")),
        }
    }

    fn parse<'r, Response: Deserialize<'r>>(self, response: &'r [u8]) -> Result<Response, NoAnswer> {
        let name = match self {
            Self::Ollama => "ollama",
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
        };
        // Only where the error is: its text may repeat what the server said.
        serde_json::from_slice(response).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            NoAnswer::Invalid(format!("it is not a response of the {name} protocol (line {line}, column {column})"))
        })
    }
}

impl TextMessage {
    /// The JSON object in the message. Servers that ignore the schema put words or a code fence around it.
    fn json(&self) -> Option<Value> {
        let content = self.content.as_deref()?;
        let object = content.get(content.find('{')?..=content.rfind('}')?)?;
        serde_json::from_str(object).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(protocol: ChatProtocol, response: &Value) -> Result<Value, NoAnswer> {
        protocol.answer(response.to_string().as_bytes())
    }

    #[test]
    fn answers_are_found_in_the_responses_of_all_protocols() {
        let said = "```json\n{\"summary\": \"a {b} c\"}\n```";
        let expected = Ok(json!({"summary": "a {b} c"}));
        let openai = json!({"choices": [{"message": {"content": said, "refusal": null}, "finish_reason": "stop"}]});
        assert_eq!(answer(ChatProtocol::OpenAi, &openai), expected);
        let ollama = json!({"message": {"role": "assistant", "content": said}, "done": true});
        assert_eq!(answer(ChatProtocol::Ollama, &ollama), expected);
        let tool = json!({"type": "tool_use", "name": "answer", "input": {"summary": "a {b} c"}});
        let anthropic = json!({"content": [{"type": "text", "text": "Well."}, tool], "stop_reason": "tool_use"});
        assert_eq!(answer(ChatProtocol::Anthropic, &anthropic), expected);
    }

    #[test]
    fn responses_without_an_answer_say_why() {
        let openai = |content: &Value, reason: &str| {
            answer(
                ChatProtocol::OpenAi,
                &json!({"choices": [{"message": {"content": content}, "finish_reason": reason}]}),
            )
        };
        let refused = |why| Err(NoAnswer::Refused(why));
        assert_eq!(openai(&json!("I am sorry"), "stop"), refused("the answer is not JSON"));
        assert_eq!(openai(&json!("} {"), "stop"), refused("the answer is not JSON"));
        assert_eq!(openai(&json!(null), "content_filter"), refused("the model refused to answer"));
        assert_eq!(openai(&json!("{\"a\": "), "length"), refused("the answer was cut at the limit of the model"));
        assert_eq!(answer(ChatProtocol::OpenAi, &json!({"choices": []})), refused("the answer is not JSON"));
        let invalid = answer(ChatProtocol::Anthropic, &json!("the note's text"));
        assert!(matches!(&invalid, Err(NoAnswer::Invalid(message)) if !message.contains("text")), "{invalid:?}");
    }
}
