//! Texts to vectors: texts of similar meaning get vectors of similar direction.

use super::Calibration;

/// Turns texts into vectors of length one.
///
/// An embedder may be a model in the program or a remote provider, so it may fail; the caller then works without vectors.
pub trait Embedder: Send + Sync {
    /// Names the space of its vectors: model, version, and every setting that changes a vector. Vectors of two spaces are
    /// never compared. Stored vectors of other spaces stay, for when the user switches back.
    fn space(&self) -> &str;

    /// Quality on texts that are not English, relative to English: 0 is useless, 1 is equal. Where it is low, ranking
    /// relies on words.
    fn worth_beyond_english(&self) -> f32;

    /// The cosine of unrelated texts: similarities below it mean nothing.
    fn unrelated(&self) -> f32;

    /// One vector for each text, in their order, all of one dimension. Texts longer than the model's input are cut.
    ///
    /// An empty text has a vector too. Blocks until the model or the provider answers.
    fn embed(&self, role: Role, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError>;

    /// A fast, coarse encoder in the same space, if the model has one: its vectors serve until those of
    /// [`Embedder::embed`] replace them.
    fn coarse_encoder(&self) -> Option<Box<dyn CoarseEncoder + '_>> {
        None
    }

    /// Maps similarities of coarse vectors to the scale of full ones.
    fn coarse_calibration(&self) -> Calibration {
        Calibration::NONE
    }

    /// The vectors of passages; `None` for a text that the provider rejects. Sends all in one batch; if the batch is
    /// rejected, one by one, so that a single text does not block the others. If every one of several is rejected, the
    /// texts are not the cause, and that is an error.
    fn embed_passages(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        match self.embed(Role::Passage, texts) {
            Ok(vectors) => Ok(vectors.into_iter().map(Some).collect()),
            Err(EmbedError::Unusable(_)) if texts.len() == 1 => Ok(vec![None]),
            Err(EmbedError::Unusable(_)) if texts.len() > 1 => {
                let alone = |text| Ok(self.embed_passages(&[text])?.pop().flatten());
                let vectors = texts.iter().map(|text| alone(*text)).collect::<Result<Vec<_>, EmbedError>>()?;
                match vectors.iter().any(Option::is_some) {
                    true => Ok(vectors),
                    false => Err(EmbedError::Unusable("it rejects every text".into())),
                }
            }
            Err(error) => Err(error),
        }
    }
}

/// Computes coarse vectors of passages, for one thread. It may cache results; dropping it frees them.
pub trait CoarseEncoder {
    /// A vector of length one in the space of its embedder. Any text has one.
    fn encode(&mut self, text: &str) -> Vec<f32>;
}

/// The role of a text in search; some models embed queries and passages differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A search query.
    Query,
    /// A text to be found.
    Passage,
}

/// Why embedding failed. The message reaches clients: cause and next step, no addresses that contain secrets.
#[derive(Debug, Clone, thiserror::Error)]
pub enum EmbedError {
    /// The provider cannot be reached, timed out, or failed temporarily. A later retry may succeed.
    #[error("the embedding provider is not available: {0}")]
    Unavailable(String),
    /// The response does not have one vector for each text, or has other dimensions than before.
    #[error("the embedding provider returned an invalid response: {0}")]
    Unusable(String),
}
