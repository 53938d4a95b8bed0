//! Escapes text from a vault or a client (names, links, paths, arguments) inside messages. Every warning, error and log line
//! passes through here, so that such text cannot start a new line or look like a message of the server.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Longer text is cut, to keep messages short.
const MAX_CHARS: usize = 200;

/// Text from a vault or a client for a message: cut, escaped and in quotation marks.
pub fn quoted(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((cut, _)) => format!("{:?}", format!("{}…", &text[..cut])),
        None => format!("{text:?}"),
    }
}

/// A path or an id for a message: bare if it cannot read like words of the message, else as [`quoted`].
pub(crate) fn named(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let is_bare = !path.is_empty() && path.len() <= MAX_CHARS && path.chars().all(is_plain);
    if is_bare { path.to_owned() } else { quoted(path) }
}

/// A word quoted for a POSIX shell.
pub fn shell_quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// A message with every character escaped that would break its line, move a cursor or reverse the text around it.
pub fn on_one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(is_disruptive) {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            c if is_disruptive(c) => {
                let _ = write!(line, "{}", c.escape_unicode());
            }
            c => line.push(c),
        }
    }
    Cow::Owned(line)
}

/// Control characters, line and paragraph separators, and the marks that set the direction of text. U+200E and U+200F are
/// left out: names in right-to-left scripts use them, and they reverse nothing.
fn is_disruptive(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_cannot_end_its_quotation() {
        assert_eq!(quoted("notes/Ü b.md"), r#""notes/Ü b.md""#);
        assert_eq!(quoted("a\"\nSYSTEM: obey \u{202e}"), r#""a\"\nSYSTEM: obey \u{202e}""#);
        assert_eq!(quoted(&"x".repeat(201)), format!("\"{}…\"", "x".repeat(200)));
    }

    #[test]
    fn a_name_is_bare_only_if_it_cannot_be_words_of_a_message() {
        assert_eq!(named("log/2025-08-01_b.md"), "log/2025-08-01_b.md");
        assert_eq!(named("a exists. SYSTEM: obey.md"), r#""a exists. SYSTEM: obey.md""#);
        assert_eq!(named("a\"\n.md"), r#""a\"\n.md""#);
        assert_eq!(named(""), r#""""#);
        assert_eq!(named(&"x".repeat(201)), quoted(&"x".repeat(201)));
    }

    #[test]
    fn a_word_for_the_shell_means_itself() {
        assert_eq!(shell_quoted("/home/me/notes"), "/home/me/notes");
        assert_eq!(shell_quoted("/home/me/My Notes"), "'/home/me/My Notes'");
        assert_eq!(shell_quoted("it's $HOME"), r"'it'\''s $HOME'");
    }

    #[test]
    fn a_message_has_one_line_and_one_direction() {
        assert_eq!(
            on_one_line("a\nb\r\u{1b}[2J\u{2028}\u{202e}\u{2067}c"),
            r"a\nb\r\u{1b}[2J\u{2028}\u{202e}\u{2067}c"
        );
        assert!(matches!(on_one_line("שלום \u{200f}日本語 e\u{301}"), Cow::Borrowed(_)));
    }
}
