//! Names found by their spelling, with what the words around them tell: a person has a title, an address or a verb of speech;
//! a capital letter alone says little, since products, headings and the first word of a sentence have one too.

use rustc_hash::{FxHashMap, FxHashSet};

use super::name_clues::{
    BEFORE_WITH, COMMON, DONE_BY, FIRST_KINDS, KINDS, PARTICLES, PEOPLE, TITLES, VERBS, VERBS_AFTER, VERBS_BEFORE,
};
use crate::calendar::{MONTHS, WEEKDAYS};
use crate::memory::name_key;

/// Confidence by evidence.
const ADDRESSED: f32 = 0.75;
const HANDLE: f32 = 0.7;
const SPEAKING: f32 = 0.6;
const KIND_IN_NAME: f32 = 0.5;
const CODE: f32 = 0.5;
const REPEATED: f32 = 0.4;
const REPEATED_WORD: f32 = 0.3;
const REPEATED_SUBJECT: f32 = 0.3;
const ONCE: f32 = 0.2;

/// The type of a named thing of which the text does not tell the type.
pub(super) const UNKNOWN_TYPE: &str = "Resource";

const PERSON: &str = "User";

/// Where more of the words inside sentences have a capital letter, all nouns have one, as in German.
const MANY_CAPITALS: f32 = 0.25;

/// A name, and where it is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SpelledName {
    pub(super) name: String,
    pub(super) entity_type: &'static str,
    pub(super) confidence: f32,
    /// Numbers of its lines, from 1, each once.
    pub(super) lines: Vec<usize>,
}

#[derive(Default)]
struct Candidate {
    name: String,
    lines: Vec<usize>,
    /// Whether a capital letter was not the one of a new sentence.
    is_inside: bool,
    /// How many sentences start with it and go on.
    subjects: usize,
    /// The best evidence, with the type that it tells.
    evidence: Option<(f32, &'static str)>,
}

/// Names in a text whose first `frontmatter_lines` lines are frontmatter.
pub(super) fn spelled_names(text: &str, frontmatter_lines: usize) -> Vec<SpelledName> {
    let mut scan = SpellingScan::default();
    let mut is_code = false;
    let mut is_people = false;
    for (number, line) in text.lines().enumerate() {
        if number < frontmatter_lines {
            is_people = scan.property(line, number + 1, is_people);
            continue;
        }
        let start = line.trim_start();
        if start.starts_with("```") || start.starts_with("~~~") {
            is_code = !is_code;
        } else if !is_code && !start.starts_with('#') {
            scan.line(line, number + 1);
        }
    }
    scan.finish()
}

/// A word of a line.
struct SpelledToken<'l> {
    word: &'l str,
    /// Whether punctuation after it ends a name, and a sentence.
    ends_name: bool,
    ends_sentence: bool,
}

#[derive(Default)]
struct SpellingScan {
    candidates: Vec<Candidate>,
    by_key: FxHashMap<String, usize>,
    /// Words inside sentences: all, and those with a capital letter.
    words: usize,
    capitals: usize,
    /// Words in lower case: at the start of a sentence such a word is no name.
    lower: FxHashSet<String>,
}

impl SpellingScan {
    /// Reads a line of the frontmatter. Returns whether the next line may continue a list of people.
    fn property(&mut self, line: &str, number: usize, is_people: bool) -> bool {
        let (names, is_people) = match line.split_once(':').filter(|(key, _)| !key.starts_with([' ', '-'])) {
            Some((key, names)) => (names, PEOPLE.contains(&key.trim().to_lowercase().as_str())),
            None => (line.trim_start().trim_start_matches('-'), is_people && line.trim_start().starts_with('-')),
        };
        for name in names.split([',', '[', ']']).filter(|_| is_people) {
            let name = name.trim().trim_matches(['"', '\'']).trim();
            if !name.is_empty() && name.split(' ').all(|word| is_capitalised(word) || PARTICLES.contains(&word)) {
                self.add(name, number, true, Some((ADDRESSED, PERSON)));
            }
        }
        is_people
    }

    fn line(&mut self, line: &str, number: usize) {
        for word in line.split('`').skip(1).step_by(2).map(str::trim).filter(|word| is_camel_case(word)) {
            self.add(word, number, true, Some((CODE, "Component")));
        }
        let prose = prose(line);
        let tokens: Vec<SpelledToken<'_>> = prose.split_whitespace().map(SpelledToken::of).collect();
        let mut at = 0;
        // Where the next name may begin.
        let mut nameless_until = 0;
        // Whether the next word starts a sentence, where a capital letter says nothing.
        let mut starts = true;
        while at < tokens.len() {
            let token = &tokens[at];
            let length = if at < nameless_until {
                0
            } else {
                let (length, seen) = run_length(&tokens[at..]);
                nameless_until = at + seen;
                length
            };
            if !starts && token.word.chars().any(char::is_alphabetic) {
                self.words += 1;
                self.capitals += usize::from(length > 0);
            }
            if let Some(handle) = handle(token.word) {
                self.add(handle, number, true, Some((HANDLE, PERSON)));
            }
            if length > 0 {
                self.run(&tokens, at..at + length, number, !starts);
            } else if token.word.starts_with(char::is_lowercase) && !self.lower.contains(token.word) {
                self.lower.insert(token.word.to_owned());
            }
            at += length.max(1);
            starts = tokens[at - 1].ends_sentence;
        }
    }

    /// A run of words with capital letters.
    fn run(&mut self, tokens: &[SpelledToken<'_>], run: std::ops::Range<usize>, line: usize, is_inside: bool) {
        let is_common = |at: &usize| {
            let word = tokens[*at].word.to_lowercase();
            [&COMMON[..], &MONTHS, &WEEKDAYS].iter().any(|words| words.contains(&word.as_str()))
        };
        let start = run.clone().find(|at| !is_common(at)).unwrap_or(run.end);
        let is_inside = is_inside || start > run.start;
        let words: Vec<&str> = tokens[start..run.end].iter().map(|token| token.word).collect();
        let dotted = |word: &&str| if is_initial(word) { format!("{word}.") } else { (*word).to_owned() };
        let name = words.iter().map(dotted).collect::<Vec<_>>().join(" ");
        let lower = |at: Option<usize>| {
            at.and_then(|at| tokens.get(at)).map(|token| token.word.to_lowercase()).unwrap_or_default()
        };
        let before = lower(start.checked_sub(1));
        let before_that = lower(start.checked_sub(2));
        let after = lower(Some(run.end));
        let ends_there = tokens[run.end - 1].ends_sentence;
        let has_address = !ends_there && after.contains('@');
        let is_person = VERBS_BEFORE.contains(&before.as_str())
            || VERBS.contains(&before.as_str())
            || (!ends_there && [&VERBS[..], &VERBS_AFTER].iter().any(|verbs| verbs.contains(&after.as_str())))
            || (before == "by" && DONE_BY.contains(&before_that.as_str()))
            || (before == "with" && BEFORE_WITH.contains(&before_that.as_str()));
        let tells = |word: Option<&&str>, kinds: &[(&str, &'static str)]| {
            let word = word.filter(|_| words.len() > 1)?.to_lowercase();
            kinds.iter().find(|(told_by, _)| *told_by == word).map(|(_, kind)| *kind)
        };
        let kind = tells(words.last(), &KINDS).or_else(|| tells(words.first(), &FIRST_KINDS));
        let evidence = match kind {
            Some(kind) => Some((KIND_IN_NAME, kind)),
            None if words.is_empty() => return,
            None if TITLES.contains(&before.as_str()) || has_address => Some((ADDRESSED, PERSON)),
            None if is_person => Some((SPEAKING, PERSON)),
            None if words.len() == 1 && is_camel_case(&name) => Some((REPEATED, UNKNOWN_TYPE)),
            None => None,
        };
        let at = self.add(&name, line, is_inside, evidence);
        let goes_on = !ends_there && tokens.get(run.end).is_some_and(|next| next.word.starts_with(char::is_lowercase));
        self.candidates[at].subjects += usize::from(goes_on && !is_inside);
    }

    fn add(&mut self, name: &str, line: usize, is_inside: bool, evidence: Option<(f32, &'static str)>) -> usize {
        let at = *self.by_key.entry(name_key(name)).or_insert_with(|| {
            self.candidates.push(Candidate { name: name.to_owned(), ..Candidate::default() });
            self.candidates.len() - 1
        });
        let candidate = &mut self.candidates[at];
        candidate.is_inside |= is_inside;
        if candidate.lines.last() != Some(&line) {
            candidate.lines.push(line);
        }
        let confidence = |evidence: Option<(f32, &str)>| evidence.map_or(0.0, |(confidence, _)| confidence);
        if confidence(evidence) > confidence(candidate.evidence) {
            candidate.evidence = evidence;
        }
        at
    }

    fn finish(self) -> Vec<SpelledName> {
        let has_many_capitals = self.capitals as f32 > MANY_CAPITALS * self.words as f32;
        let is_lower = |name: &str| self.lower.contains(&name.split(' ').next().unwrap_or_default().to_lowercase());
        let named = self.candidates.into_iter().filter_map(|candidate| {
            let is_repeated = candidate.lines.len() > 1 && candidate.is_inside;
            let is_word = !candidate.name.contains(' ');
            let (confidence, entity_type) = match candidate.evidence {
                Some(evidence) => evidence,
                None if is_word && (!is_repeated || has_many_capitals) => return None,
                None if is_word => (REPEATED_WORD, UNKNOWN_TYPE),
                None if is_repeated => (REPEATED, UNKNOWN_TYPE),
                None if candidate.is_inside => (ONCE, UNKNOWN_TYPE),
                None if candidate.subjects > 1 && !has_many_capitals && !is_lower(&candidate.name) => {
                    (REPEATED_SUBJECT, UNKNOWN_TYPE)
                }
                None => return None,
            };
            Some(SpelledName { name: candidate.name, entity_type, confidence, lines: candidate.lines })
        });
        named.collect()
    }
}

impl<'l> SpelledToken<'l> {
    fn of(written: &'l str) -> Self {
        let word = written.trim_matches(|c: char| !c.is_alphanumeric() && c != '@');
        let word = word.strip_suffix("'s").or_else(|| word.strip_suffix("’s")).unwrap_or(word);
        let is_short = is_initial(word) || TITLES.contains(&word.to_lowercase().as_str());
        let end = written.trim_end_matches(['"', '\'', '”', '’', ')', '*', '_']);
        let ends_sentence = end.ends_with(['.', '!', '?', ':', '|']) && !(is_short && end.ends_with('.'));
        let ends_sentence = ends_sentence || word.is_empty();
        let ends_name = ends_sentence || written.ends_with([',', ';', ')', '"', '”', '—']) || written.len() > end.len();
        Self { word, ends_name, ends_sentence }
    }
}

/// How many tokens at the start of a list make a name: words with capital letters, with initials and particles among them. Also how
/// many were looked at: no name starts among the others of these, so that a line of initials is read once.
fn run_length(tokens: &[SpelledToken<'_>]) -> (usize, usize) {
    let is_title = |token: &SpelledToken<'_>| TITLES.contains(&token.word.to_lowercase().as_str());
    let is_name =
        |token: &SpelledToken<'_>| (is_capitalised(token.word) || is_camel_case(token.word)) && !is_title(token);
    let mut length = 0;
    for (at, token) in tokens.iter().enumerate() {
        if is_name(token) || (at > 0 && is_acronym(token.word)) {
            length = at + 1;
        }
        let goes_on = length > at || is_initial(token.word) || (at > 0 && PARTICLES.contains(&token.word));
        if !goes_on || token.ends_name {
            return (length, at + 1);
        }
    }
    (length, tokens.len())
}

/// A line without code, links to notes and addresses, which are found in other ways or are no prose.
fn prose(line: &str) -> String {
    let mut prose = String::with_capacity(line.len());
    for (number, part) in line.split('`').enumerate() {
        prose.push_str(if number % 2 == 0 { part } else { " – " });
    }
    for (open, close) in [("[[", "]]"), ("](", ")"), ("<http", ">"), ("http", " ")] {
        prose = replaced(&prose, (open, close), if open == "](" { " " } else { " – " });
    }
    prose
}

/// A text with `instead` in place of each part between two marks, marks included. The last may lack its end.
fn replaced(text: &str, (open, close): (&str, &str), instead: &str) -> String {
    let (mut replaced, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(start) = rest.find(open) {
        replaced.push_str(&rest[..start]);
        replaced.push_str(instead);
        rest = rest[start..].find(close).map_or("", |at| &rest[start + at + close.len()..]);
    }
    replaced.push_str(rest);
    replaced
}

fn handle(word: &str) -> Option<&str> {
    let name = word.strip_prefix('@').filter(|name| name.len() > 1)?;
    name.chars().all(|c| c.is_alphanumeric() || "-_".contains(c)).then_some(name)
}

/// `E` in `Donald E. Knuth`.
fn is_initial(word: &str) -> bool {
    word.chars().count() == 1 && word.chars().all(char::is_uppercase)
}

/// `API`; a longer word may be shouted.
fn is_acronym(word: &str) -> bool {
    (2..=5).contains(&word.len()) && word.chars().all(|c| c.is_ascii_uppercase())
}

/// `Ada`, `Jean-Luc`, `O'Brien`, `McCarthy`.
fn is_capitalised(word: &str) -> bool {
    let is_part = |part: &str| {
        let part = part.strip_prefix("Mc").unwrap_or(part);
        let mut letters = part.chars();
        letters.next().is_some_and(char::is_uppercase) && letters.all(char::is_lowercase)
    };
    word.chars().count() > 1 && word.split(['-', '\'', '’']).all(is_part)
}

fn is_camel_case(word: &str) -> bool {
    let is_plain = word.chars().all(char::is_alphanumeric) && word.chars().count() > 3;
    let humps = word.chars().zip(word.chars().skip(1)).filter(|(a, b)| a.is_lowercase() && b.is_uppercase()).count();
    is_plain && humps > 0 && word.starts_with(char::is_uppercase) && !is_capitalised(word)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn found(text: &str) -> Vec<(String, &'static str, f32)> {
        spelled_names(text, 0).into_iter().map(|found| (found.name, found.entity_type, found.confidence)).collect()
    }

    #[test]
    fn people_are_recognized_by_the_words_around_their_names() {
        for (text, name) in [
            ("The plan was reviewed by Grace Hopper.", "Grace Hopper"),
            ("Grace Hopper said that it works.", "Grace Hopper"),
            ("It works, says Guido van Rossum.", "Guido van Rossum"),
            ("A talk with Dr. Ada Lovelace about it.", "Ada Lovelace"),
            ("Ask Donald E. Knuth <knuth@example.org> first.", "Donald E. Knuth"),
            ("We met Jean-Luc McCarthy there.", "Jean-Luc McCarthy"),
            ("That is Grace Hopper's view, as Grace Hopper told us.", "Grace Hopper"),
        ] {
            let found = found(text);
            let is_person = |(named, kind, confidence): &(String, &str, f32)| {
                named == name && *kind == PERSON && *confidence >= SPEAKING
            };
            assert!(found.iter().any(is_person), "{text}: {found:?}");
        }
        assert_eq!(found("Thanks to @ada_l for it."), [("ada_l".to_owned(), PERSON, HANDLE)]);
    }

    #[test]
    fn capitalized_words_alone_are_not_people() {
        assert_eq!(found("It measures rain with the Rain Gauge today."), [("Rain Gauge".into(), UNKNOWN_TYPE, ONCE)]);
        let twice = found("The new Rain Gauge works.\nSo the Rain Gauge stays.");
        assert_eq!(twice, [("Rain Gauge".into(), UNKNOWN_TYPE, REPEATED)]);
        let api = [("Harbour Survey API".into(), "APIEndpoint", KIND_IN_NAME)];
        assert_eq!(found("We use the Harbour Survey API here."), api);
        assert_eq!(found("At Example University they know."), [("Example University".into(), "Organization", 0.5)]);
        assert_eq!(found("# The Big Heading Here\n\n```\nlet Some Code = x;\n```\n"), []);
        assert_eq!(found("Every Monday in March we meet."), []);
        assert_eq!(found("See [[Grace Hopper]] and https://x.org/Some Thing."), []);
        assert_eq!(found("Rain falls. Snow falls. Wind blows."), [], "capitals of sentences");
        let german = "Das Haus hat ein Dach und eine Tür.\nDer Mann im Haus sieht das Dach und die Tür.";
        assert_eq!(found(german), [], "every noun has a capital letter");
    }

    #[test]
    fn names_that_start_a_sentence_need_evidence() {
        let text = "Ada Lovelace met with Charles Babbage at Acme Corp. Project Kestrel uses Postgres.";
        let person = |name: &str| (name.to_owned(), PERSON, SPEAKING);
        let of_kind = |name: &str, kind| (name.to_owned(), kind, KIND_IN_NAME);
        let expected = [
            person("Ada Lovelace"),
            person("Charles Babbage"),
            of_kind("Acme Corp", "Organization"),
            of_kind("Project Kestrel", "Project"),
        ];
        assert_eq!(found(text), expected);
        let subject = [("Rain Gauge".to_owned(), UNKNOWN_TYPE, REPEATED_SUBJECT)];
        assert_eq!(found("Rain Gauge readings came late.\nRain Gauge works again."), subject);
        for text in [
            "Rain Gauge readings came late.",
            "Install Python first.\nPlease install it.\nInstall Python again.",
            "Getting Started\nGetting Started: more\nGetting Started",
            "Project: late. Projects start.",
            "He spoke Russian. She said so.",
        ] {
            assert_eq!(found(text), [], "{text}");
        }
    }

    #[test]
    fn initials_without_a_name_do_not_hide_the_next_name() {
        let names = |text: &str| found(text).into_iter().map(|(name, ..)| name).collect::<Vec<_>>();
        assert_eq!(names("Ask A B C and Ada Lovelace there."), ["Ada Lovelace"]);
        assert_eq!(names("Ask A. van B, C. Ada Lovelace there."), ["C. Ada Lovelace"]);
        assert_eq!(names("Ask Ada L. M. de and Grace Hopper there."), ["Ada", "Grace Hopper"]);
        let text = "See [[A]] [x](A Ada) <http://a/B> http://c/D [y](E) Grace Hopper there, says [[Ada Lovelace";
        assert_eq!(names(text), ["Grace Hopper"]);
    }

    #[test]
    fn time_for_a_line_is_linear() {
        for part in ["A ", "a <!A ", "Ada A ", "A van ", "](x)", "[[a]]", "http ", "`Aa`"] {
            let line = part.repeat(200_000 / part.len());
            let started = Instant::now();
            found(&line);
            // Minutes for initials if it is quadratic.
            assert!(started.elapsed() < Duration::from_secs(10), "{part:?}: {:?}", started.elapsed());
        }
    }

    #[test]
    fn frontmatter_names_people() {
        let text = "---\nauthors: [Ada Lovelace, \"Grace Hopper\"]\nspeaker:\n  - Alan Turing\ntitle: Some Title\n---\nText.\n";
        let names: Vec<(String, Vec<usize>)> =
            spelled_names(text, 6).into_iter().map(|found| (found.name, found.lines)).collect();
        let expected = [("Ada Lovelace", 2), ("Grace Hopper", 2), ("Alan Turing", 4)];
        assert_eq!(names, expected.map(|(name, line)| (name.to_owned(), vec![line])));
    }
}
