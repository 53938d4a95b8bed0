//! The only file that prints. Results go to stdout, everything else to stderr.
//!
//! Printed text passes through [`without_controls`]: a note cannot move the cursor or change the window's title.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use crate::failure::Failure;

/// The output of a command.
pub(crate) struct Output {
    stdout: io::BufWriter<io::Stdout>,
    colour_stdout: bool,
    colour_stderr: bool,
}

/// The style of a piece of a line on a terminal. Elsewhere text is plain, so a style never carries meaning alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    Bold,
    Dim,
    Red,
    Yellow,
}

/// One line of styled pieces.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Line(Vec<(Style, String)>);

impl Line {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn plain(self, text: impl Into<String>) -> Self {
        self.with(Style::Plain, text)
    }

    pub(crate) fn bold(self, text: impl Into<String>) -> Self {
        self.with(Style::Bold, text)
    }

    pub(crate) fn dim(self, text: impl Into<String>) -> Self {
        self.with(Style::Dim, text)
    }

    pub(crate) fn yellow(self, text: impl Into<String>) -> Self {
        self.with(Style::Yellow, text)
    }

    fn red(self, text: impl Into<String>) -> Self {
        self.with(Style::Red, text)
    }

    fn with(mut self, style: Style, text: impl Into<String>) -> Self {
        self.0.push((style, text.into()));
        self
    }

    pub(super) fn render(&self, colour: bool) -> String {
        let mut text = String::new();
        for (style, piece) in &self.0 {
            let code = match style {
                Style::Plain => "",
                Style::Bold => "1",
                Style::Dim => "2",
                Style::Red => "1;31",
                Style::Yellow => "33",
            };
            if colour && !code.is_empty() {
                let _ = write!(text, "\x1b[{code}m{}\x1b[0m", without_controls(piece));
            } else {
                text.push_str(&without_controls(piece));
            }
        }
        text
    }
}

impl Output {
    pub(crate) fn new() -> Self {
        Self {
            stdout: io::BufWriter::new(io::stdout()),
            colour_stdout: io::stdout().is_terminal() && wants_colour(),
            colour_stderr: io::stderr().is_terminal() && wants_colour(),
        }
    }

    /// Whether stderr is a terminal, which can show a progress bar.
    pub(crate) fn is_terminal(&self) -> bool {
        io::stderr().is_terminal()
    }

    /// Prints a line of the result.
    pub(crate) fn line(&mut self, line: &Line) -> Result<(), Failure> {
        writeln!(self.stdout, "{}", line.render(self.colour_stdout)).map_err(|error| write_failure(&error))
    }

    /// Prints an empty line of the result.
    pub(crate) fn blank(&mut self) -> Result<(), Failure> {
        self.write("\n")
    }

    /// Prints the result as one line of JSON.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let text =
            serde_json::to_string(value).map_err(|error| Failure::failed(format!("cannot write JSON: {error}")))?;
        self.write(&escape_for_json(&text))?;
        self.write("\n")
    }

    /// Prints bytes unchanged, such as a shell script.
    pub(crate) fn verbatim(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.stdout.write_all(bytes).map_err(|error| write_failure(&error))
    }

    /// A writer for a long JSON result. Control characters that a terminal would obey are escaped.
    pub(crate) fn writer(&mut self) -> impl Write + '_ {
        JsonWriter(&mut self.stdout)
    }

    /// Flushes stdout, which reports a full disk behind `>`.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        self.stdout.flush().map_err(|error| write_failure(&error))
    }

    /// Prints a line on stderr.
    pub(crate) fn aside(&self, line: &Line) {
        // If stderr is closed, the error cannot be reported.
        let _ = writeln!(io::stderr().lock(), "{}", line.render(self.colour_stderr));
    }

    /// Prints a problem that did not stop the command, and what to do.
    pub(crate) fn warning(&self, message: &str, hint: Option<&str>) {
        self.aside(&Line::new().yellow("warning: ").plain(message));
        self.hint(hint);
    }

    /// Prints why the command failed, and what to do.
    pub(crate) fn error(&self, message: &str, hint: Option<&str>) {
        self.aside(&Line::new().red("error: ").plain(message));
        self.hint(hint);
    }

    fn hint(&self, hint: Option<&str>) {
        if let Some(hint) = hint {
            self.aside(&Line::new().bold("hint: ").plain(hint));
        }
    }

    /// Prints help, the version, or a usage error of clap.
    pub(crate) fn clap(&self, error: &clap::Error) {
        // A closed pipe after `quipu --help | head` is fine, and other errors could not be printed either.
        let _ = error.print();
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        self.stdout.write_all(text.as_bytes()).map_err(|error| write_failure(&error))
    }
}

/// Escapes control characters in JSON. serde_json writes whole characters at a time.
struct JsonWriter<W>(W);

impl<W: Write> Write for JsonWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.0.write_all(escape_for_json(text).as_bytes())?,
            Err(_) => self.0.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Whether the environment allows colour, see <https://no-color.org>.
pub(crate) fn wants_colour() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !is_set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

fn write_failure(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::PipeClosed,
        _ => Failure::failed(format!("cannot write the output: {error}")),
    }
}

/// A number with its noun: `1 entity`, `2 entities`.
pub(crate) fn counted<N: Copy + std::fmt::Display + PartialEq + From<u8>>(number: N, one: &str, many: &str) -> String {
    let noun = if number == N::from(1) { one } else { many };
    format!("{number} {noun}")
}

/// Replaces control characters by symbols (`ESC` becomes `␛`), and line ends and tabs by spaces, so that it stays one line.
fn without_controls(text: &str) -> String {
    let picture = |c: char| match c {
        '\n' | '\r' | '\t' => ' ',
        '\0'..='\x1f' => char::from_u32(0x2400 + c as u32).unwrap_or(char::REPLACEMENT_CHARACTER),
        '\x7f' => '␡',
        // The last two ranges change the direction of the text around them.
        '\u{80}'..='\u{9f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    text.chars().map(picture).collect()
}

/// JSON escapes the first 32 control characters; terminals also obey some above 127.
fn escape_for_json(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            // These occur only inside strings, where an escape is valid.
            '\x7f'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                let _ = write!(text, "\\u{:04x}", c as u32);
            }
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_of_notes_do_not_reach_the_terminal() {
        let title = "\x1b]0;owned\x07 red\x1b[31m \u{9b}2J bell\x07\r\nnext\ttab";
        let line = Line::new().bold(title).render(false);
        assert_eq!(line, "␛]0;owned␇ red␛[31m \u{fffd}2J bell␇  next tab");
        assert!(!line.chars().any(char::is_control));
        let coloured = Line::new().bold(title).plain(" x").render(true);
        assert!(coloured.starts_with("\x1b[1m␛]0;") && coloured.ends_with("tab\x1b[0m x"), "{coloured:?}");
    }

    #[test]
    fn right_to_left_text_is_unchanged() {
        assert_eq!(without_controls("שלום \u{200f}日本語 e\u{301}"), "שלום \u{200f}日本語 e\u{301}");
    }

    #[test]
    fn json_stays_the_same_value_without_raw_controls() {
        let value = serde_json::json!({ "a\u{85}": "\u{9b}31m \x1b \x7f ü" });
        let text = escape_for_json(&value.to_string());
        assert!(!text.chars().any(char::is_control), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
        let mut streamed = JsonWriter(Vec::new());
        serde_json::to_writer(&mut streamed, &value).unwrap();
        assert_eq!(String::from_utf8(streamed.0).unwrap(), text);
    }
}
