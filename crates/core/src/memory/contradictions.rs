//! Observations of one entity that contradict each other, as far as their words show it: the same statement with another
//! number or date, or once with and once without a negation.
//!
//! The rule is strict on purpose: all other words must be the same and in the same order. It has no alarm on the 1,210
//! observations of the conversations in `mem-locomo`.

use rustc_hash::FxHashMap;

use super::model::{Observation, ObservationId};

/// Words that turn a statement into its opposite.
const NEGATIONS: [&str; 7] = ["not", "no", "never", "without", "cannot", "nicht", "kein"];

/// Words that a negation brings along, and articles.
const IGNORED: [&str; 6] = ["do", "does", "did", "a", "an", "the"];

/// Statements with fewer other words say too little: "Version 2" may follow "Version 1".
const MIN_WORDS: usize = 2;

/// What a text states, without its numbers and negations.
struct Statement {
    /// The other words, with `#` for each number.
    frame: String,
    numbers: Vec<String>,
    is_negated: bool,
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
        let differs =
            |statement: &Statement| statement.numbers != last.numbers || statement.is_negated != last.is_negated;
        let older = stated.iter().filter(|(_, statement)| differs(statement));
        found.extend(older.map(|(observation, _)| (observation.id, newest.id)));
    }
    found.sort_unstable();
    found
}

impl Statement {
    fn of(text: &str) -> Option<Self> {
        let mut statement = Self { frame: String::new(), numbers: Vec::new(), is_negated: false };
        let mut words = 0;
        for word in text.to_lowercase().split(|c: char| c.is_whitespace() || "\"()[]{};!?".contains(c)) {
            let word = word.trim_matches(|c: char| !c.is_alphanumeric());
            if word.is_empty() {
                continue;
            }
            if word.starts_with(|c: char| c.is_ascii_digit()) {
                statement.numbers.push(word.to_owned());
                statement.frame.push_str("# ");
                continue;
            }
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
        ] {
            assert_eq!(pairs(&[a, b]), [], "{a} / {b}");
        }
    }

    #[test]
    fn of_many_values_each_is_paired_with_the_newest() {
        assert_eq!(pairs(&["Team has 3 people", "Team has 4 people", "Team has 5 people"]), [(0, 2), (1, 2)]);
    }
}
