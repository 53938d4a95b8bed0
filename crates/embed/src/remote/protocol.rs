//! The two protocols of embedding servers.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::json;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Ollama,
    OpenAi,
}

#[derive(Deserialize)]
struct OllamaEmbedResponse {
    embeddings: Vec<Vec<f32>>,
}

#[derive(Deserialize)]
struct OpenAiEmbedResponse {
    data: Vec<OpenAiVector>,
}

#[derive(Deserialize)]
struct OpenAiVector {
    /// The index of its text. Vectors may come in any order.
    index: usize,
    embedding: Vec<f32>,
}

impl Protocol {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ollama => "ollama",
            Self::OpenAi => "openai",
        }
    }

    /// The path of requests, below the path that the user configured. Urls of OpenAI often have the version in them.
    pub(crate) fn endpoint(self, path: &str) -> String {
        match self {
            Self::Ollama => format!("{path}/api/embed"),
            Self::OpenAi => format!("{}/v1/embeddings", path.strip_suffix("/v1").unwrap_or(path)),
        }
    }

    pub(super) fn request(self, model: &str, texts: &[Cow<'_, str>]) -> Vec<u8> {
        let request = match self {
            Self::Ollama => json!({ "model": model, "input": texts, "truncate": true }),
            Self::OpenAi => json!({ "model": model, "input": texts, "encoding_format": "float" }),
        };
        request.to_string().into_bytes()
    }

    /// The vectors of a response in the order of the texts, not validated yet; see [`super::answer::check`].
    pub(super) fn vectors(self, answer: &[u8]) -> Result<Vec<Vec<f32>>, String> {
        let invalid =
            |error: serde_json::Error| format!("it is not a response of the {} protocol ({error})", self.name());
        match self {
            Self::Ollama => Ok(serde_json::from_slice::<OllamaEmbedResponse>(answer).map_err(invalid)?.embeddings),
            Self::OpenAi => {
                let mut data = serde_json::from_slice::<OpenAiEmbedResponse>(answer).map_err(invalid)?.data;
                data.sort_by_key(|vector| vector.index);
                if data.iter().enumerate().any(|(place, vector)| vector.index != place) {
                    return Err("the indexes of its vectors have gaps".to_owned());
                }
                Ok(data.into_iter().map(|vector| vector.embedding).collect())
            }
        }
    }
}
