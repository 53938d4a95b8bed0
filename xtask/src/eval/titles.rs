//! A judged set across languages, made from a documentation in two: pages of one address are translations.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::Context;
use serde_json::json;

/// Writes the queries and what answers them: the title of each page in `ja`, if it is Japanese, for its page in `en`.
pub(super) fn judge(vault: &Path, to: &Path) -> anyhow::Result<()> {
    let (english, japanese) = (pages(vault, "en")?, pages(vault, "ja")?);
    let (mut queries, mut judged) = (String::new(), String::from("query\tdocument\tscore\n"));
    for (address, path) in japanese {
        let title = Path::new(&path).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let Some(answer) = english.get(&address).filter(|_| !title.is_ascii()) else { continue };
        writeln!(queries, "{}", json!({"id": address, "text": title}))?;
        writeln!(judged, "{address}\t{answer}\t1")?;
    }
    fs::create_dir_all(to)?;
    fs::write(to.join("queries.jsonl"), queries)?;
    Ok(fs::write(to.join("qrels.tsv"), judged)?)
}

/// The pages of a language by their address (`permalink` in their frontmatter), as paths from the vault.
fn pages(vault: &Path, language: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let mut pages = BTreeMap::new();
    let mut folders = vec![vault.join(language)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                let text = fs::read_to_string(&path)?;
                let address = text.lines().take(20).find_map(|line| line.strip_prefix("permalink:"));
                let name = path.strip_prefix(vault)?.to_str().context("a path is not UTF-8")?;
                pages.extend(address.map(|address| (address.trim().to_owned(), name.to_owned())));
            }
        }
    }
    Ok(pages)
}
