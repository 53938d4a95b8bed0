//! The picture as pixels: the SVG, drawn with the fonts of this machine.

use std::collections::BTreeSet;

use quipu_tools::WholeGraph;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::Database;
use resvg::usvg::{Group, Node, Options, Tree};

use super::svg;
use crate::failure::Failure;

/// Pixels for one unit of the SVG, so that labels are sharp on every screen.
const SCALE: f32 = 2.0;

/// The longest side. Larger images open in few programs.
const MAX_SIDE: f32 = 8192.0;

/// Families for labels, the best first.
const SANS_SERIF: [&str; 7] =
    ["Inter", "Roboto", "Noto Sans", "Helvetica Neue", "Arial", "Liberation Sans", "DejaVu Sans"];

pub(crate) struct Png {
    pub(crate) bytes: Vec<u8>,
    /// Whether there are fonts to draw labels with.
    pub(crate) has_fonts: bool,
    /// Characters of labels that no font has.
    pub(crate) missing: BTreeSet<char>,
}

pub(crate) fn png(graph: &WholeGraph, title: &str) -> Result<Png, Failure> {
    let failed = |why: String| Failure::failed(format!("cannot draw the picture: {why}"));
    let mut options = Options::default();
    let fonts = options.fontdb_mut();
    fonts.load_system_fonts();
    let family = sans_serif(fonts);
    let has_fonts = family.is_some();
    if let Some(family) = family {
        fonts.set_sans_serif_family(family);
    }
    let tree = Tree::from_str(&svg(graph, title), &options).map_err(|error| failed(error.to_string()))?;
    let mut missing = BTreeSet::new();
    missing_glyphs(tree.root(), &mut missing);
    let (width, height) = (tree.size().width(), tree.size().height());
    let scale = SCALE.min(MAX_SIDE / width.max(height));
    let pixels = |side: f32| ((side * scale).ceil() as u32).max(1);
    let pixmap = Pixmap::new(pixels(width), pixels(height));
    let mut pixmap = pixmap.ok_or_else(|| failed("it is too large".to_owned()))?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixmap.as_mut());
    let bytes = pixmap.encode_png().map_err(|error| failed(error.to_string()))?;
    Ok(Png { bytes, has_fonts, missing })
}

/// The characters below a group that are drawn as an empty box: glyph 0 stands for what a font does not have.
fn missing_glyphs(group: &Group, missing: &mut BTreeSet<char>) {
    for node in group.children() {
        match node {
            Node::Group(group) => missing_glyphs(group, missing),
            Node::Text(text) => {
                let glyphs = text.layouted().iter().flat_map(|span| &span.positioned_glyphs);
                missing.extend(glyphs.filter(|glyph| glyph.id.0 == 0).flat_map(|glyph| glyph.text.chars()));
            }
            Node::Path(_) | Node::Image(_) => {}
        }
    }
}

/// What `sans-serif` means here: without this the library looks for Arial alone.
fn sans_serif(fonts: &Database) -> Option<String> {
    let families: Vec<&str> = fonts.faces().flat_map(|face| &face.families).map(|(name, _)| name.as_str()).collect();
    let usual = SANS_SERIF.into_iter().find(|name| families.contains(name));
    usual.or_else(|| families.first().copied()).map(str::to_owned)
}
