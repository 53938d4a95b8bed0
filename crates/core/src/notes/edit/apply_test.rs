//! Each edit on small texts: what it changes, and that the rest stays.

use super::*;

fn edited(text: &str, edit: Edit) -> String {
    let applied = apply_edits(text.as_bytes(), &[edit]).unwrap_or_else(|error| panic!("{text:?}: {error:?}"));
    String::from_utf8(applied.bytes).unwrap()
}

fn insert(position: Position, text: &str) -> Edit {
    Edit::Insert { heading: "A".into(), position, text: text.into() }
}

#[test]
fn appended_lines_start_on_a_line_of_their_own() {
    for (before, after) in [
        ("", "new"),
        ("text", "text\nnew"),
        ("text\n", "text\nnew\n"),
        ("text\r\n", "text\r\nnew\r\n"),
        ("\u{FEFF}", "\u{FEFF}new"),
        ("---\nx: 1\n---", "---\nx: 1\n---\nnew"),
    ] {
        assert_eq!(edited(before, Edit::Append { text: "new".into() }), after, "{before:?}");
    }
    assert_eq!(edited("a\r\nb", Edit::Append { text: "x\ny".into() }), "a\r\nb\r\nx\r\ny");
    assert_eq!(edited("para\n", Edit::Append { text: "---\nx".into() }), "para\n\n---\nx\n", "no heading is made");
}

#[test]
fn prepended_lines_are_below_the_frontmatter() {
    for (before, after) in [
        ("", "new"),
        ("text", "new\ntext"),
        ("\u{FEFF}text\r\n", "\u{FEFF}new\r\ntext\r\n"),
        ("---\nx: 1\n---\n\ntext\n", "---\nx: 1\n---\n\nnew\ntext\n"),
        ("---\nx: 1\n---", "---\nx: 1\n---\nnew"),
        ("# A\n", "new\n# A\n"),
        ("A\n===\n", "new\n\nA\n===\n"),
    ] {
        assert_eq!(edited(before, Edit::Prepend { text: "new".into() }), after, "{before:?}");
    }
}

#[test]
fn insert_has_four_positions() {
    let text = "top\n\n# A\n\nown\n\n## B\n\nb\n\n# C\nc\n";
    let at = |position| edited(text, insert(position, "new"));
    assert_eq!(at(Position::Before), "top\n\nnew\n\n# A\n\nown\n\n## B\n\nb\n\n# C\nc\n");
    assert_eq!(at(Position::Start), "top\n\n# A\nnew\n\nown\n\n## B\n\nb\n\n# C\nc\n");
    assert_eq!(at(Position::End), "top\n\n# A\n\nown\nnew\n\n## B\n\nb\n\n# C\nc\n");
    assert_eq!(at(Position::After), "top\n\n# A\n\nown\n\n## B\n\nb\n\nnew\n\n# C\nc\n");
    for (before, position, after) in [
        ("# A", Position::Start, "# A\nnew"),
        ("# A\n", Position::End, "# A\nnew\n"),
        ("# A\n\n# B", Position::End, "# A\nnew\n\n# B"),
        ("# A\nlast", Position::After, "# A\nlast\nnew"),
        ("# A\nx\n# B\n", Position::After, "# A\nx\nnew\n# B\n"),
        ("# A\r\nx\r\n# B\r\n", Position::Before, "new\r\n# A\r\nx\r\n# B\r\n"),
        ("# A\nB\n---\n", Position::End, "# A\nnew\n\nB\n---\n"),
    ] {
        assert_eq!(edited(before, insert(position, "new")), after, "{before:?} {position:?}");
    }
}

#[test]
fn a_replaced_section_keeps_its_heading_and_the_blank_lines_around() {
    let replace = |text: &str, new: &str| edited(text, Edit::ReplaceSection { heading: "A".into(), text: new.into() });
    assert_eq!(replace("# A\n\nold\n\n## B\nb\n\n# C\n", "new"), "# A\n\nnew\n\n# C\n");
    assert_eq!(replace("# A\n\nold\n\n# C\n", "\nnew\n\n"), "# A\n\nnew\n\n# C\n");
    assert_eq!(replace("# A\nold", "new\n"), "# A\nnew\n");
    assert_eq!(replace("# A\n\nold\n\n# C\n", ""), "# A\n\n# C\n");
    assert_eq!(replace("# A", "new"), "# A\nnew");
    assert_eq!(replace("# A\n    code\n# C\n", "new"), "# A\nnew\n# C\n", "indentation is text");
}

#[test]
fn a_deleted_section_takes_its_subsections_along() {
    let delete = |text: &str| edited(text, Edit::DeleteSection { heading: "A".into() });
    assert_eq!(delete("top\n\n# A\na\n## B\nb\n\n# C\nc"), "top\n\n# C\nc");
    assert_eq!(
        delete("top\n# A\na\n\nC\n===\n"),
        "top\n\nC\n===\n",
        "the line above does not become a part of the heading"
    );
    assert_eq!(delete("# A"), "");
}

#[test]
fn a_text_is_replaced_wherever_it_occurs() {
    let replace = |text: &str, old: &str, new: &str, count| {
        edited(text, Edit::Replace { old: old.into(), new: new.into(), count })
    };
    assert_eq!(replace("---\nx: a\n---\na b a\n", "a", "c", 2), "---\nx: a\n---\nc b c\n", "the frontmatter stays");
    assert_eq!(replace("one\r\ntwo\r\n", "one\ntwo", "1\n2\n3", 1), "1\r\n2\r\n3\r\n");
    assert_eq!(replace("aaaa", "aa", "b", 2), "bb");
    let invalid = b"caf\xE9 one\n# A\n\xFF\n";
    let edits = [Edit::Replace { old: "one".into(), new: "two".into(), count: 1 }, insert(Position::End, "new")];
    assert_eq!(apply_edits(invalid, &edits).unwrap().bytes, b"caf\xE9 two\n# A\n\xFF\nnew\n");
}

#[test]
fn a_replacement_that_multiplies_a_note_is_refused() {
    let grow = |count: usize| Edit::Replace { old: "a".into(), new: "a".repeat(1_000), count };
    let refused = apply_edits("a".repeat(10).as_bytes(), &[grow(10), grow(10_000), grow(10_000_000)]);
    let Err((3, Refused::Place(problem))) = refused else { panic!("not refused, or not at the third edit") };
    assert_eq!(problem.to_string(), "the note would have up to 10010000000 bytes, more than the limit of 16777216");
}
