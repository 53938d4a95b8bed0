//! Observations of one entity that contradict each other, as far as their words show it: the same statement with another
//! number or date, with another month or weekday of a plan, or once with and once without a negation.
//!
//! The rule is strict on purpose: all other words must be the same and in the same order, and one number differs. Where several
//! differ, or the number names what the statement is about, there are two facts: `Ran 5 km on 3 May` and `Ran 7 km on 10 May`,
//! `PR #12 was merged` and `PR #15 was merged`. It has no alarm on the 1,210 observations of the conversations in `mem-locomo`.

use rustc_hash::FxHashMap;

use super::model::{Observation, ObservationId};
use crate::calendar::{MONTHS, WEEKDAYS};

/// Words that turn a statement into its opposite.
const NEGATIONS: [&str; 7] = ["not", "no", "never", "without", "cannot", "nicht", "kein"];

/// Words that a negation brings along, and articles.
const IGNORED: [&str; 6] = ["do", "does", "did", "a", "an", "the"];

/// Statements with fewer other words say too little: "Version 2" may follow "Version 1".
const MIN_WORDS: usize = 2;

/// Words before the day of an event, which may happen again on another day.
const BEFORE_DAYS: [&str; 2] = ["on", "at"];

/// Words before the month or weekday of a plan. In `the report for March is done` the month names the subject.
const BEFORE_MONTHS: [&str; 6] = ["in", "on", "by", "until", "is", "due"];

/// With these a day is the day of a plan, of which there is one.
const PLANNING: [&str; 6] = ["is", "are", "will", "due", "planned", "scheduled"];

/// What a text states, without its numbers and negations.
struct Statement {
    /// The other words, with `#` for each number, month and weekday.
    frame: String,
    numbers: Vec<Number>,
    is_negated: bool,
}

/// A number, a date, a month or a weekday.
struct Number {
    text: String,
    /// Whether it may be the value of the statement: not the name of its subject, nor the day of an event.
    is_value: bool,
}

/// Pairs of observations that contradict each other, each with the older first. Of a statement with many values, each one is
/// paired with the newest.
pub fn contradictions(observations: &[Observation]) -> Vec<(ObservationId, ObservationId)> {
    let mut by_frame: FxHashMap<String, Vec<(&Observation, Statement)>> = FxHashMap::default();
    for observation in observations {
        if let Some(statement) = Statement::of(&observation.text) {
            by_frame.entry(statement.frame.clone()).or_default().push((observation, statement));
        }
    }
    let mut found = Vec::new();
    for mut stated in by_frame.into_values() {
        stated.sort_by_key(|(observation, _)| observation.id);
        let Some((newest, last)) = stated.pop() else { continue };
        let older = stated.iter().filter(|(_, statement)| statement.contradicts(&last));
        found.extend(older.map(|(observation, _)| (observation.id, newest.id)));
    }
    found.sort_unstable();
    found
}

impl Statement {
    fn of(text: &str) -> Option<Self> {
        let mut statement = Self { frame: String::new(), numbers: Vec::new(), is_negated: false };
        let mut words = 0;
        let mut before = String::new();
        let text = text.to_lowercase();
        let is_plan = text.split_whitespace().any(|word| PLANNING.contains(&word));
        let mut is_planned = false;
        let mut written = text.split(|c: char| c.is_whitespace() || "\"()[]{};!?".contains(c)).peekable();
        while let Some(word) = written.next() {
            let is_reference = word.starts_with('#');
            let word = word.trim_matches(|c: char| !c.is_alphanumeric());
            if word.is_empty() {
                continue;
            }
            if is_month(word) || WEEKDAYS.contains(&word) {
                let is_value = words >= MIN_WORDS && is_planned && BEFORE_MONTHS.contains(&before.as_str());
                statement.numbers.push(Number { text: word.to_owned(), is_value });
                statement.frame.push_str("# ");
                word.clone_into(&mut before);
                continue;
            }
            if word.starts_with(|c: char| c.is_ascii_digit()) {
                // The beginning is enough: months of several languages share it.
                let is_in_month =
                    written.peek().is_some_and(|next| MONTHS.iter().any(|month| next.starts_with(&month[..3])));
                let is_day = BEFORE_DAYS.contains(&before.as_str()) && (is_date(word) || is_in_month) && !is_plan;
                let is_value = words >= MIN_WORDS && !is_reference && !is_day;
                statement.numbers.push(Number { text: word.to_owned(), is_value });
                statement.frame.push_str("# ");
                word.clone_into(&mut before);
                continue;
            }
            is_planned |= PLANNING.contains(&word);
            word.clone_into(&mut before);
            let stem = word.strip_suffix("n't").or_else(|| word.strip_suffix("n’t"));
            if stem.is_some() || NEGATIONS.contains(&word) {
                statement.is_negated = !statement.is_negated;
            }
            let word = stem.unwrap_or(word);
            if NEGATIONS.contains(&word) || IGNORED.contains(&word) {
                continue;
            }
            words += 1;
            // `uses` and, after a negation, `use`.
            let plain = word.strip_suffix('s').filter(|plain| plain.len() > 2 && !plain.ends_with('s'));
            statement.frame.push_str(plain.unwrap_or(word));
            statement.frame.push(' ');
        }
        (words >= MIN_WORDS).then_some(statement)
    }

    /// Whether one of two statements with the same frame is wrong: one number differs, or else the negation.
    fn contradicts(&self, other: &Self) -> bool {
        let pairs = self.numbers.iter().zip(&other.numbers);
        let differing: Vec<&Number> = pairs.filter(|(a, b)| a.text != b.text).map(|(a, _)| a).collect();
        match differing[..] {
            [] => self.is_negated != other.is_negated,
            [number] => number.is_value && self.is_negated == other.is_negated,
            _ => false,
        }
    }
}

/// The name of a month, or its first three letters.
fn is_month(word: &str) -> bool {
    MONTHS.iter().any(|month| *month == word || month[..3] == *word)
}

/// `2026-03-01`, `3.4.2026`, `3/4`
fn is_date(word: &str) -> bool {
    let parts: Vec<&str> = word.split(['-', '.', '/']).collect();
    (2..=3).contains(&parts.len()) && parts.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::super::model::EntityId;
    use super::*;

    fn pairs(texts: &[&str]) -> Vec<(i64, i64)> {
        let observation = |(place, text): (usize, &&str)| Observation {
            id: ObservationId(place as i64),
            entity: EntityId(1),
            text: (*text).to_owned(),
            created_ns: 0,
            updated_ns: 0,
        };
        let observations: Vec<Observation> = texts.iter().enumerate().map(observation).collect();
        contradictions(&observations).into_iter().map(|(a, b)| (a.0, b.0)).collect()
    }

    #[test]
    fn another_number_date_or_negation_contradicts() {
        for (a, b) in [
            ("The API listens on port 8080.", "The API listens on port 9090"),
            ("Deadline is 2026-03-01", "Deadline is 2026-04-01"),
            ("Ada eats meat", "Ada does not eat meat"),
            ("Ada eats meat", "Ada doesn't eat meat."),
            ("The build is green", "The build isn't green"),
            ("We deploy on 5 servers", "We deploy on 12 servers"),
            ("The launch is on 2026-03-01", "The launch is on 2026-04-01"),
            ("The service needs 2 GB of memory", "The service needs 4 GB of memory"),
            ("The launch is in March", "The launch is in April"),
            ("The launch is planned for 3 May", "The launch is planned for 4 May"),
            ("The launch is in March 2026.", "The launch is in Apr 2026."),
            ("The weekly review is on Monday", "The weekly review is on Thursday."),
            ("The report is due by Friday", "The report is due by Monday"),
        ] {
            assert_eq!(pairs(&[a, b]), [(0, 1)], "{a} / {b}");
        }
    }

    #[test]
    fn other_facts_do_not() {
        for (a, b) in [
            ("Likes apples", "Likes pears"),
            ("Lives in Leeds", "Has lived in Leeds since 2020"),
            ("Version 1", "Version 2"),
            ("Port 8080 is open", "Port 8080 is open."),
            ("Met Bob on 3 May", "Met Ann on 4 May"),
            ("Uses SQLite", "Uses SQLite for tests, not for users"),
            ("No, the answer is not 5", "The answer is 5"),
            ("Ran 5 km on 3 May", "Ran 7 km on 10 May"),
            ("Ran 5 km in the park", "Ran 7 km in the park"),
            ("Version 1.2 was released on 2026-01-01", "Version 1.3 was released on 2026-02-01"),
            ("PR #12 fixed the bug", "PR #15 fixed the bug"),
            ("The bug was fixed in PR #12", "The bug was fixed in PR #15"),
            ("Met Bob on 3 May", "Met Bob on 14 May"),
            ("On 2026-01-05 the build failed", "On 2026-01-09 the build failed"),
            ("The build failed on 2026-01-05", "The build failed on 2026-01-09"),
            ("The API does not listen on port 8080", "The API listens on port 9090"),
            ("Met Bob in March", "Met Bob in April"),
            ("Met Bob on 3 May", "Met Bob on 3 June"),
            ("Swims with Ann on Monday", "Swims with Ann on Friday"),
            ("The report for March is done", "The report for April is done"),
            ("The invoice of March is due", "The invoice of April is due"),
            ("March is a busy month", "April is a busy month"),
            ("The server may fail", "The server can fail"),
        ] {
            assert_eq!(pairs(&[a, b]), [], "{a} / {b}");
        }
    }

    #[test]
    fn each_value_is_compared_with_the_newest() {
        assert_eq!(pairs(&["Team has 3 people", "Team has 4 people", "Team has 5 people"]), [(0, 2), (1, 2)]);
    }
}
