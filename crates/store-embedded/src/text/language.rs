//! The language of a note, and the stems of its words. A stem stands beside its word, so that `running` is found by `runs`,
//! and a phrase still finds words as written.

use std::borrow::Cow;

use quipu_core::model::{Note, Value};
use rust_stemmers::{Algorithm, Stemmer};

/// So much of a text tells its language.
const SAMPLE_BYTES: usize = 600;

/// Shorter words have no endings worth cutting.
const MIN_WORD_CHARS: usize = 3;

/// A language that we have a stemmer for: its place in [`LANGUAGES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Language(usize);

/// In an order that must not change: the place is part of the index.
const LANGUAGES: [(&str, whatlang::Lang, Algorithm); 17] = [
    ("en", whatlang::Lang::Eng, Algorithm::English),
    ("de", whatlang::Lang::Deu, Algorithm::German),
    ("fr", whatlang::Lang::Fra, Algorithm::French),
    ("es", whatlang::Lang::Spa, Algorithm::Spanish),
    ("it", whatlang::Lang::Ita, Algorithm::Italian),
    ("pt", whatlang::Lang::Por, Algorithm::Portuguese),
    ("nl", whatlang::Lang::Nld, Algorithm::Dutch),
    ("sv", whatlang::Lang::Swe, Algorithm::Swedish),
    ("da", whatlang::Lang::Dan, Algorithm::Danish),
    ("no", whatlang::Lang::Nob, Algorithm::Norwegian),
    ("fi", whatlang::Lang::Fin, Algorithm::Finnish),
    ("ru", whatlang::Lang::Rus, Algorithm::Russian),
    ("hu", whatlang::Lang::Hun, Algorithm::Hungarian),
    ("ro", whatlang::Lang::Ron, Algorithm::Romanian),
    ("tr", whatlang::Lang::Tur, Algorithm::Turkish),
    ("el", whatlang::Lang::Ell, Algorithm::Greek),
    ("ar", whatlang::Lang::Ara, Algorithm::Arabic),
];

const ENGLISH: Language = Language(0);

/// The first of the private characters that mark a text's language. Nobody writes them.
const FIRST_MARK: u32 = 0xF_0000;

impl Language {
    /// The language of a note: as its frontmatter says, else as its beginning reads. Latin letters that tell nothing are
    /// taken for English, whose stemmer does little harm; other scripts without a stemmer have none.
    pub(super) fn of(note: &Note, body: &str) -> Option<Self> {
        let said = ["lang", "language"].into_iter().find_map(|key| match note.property(key) {
            Some(Value::Text(code)) => Self::from_code(code),
            _ => None,
        });
        said.or_else(|| {
            let body = body.trim_start();
            let sample = &body[..body.floor_char_boundary(SAMPLE_BYTES)];
            match whatlang::detect(sample) {
                Some(info) if info.is_reliable() => {
                    LANGUAGES.iter().position(|(_, lang, _)| *lang == info.lang()).map(Self)
                }
                Some(info) if info.script() != whatlang::Script::Latin => {
                    LANGUAGES.iter().position(|(_, lang, _)| *lang == info.lang()).map(Self)
                }
                _ => Some(ENGLISH),
            }
        })
    }

    /// By its code of two letters; a region behind it does not matter.
    pub(super) fn from_code(code: &str) -> Option<Self> {
        let code = code.trim().to_lowercase();
        let code = code.split(['-', '_']).next().unwrap_or_default();
        LANGUAGES.iter().position(|(known, ..)| *known == code).map(Self)
    }

    pub(super) fn code(self) -> &'static str {
        LANGUAGES[self.0].0
    }

    /// The character that stands before a text of this language on its way to the tokenizer, which sees nothing else of
    /// its document.
    pub(super) fn mark(self) -> char {
        u32::try_from(self.0).ok().and_then(|place| char::from_u32(FIRST_MARK + place)).expect("a private character")
    }

    pub(super) fn from_mark(mark: char) -> Option<Self> {
        let place = u32::from(mark).checked_sub(FIRST_MARK)? as usize;
        (place < LANGUAGES.len()).then_some(Self(place))
    }

    pub(super) fn stemmer(self) -> Stems {
        Stems(Stemmer::create(LANGUAGES[self.0].2))
    }
}

/// Cuts the endings of one language.
pub(super) struct Stems(Stemmer);

impl Stems {
    /// The stem of a folded word, where it is another word.
    pub(super) fn stem(&self, folded: &str) -> Option<String> {
        if folded.len() < MIN_WORD_CHARS || folded.bytes().any(|byte| byte.is_ascii_digit()) {
            return None;
        }
        match self.0.stem(folded) {
            Cow::Borrowed(stem) => (stem != folded).then(|| stem.to_owned()),
            Cow::Owned(stem) => (stem != folded).then_some(stem),
        }
        .filter(|stem| !stem.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lose_the_endings_of_their_language() {
        let stem = |code, word| Language::from_code(code).unwrap().stemmer().stem(word);
        assert_eq!(stem("en", "running"), Some("run".into()));
        assert_eq!(stem("en-US", "run"), None);
        assert_eq!(stem("de", "häuser"), Some("haus".into()));
        assert_eq!(stem("ru", "словами"), Some("слов".into()));
        assert_eq!(stem("en", "e0382s"), None, "a code is no word");
    }

    #[test]
    fn a_mark_tells_its_language() {
        for place in 0..LANGUAGES.len() {
            assert_eq!(Language::from_mark(Language(place).mark()), Some(Language(place)));
        }
        assert_eq!(Language::from_mark('a'), None);
        assert_eq!(Language::from_mark('\u{10FFFF}'), None);
    }
}
