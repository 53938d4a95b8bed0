//! Warnings about a note that was just written, or would be: other notes that it names without a link, and notes that it may
//! duplicate. A hint never fails a write that is done.

use std::fmt::Write as _;

use quipu_core::index::Snapshot;
use quipu_core::model::{Note, VaultPath};
use quipu_core::notes::PlannedNote;
use quipu_core::suggest::{DuplicateKind, UnlinkedMention};
use quipu_core::{ReadNote, quoted};

use crate::tool::Call;

/// Notes named in one hint.
const MAX_NAMED: usize = 3;

/// Names the notes that a written text mentions and does not link to, except those that the replaced text mentioned.
pub(crate) fn warn_of_mentions(call: &Call<'_>, path: &VaultPath, text: &str, replaced: &str) {
    let snapshot = call.knowledge.snapshot();
    let Some(key) = snapshot.find_exact(path) else { return };
    let linked = snapshot.links(key).filter_map(|link| link.target).chain([key]).collect();
    let mut mentions = snapshot.unlinked_mentions(&linked, text);
    let before = snapshot.mentions(replaced);
    mentions.retain(|mention| before.iter().all(|known| known.note != mention.note));
    tell_mentions(call, &snapshot, path, &mentions);
}

fn tell_mentions(call: &Call<'_>, snapshot: &Snapshot, path: &VaultPath, mentions: &[UnlinkedMention]) {
    let Some(first) = mentions.first() else { return };
    let named: Vec<String> = mentions
        .iter()
        .take(MAX_NAMED)
        .map(|mention| format!("{} ({})", quoted(&mention.name), snapshot.note(mention.note).id))
        .collect();
    let link = quoted(&format!("[[{}]]", first.name));
    call.warn(format!(
        "{}: names notes without a link: {}; link one as {link}",
        quoted(path.as_str()),
        named.join(", ")
    ));
}

/// Names the notes that a new one may duplicate.
pub(crate) fn warn_of_duplicates(call: &Call<'_>, read: &ReadNote) {
    let Some(named) = named_duplicates(call, &read.snapshot, read.note(), read.body()) else { return };
    let path = quoted(read.note().path.as_str());
    call.warn(format!(
        "{path}: may duplicate {named}; if so, add to that note, and delete this one or undo its change"
    ));
}

/// Both hints for a note that is not written yet.
pub(crate) fn warn_of_planned(call: &Call<'_>, planned: &PlannedNote) {
    let PlannedNote { note, targets, snapshot, .. } = planned;
    if let Some(named) = named_duplicates(call, snapshot, note, planned.body()) {
        call.warn(format!("{}: may duplicate {named}; if so, add to that note instead", quoted(note.path.as_str())));
    }
    let linked = targets.iter().copied().flatten().collect();
    tell_mentions(call, snapshot, &note.path, &snapshot.unlinked_mentions(&linked, planned.body()));
}

fn named_duplicates(call: &Call<'_>, snapshot: &Snapshot, note: &Note, body: &str) -> Option<String> {
    // The write may be done; that its neighbours cannot be read is no error of this call.
    let found = call.knowledge.likely_duplicates(snapshot, note, body).ok()?;
    let mut named = String::new();
    for duplicate in found.iter().take(MAX_NAMED) {
        let separator = if named.is_empty() { "" } else { ", " };
        let id = quoted(snapshot.note(duplicate.note).id.as_str());
        let _ = match duplicate.kind {
            DuplicateKind::Title => write!(named, "{separator}{id} (same title)"),
            DuplicateKind::Text(share) => write!(named, "{separator}{id} ({:.0} % of the text)", share * 100.0),
        };
    }
    Some(named).filter(|named| !named.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::Harness;

    const VAULT: &str = "//- notes/Graph Core.md\n---\naliases: [Zettelkasten]\n---\n//- GraphView.md\n//- Testing.md\n\
        //- Ada Lovelace.md\n//- next steps.md\n//- x/Twin Peaks.md\n//- y/Twin Peaks.md\n";

    fn hints(harness: &Harness, tool: &str, arguments: serde_json::Value) -> Vec<String> {
        let called = harness.called(tool, arguments);
        assert!(matches!(called.reply, crate::Reply::Answer(_)), "{called:?}");
        called
            .warnings
            .into_iter()
            .filter(|warning| warning.contains("link") || warning.contains("duplicate"))
            .collect()
    }

    #[test]
    fn names_without_a_link_are_pointed_out() {
        let harness = Harness::new(VAULT);
        let create = |id: &str, text: &str| hints(&harness, "create_node", json!({"id": id, "content": text}));
        assert_eq!(
            create("a.md", "We met Ada Lovelace about Graph Core and GraphView; our Zettelkasten too.\n"),
            [
                "\"a.md\": names notes without a link: \"Ada Lovelace\" (ada lovelace.md), \"Graph Core\" (notes/graph core.md), \
              \"GraphView\" (graphview.md); link one as \"[[Ada Lovelace]]\""
            ]
        );
        for (id, text) in [
            ("b.md", "Testing is done. The testing of graph core. TESTING.\n"),
            ("c.md", "`GraphView` [[Graph Core]] of Graph Core, ada lovelace, in Twin Peaks\n"),
            ("d.md", "# Ada Lovelace\n\n```\nAda Lovelace\n```\n"),
            ("graphview two.md", "Ada, Lovelace\n"),
        ] {
            assert_eq!(create(id, text), [""; 0], "{text}");
        }
        let edit = |edits: serde_json::Value| hints(&harness, "edit_node", json!({"id": "b.md", "edits": edits}));
        let appended = edit(json!([{"op": "append", "text": "See the Zettelkasten of Ada Lovelace."}]));
        assert!(appended[0].contains("\"Ada Lovelace\"") && appended[0].contains("\"Zettelkasten\""), "{appended:?}");
        let changed = edit(json!([{"op": "replace", "old": "See the", "new": "Read the"}]));
        assert_eq!(changed, [""; 0], "the line named them before");
    }

    #[test]
    fn names_in_text_without_spaces_are_pointed_out() {
        let harness = Harness::new(
            "//- 東京支社.md\n//- グレース・ホッパー.md\n//- 2024年度計画.md\n//- 人工智能.md\n//- データ.md\n//- 会議.md\n\
            //- ひまわり.md\n//- 東京支社長.md\n",
        );
        let create = |id: &str, text: &str| hints(&harness, "create_node", json!({"id": id, "content": text}));
        assert_eq!(
            create("a.md", "昨日は東京支社でグレース・ホッパーと2024年度計画について話した。\n"),
            ["\"a.md\": names notes without a link: \"グレース・ホッパー\" (グレース・ホッパー.md), \"2024年度計画\" \
              (2024年度計画.md), \"東京支社\" (東京支社.md); link one as \"[[グレース・ホッパー]]\""]
        );
        assert_eq!(
            create("b.md", "我们研究人工智能的应用\n"),
            ["\"b.md\": names notes without a link: \"人工智能\" (人工智能.md); link one as \"[[人工智能]]\""]
        );
        let longest = create("c.md", "東京支社長と話した\n");
        assert!(longest.len() == 1 && longest[0].contains("\"東京支社長\""), "{longest:?}");
        assert_eq!(create("d.md", "データベースの会議でひまわりを見た。[[東京支社]]\n"), [""; 0]);
    }

    #[test]
    fn a_katakana_word_is_pointed_out_only_if_notes_link_to_its_note() {
        let harness = Harness::new(
            "//- クラスター.md\n//- バックリンク.md\n//- コア・プラグイン.md\n//- 索引.md\n[[バックリンク]]\n",
        );
        let text = "クラスターとバックリンクとコア・プラグインの話。\n";
        let found = hints(&harness, "create_node", json!({"id": "a.md", "content": text}));
        let is_named = |name: &str| found[0].contains(&format!("({name}.md)"));
        assert_eq!(["クラスター", "バックリンク", "コア・プラグイン"].map(is_named), [false, true, true], "{found:?}");
    }

    #[test]
    fn a_likely_duplicate_is_pointed_out() {
        let words: Vec<String> = (0..60).map(|number| format!("word{number}")).collect();
        let text = words.join(" ");
        let vault = format!(
            "//- plan.md\n---\ntitle: Budget for Spring\n---\nshort\n//- long.md\n{text}\n//- a/index.md\nx\n//- en/guide/setup.md\nx\n"
        );
        let harness = Harness::new(&vault);
        let create = |id: &str, text: &str| hints(&harness, "create_node", json!({"id": id, "content": text}));
        let advice = "if so, add to that note, and delete this one or undo its change";
        assert_eq!(
            create("new/budget for spring.md", "other"),
            [format!("\"new/budget for spring.md\": may duplicate \"plan.md\" (same title); {advice}")]
        );
        let nearly = text.replace("word7 ", "word-seven ");
        let said = create("copy.md", &format!("# Copy\n\n{nearly}"));
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(
            said[0].starts_with("\"copy.md\": may duplicate \"long.md\" (8") && said[0].ends_with(advice),
            "{said:?}"
        );
        assert_eq!(create("b/index.md", "y"), [""; 0]);
        assert_eq!(create("ja/guide/setup.md", "y"), [""; 0], "a mirrored folder");
        let other: Vec<String> = (0..60).map(|number| format!("other{number} word{}", number / 3)).collect();
        assert_eq!(create("unlike.md", &other.join(" ")), [""; 0]);
    }
}
