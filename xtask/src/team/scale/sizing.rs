//! The table of sizes in `docs/team.md`: a row for each number of notes that was measured.

use std::fmt::Write as _;
use std::fs;

use anyhow::Context;

use crate::shell;

const PAGE: &str = "docs/team.md";
const START: &str = "<!-- cargo xtask team --scale --only notes --write -->\n";
const END: &str = "<!-- end -->";

/// What a graph of so many notes takes.
pub(super) struct GraphSize {
    pub(super) notes: usize,
    /// Memory of each server that has it open.
    pub(super) server_mb: f64,
    pub(super) database_mb: f64,
}

/// Replaces the table.
pub(super) fn write(sizes: &[GraphSize]) -> anyhow::Result<()> {
    let file = shell::root().join(PAGE);
    let page = with_table(&fs::read_to_string(&file)?, &table(sizes))?;
    Ok(fs::write(file, page)?)
}

fn with_table(page: &str, table: &str) -> anyhow::Result<String> {
    let (before, rest) = page.split_once(START).context("docs/team.md has no place for the table")?;
    let (_, after) = rest.split_once(END).context("docs/team.md has no end of the table")?;
    Ok(format!("{before}{START}{table}{END}{after}"))
}

fn table(sizes: &[GraphSize]) -> String {
    let mut table = "| notes of a graph | memory of each server | database |\n|---|---|---|\n".to_owned();
    for GraphSize { notes, server_mb, database_mb } in sizes {
        let _ = writeln!(table, "| {} | {server_mb:.0} MB | {database_mb:.0} MB |", in_thousands(*notes));
    }
    if let [few, .., many] = sizes {
        let each = |of: fn(&GraphSize) -> f64| (of(many) - of(few)) / (many.notes - few.notes) as f64 * 1e5;
        let (server, database) = (each(|size| size.server_mb), each(|size| size.database_mb));
        let _ = writeln!(
            table,
            "\nFrom these, 100,000 more notes need {server:.0} MB in each server that has the graph open, and {database:.0} MB in the database."
        );
    }
    table + "\n[All measurements](team-measurements.md).\n"
}

/// `10000` as `10,000`.
fn in_thousands(number: usize) -> String {
    if number < 1000 { number.to_string() } else { format!("{},{:03}", in_thousands(number / 1000), number % 1000) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_measured_size_has_a_row() {
        let size = |notes, server_mb, database_mb| GraphSize { notes, server_mb, database_mb };
        let sizes = [size(1000, 42.0, 3.0), size(10_000, 156.4, 32.0), size(1_000_000, 13_000.0, 3200.0)];
        let page = with_table(&format!("a\n{START}old\n{END}\nb\n"), &table(&sizes)).unwrap();
        assert!(page.starts_with("a\n") && page.ends_with("\nb\n") && !page.contains("old"), "{page}");
        for row in ["| 1,000 | 42 MB | 3 MB |", "| 10,000 | 156 MB | 32 MB |", "| 1,000,000 | 13000 MB | 3200 MB |"] {
            assert!(page.contains(row), "{page}");
        }
        assert!(page.contains("need 1297 MB in each server"), "{page}");
        assert!(with_table("no place", "").is_err());
    }

    #[test]
    fn page_has_a_place_for_the_table() {
        let page = fs::read_to_string(shell::root().join(PAGE)).unwrap();
        assert!(with_table(&page, "").is_ok());
    }
}
