//! `cargo xtask eval`: how well searches rank, on judged sets that others made. One table: by words, with coarse vectors, with
//! full ones, with half of each.
//!
//! A set of documents is laid out as a vault; a set of anchors is asked against the real vault it is of.

mod titles;
mod weights;

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use crate::committed::CommittedTable;
use crate::{data, shell};

/// More queries of one set are not asked: the mean moves by less than a point, and the table takes minutes.
const MAX_QUERIES: usize = 600;

/// A judged set, and the part of a real vault it is asked against if it has no documents of its own.
const SETS: [(&str, Option<(&str, &str)>); 10] = [
    ("ir-scifact", None),
    ("ir-cranfield", None),
    ("ir-cacm", None),
    ("docsqa-anthropic", None),
    ("multihop-hotpot-train100", None),
    ("ja-jsquad-valid", None),
    ("anchors-k8s-en", Some(("vault-k8s-en-ja", "en"))),
    ("anchors-obsidian-help-en", Some(("vault-obsidian-help-en-ja", "en"))),
    ("anchors-obsidian-help-ja", Some(("vault-obsidian-help-en-ja", "ja"))),
    (TITLES, Some(("vault-obsidian-help-en-ja", "en"))),
];

/// Made from a vault in two languages: the Japanese title of a page asks for the English page of the same address.
const TITLES: &str = "titles-obsidian-help-ja-en";

pub(crate) fn run(wanted: Option<&str>, by_words_alone: bool, write: bool) -> anyhow::Result<()> {
    if by_words_alone {
        println!("\n{}", table(&measured(wanted, Some("words"))?, &COLUMNS_OF_WORDS));
        return Ok(());
    }
    let rows = measured(wanted, None)?;
    let page = format!("{}\n{}", table(&rows, &COLUMNS), table(&rows, &COLUMNS_OF_ANSWERS));
    println!("\n{page}\n{}", calibration(&rows));
    let file = shell::root().join("docs/search.md");
    let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let start = text.find(START).context("docs/search.md has no place for the table")? + START.len();
    let end = text.find(END).context("docs/search.md has no end of the table")?;
    let committed = CommittedTable::read(&text[start..end]);
    if write {
        fs::write(&file, format!("{}\n{page}{}", &text[..start], &text[end..]))?;
    }
    check(&rows, &committed)
}

/// Prints how well searches rank by the weight of meaning, and which weight is best on average for each set's others: what it
/// scores on the set shows how much of the best weight is chance.
pub(crate) fn choose_weights(wanted: Option<&str>) -> anyhow::Result<()> {
    let rows = measured(wanted, Some("weights"))?;
    for grade in ["full", "coarse"] {
        println!("\n{}", weights::table(grade, &rows)?);
    }
    Ok(())
}

/// What the measuring program prints for each set.
fn measured(wanted: Option<&str>, mode: Option<&str>) -> anyhow::Result<Vec<(&'static str, Value)>> {
    let Some(data) = data::unpacked()? else { bail!("there are no judged sets: ../shared/data is missing") };
    let program = build()?;
    let wanted = SETS.iter().filter(|(set, _)| wanted.is_none_or(|wanted| set.contains(wanted)));
    let row = |(set, vault): &(&'static str, _)| {
        println!("measuring {set}");
        Ok((*set, measure(&program, &data, set, *vault, mode).with_context(|| (*set).to_owned())?))
    };
    wanted.map(row).collect()
}

const START: &str = "<!-- `cargo xtask eval --write` -->";
const END: &str = "<!-- end -->";

/// Builds the measuring program once: it must be the same for every set.
fn build() -> anyhow::Result<PathBuf> {
    let arguments =
        ["bench", "-p", "quipu", "--bench", "ranking", "--no-run", "--message-format=json-render-diagnostics"];
    shell::built(&mut shell::cargo(&arguments), "ranking")
}

fn measure(
    program: &Path,
    data: &Path,
    set: &str,
    vault: Option<(&str, &str)>,
    mode: Option<&str>,
) -> anyhow::Result<Value> {
    // Kept between runs: most of the time goes into vectors, and a vault that did not change needs none.
    let laid_out = shell::target().join("eval").join(set);
    let mut judged = laid_out.join("judged");
    match vault {
        None => {
            judged = folder_with(&data.join(set), "qrels.tsv")?;
            lay_out(&judged.join("docs.jsonl"), &laid_out)?;
        }
        Some((name, part)) => {
            let from = folder_with(&data.join(name), "vault")?.join("vault");
            copy_notes(&from.join(part), &laid_out.join(part))?;
            match set {
                TITLES => titles::judge(&from, &judged)?,
                _ => judged = folder_with(&data.join(set), "qrels.tsv")?,
            }
        }
    }
    let mut command = shell::command(program, &[]);
    command.arg(&laid_out).arg(judged.join("queries.jsonl")).arg(judged.join("qrels.tsv")).arg(MAX_QUERIES.to_string());
    command.args(mode);
    let printed = shell::output(&mut command)?;
    let line = printed.lines().find(|line| line.starts_with('{')).context("the measurement printed nothing")?;
    Ok(serde_json::from_str(line)?)
}

/// The folder at or one below `place` that has an entry: archives have a folder of their own inside, or not.
fn folder_with(place: &Path, entry: &str) -> anyhow::Result<PathBuf> {
    let mut places = vec![place.to_owned()];
    places.extend(fs::read_dir(place)?.flatten().map(|entry| entry.path()));
    places
        .into_iter()
        .find(|place| place.join(entry).exists())
        .with_context(|| format!("no {entry} in {}", place.display()))
}

/// Writes each document as a note named by its id.
fn lay_out(documents: &Path, vault: &Path) -> anyhow::Result<()> {
    let folder = vault.join("documents");
    fs::create_dir_all(&folder)?;
    for line in fs::read_to_string(documents)?.lines() {
        let document: Value = serde_json::from_str(line)?;
        let text = |key: &str| document[key].as_str().unwrap_or_default().to_owned();
        // Ids of sets may have capitals that do not matter, and slashes.
        let name = text("id").replace('%', "%25").replace('/', "%2f");
        let title = serde_json::to_string(&text("title"))?;
        let title = if text("title").is_empty() { String::new() } else { format!("---\ntitle: {title}\n---\n") };
        write_if_other(&folder.join(format!("{name}.md")), &format!("{title}{}\n", text("text")))?;
    }
    Ok(())
}

fn copy_notes(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy_notes(&from, &to)?;
        } else if from.extension().is_some_and(|extension| extension == "md") {
            write_if_other(&to, &String::from_utf8_lossy(&fs::read(&from)?))?;
        }
    }
    Ok(())
}

fn write_if_other(file: &Path, text: &str) -> anyhow::Result<()> {
    if fs::read_to_string(file).is_ok_and(|known| known == text) {
        return Ok(());
    }
    Ok(fs::write(file, text)?)
}

/// What a table shows: a title, the arm, the measure. "Half" is with full vectors for every other note.
type Column = (&'static str, &'static str, &'static str);

/// Stands for the arm of the share that full vectors have among the ten closest sections of a half and half index, in
/// percent of the half that they would have if the grade had no influence.
const SHARE: &str = "share";

/// Points of nDCG@10 that full vectors may lose to the committed table: it is rounded, and processors round differently.
const LOSS: f64 = 0.2;

/// By how many points of nDCG@10 coarse vectors may be below full ones, on average.
const MAX_COARSE_GAP: f64 = 4.0;

/// By how many points of nDCG@10 vectors of both grades together may be below the lower of the two: `anchors-k8s-en` loses 1.6.
const MAX_MIXING_LOSS: f64 = 1.7;

/// nDCG@10 of full vectors before search had coarse ones, and how much of it was given up since: the weight of meaning that is
/// best on average costs some sets a part. A new value in docs/search.md does not lower these.
const FLOORS: [(&str, f64, f64); 9] = [
    ("ir-scifact", 78.1, 0.3),
    ("ir-cranfield", 45.4, 0.0),
    ("ir-cacm", 55.4, 1.4),
    ("docsqa-anthropic", 82.7, 0.0),
    ("multihop-hotpot-train100", 86.0, 0.0),
    ("ja-jsquad-valid", 93.2, 0.0),
    ("anchors-k8s-en", 77.2, 0.0),
    ("anchors-obsidian-help-en", 89.1, 0.0),
    ("anchors-obsidian-help-ja", 81.0, 0.0),
];

const COLUMNS: [Column; 14] = [
    ("nDCG@10 plain BM25", "bigrams", "ndcg"),
    ("words", "words", "ndcg"),
    ("coarse", "coarse", "ndcg"),
    ("half", "half", "ndcg"),
    ("full", "full", "ndcg"),
    ("full meaning alone", "meaning", "ndcg"),
    ("coarse meaning alone", "meaning_coarse", "ndcg"),
    ("share of full in half", SHARE, "full_share"),
    ("MRR@10 words", "words", "mrr"),
    ("coarse", "coarse", "mrr"),
    ("full", "full", "mrr"),
    ("recall@100 words", "words", "recall"),
    ("coarse", "coarse", "recall"),
    ("full", "full", "recall"),
];

const COLUMNS_OF_WORDS: [Column; 6] = [
    ("nDCG@10 plain BM25", "bigrams", "ndcg"),
    ("words", "words", "ndcg"),
    ("MRR@10 plain BM25", "bigrams", "mrr"),
    ("words", "words", "mrr"),
    ("recall@100 plain BM25", "bigrams", "recall"),
    ("words", "words", "recall"),
];

/// Queries, and made-up words, that find anything, in percent.
const COLUMNS_OF_ANSWERS: [Column; 6] = [
    ("queries answered: words", "words", "answered"),
    ("coarse", "coarse", "answered"),
    ("full", "full", "answered"),
    ("made-up words answered: words", "words", "made_up_answered"),
    ("coarse", "coarse", "made_up_answered"),
    ("full", "full", "made_up_answered"),
];

fn table(rows: &[(&str, Value)], columns: &[Column]) -> String {
    let titles: Vec<&str> = columns.iter().map(|(title, ..)| *title).collect();
    let titles = titles.join(" | ");
    let mut page = format!("| set | notes | queries | {titles} |\n|{}\n", "---|".repeat(columns.len() + 3));
    let mut sums = vec![0.0; columns.len()];
    for (set, row) in rows {
        let cells: Vec<f64> = columns.iter().map(|(_, arm, measure)| cell(row, arm, measure)).collect();
        for (sum, cell) in sums.iter_mut().zip(&cells) {
            *sum += cell;
        }
        let _ = writeln!(page, "| {set} | {} | {} | {} |", row["notes"], row["queries"], shown(&cells));
    }
    let means: Vec<f64> = sums.iter().map(|sum| sum / rows.len().max(1) as f64).collect();
    let _ = writeln!(page, "| mean | | | {} |", shown(&means));
    page
}

/// A figure in percent.
fn cell(row: &Value, arm: &str, measure: &str) -> f64 {
    match arm {
        SHARE => row["similarities"][measure].as_f64().unwrap_or_default() * 200.0,
        _ => row["arms"][arm][measure].as_f64().unwrap_or_default() * 100.0,
    }
}

/// Fails if coarse vectors, or both grades together, rank below words on any set; if coarse ones are too far below full ones on
/// average; if both together are below either alone; if full ones rank below the committed table or the floors; and if search
/// ranks Japanese below plain pairs of characters.
fn check(rows: &[(&str, Value)], committed: &CommittedTable) -> anyhow::Result<()> {
    let ndcg = |row: &Value, arm| cell(row, arm, "ndcg");
    for (set, row) in rows {
        let (words, coarse, full) = (ndcg(row, "words"), ndcg(row, "coarse"), ndcg(row, "full"));
        ensure!(coarse >= words, "{set}: coarse vectors lower nDCG@10 from {words:.1} to {coarse:.1}");
        let half = ndcg(row, "half");
        ensure!(half >= words - LOSS, "{set}: a half embedded vault ranks at {half:.1}, words at {words:.1}");
        let lower = coarse.min(full);
        ensure!(
            half >= lower - MAX_MIXING_LOSS,
            "{set}: a half embedded vault ranks at {half:.1}, coarse vectors at {coarse:.1}, full ones at {full:.1}"
        );
        if let Some((_, floor, given_up)) = FLOORS.iter().find(|(of, ..)| of == set) {
            let least = floor - given_up - LOSS;
            ensure!(full >= least, "{set}: full vectors rank at {full:.1}, without coarse ones it was {floor:.1}");
        }
        let before = committed.cell(set, "full").map(str::parse::<f64>).transpose()?.unwrap_or(0.0);
        ensure!(full > before - LOSS, "{set}: full vectors rank at {full:.1}, and docs/search.md has {before:.1}");
        let bigrams = ndcg(row, "bigrams");
        let is_japanese = set.starts_with("ja-") || set.ends_with("-ja");
        ensure!(!is_japanese || full >= bigrams, "{set}: search ranks at {full:.1}, plain BM25 at {bigrams:.1}");
    }
    let gaps = rows.iter().map(|(_, row)| ndcg(row, "full") - ndcg(row, "coarse"));
    let gap = gaps.sum::<f64>() / rows.len().max(1) as f64;
    ensure!(gap <= MAX_COARSE_GAP, "coarse vectors are {gap:.1} points below full ones; {MAX_COARSE_GAP} are allowed");
    Ok(())
}

fn shown(cells: &[f64]) -> String {
    cells.iter().map(|cell| format!("{cell:.1}")).collect::<Vec<_>>().join(" | ")
}

/// What brings coarse similarities to the scale of full ones: equal mean and deviation of the closest, over all sets in
/// English, the language of the builtin model.
fn calibration(rows: &[(&str, Value)]) -> String {
    let mean = |grade: &str, place: usize| {
        let of_set = |(_, row): &(&str, Value)| row["similarities"][grade][place].as_f64().unwrap_or_default();
        let english: Vec<f64> = rows.iter().filter(|(set, _)| !set.contains("ja")).map(of_set).collect();
        english.iter().sum::<f64>() / english.len().max(1) as f64
    };
    let slope = mean("full", 1) / mean("coarse", 1);
    format!("Calibration: slope {slope:.3}, offset {:.3}", mean("full", 0) - slope * mean("coarse", 0))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arm(ndcg: f64) -> Value {
        json!({ "ndcg": ndcg / 100.0 })
    }

    fn row(words: f64, coarse: f64, full: f64) -> Value {
        json!({
            "notes": 1, "queries": 1, "similarities": { "full_share": 0.31 },
            "arms": { "words": arm(words), "coarse": arm(coarse), "half": arm(coarse), "full": arm(full) },
        })
    }

    fn checked(rows: &[(&str, Value)]) -> anyhow::Result<()> {
        check(rows, &CommittedTable::default())
    }

    #[test]
    fn full_vectors_below_the_committed_table_or_japanese_below_bigrams_fail() {
        let committed = CommittedTable::read("| set | full |\n|---|---|\n| a | 72.1 |\n");
        assert!(check(&[("a", row(70.0, 70.0, 72.0))], &committed).is_ok());
        let below = check(&[("a", row(70.0, 70.0, 71.5))], &committed).unwrap_err().to_string();
        assert!(below.contains("has 72.1"), "{below}");
        let mut japanese = row(70.0, 70.0, 72.0);
        japanese["arms"]["bigrams"] = json!({ "ndcg": 0.721 });
        assert!(checked(&[("a", japanese.clone())]).is_ok());
        let below = checked(&[("ja-a", japanese)]).unwrap_err().to_string();
        assert!(below.contains("plain BM25 at 72.1"), "{below}");
    }

    #[test]
    fn coarse_vectors_below_words_or_far_below_full_ones_fail() {
        assert!(checked(&[("a", row(70.0, 70.0, 74.0)), ("b", row(60.0, 69.0, 72.0))]).is_ok());
        let below = checked(&[("a", row(70.0, 69.0, 72.0))]).unwrap_err().to_string();
        assert!(below.starts_with("a: "), "{below}");
        let gap = checked(&[("a", row(70.0, 70.0, 76.0)), ("b", row(60.0, 69.0, 72.0))]).unwrap_err().to_string();
        assert!(gap.contains("4.5 points"), "{gap}");
    }

    #[test]
    fn a_half_embedded_vault_below_words_or_below_both_grades_fails() {
        let with_half = |half| {
            let mut row = row(70.0, 74.0, 73.0);
            row["arms"]["half"] = arm(half);
            checked(&[("a", row)])
        };
        assert!(with_half(71.4).is_ok());
        assert!(with_half(71.2).unwrap_err().to_string().contains("coarse vectors at 74.0, full ones at 73.0"));
        let mut below_words = row(70.0, 70.0, 70.0);
        below_words["arms"]["half"] = arm(69.5);
        assert!(checked(&[("a", below_words)]).unwrap_err().to_string().ends_with("words at 70.0"));
    }

    #[test]
    fn a_floor_does_not_follow_the_committed_table() {
        let committed = CommittedTable::read("| set | full |\n|---|---|\n| ir-cacm | 53.0 |\n");
        assert!(check(&[("ir-cacm", row(50.0, 53.0, 54.0))], &committed).is_ok());
        let below = check(&[("ir-cacm", row(50.0, 53.0, 53.7))], &committed).unwrap_err().to_string();
        assert!(below.contains("it was 55.4"), "{below}");
    }

    #[test]
    fn the_table_shows_the_share_of_full_vectors() {
        let page = table(&[("a", row(70.0, 71.0, 72.0))], &COLUMNS);
        let titles: Vec<&str> = page.lines().next().unwrap().split(" | ").collect();
        let place = titles.iter().position(|title| *title == "share of full in half").unwrap();
        assert_eq!(page.lines().nth(2).unwrap().split(" | ").nth(place), Some("62.0"), "{page}");
    }
}
