//! `quipu search`: looks for words in the notes, section by section.

use clap::Args;
use quipu_core::Session;
use quipu_core::ports::{TextMatch, TextQuery};
use serde::{Deserialize, Serialize};

use super::opened::Ready;
use super::output::{Line, Output};
use super::snippet::snippet;
use super::{Failure, Outcome, Shared, opened};
use crate::compose::Wish;

/// Look for words in the notes.
///
/// The words are looked for as a phrase first, then all of them anywhere in a section, then any of them; the answer says
/// when it had to be relaxed. Any script works, and words need no quotes.
#[derive(Debug, Args, Serialize, Deserialize)]
#[command(after_help = "\
Examples:
  quipu search frozen anemometer
  quipu search 放射よけ --limit 3
  quipu search rain gauge --json | jq -r '.hits[].path'

JSON fields:
  query
  matched   \"phrase\", \"all_words\", \"similar_words\", \"any_word\", or \"nothing\"
  hits[]    {path, title, heading, line, snippet, score}; heading is null before a note's first one,
            scores compare within one answer only

Finding nothing is exit code 1, as with grep.")]
pub(crate) struct Search {
    /// What to look for.
    #[arg(required = true)]
    words: Vec<String>,
    /// At most this many sections.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Answer as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Answer {
    query: String,
    matched: &'static str,
    hits: Vec<Hit>,
}

#[derive(Serialize)]
struct Hit {
    path: String,
    title: String,
    heading: Option<String>,
    /// Of the snippet, counted from 1.
    line: usize,
    snippet: String,
    score: f32,
}

impl Search {
    pub(super) fn run(self, shared: &Shared, output: &mut Output) -> Result<Outcome, Failure> {
        let query = self.words.join(" ");
        if query.trim().is_empty() {
            return Err(Failure::usage("the words to look for are empty").hint("try: quipu search frozen anemometer"));
        }
        let ready = opened::ready(&opened::locate(None, shared)?, Wish::Look, output)?;
        let answer = look(&ready, query, usize::from(self.limit))?;
        if self.json {
            output.json(&answer)?;
        } else {
            answer.print(output)?;
        }
        Ok(if answer.hits.is_empty() { Outcome::Negative } else { Outcome::Fine })
    }
}

fn look(ready: &Ready, query: String, limit: usize) -> Result<Answer, Failure> {
    let knowledge = &ready.open.knowledge;
    let found = knowledge
        .search_text(&TextQuery { text: query.clone(), limit, ..TextQuery::default() })
        .map_err(|error| Failure::from(error).hint("`quipu index --rebuild` makes the index anew"))?;
    let session = Session::default();
    let snapshot = knowledge.snapshot();
    let mut hits = Vec::with_capacity(found.hits.len());
    for hit in &found.hits {
        // Between the search and the reading the note or its file may have gone or shrunk: then it is no longer a hit.
        let Some(note) = snapshot.get(hit.key) else { continue };
        let path = note.path.clone();
        let read = knowledge.read_file(&session, path.as_str()).map_err(|error| Failure::failed(error.to_string()))?;
        let Some(read) = read else { continue };
        let Some(section) = read.note().sections.get(hit.section) else { continue };
        let (line, snippet) = snippet(&read.text, section.text_start..section.range.end, &query);
        hits.push(Hit {
            path: path.to_string(),
            title: read.note().title.clone(),
            heading: section.heading.clone(),
            line,
            snippet,
            score: hit.score,
        });
    }
    let matched = match found.matched {
        _ if hits.is_empty() => "nothing",
        TextMatch::Phrase => "phrase",
        TextMatch::AllWords => "all_words",
        TextMatch::Similar => "similar_words",
        TextMatch::AnyWord => "any_word",
    };
    Ok(Answer { query, matched, hits })
}

impl Answer {
    fn print(&self, output: &mut Output) -> Result<(), Failure> {
        let relaxed = match self.matched {
            "all_words" if !self.query.contains(char::is_whitespace) => {
                Some("no section has this word as typed; these have other forms of it")
            }
            "all_words" => Some("no section has these words together; these have all of them"),
            "similar_words" => Some("some of these words are not in the vault; these sections have similar ones"),
            "any_word" => Some("no section has all of these words; these have some"),
            _ => None,
        };
        if let Some(relaxed) = relaxed {
            output.aside(&Line::new().dim(relaxed));
        }
        if self.hits.is_empty() {
            output.aside(&Line::new().plain(format!("nothing found for: {}", self.query)));
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
