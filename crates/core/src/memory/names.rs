//! What two names alone say about whether they mean one thing.
//!
//! A number, a version, a date or a single letter always tells two things apart: `Release 1.2` is not `Release 1.3`. So does
//! one word that the other name has no like for: `Fix login` is not `Fix logout`, and two that differ in which way it goes:
//! `Import from Oracle` is not `Import to Oracle`. Other spellings of the same words are the same: case, order, hyphens, a slip
//! of the finger in a long word. Anything else is left open.

use super::model::name_key;
use crate::search::slips;
use crate::search::words::{WordKind, unaccented, words};

/// What names say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Comparison {
    /// The same words, spelt alike.
    Same {
        /// 0 but for slips.
        distance: f32,
    },
    /// Different things.
    Apart,
    /// Names alone do not tell.
    Open,
}

/// Words that tell nothing.
const FILLERS: [&str; 5] = ["the", "a", "an", "and", "or"];

/// Words that may be left out, and tell something only where the other name has another one in their place.
const PREPOSITIONS: [&str; 9] = ["of", "for", "in", "on", "at", "to", "with", "by", "from"];

/// What one slip adds to the distance, as a share of the words.
const SLIP: f32 = 0.2;

/// In shorter words a letter more or less makes another word.
const SHORTEST_SLIP: usize = 5;

/// In shorter words a letter that is doubled makes another word.
const SHORTEST_DOUBLING: usize = 9;

/// Compares two names.
pub(super) fn compare(a: &str, b: &str) -> Comparison {
    Words::of(a).compare(&Words::of(b))
}

/// Whether two names leave no doubt that they mean two things: see [`Words::tell_apart`].
pub(super) fn tells_apart(a: &str, b: &str) -> bool {
    Words::of(a).tell_apart(&Words::of(b))
}

/// The words of a name, ready to be compared with those of many.
pub(super) struct Words {
    /// Those with digits, and single letters, in their order.
    telling: Vec<String>,
    /// The others, sorted.
    plain: Vec<String>,
    /// Letters and digits in their order, a mark between two numbers: however a name is cut into words, it is the same.
    spelled: String,
    /// The whole name with each letter once that stands twice in a row. Digits do not count twice.
    undoubled: Vec<char>,
    /// Prepositions, each with the word that it leads to.
    led: Vec<(String, String)>,
    /// Emoji.
    pictures: Vec<String>,
}

impl Words {
    pub(super) fn of(name: &str) -> Self {
        let key = unaccented(name_key(name));
        let cut = key.split(|c: char| c.is_whitespace() || "/|,;:()[]{}\"_".contains(c)).map(bare);
        let mut words: Vec<String> = cut.filter(|word| !word.is_empty() && !FILLERS.contains(&word.as_str())).collect();
        let is_preposition = |word: &String| PREPOSITIONS.contains(&word.as_str());
        let pairs = words.windows(2).filter(|pair| is_preposition(&pair[0]) && !is_preposition(&pair[1]));
        let led = pairs.map(|pair| (pair[0].clone(), pair[1].clone())).collect();
        words.retain(|word| !is_preposition(word));
        let mut spelled = String::new();
        for word in &words {
            let digits_meet =
                spelled.ends_with(|c: char| c.is_ascii_digit()) && word.starts_with(|c: char| c.is_ascii_digit());
            if digits_meet {
                spelled.push(' ');
            }
            spelled.push_str(word);
        }
        let (telling, mut plain): (Vec<String>, Vec<String>) = words.into_iter().partition(|word| tells(word));
        plain.sort_unstable();
        // Looked for only where one could be: every name of a big memory comes by here.
        let pictures = if key.is_ascii() { Vec::new() } else { emoji(&key) };
        Self { telling, plain, spelled, undoubled: undoubled(&key), led, pictures }
    }

    fn compare(&self, other: &Self) -> Comparison {
        match self.compare_words(other) {
            Comparison::Same { .. } if self.leads_elsewhere(other) || self.shows_another(other) => Comparison::Apart,
            said => said,
        }
    }

    /// Whether the prepositions of two names that have the same words tell them apart: another one before the same word, as
    /// in `Migration to PostgreSQL` and `Migration from PostgreSQL`, or another word behind the same one, as in `JSON to
    /// YAML` and `YAML to JSON`.
    fn leads_elsewhere(&self, other: &Self) -> bool {
        let is_same = |a: &(String, String), b: &(String, String)| a.0 == b.0 && (a.1 == b.1 || is_slip(&a.1, &b.1));
        let has_own = |these: &[(String, String)], those: &[(String, String)]| {
            these.iter().any(|one| !those.iter().any(|other| is_same(one, other)))
        };
        has_own(&self.led, &other.led) && has_own(&other.led, &self.led)
    }

    /// Whether each of two names has a picture that the other has not. One that only the one has may be an ornament.
    fn shows_another(&self, other: &Self) -> bool {
        let has_own = |these: &[String], those: &[String]| these.iter().any(|picture| !those.contains(picture));
        has_own(&self.pictures, &other.pictures) && has_own(&other.pictures, &self.pictures)
    }

    fn compare_words(&self, other: &Self) -> Comparison {
        // Numbers tell in their order: 5/1 is another day than 1/5.
        if self.telling != other.telling {
            let is_cut_otherwise = self.spelled == other.spelled;
            return if is_cut_otherwise { Comparison::Same { distance: 0.0 } } else { Comparison::Apart };
        }
        if self.together() == other.together() {
            return Comparison::Same { distance: 0.0 };
        }
        let mut unmatched: Vec<&str> = other.plain.iter().map(String::as_str).collect();
        let (mut alone, mut slips) = (0_usize, 0_usize);
        for word in &self.plain {
            let same = unmatched.iter().position(|other| other == word);
            let alike = || unmatched.iter().position(|other| is_slip(word, other));
            match same.map(|place| (place, 0)).or_else(|| alike().map(|place| (place, 1))) {
                Some((place, slip)) => {
                    unmatched.swap_remove(place);
                    slips += slip;
                }
                None => alone += 1,
            }
        }
        match (alone, unmatched.len()) {
            (0, 0) => Comparison::Same { distance: SLIP * slips as f32 / self.plain.len().max(1) as f32 },
            // A model number or an error's code names a thing by itself: a word more beside it is a remark.
            (0, 1) | (1, 0) if self.telling.iter().any(|word| identifies(word)) => Comparison::Open,
            (0 | 1, 0 | 1) => Comparison::Apart,
            _ => Comparison::Open,
        }
    }

    /// Whether two names leave no doubt that they mean two things. A letter doubled or not, as in `Apolo` and `Apollo`,
    /// leaves some: too little to hold back what is new, enough for a person to look at.
    pub(super) fn tell_apart(&self, other: &Self) -> bool {
        let differ_in_doubling = self.undoubled.len() >= SHORTEST_SLIP && self.undoubled == other.undoubled;
        !differ_in_doubling && self.compare(other) == Comparison::Apart
    }

    /// Every letter, however it is cut into words.
    fn together(&self) -> String {
        self.telling.iter().chain(&self.plain).map(String::as_str).collect()
    }
}

/// A name's key with each letter once that stands twice in a row.
fn undoubled(key: &str) -> Vec<char> {
    let mut letters: Vec<char> = key.chars().collect();
    letters.dedup_by(|a, b| a == b && a.is_alphabetic());
    letters
}

fn emoji(key: &str) -> Vec<String> {
    words(key).filter(|word| word.kind == WordKind::Emoji).map(|word| word.text.to_owned()).collect()
}

/// A word without what joins its parts; a point between digits stays, for it makes a version, and so does a minus before a
/// number. Of what has no letters at all only what compares is a word.
fn bare(word: &str) -> String {
    if compares(word) {
        return word.to_owned();
    }
    let chars: Vec<char> = word.chars().collect();
    let digit = |place: usize| chars.get(place).is_some_and(char::is_ascii_digit);
    let keep = |place: usize| match chars[place] {
        '+' | '#' => true,
        '-' if place == 0 => digit(1),
        '.' | '-' => place > 0 && digit(place - 1) && digit(place + 1),
        c => c.is_alphanumeric(),
    };
    (0..chars.len()).filter(|place| keep(*place)).map(|place| chars[place]).collect()
}

fn tells(word: &str) -> bool {
    let mut chars = word.chars();
    let is_single = chars.next().is_some_and(|c| c.is_ascii()) && chars.next().is_none();
    is_single || compares(word) || word.chars().any(char::is_numeric)
}

/// Whether a word is a sign like `<` or `!=`.
fn compares(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| "<>=!".contains(c))
}

/// Whether a word is a code that hardly two things share: letters and digits mixed, and not short.
fn identifies(word: &str) -> bool {
    word.chars().count() >= 5 && word.chars().any(char::is_alphabetic) && word.chars().any(char::is_numeric)
}

/// Whether two words are one with a slip of the finger, or one in the plural. Short words are not: `cat` is not `car`. Nor are
/// those of middling length of which one has a letter doubled: `desert` is not `dessert`, but `modelling` is `modeling`.
fn is_slip(a: &str, b: &str) -> bool {
    if is_run(a) || is_run(b) {
        // Each character tells: 有効 is not 無効. A long vowel is written or not.
        let short = |word: &str| word.replace('ー', "");
        return short(a) == short(b);
    }
    let (a_chars, b_chars): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let (short, long) = (a_chars.len().min(b_chars.len()), a_chars.len().max(b_chars.len()));
    if a.strip_suffix('s') == Some(b) || b.strip_suffix('s') == Some(a) {
        return short >= 3;
    }
    if short < 6 || a_chars[0] != b_chars[0] {
        return false;
    }
    if long < SHORTEST_DOUBLING && undoubled(a) == undoubled(b) {
        return false;
    }
    // Another letter where words begin or end makes another word: `upload` is not `unload`, nor `employer` `employee`.
    let differing = || a_chars.iter().zip(&b_chars).enumerate().filter(|(_, (a, b))| a != b).map(|(place, _)| place);
    if short == long && differing().count() == 1 && differing().all(|place| place < 3 || place == long - 1) {
        return false;
    }
    // A vowel more is an ending: `Daniel` is not `Daniela`.
    let longer = if a_chars.len() == long { &a_chars } else { &b_chars };
    if long == short + 1 && differing().count() == 0 && longer.last().is_some_and(|last| "aeiouy".contains(*last)) {
        return false;
    }
    // Two slips are not believed where words begin: `onboarding` is not `offboarding`, nor `hypertension` `hypotension`.
    let allowed = if long >= 10 && a_chars[..5] == b_chars[..5] { 2 } else { 1 };
    slips(&a_chars, &b_chars, allowed).is_some()
}

/// Whether a word has characters of scripts that put no spaces between words.
fn is_run(word: &str) -> bool {
    !word.is_ascii() && words(word).any(|word| word.kind == WordKind::Run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_tell_in_their_order() {
        for (a, b) in [
            ("Standup 5/1/2024", "Standup 1/5/2024"),
            ("Phase 1 Milestone 2", "Phase 2 Milestone 1"),
            ("Lot 1 23", "Lot 12 3"),
        ] {
            assert_eq!(compare(a, b), Comparison::Apart, "{a} and {b}");
        }
        assert_eq!(compare("Python 3", "Python3"), Comparison::Same { distance: 0.0 });
    }

    #[test]
    fn one_word_number_version_date_or_letter_tells_two_things_apart() {
        for (a, b) in [
            ("Fix login", "Fix logout"),
            ("Release 1.2", "Release 1.3"),
            ("Release 1.2", "Release 12"),
            ("Server A", "Server B"),
            ("Report 2024-05-01", "Report 2024-05-02"),
            ("Sprint 7", "Sprint 8 "),
            ("iPhone 12", "iPhone 12 Pro"),
            ("Auth service", "Auth service rewrite"),
            ("Python 2", "Python 3"),
            ("staging database", "production database"),
            ("test", "text"),
            ("User model", "User module"),
            ("C", "C++"),
            ("Migration to PostgreSQL", "Migration from PostgreSQL"),
            ("Import from Oracle", "Import to the Oracle"),
            ("Meeting with Bob", "Meeting for Bob"),
            ("Deploy with Docker", "Deploy without Docker"),
            ("Convert JSON to YAML", "Convert YAML to JSON"),
            ("Onboarding guide", "Offboarding guide"),
            ("Desert map", "Dessert map"),
            ("Upload worker", "Unload worker"),
            ("Reader component", "Render component"),
            ("Daniel Lee", "Daniela Lee"),
            ("Employer record", "Employee record"),
            ("Hypertension", "Hypotension"),
            ("Intercellular space", "Intracellular space"),
            ("Temperature -5", "Temperature 5"),
            ("Operator <", "Operator >"),
            ("Operator ==", "Operator !="),
            ("🚀 launch", "🎉 launch"),
            ("プロジェクトA", "プロジェクトB"),
            ("コンポーネントX", "コンポーネントY"),
            ("クラスターα", "クラスターβ"),
            ("キャッシュの有効化", "キャッシュの無効化"),
            ("公開リポジトリ一覧", "非公開リポジトリ一覧"),
        ] {
            assert_eq!(compare(a, b), Comparison::Apart, "{a} / {b}");
            assert_eq!(compare(b, a), Comparison::Apart, "{b} / {a}");
        }
    }

    #[test]
    fn other_spellings_are_the_same_thing() {
        for (a, b) in [
            ("Auth Service", "auth-service"),
            ("auth_service", "AuthService"),
            ("Service, Auth", "The Auth Service"),
            ("PS-LX350H turntable", "PSLX350H Turntable"),
            ("Payment gateway", "Payment gatway"),
            ("Unit tests", "Unit test"),
            ("Paymnet gateway", "Payment gateway"),
            ("Auth - service", "Auth service"),
            ("Café Noir", "Cafe Noir"),
            ("Straße 5", "Strasse 5"),
            ("Café Über", "cafe\u{301} u\u{308}ber"),
            ("Data modelling", "Data modeling"),
            ("Guide to Rust", "Rust guide"),
            ("Guide to Rust", "Rust, guide to"),
            ("Report for May on sales", "Report on sales for May"),
            ("Migration to Postgresql", "Migration to Postgresq"),
            ("🚀 Launch", "Launch"),
            ("データベースサーバー", "データベースサーバ"),
        ] {
            let same = compare(a, b);
            assert!(matches!(same, Comparison::Same { distance } if distance < 0.25), "{a} / {b}: {same:?}");
        }
    }

    #[test]
    fn a_doubled_letter_is_worth_a_look() {
        for (a, b) in [("Apolo", "Apollo"), ("Comit hook", "Commit hook"), ("Jeffry", "Jefry")] {
            assert!(!tells_apart(a, b), "{a} / {b}");
        }
        for (a, b) in [("Apollo", "Apollo 11"), ("Lot 11", "Lot 1"), ("col", "cool"), ("Apollo", "Polo")] {
            assert!(tells_apart(a, b), "{a} / {b}");
        }
        assert_eq!(compare("Diner", "Dinner"), Comparison::Apart, "it holds nothing back");
    }

    #[test]
    fn several_other_words_leave_it_open() {
        assert_eq!(compare("Login page is slow", "Slow response when signing in"), Comparison::Open);
        assert_eq!(compare("Sony turntable PSLX350H", "Sony belt-drive turntable PS-LX350H"), Comparison::Open);
        assert_eq!(compare("Report Q3FY24 draft", "Report Q3FY24 final"), Comparison::Apart);
        assert_eq!(compare("Postgres", "PostgreSQL database server"), Comparison::Open);
    }
}
