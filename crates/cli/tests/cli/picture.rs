//! `quipu picture`: which part of the graph goes into a file.

use crate::sandbox::Sandbox;

const VAULT: &str = "//- start.md\n[[middle]]\n//- middle.md\n[[end]]\n//- end.md\n[[far]]\n//- far.md\n\
    //- notes/callouts.md\n# Callouts\n[[start]]\n//- a/index.md\n---\ntitle: Twice\n---\n//- b/index.md\n---\ntitle: Twice\n---\n";

/// The ids in a picture that was written as JSON to `out.json`.
fn ids(vault: &Sandbox) -> Vec<String> {
    let graph: serde_json::Value = serde_json::from_str(&vault.read("out.json")).unwrap();
    let mut ids: Vec<String> =
        graph["nodes"].as_array().unwrap().iter().map(|node| node["id"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids
}

#[test]
fn a_note_is_drawn_with_what_is_within_the_depth() {
    let vault = Sandbox::of(VAULT);
    let draw = |note: &str, depth: &str| {
        let arguments = ["picture", note, "--depth", depth, "--format", "json", "-o", "out.json"];
        let ran = vault.run(&arguments).expect(0);
        assert_eq!(ran.stdout, "", "the file has it all");
        ids(&vault)
    };
    assert_eq!(draw("start.md", "1"), ["middle.md", "notes/callouts.md", "start.md"]);
    assert_eq!(draw("start.md", "2"), ["end.md", "middle.md", "notes/callouts.md", "start.md"]);
    assert_eq!(draw("callouts", "1"), ["notes/callouts.md", "start.md"], "a title is enough where one note has it");
}

#[test]
fn ambiguous_and_unknown_titles_are_refused_with_a_hint() {
    let vault = Sandbox::of(VAULT);
    let several = vault.run(&["picture", "twice", "--format", "svg"]).expect(1);
    assert!(several.stderr.contains("give the path of one: a/index.md, b/index.md"), "{several}");
    let none = vault.run(&["picture", "Callout", "--format", "svg"]).expect(1);
    assert!(none.stderr.contains("did you mean notes/callouts.md?"), "{none}");
}

/// Whatever fonts this machine has, none has characters for private use.
#[test]
fn characters_without_a_glyph_are_reported_once() {
    let text: String =
        (0..40).map(|n| format!("//- n{n}.md\n---\ntitle: \"\u{e0f0}{n}\u{e0f1}\"\n---\n[[n{}]]\n", n + 1)).collect();
    let vault = Sandbox::of(&text);
    let ran = vault.run(&["picture", "--format", "png", "-o", "out.png"]).expect(0);
    assert!(!ran.stderr.contains("No fonts with a"), "{ran}");
    let told = ran.stderr.lines().filter(|line| line.contains("font of this machine") || line.contains("has no font"));
    assert_eq!(told.count(), 1, "{ran}");
}
