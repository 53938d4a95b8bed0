//! Figures that a page of the documentation has, to compare new ones with.

use std::collections::BTreeMap;

/// The first table of a page.
#[derive(Debug, Default)]
pub(crate) struct CommittedTable {
    /// By the label of the row, then by the title of the column. Where several columns share a title, the first counts.
    rows: BTreeMap<String, BTreeMap<String, String>>,
}

impl CommittedTable {
    pub(crate) fn read(page: &str) -> Self {
        let mut lines = page.lines().skip_while(|line| !line.starts_with('|'));
        let titles = lines.next().map_or(Vec::new(), cells);
        let rows = lines.take_while(|line| line.starts_with('|')).skip(1).map(|line| {
            let cells = cells(line);
            let mut by_title = BTreeMap::new();
            for (title, cell) in titles.iter().zip(&cells).skip(1) {
                by_title.entry((*title).to_owned()).or_insert_with(|| (*cell).to_owned());
            }
            (cells.first().copied().unwrap_or_default().to_owned(), by_title)
        });
        Self { rows: rows.collect() }
    }

    /// The figure in a cell, without the earlier one that follows it in parentheses.
    pub(crate) fn cell(&self, row: &str, column: &str) -> Option<&str> {
        let cell = self.rows.get(row)?.get(column)?;
        let figure = cell.split_once(" (").map_or(cell.as_str(), |(figure, _)| figure);
        (!figure.is_empty()).then_some(figure)
    }
}

fn cells(line: &str) -> Vec<&str> {
    line.trim().trim_matches('|').split('|').map(str::trim).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_found_by_row_and_first_column_of_a_title() {
        let page = "# Page\n\n| set | full | full | other |\n|---|---|---|---|\n| a | 1.0 | 2.0 | |\n\n| b | 3 |\n";
        let table = CommittedTable::read(page);
        assert_eq!((table.cell("a", "full"), table.cell("a", "other")), (Some("1.0"), None));
        assert_eq!((table.cell("b", "full"), table.cell("a", "none")), (None, None));
        assert_eq!(CommittedTable::read("no table").cell("a", "full"), None);
    }

    #[test]
    fn earlier_figure_of_a_cell_does_not_count() {
        let table = CommittedTable::read("| | 1000 |\n|---|---|\n| a | 4 / 5 (6 / 7) |\n");
        assert_eq!(table.cell("a", "1000"), Some("4 / 5"));
    }
}
