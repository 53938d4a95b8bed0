//! The language of a note, and the stems of its words. A stem is indexed beside its word, so that `runs` finds `running`, and
//! a phrase still finds words as written.

use std::borrow::Cow;

use quipu_core::model::{Note, Value};
use rust_stemmers::{Algorithm, Stemmer};

/// The beginning of a text from which its language is detected.
const SAMPLE_BYTES: usize = 600;

/// Shorter words are not stemmed.
const MIN_WORD_CHARS: usize = 3;

/// A language with a stemmer: its index in [`LANGUAGES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Language(usize);

/// The order must not change: the index is stored on disk.
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

/// The first of the private-use characters that mark a text's language. Notes do not contain them.
const FIRST_MARK: u32 = 0xF_0000;

impl Language {
    /// The language of a note: from its frontmatter, else detected from its beginning. Undetected Latin text counts as English,
    /// whose stemmer does little harm; other scripts without a stemmer have no language.
    pub(super) fn of(note: &Note, body: &str) -> Option<Self> {
        let declared = ["lang", "language"].into_iter().find_map(|key| match note.property(key) {
            Some(Value::Text(code)) => Self::from_code(code),
            _ => None,
        });
        declared.or_else(|| {
            let body = body.trim_start();
            let sample = &body[..body.floor_char_boundary(SAMPLE_BYTES)];
            match whatlang::detect(sample) {
                Some(info) if info.is_reliable() || info.script() != whatlang::Script::Latin => {
                    LANGUAGES.iter().position(|(_, lang, _)| *lang == info.lang()).map(Self)
                }
                _ => Some(ENGLISH),
            }
        })
    }

    /// By its two-letter code; a region after it is ignored.
    pub(super) fn from_code(code: &str) -> Option<Self> {
        let code = code.trim().to_lowercase();
        let code = code.split(['-', '_']).next().unwrap_or_default();
        LANGUAGES.iter().position(|(known, ..)| *known == code).map(Self)
    }

    pub(super) fn code(self) -> &'static str {
        LANGUAGES[self.0].0
    }

    /// The character put before a text of this language for the tokenizer, which sees nothing else of its document.
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

/// The stemmer of one language.
pub(super) struct Stems(Stemmer);

impl Stems {
    /// The stem of a folded word; `None` if it equals the word.
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
    fn words_are_stemmed_in_their_language() {
        let stem = |code, word| Language::from_code(code).unwrap().stemmer().stem(word);
        assert_eq!(stem("en", "running"), Some("run".into()));
        assert_eq!(stem("en-US", "run"), None);
        assert_eq!(stem("de", "häuser"), Some("haus".into()));
        assert_eq!(stem("ru", "словами"), Some("слов".into()));
        assert_eq!(stem("en", "e0382s"), None, "a code is no word");
    }

    #[test]
    fn mark_identifies_its_language() {
        for place in 0..LANGUAGES.len() {
            assert_eq!(Language::from_mark(Language(place).mark()), Some(Language(place)));
        }
        assert_eq!(Language::from_mark('a'), None);
        assert_eq!(Language::from_mark('\u{10FFFF}'), None);
    }
}
