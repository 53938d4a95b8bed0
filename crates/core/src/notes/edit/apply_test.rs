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
fn tags_of_a_long_list_are_edited_in_linear_time() {
    let tags: Vec<String> = (0..40_000).map(|n| format!("tag{n}")).collect();
    let new = |count: usize| (0..count).map(|n| format!("new{n}")).collect::<Vec<_>>();
    let list = tags.iter().map(|tag| format!("  - {tag} # why\n")).collect::<String>();
    let body = "#tag1 ".repeat(20_000) + &"\n".repeat(20_000);
    let below = format!("---\ntags:\n{list}---\n{body}");
    let in_brackets = format!("---\ntags: [{}]\n---\n{body}", tags.join(", "));
    for text in [&below, &in_brackets] {
        let started = std::time::Instant::now();
        assert_eq!(parse::frontmatter_tags_of(text).len(), 40_000);
        let reading = started.elapsed();
        let started = std::time::Instant::now();
        let added = edited(text, Edit::AddTags { tags: new(2_000) });
        assert!(added.contains("new1999"));
        let removed = edited(&added, Edit::RemoveTags { tags: tags[1..20_000].to_vec() });
        assert_eq!(parse::frontmatter_tags_of(&removed).len(), 40_000 + 2_000 - 19_999);
        // Each edit reads the text a few times.
        let editing = started.elapsed();
        assert!(editing < reading * 60, "{editing:?}, and {reading:?} to read {text:.20}");
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

#[test]
fn a_section_text_may_repeat_its_heading() {
    let replace = |text: &str, heading: &str, new: &str| {
        edited(text, Edit::ReplaceSection { heading: heading.into(), text: new.into() })
    };
    let text = "# A\n\nold\n\n## B\nb\n";
    assert_eq!(replace(text, "B", "## B\nnew\n"), "# A\n\nold\n\n## B\nnew\n");
    assert_eq!(replace(text, "B", "\n\n## B ##\r\n\nnew"), "# A\n\nold\n\n## B\n\nnew\n");
    assert_eq!(replace(text, "A", "A\n===\nnew\n\n## B\nb"), "# A\n\nnew\n\n## B\nb\n", "subsections are the new text");
    assert_eq!(
        replace(text, "B", "### B\nnew"),
        "# A\n\nold\n\n## B\n### B\nnew\n",
        "another level is another heading"
    );
    assert_eq!(replace(text, "B", "first\n## B\nnew"), "# A\n\nold\n\n## B\nfirst\n## B\nnew\n");
}

#[test]
fn prepended_lines_are_below_broken_frontmatter() {
    let prepend = |text: &str| apply_edits(text.as_bytes(), &[Edit::Prepend { text: "new".into() }]);
    for (before, after, warning) in [
        ("---\na: b: c\n---\ntext\n", "---\na: b: c\n---\nnew\ntext\n", "line 2"),
        ("---\n- a\n---\n\ntext\n", "---\n- a\n---\n\nnew\ntext\n", "is a list"),
    ] {
        let applied = prepend(before).unwrap();
        assert_eq!(String::from_utf8(applied.bytes).unwrap(), after);
        let [said] = &applied.warnings[..] else { panic!("{:?}", applied.warnings) };
        assert!(said.contains(warning) && said.ends_with("; the text was added below it"), "{said}");
    }
    let Err((1, Refused::Place(problem))) = prepend("---\ntitle: T\ntext\n") else { panic!("not refused") };
    assert_eq!(problem.to_string(), "the frontmatter has no closing `---` line; add one with replace");
    assert_eq!(edited("---\nprose\n", Edit::Prepend { text: "new".into() }), "new\n\n---\nprose\n", "a rule");
}

#[test]
fn a_task_is_found_by_what_an_error_lists() {
    let long = format!("{} end", "call Ada ".repeat(20));
    let text = format!("- [ ] t1\n* [x] t1 again\n1. [ ] {long}\n- [ ] [x] odd\n- [ ] same\n- [ ] same\n");
    let set = |wanted: &str, done| {
        let applied = apply_edits(text.as_bytes(), &[Edit::SetTask { text: wanted.into(), done }]);
        applied.map(|applied| String::from_utf8(applied.bytes).unwrap())
    };
    for (wanted, before, after) in [
        ("[ ] t1", "- [ ] t1", "- [x] t1"),
        ("- [ ] T1", "- [ ] t1", "- [x] t1"),
        ("[x] odd", "- [ ] [x] odd", "- [x] [x] odd"),
        ("1. [ ] call Ada call…", "1. [ ] call", "1. [x] call"),
    ] {
        assert_eq!(set(wanted, true).unwrap(), text.replacen(before, after, 1), "{wanted}");
    }
    assert_eq!(set("* [x] t1 again", false).unwrap(), text.replace("[x] t1 again", "[ ] t1 again"));
    let Err((_, Refused::Place(problem))) = set("nothing", true) else { panic!("found") };
    // Each candidate of the error is a text that the next call may give.
    let offered: Vec<&str> = problem.0.split('"').skip(3).step_by(2).collect();
    assert_eq!(offered.len(), 6, "{problem}");
    for candidate in offered.iter().filter(|candidate| !candidate.contains("same")) {
        set(candidate, true).unwrap_or_else(|error| panic!("{candidate}: {error:?}"));
    }
    let Err((_, Refused::Place(problem))) = set("[ ] same", true) else { panic!("ambiguous") };
    assert!(problem.0.ends_with("; their texts are equal: use replace with the lines around one"), "{problem}");
}

#[test]
fn added_tags_leave_the_others_as_written() {
    let add = |text: &str| edited(text, Edit::AddTags { tags: vec!["#New".into(), "a".into(), "new".into()] });
    let text = "---\ntags: [\"a\", 'B c', 2024,  \"#d\"] # keep\n---\n";
    assert_eq!(add(text), text.replace("\"#d\"]", "\"#d\", New]"));
}
