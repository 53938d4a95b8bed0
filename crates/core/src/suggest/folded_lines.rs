//! The lines of a text, folded once, in which many names are looked for.

use memchr::memmem;

use crate::model::fold;

pub(super) struct FoldedLines<'t> {
    /// As written, without the spaces around them.
    pub(super) lines: Vec<&'t str>,
    /// The folded lines, each with a line break.
    folded: String,
    /// Where each line starts in `folded`.
    starts: Vec<usize>,
}

impl<'t> FoldedLines<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let (mut folded, mut starts) = (String::with_capacity(text.len()), Vec::with_capacity(lines.len()));
        for line in &lines {
            starts.push(folded.len());
            folded.push_str(&fold(line));
            folded.push('\n');
        }
        Self { lines, folded, starts }
    }

    /// The places in `lines` that have a name, in any case, in order.
    pub(super) fn with_name(&self, name: &str) -> impl Iterator<Item = usize> {
        let finder = memmem::Finder::new(fold(name.trim()).as_bytes()).into_owned();
        let mut from = 0;
        std::iter::from_fn(move || {
            let rest = &self.folded.as_bytes()[from..];
            let at = from + finder.find(rest).filter(|_| !rest.is_empty() && !finder.needle().is_empty())?;
            let line = self.starts.partition_point(|start| *start <= at) - 1;
            from = self.starts.get(line + 1).copied().unwrap_or(self.folded.len());
            Some(line)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_a_name_are_found_in_any_case() {
        let lines = FoldedLines::of("  Ada met ada.\n\nGrace\n\tand ΟΔΟΣ, with ADA  ");
        assert_eq!(lines.lines, ["Ada met ada.", "", "Grace", "and ΟΔΟΣ, with ADA"]);
        let found = |name: &str| lines.with_name(name).collect::<Vec<_>>();
        assert_eq!(found("ADA"), [0, 3]);
        assert_eq!(found(" οδος"), [3]);
        assert_eq!(found("Grace\nand"), [2], "a title with a line break");
        assert!(found("").is_empty() && found(" ").is_empty() && found("Alan").is_empty());
        assert_eq!(FoldedLines::of("").with_name("a").count(), 0);
    }
}
