//! `quipu picture`: the graph as a file, to look at or for another program.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use quipu_core::index::near_names;
use quipu_tools::WholeGraph;
use serde::{Deserialize, Serialize};

use super::open_vault::VaultLocation;
use super::output::{Line, Output};
use super::{Failure, Outcome, Shared};
use crate::compose::OpenMode;
use crate::picture::{self, Png};

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
    /// Draw only what is around this note: its path or id.
    note: Option<String>,
    /// Maximum distance from the note, in links, in either direction.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=5))]
    depth: u8,
    /// Format of the file.
    #[arg(long, value_enum, default_value_t = PictureFormat::Html)]
    format: PictureFormat,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
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

impl Picture {
    pub(super) fn run(self, shared: &Shared, output: &mut Output) -> Result<Outcome, Failure> {
        if self.format == PictureFormat::Png && self.output.is_none() {
            // The owner process sends what a command prints as text.
            return Err(Failure::usage("cannot print a PNG file: it is not text".to_owned()).hint("give -o FILE"));
        }
        let location = VaultLocation::find(None, shared)?;
        let ready = location.open_indexed(OpenMode::Existing, output)?;
        let failed = |error: quipu_tools::ToolError| Failure::failed(error.message);
        let mut graph = ready.open.registry(None).whole_graph().map_err(failed)?;
        let name = location.root.file_name().map_or_else(|| "vault".into(), |name| name.to_string_lossy().into_owned());
        let mut title = name;
        if let Some(note) = &self.note {
            let snapshot = ready.open.knowledge.snapshot();
            let found = snapshot.lookup(note).first().map(|key| snapshot.note(*key));
            let Some(found) = found else {
                let near = near_names(&snapshot, note, 1).first().map(|key| snapshot.note(*key).path.to_string());
                let hint = near.map_or("`quipu search` finds notes".to_owned(), |near| format!("did you mean {near}?"));
                return Err(Failure::failed(format!("there is no note {note}")).hint(hint));
            };
            title = found.title.clone();
            graph = around(&graph, found.path.as_str(), self.depth);
        }
        let bytes = match self.format {
            PictureFormat::Html => picture::html(&graph, &title).into_bytes(),
            PictureFormat::Svg => picture::svg(&graph, &title).into_bytes(),
            PictureFormat::Png => {
                let Png { bytes, has_fonts } = picture::png(&graph, &title)?;
                if !has_fonts {
                    output.aside(&Line::new().plain("labels are left out: this machine has no font"));
                }
                bytes
            }
            PictureFormat::Dot => picture::dot(&graph).into_bytes(),
            PictureFormat::Graphml => picture::graphml(&graph).into_bytes(),
            PictureFormat::Json => picture::json(&graph)?.into_bytes(),
        };
        let Some(file) = &self.output else {
            output.verbatim(&bytes)?;
            return Ok(Outcome::Fine);
        };
        write(file, &bytes)?;
        let drawn = format!("{} nodes and {} links in {}", graph.len(), graph.edges.len() / 3, file.display());
        output.aside(&Line::new().plain(drawn));
        Ok(Outcome::Fine)
    }

    /// Files are named from where the command was typed, wherever it runs.
    pub(super) fn resolve_output(&mut self) -> Result<(), Failure> {
        if let Some(file) = &mut self.output {
            *file = std::path::absolute(&*file)
                .map_err(|error| Failure::failed(format!("cannot use {}: {error}", file.display())))?;
        }
        Ok(())
    }
}

fn around(graph: &WholeGraph, path: &str, depth: u8) -> WholeGraph {
    match graph.notes.id.iter().position(|id| id == path) {
        Some(middle) => graph.around(middle, depth.into()),
        None => WholeGraph::default(),
    }
}

#[expect(clippy::disallowed_methods, reason = "a file that the user named, which is no note")]
fn write(file: &std::path::Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(file, bytes).map_err(|error| Failure::failed(format!("cannot write {}: {error}", file.display())))
}
