//! `quipu picture`: the graph as a file, to look at or for another program.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use quipu_core::index::{Snapshot, near_names};
use quipu_core::model::Note;
use quipu_tools::WholeGraph;
use serde::{Deserialize, Serialize};

use super::command_vault::CommandVault;
use super::output::{Line, Output};
use super::{Failure, Outcome};
use crate::compose::OpenMode;
use crate::picture::{self, Png};

/// Notes of one title that are named.
const MAX_NAMED: usize = 5;

/// Draw the graph of notes and memory, whole or around a note.
///
/// html, svg and png are pictures in one file; dot, graphml and json are for other programs.
#[derive(Debug, Args, Serialize, Deserialize)]
#[command(after_help = "\
Examples:
  quipu picture -o graph.html                      the whole graph, to open in a browser
  quipu picture station/power.md --depth 1 --format svg -o power.svg
  quipu picture --format png -o graph.png          an image, with the fonts of this machine
  quipu picture --format graphml -o graph.graphml  for Gephi, yEd or networkx")]
pub(crate) struct Picture {
    /// Draw only what is around this note: its path, id or title.
    note: Option<String>,
    /// Maximum distance from the note, in links, in either direction.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=5))]
    depth: u8,
    /// Format of the file.
    #[arg(long, value_enum, default_value_t = PictureFormat::Html)]
    format: PictureFormat,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    #[serde(skip)]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PictureFormat {
    Html,
    Svg,
    Png,
    Dot,
    Graphml,
    Json,
}

#[derive(Serialize, Deserialize)]
pub(super) struct PictureAnswer {
    title: String,
    graph: WholeGraph,
}

impl Picture {
    /// Fails if the file cannot be printed.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.format == PictureFormat::Png && self.output.is_none() {
            return Err(Failure::usage("cannot print a PNG file: it is not text".to_owned()).hint("give -o FILE"));
        }
        Ok(())
    }

    pub(super) fn answer(&self, vault: &CommandVault<'_>) -> Result<PictureAnswer, Failure> {
        let ready = vault.open_indexed(OpenMode::Existing)?;
        let graph = ready.open.registry(None).whole_graph().map_err(|error| Failure::failed(error.message))?;
        let Some(note) = &self.note else {
            let name = vault.location.root.file_name();
            let title = name.map_or_else(|| "vault".into(), |name| name.to_string_lossy().into_owned());
            return Ok(PictureAnswer { title, graph });
        };
        let snapshot = ready.open.knowledge.snapshot();
        let found = find(&snapshot, note)?;
        Ok(PictureAnswer { title: found.title.clone(), graph: around(&graph, found.path.as_str(), self.depth) })
    }

    pub(super) fn print(&self, answer: &PictureAnswer, output: &mut Output) -> Result<Outcome, Failure> {
        let PictureAnswer { title, graph } = answer;
        let bytes = match self.format {
            PictureFormat::Html => picture::html(graph, title).into_bytes(),
            PictureFormat::Svg => picture::svg(graph, title).into_bytes(),
            PictureFormat::Png => {
                let Png { bytes, has_fonts, missing } = picture::png(graph, title)?;
                if !has_fonts {
                    output.aside(&Line::new().plain("labels are omitted: this machine has no font"));
                } else if !missing.is_empty() {
                    output.aside(&Line::new().plain(without_glyphs(&missing)));
                }
                bytes
            }
            PictureFormat::Dot => picture::dot(graph).into_bytes(),
            PictureFormat::Graphml => picture::graphml(graph).into_bytes(),
            PictureFormat::Json => picture::json(graph)?.into_bytes(),
        };
        let Some(file) = &self.output else {
            output.verbatim(&bytes)?;
            return Ok(Outcome::Fine);
        };
        let file = std::path::absolute(file)
            .map_err(|error| Failure::failed(format!("cannot use {}: {error}", file.display())))?;
        write(&file, &bytes)?;
        let drawn = format!("{} nodes and {} links in {}", graph.len(), graph.edges.len() / 3, file.display());
        output.aside(&Line::new().plain(drawn));
        Ok(Outcome::Fine)
    }
}

/// The note of a path or an id; else the only note of a title.
fn find<'s>(snapshot: &'s Snapshot, wanted: &str) -> Result<&'s Note, Failure> {
    if let Some(key) = snapshot.lookup(wanted).first() {
        return Ok(snapshot.note(*key));
    }
    let is_titled = |note: &&Note| note.title.to_lowercase() == wanted.trim().to_lowercase();
    let titled: Vec<&Note> = snapshot.files().map(|key| snapshot.note(key)).filter(is_titled).take(MAX_NAMED).collect();
    if let [only] = titled[..] {
        return Ok(only);
    }
    if !titled.is_empty() {
        let paths: Vec<&str> = titled.iter().map(|note| note.path.as_str()).collect();
        let failure = Failure::failed(format!("several notes have the title {wanted}"));
        return Err(failure.hint(format!("give the path of one: {}", paths.join(", "))));
    }
    let near = near_names(snapshot, wanted, 1).first().map(|key| snapshot.note(*key).path.to_string());
    let hint = near.map_or("`quipu search` finds notes".to_owned(), |near| format!("did you mean {near}?"));
    Err(Failure::failed(format!("there is no note {wanted}")).hint(hint))
}

/// One line for all characters that no font of this machine has.
fn without_glyphs(missing: &BTreeSet<char>) -> String {
    let some: String = missing.iter().take(12).collect();
    let rest = if missing.len() > 12 { "…" } else { "" };
    let characters = if missing.len() == 1 { "character" } else { "characters" };
    format!("no font of this machine has {} {characters} of the labels: {some}{rest}", missing.len())
}

fn around(graph: &WholeGraph, path: &str, depth: u8) -> WholeGraph {
    match graph.notes.id.iter().position(|id| id == path) {
        Some(middle) => graph.around(middle, depth.into()),
        None => WholeGraph::default(),
    }
}

#[expect(clippy::disallowed_methods, reason = "the user named the file; it is not a note")]
fn write(file: &std::path::Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(file, bytes).map_err(|error| Failure::failed(format!("cannot write {}: {error}", file.display())))
}
