//! Texts as vectors: close in direction, close in meaning.

use super::Calibration;

/// Turns texts into vectors of length one.
///
/// An embedder may be a model in the program or a server elsewhere, so it may fail, and what asked it goes on without.
pub trait Embedder: Send + Sync {
    /// Names the space its vectors lie in: model, version, and whatever else changes a vector. Vectors of two spaces are
    /// never compared, and a space that comes back finds its vectors still there.
    fn space(&self) -> &str;

    /// What its vectors are worth on a text that is not English, as against an English one: 0 is nothing, 1 is the same.
    /// Ranking leans on words where this is low.
    fn worth_beyond_english(&self) -> f32;

    /// The cosine of texts that have nothing to do with each other: what a likeness begins at.
    fn unrelated(&self) -> f32;

    /// One vector for each text, in their order, all of one dimension. What is longer than the model reads is cut.
    ///
    /// An empty text has a vector too. Blocks for as long as the model computes or the server takes.
    fn embed(&self, role: Role, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError>;

    /// A coarse encoder in the same space that costs next to nothing, where there is one: its vectors serve until those of
    /// [`Embedder::embed`] replace them.
    fn coarse_encoder(&self) -> Option<Box<dyn CoarseEncoder + '_>> {
        None
    }

    /// How the similarities of vectors by [`Embedder::coarse_encoder`] compare with those of its own.
    fn coarse_calibration(&self) -> Calibration {
        Calibration::NONE
    }

    /// The vectors of passages; `None` for one that is refused. All together; where that is refused one by one, so that a
    /// single odd text keeps no other from its vector. Where all of several are, it is not about the texts.
    fn embed_passages(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        match self.embed(Role::Passage, texts) {
            Ok(vectors) => Ok(vectors.into_iter().map(Some).collect()),
            Err(EmbedError::Unusable(_)) if texts.len() == 1 => Ok(vec![None]),
            Err(EmbedError::Unusable(_)) if texts.len() > 1 => {
                let alone = |text| Ok(self.embed_passages(&[text])?.pop().flatten());
                let vectors = texts.iter().map(|text| alone(*text)).collect::<Result<Vec<_>, EmbedError>>()?;
                match vectors.iter().any(Option::is_some) {
                    true => Ok(vectors),
                    false => Err(EmbedError::Unusable("it refuses every text".into())),
                }
            }
            Err(error) => Err(error),
        }
    }
}

/// Makes coarse vectors of passages, for one thread. It may remember what it computed; dropping it frees that.
pub trait CoarseEncoder {
    /// A vector of length one in the space of the embedder it is from. Any text has one.
    fn encode(&mut self, text: &str) -> Vec<f32>;
}

/// What a text is to the search. Some models want to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// What is asked.
    Query,
    /// What is found.
    Passage,
}

/// Why there are no vectors. Its words reach clients: what happened and what to do, no addresses with secrets in them.
#[derive(Debug, Clone, thiserror::Error)]
pub enum EmbedError {
    /// It cannot be reached, is too slow, or failed in a way that may pass. Worth trying again later.
    #[error("the embedding provider is not available: {0}")]
    Unavailable(String),
    /// It answered something that is not a vector for each text, or of another dimension than before.
    #[error("the embedding provider gave an answer that cannot be used: {0}")]
    Unusable(String),
}
