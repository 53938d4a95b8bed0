//! Splits a text into pieces within which bytes are merged to tokens: words, numbers, punctuation, white space.
//!
//! It implements the pattern of GPT-2:
//! `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

/// The pieces of a text in order; together they are the whole text.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let (piece, after) = rest.split_at(piece_length(rest, first));
        rest = after;
        Some(piece)
    })
}

#[derive(Clone, Copy, PartialEq)]
enum CharClass {
    Letter,
    Number,
    Space,
    Other,
}

fn class(c: char) -> CharClass {
    if c.is_ascii_alphabetic() {
        return CharClass::Letter;
    }
    if c.is_whitespace() {
        return CharClass::Space;
    }
    match c.general_category_group() {
        GeneralCategoryGroup::Letter => CharClass::Letter,
        GeneralCategoryGroup::Number => CharClass::Number,
        _ => CharClass::Other,
    }
}

fn piece_length(text: &str, first: char) -> usize {
    for contraction in ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d"] {
        if text.starts_with(contraction) {
            return contraction.len();
        }
    }
    let run = |from: usize, wanted: CharClass| {
        text[from..].char_indices().find(|(_, c)| class(*c) != wanted).map_or(text.len(), |(at, _)| from + at)
    };
    match (class(first), text[first.len_utf8()..].chars().next().map(class)) {
        (CharClass::Space, Some(next)) if first == ' ' && next != CharClass::Space => run(1, next),
        (CharClass::Space, _) => {
            let end = run(0, CharClass::Space);
            // The last white space before a word is a piece of its own or belongs to the word.
            let last = text[..end].chars().next_back().map_or(0, char::len_utf8);
            if end < text.len() && end > last { end - last } else { end }
        }
        (wanted, _) => run(0, wanted),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_take_the_space_before_them() {
        for (text, expected) in [
            ("It's 5 o'clock!", vec!["It", "'s", " 5", " o", "'", "clock", "!"]),
            ("a  b\n\n c", vec!["a", " ", " b", "\n\n", " c"]),
            ("x\u{3000}y \n", vec!["x", "\u{3000}", "y", " \n"]),
            ("漢字です。", vec!["漢字です", "。"]),
            ("a_b::c1", vec!["a", "_", "b", "::", "c", "1"]),
        ] {
            assert_eq!(pieces(text).collect::<Vec<_>>(), expected);
        }
    }

    proptest! {
        #[test]
        fn pieces_add_up_to_the_text(text in "\\PC*|[ \\n'slt漢]*") {
            prop_assert_eq!(pieces(&text).collect::<String>(), text);
        }
    }
}
