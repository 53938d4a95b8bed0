//! The figures as one Markdown table: a row for each thing measured, a column for each size, the budget beside.

use std::fmt::Write as _;

use crate::committed::CommittedTable;

/// What a figure must not exceed at 1,000, 10,000 and 100,000 notes.
pub(super) type Budget = Option<[f64; 3]>;

#[derive(Default)]
pub(super) struct Table {
    rows: Vec<Row>,
}

struct Row {
    label: String,
    budget: Budget,
    figures: Vec<(usize, Figure)>,
}

/// A number that is judged, and perhaps another before it: the 95th percentile behind the middle one.
struct Figure {
    middle: Option<f64>,
    judged: f64,
}

impl Table {
    /// Adds a figure to the row of this name, which is made where there is none.
    pub(super) fn add(&mut self, label: &str, notes: usize, figure: f64, budget: Budget) {
        self.put(label, notes, Figure { middle: None, judged: figure }, budget);
    }

    /// Adds a middle and a 95th percentile to the row of this name; the latter is judged.
    pub(super) fn add_percentiles(&mut self, label: &str, notes: usize, (p50, p95): (f64, f64), budget: Budget) {
        self.put(label, notes, Figure { middle: Some(p50), judged: p95 }, budget);
    }

    fn put(&mut self, label: &str, notes: usize, figure: Figure, budget: Budget) {
        let row = match self.rows.iter_mut().find(|row| row.label == label) {
            Some(row) => row,
            None => {
                self.rows.push(Row { label: label.to_owned(), budget, figures: Vec::new() });
                self.rows.last_mut().expect("it was just put there")
            }
        };
        row.figures.push((notes, figure));
    }

    /// The rows that exceed their budget.
    pub(super) fn over_budget(&self) -> Vec<&str> {
        self.rows.iter().filter(|row| row.is_over_budget()).map(|row| row.label.as_str()).collect()
    }

    /// Each figure with the earlier one, if there is one, in parentheses.
    pub(super) fn to_markdown(&self, earlier: &CommittedTable, sizes: &[usize]) -> String {
        let mut page = String::from("| |");
        for notes in sizes {
            let _ = write!(page, " {notes} |");
        }
        let _ = write!(
            page,
            " grows as n^ | budget 1k / 10k / 100k | |\n|---|{}---:|---|---|",
            "---:|".repeat(sizes.len())
        );
        for row in &self.rows {
            let _ = write!(page, "\n| {} |", row.label);
            for notes in sizes {
                let figure = row.figures.iter().find(|(at, _)| at == notes).map(|(_, figure)| figure.shown());
                let cell = match (figure, earlier.cell(&row.label, &notes.to_string())) {
                    (Some(figure), Some(earlier)) => format!("{figure} ({earlier})"),
                    (figure, _) => figure.unwrap_or_default(),
                };
                let _ = write!(page, " {cell} |");
            }
            let budget =
                row.budget.map_or(String::new(), |[a, b, c]| format!("{} / {} / {}", shown(a), shown(b), shown(c)));
            let _ = write!(page, " {} | {budget} | {} |", row.exponents(), row.verdict());
        }
        page.push('\n');
        page
    }
}

impl Row {
    /// Between each size and the next.
    fn exponents(&self) -> String {
        let between = self.figures.windows(2).map(|pair| {
            let [(n, a), (m, b)] = [&pair[0], &pair[1]];
            format!("{:.2}", (b.judged / a.judged).ln() / (*m as f64 / *n as f64).ln())
        });
        between.collect::<Vec<_>>().join(", ")
    }

    fn is_over_budget(&self) -> bool {
        let Some(budget) = self.budget else { return false };
        self.figures.iter().any(|(notes, figure)| match notes {
            0..=1_000 => figure.judged > budget[0],
            1_001..=10_000 => figure.judged > budget[1],
            10_001..=100_000 => figure.judged > budget[2],
            _ => false,
        })
    }

    fn verdict(&self) -> &'static str {
        match self.budget {
            None => "",
            Some(_) if self.is_over_budget() => "**fail**",
            Some(_) => "pass",
        }
    }
}

impl Figure {
    fn shown(&self) -> String {
        self.middle.map_or(String::new(), |middle| format!("{} / ", shown(middle))) + &shown(self.judged)
    }
}

/// Three digits that matter.
fn shown(figure: f64) -> String {
    match figure {
        f if f >= 100.0 => format!("{f:.0}"),
        f if f >= 10.0 => format!("{f:.1}"),
        f if f >= 1.0 => format!("{f:.2}"),
        f => format!("{f:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_shows_figures_growth_budget_and_verdict() {
        let mut table = Table::default();
        for (notes, time) in [(1_000, 2.0), (10_000, 20.0), (100_000, 400.0)] {
            table.add("index", notes, time, Some([5.0, 50.0, 300.0]));
        }
        table.add_percentiles("other", 1_000, (0.25, 0.5), None);
        let sizes = [1_000, 10_000, 100_000];
        let page = table.to_markdown(&CommittedTable::default(), &sizes);
        assert!(page.contains("| index | 2.00 | 20.0 | 400 | 1.00, 1.30 | 5.00 / 50.0 / 300 | **fail** |"), "{page}");
        assert!(page.contains("| other | 0.250 / 0.500 |  |  |  |  |  |"), "{page}");
        assert_eq!(table.over_budget(), ["index"]);
    }

    #[test]
    fn a_cell_shows_the_earlier_figure_beside_the_new_one() {
        let mut table = Table::default();
        table.add("index", 1_000, 2.0, None);
        table.add("index", 10_000, 20.0, None);
        table.add_percentiles("other", 1_000, (0.25, 0.5), None);
        let page = "| | 1000 | 10000 |\n|---|---|---|\n| index | 3.00 | |\n| other | 1.25 / 1.50 | 7.00 |\n";
        let written = table.to_markdown(&CommittedTable::read(page), &[1_000, 10_000]);
        assert!(written.contains("| index | 2.00 (3.00) | 20.0 |"), "{written}");
        assert!(written.contains("| other | 0.250 / 0.500 (1.25 / 1.50) |  |"), "{written}");
        // The next run compares with the new figures of the page, not with their earlier ones.
        let next = table.to_markdown(&CommittedTable::read(&written), &[1_000, 10_000]);
        assert!(next.contains("| index | 2.00 (2.00) | 20.0 (20.0) |"), "{next}");
    }
}
