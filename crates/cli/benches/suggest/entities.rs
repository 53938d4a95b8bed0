//! Names found by their spelling, in texts without their link marks, against what authors link. A name that no note links may
//! still be one: these are lower bounds.

use std::collections::HashSet;

use quipu_core::model::{NoteKey, fold};
use quipu_core::suggest::plain_text;

use super::{Half, Vault, percent};

/// Names of one text.
const NAMES: usize = 20;

/// Fewer names than this say nothing about a vault.
const LEAST_NAMES: usize = 50;

pub(super) fn measure(vaults: &[Vault]) -> anyhow::Result<()> {
    println!(
        "| vault | notes | names found by `extract_entities` | linked in the same note | linked in the vault | of the linked names that a text spells, found |"
    );
    println!("|---|--:|--:|--:|--:|--:|");
    for vault in vaults {
        let snapshot = &*vault.snapshot;
        // What a link may be written with: the target of the link or the title of its note.
        let linked_names = |key: NoteKey| -> HashSet<String> {
            let titles = snapshot.graph().out(key).iter().map(|to| fold(&snapshot.note(*to).title));
            let written = snapshot
                .note(key)
                .links
                .iter()
                .map(|link| fold(link.target.rsplit('/').next().unwrap_or_default().trim_end_matches(".md")));
            titles.chain(written).filter(|name| !name.is_empty()).collect()
        };
        let anywhere: HashSet<String> = snapshot.files().flat_map(linked_names).collect();
        let notes = vault.sample(Half::Test, |key| !snapshot.graph().out(key).is_empty());
        let (mut found, mut here, mut somewhere, mut spelled, mut spelled_found) = (0, 0, 0, 0, 0);
        for key in &notes {
            let text = plain_text(&vault.body(*key)?);
            let names = vault.knowledge.extract_entities(None, &text, NAMES)?.entities;
            let names: HashSet<String> = names.iter().map(|entity| fold(&entity.name)).collect();
            let linked = linked_names(*key);
            found += names.len();
            here += names.intersection(&linked).count();
            somewhere += names.intersection(&anywhere).count();
            let text = fold(&text);
            let in_text: Vec<&String> = linked.iter().filter(|name| text.contains(name.as_str())).collect();
            spelled += in_text.len();
            spelled_found += in_text.iter().filter(|name| names.contains(name.as_str())).count();
        }
        if found >= LEAST_NAMES {
            let (here, somewhere, recall) =
                (percent(here, found), percent(somewhere, found), percent(spelled_found, spelled));
            println!("| {} | {} | {found} | {here} | {somewhere} | {recall} |", vault.name, notes.len());
        }
    }
    Ok(())
}
