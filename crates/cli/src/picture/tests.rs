//! Pictures hold every node and edge, and names cannot break out of their place.

use quipu_tools::{EntityColumns, FreshnessColumns, NoteColumns, WholeGraph};

use super::*;

fn graph() -> WholeGraph {
    WholeGraph {
        folders: vec![String::new()],
        types: vec!["other".into()],
        tags: Vec::new(),
        link_types: vec!["references".into(), "knows \"well\"".into()],
        notes: NoteColumns {
            id: vec!["a.md".into(), "b & c.md".into()],
            title: vec!["A \"quoted\" \\ title".into(), "</title><script>alert(1)</script>".into()],
            folder: vec![0, 0],
            doc_type: vec![0, 0],
            tags: vec![Vec::new(), Vec::new()],
            modified: vec![0, 0],
            rank: vec![2, 1],
        },
        entities: EntityColumns {
            id: vec![7],
            name: vec!["Ada\u{1}".into()],
            entity_type: vec!["User".into()],
            observations: vec![1],
            modified: vec![0],
        },
        freshness: FreshnessColumns::default(),
        authors: Vec::new(),
        written: Vec::new(),
        edges: vec![0, 1, 0, 2, 0, 1],
    }
}

#[test]
fn svg_and_html_draw_every_node_and_run_no_foreign_script() {
    let drawn = svg(&graph(), "T<i>");
    assert_eq!((drawn.matches("<circle").count(), drawn.matches("<rect class=\"node\"").count()), (2, 1));
    assert_eq!(drawn.matches("<path").count(), 2);
    assert!(drawn.contains("<title>T&lt;i&gt;</title>") && !drawn.contains("<script>"), "{drawn}");
    let page = html(&graph(), "T<i>");
    assert_eq!(page.matches("<script>").count(), 1, "our own");
    assert!(!page.contains('\u{1}'));
    assert!(page.contains("const EDGES=[0,1,2,0],ORDER=["), "{page}");
    assert!(page.contains("prefers-color-scheme:dark") && page.contains("tabindex=\"0\""), "for dark themes and keys");
}

#[test]
fn png_has_the_colours_of_the_nodes() {
    let Png { bytes, has_fonts, .. } = png(&graph(), "T").unwrap();
    let pixmap = resvg::tiny_skia::Pixmap::decode_png(&bytes).unwrap();
    assert!(pixmap.width() >= 200 && pixmap.height() >= 200, "{} x {}", pixmap.width(), pixmap.height());
    let has =
        |colour: [u8; 3]| pixmap.pixels().iter().any(|pixel| [pixel.red(), pixel.green(), pixel.blue()] == colour);
    assert!(has([0xfc, 0xfc, 0xfb]), "the background");
    assert!(has([0x2b, 0x6c, 0xc4]), "a node of the largest community");
    let is_dark = |pixel: &resvg::tiny_skia::PremultipliedColorU8| pixel.red() < 0x60 && pixel.blue() < 0x60;
    assert_eq!(pixmap.pixels().iter().any(is_dark), has_fonts, "labels, where there are fonts");
}

#[test]
fn dot_quotes_names() {
    let text = dot(&graph());
    assert!(text.contains(r#""a.md" [label="A \"quoted\" \\ title"];"#), "{text}");
    assert!(text.contains(r#""entity:7" [label="Ada", shape=box];"#), "{text}");
    assert!(text.contains(r#""a.md" -> "b & c.md";"#), "{text}");
    assert!(text.contains(r#""entity:7" -> "a.md" [label="knows \"well\""];"#), "{text}");
}

#[test]
fn graphml_and_json_hold_the_same_graph() {
    let text = graphml(&graph());
    assert_eq!((text.matches("<node ").count(), text.matches("<edge ").count()), (3, 2));
    assert!(text.contains("<node id=\"b &amp; c.md\">"), "{text}");
    let read: serde_json::Value = serde_json::from_str(&json(&graph()).unwrap()).unwrap();
    assert_eq!(read["nodes"][2]["id"], "entity:7");
    assert_eq!(read["edges"][1]["type"], "knows \"well\"");
}

#[test]
fn an_empty_graph_is_a_picture_too() {
    assert!(svg(&WholeGraph::default(), "empty").starts_with("<svg"));
    assert!(dot(&WholeGraph::default()).ends_with("}\n"));
}
