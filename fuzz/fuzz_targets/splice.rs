//! Frontmatter edits either fail or say what was asked, keep the body, and change nothing when repeated.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quipu_core::parse::{FrontmatterEdit, parse, splice_frontmatter};

fuzz_target!(|input: (&str, &str, Vec<String>)| {
    let (text, title, tags) = input;
    let edits = [FrontmatterEdit::Title(title.to_owned()), FrontmatterEdit::Tags(tags)];
    let Ok(spliced) = splice_frontmatter(text.as_bytes(), &edits) else { return };
    let spliced_text = std::str::from_utf8(&spliced).expect("text was put into text");
    let (before, after) = (parse(text), parse(spliced_text));
    assert_eq!(&spliced_text[after.body_start..], &text[before.body_start..]);
    assert_eq!(after.title.unwrap_or_default(), title.trim());
    assert_eq!(splice_frontmatter(&spliced, &edits), Ok(spliced));
});
