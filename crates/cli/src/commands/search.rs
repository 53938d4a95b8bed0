//! `quipu search`: the agents' search by meaning, words and links, or a search by words alone.

use clap::Args;
use quipu_core::Session;
use quipu_core::model::VaultPath;
use quipu_core::ports::{TextMatch, TextQuery};
use quipu_core::search::{NoteSearch, RankingSources};
use serde::{Deserialize, Serialize};

use super::command_vault::{CommandVault, IndexedVault};
use super::output::{Line, Output};
use super::snippet::snippet;
use super::{Failure, Outcome};
use crate::compose::OpenMode;

/// Search the notes by meaning and words, or with --words by words alone.
///
/// Finds notes as the tool `search` does for an agent, best first, each with its best section. With --words, finds sections
/// with the words as a phrase, else with all of them, else with some, and says which. Words may be in any script and need no
/// quotes.
#[derive(Debug, Args, Serialize, Deserialize)]
#[command(after_help = "\
Examples:
  quipu search how is ice kept off the anemometer
  quipu search 放射よけ --limit 3
  quipu search --words frozen anemometer           only where these words are
  quipu search rain gauge --json | jq -r '.hits[].path'

JSON fields:
  query
  matched   \"hybrid\"; with --words \"phrase\", \"all_words\", \"similar_words\" or \"any_word\";
            \"nothing\" without hits
  hits[]    {path, title, heading, line, snippet, score}; heading is null above the first
            heading of a note; scores from 0 to 1 can be compared between searches, with --words
            only within one answer

The exit code is 1 when nothing is found, as with grep.")]
pub(crate) struct Search {
    /// Words or a question.
    #[arg(required = true, value_name = "WORDS")]
    query: Vec<String>,
    /// Search by words alone, section by section.
    #[arg(long)]
    #[serde(default)]
    words: bool,
    /// Show at most this many results.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize, Deserialize)]
pub(super) struct SearchAnswer {
    found: Found,
    without_notes: Option<String>,
}

/// What `--json` prints.
#[derive(Serialize, Deserialize)]
struct Found {
    query: String,
    matched: Matched,
    hits: Vec<Hit>,
}

/// How the query was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Matched {
    Hybrid,
    Phrase,
    AllWords,
    SimilarWords,
    AnyWord,
    Nothing,
}

#[derive(Serialize, Deserialize)]
struct Hit {
    path: String,
    title: String,
    heading: Option<String>,
    /// Line of the snippet, counted from 1.
    line: usize,
    snippet: String,
    score: f32,
}

impl Search {
    pub(super) fn answer(&self, vault: &CommandVault<'_>) -> Result<SearchAnswer, Failure> {
        let query = self.query.join(" ");
        if query.trim().is_empty() {
            return Err(Failure::usage("cannot search: the query is empty")
                .hint("give words, for instance: quipu search frozen anemometer"));
        }
        let ready = vault.open_indexed(OpenMode::Existing)?;
        let limit = usize::from(self.limit);
        let found =
            if self.words { by_words(&ready, query, limit)? } else { by_everything(&ready, query, limit, vault)? };
        Ok(SearchAnswer { found, without_notes: ready.without_notes() })
    }

    pub(super) fn print(&self, answer: &SearchAnswer, output: &mut Output) -> Result<Outcome, Failure> {
        let SearchAnswer { found, without_notes } = answer;
        if self.json {
            output.json(found)?;
        } else {
            found.print(output)?;
        }
        if let Some(text) = without_notes {
            output.aside(&Line::new().plain(text.clone()));
        } else if found.hits.is_empty() && !self.json {
            output.aside(&Line::new().plain(format!("nothing found for: {}", found.query)));
        }
        Ok(if found.hits.is_empty() { Outcome::Negative } else { Outcome::Fine })
    }
}

/// The search that agents use, with the best section of each note.
fn by_everything(
    ready: &IndexedVault,
    query: String,
    limit: usize,
    vault: &CommandVault<'_>,
) -> Result<Found, Failure> {
    let knowledge = &ready.open.knowledge;
    let by = if knowledge.searches_by_meaning_alone() { RankingSources::Meaning } else { RankingSources::Everything };
    let findings = knowledge.search(&NoteSearch { by, ..NoteSearch::new(&query, limit) })?;
    if let Some(degraded) = &findings.degraded {
        let hint = if findings.by_meaning { "; `quipu index` embeds the rest" } else { "" };
        vault.remark(format!("{degraded}{hint}"));
    }
    let mut hits = Vec::with_capacity(findings.found.len());
    for found in &findings.found {
        let section = found.sections.first().map_or(0, |best| best.section);
        // Counted in thousandths.
        let score = found.score() as f32 / 1000.0;
        hits.extend(hit(ready, &findings.snapshot.note(found.key).path, section, &query, score)?);
    }
    let matched = if hits.is_empty() { Matched::Nothing } else { Matched::Hybrid };
    Ok(Found { query, matched, hits })
}

/// A section as a hit. `None` if the note was deleted or shortened after the search.
fn hit(
    ready: &IndexedVault,
    path: &VaultPath,
    section: usize,
    query: &str,
    score: f32,
) -> Result<Option<Hit>, Failure> {
    let read = ready.open.knowledge.read(&Session::default(), path.as_str());
    let Some(read) = read.map_err(|error| Failure::failed(error.to_string()))? else { return Ok(None) };
    let Some(section) = read.note().sections.get(section) else { return Ok(None) };
    let (line, snippet) = snippet(&read.text, section.text_start..section.range.end, query);
    let (title, heading) = (read.note().title.clone(), section.heading.clone());
    Ok(Some(Hit { path: path.to_string(), title, heading, line, snippet, score }))
}

/// Sections that have the words.
fn by_words(ready: &IndexedVault, query: String, limit: usize) -> Result<Found, Failure> {
    let knowledge = &ready.open.knowledge;
    let found = knowledge.search_text(&TextQuery { text: query.clone(), limit, ..TextQuery::default() })?;
    let snapshot = knowledge.snapshot();
    let mut hits = Vec::with_capacity(found.hits.len());
    for found in &found.hits {
        let Some(note) = snapshot.get(found.key) else { continue };
        hits.extend(hit(ready, &note.path, found.section, &query, found.score)?);
    }
    let matched = match found.matched {
        _ if hits.is_empty() => Matched::Nothing,
        TextMatch::Phrase => Matched::Phrase,
        TextMatch::AllWords => Matched::AllWords,
        TextMatch::Similar => Matched::SimilarWords,
        TextMatch::AnyWord => Matched::AnyWord,
    };
    Ok(Found { query, matched, hits })
}

impl Found {
    fn print(&self, output: &mut Output) -> Result<(), Failure> {
        let relaxed = match self.matched {
            Matched::AllWords if !self.query.contains(char::is_whitespace) => {
                Some("no section has this word as typed; these have other forms of it")
            }
            Matched::AllWords => Some("no section has these words together; these have all of them"),
            Matched::SimilarWords => Some("some of these words are not in the vault; these sections have similar ones"),
            Matched::AnyWord => Some("no section has all of these words; these have some"),
            Matched::Hybrid | Matched::Phrase | Matched::Nothing => None,
        };
        if let Some(relaxed) = relaxed {
            output.aside(&Line::new().dim(relaxed));
        }
        for (number, hit) in self.hits.iter().enumerate() {
            if number > 0 {
                output.blank()?;
            }
            let place = format!("  {}:{}", hit.path, hit.line);
            output.line(&Line::new().bold(hit.title.clone()).dim(place))?;
            if let Some(heading) = &hit.heading {
                output.line(&Line::new().plain(format!("  § {heading}")))?;
            }
            if !hit.snippet.is_empty() {
                output.line(&Line::new().plain(format!("  {}", hit.snippet)))?;
            }
        }
        Ok(())
    }
}
