//! The maximum length of an answer, and how much of a list fits into it. An explicit limit overrides it.

use std::io::{self, Write};

use serde::Serialize;

use crate::tool::Call;
use crate::truncate::truncate;

/// Characters of an answer as JSON, unless the client passed a limit.
pub(crate) const MAX_ANSWER: usize = 40_000;

/// Characters for the items of a list; the rest is for the fields around them.
pub(crate) const LIST_ROOM: usize = MAX_ANSWER - 1_000;

/// Characters of a value as JSON.
pub(crate) fn json_chars(value: &impl Serialize) -> usize {
    struct Counter(usize);
    impl Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Counts every byte except UTF-8 continuation bytes.
            self.0 += bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    serde_json::to_writer(&mut counter, value).expect("answers have string keys and no failing serializer");
    counter.0
}

/// The number of leading items that fit. The first always does, so that paging makes progress.
pub(crate) fn fitting<T: Serialize>(items: &[T], room: usize) -> usize {
    let mut left = room;
    let fits = |item: &&T| {
        let size = json_chars(*item) + 1;
        let fits = size <= left;
        left = left.saturating_sub(size);
        fits
    };
    items.iter().take_while(fits).count().max(1).min(items.len())
}

/// The beginning of a text that fits as JSON.
pub(crate) fn fitting_text(text: &str, room: usize) -> String {
    let mut chars = room;
    loop {
        let cut = truncate(text, chars);
        let size = json_chars(&cut);
        if size <= room || chars == 0 {
            return cut;
        }
        // Characters that need several in JSON are counted as if they were spread evenly.
        chars = (chars * room / size).min(chars - 1);
    }
}

/// The requested part of a list.
pub(crate) struct Wanted {
    pub(crate) offset: usize,
    /// `None` if the client passed none: then the answer is kept short.
    pub(crate) limit: Option<usize>,
}

/// The items of a page that are shown. A warning says how to get the rest.
pub(crate) fn page<T: Serialize>(
    call: &Call<'_>,
    wanted: &Wanted,
    mut items: Vec<T>,
    total: usize,
    what: &str,
) -> Vec<T> {
    if wanted.limit.is_none() {
        items.truncate(fitting(&items, LIST_ROOM));
    }
    let next = wanted.offset.saturating_add(items.len());
    if !items.is_empty() && next < total {
        call.warn(format!("{} of {total} {what} are listed; continue with `offset` {next}", items.len()));
    }
    items
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn characters_are_counted_as_they_are_sent() {
        for value in [json!({"a": [1, "é\n\"日本\u{1}"]}), json!(null), json!("👨‍👩‍👧")] {
            assert_eq!(json_chars(&value), value.to_string().chars().count(), "{value}");
        }
    }

    #[test]
    fn a_text_is_cut_where_its_json_is_too_long() {
        for text in ["a\"\n".repeat(100), "\u{1}".repeat(100), "é".repeat(100)] {
            let cut = fitting_text(&text, 60);
            assert!((20..=60).contains(&json_chars(&cut)), "{cut:?}");
            assert_eq!(fitting_text(&text, 1_000), text);
        }
    }

    #[test]
    fn items_fill_the_space_and_the_first_always_fits() {
        assert_eq!(fitting(&["ab", "cd", "ef"], 10), 2, "each takes four characters and a comma");
        assert_eq!(fitting(&["ab", "cd"], 1), 1);
        assert_eq!(fitting(&[""; 0], 10), 0);
    }
}
