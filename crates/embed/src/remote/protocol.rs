//! The two ways in which embedding servers are asked, and answer.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::json;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Ollama,
    OpenAi,
}

#[derive(Deserialize)]
struct OllamaAnswer {
    embeddings: Vec<Vec<f32>>,
}

#[derive(Deserialize)]
struct OpenAiAnswer {
    data: Vec<OpenAiVector>,
}

#[derive(Deserialize)]
struct OpenAiVector {
    /// Which text it is for. Answers need not be in order.
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

    /// The path to ask at, below the path that the user gave. OpenAI's addresses are often given with their version.
    pub(super) fn endpoint(self, path: &str) -> String {
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

    /// The vectors of an answer, one a text in their order, as the server says; see [`super::answer::check`].
    pub(super) fn vectors(self, answer: &[u8]) -> Result<Vec<Vec<f32>>, String> {
        let not_it =
            |error: serde_json::Error| format!("it is not an answer of the {} protocol ({error})", self.name());
        match self {
            Self::Ollama => Ok(serde_json::from_slice::<OllamaAnswer>(answer).map_err(not_it)?.embeddings),
            Self::OpenAi => {
                let mut data = serde_json::from_slice::<OpenAiAnswer>(answer).map_err(not_it)?.data;
                data.sort_by_key(|vector| vector.index);
                if data.iter().enumerate().any(|(place, vector)| vector.index != place) {
                    return Err("its vectors are not numbered from 0 without a gap".to_owned());
                }
                Ok(data.into_iter().map(|vector| vector.embedding).collect())
            }
        }
    }
}
