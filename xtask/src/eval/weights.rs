//! Which weight of meaning ranks best, by sets left out in turn.

use std::fmt::Write;

use anyhow::{Context, ensure};
use serde_json::Value;

/// One table: a row for each set with its nDCG@10 by weight; the weight that is best on average for the other sets, and what it
/// scores on this one. The last row has the means.
pub(super) fn table(grade: &str, rows: &[(&str, Value)]) -> anyhow::Result<String> {
    let of = |value: &Value| -> anyhow::Result<Vec<f64>> {
        let numbers = value.as_array().context("no list of figures")?.iter().map(Value::as_f64);
        numbers.collect::<Option<_>>().context("a figure is no number")
    };
    let (_, first) = rows.first().context("no set is of that name")?;
    let weights = of(&first["weights"])?;
    let scores: Vec<Vec<f64>> = rows.iter().map(|(_, row)| of(&row["ndcg"][grade])).collect::<Result<_, _>>()?;
    ensure!(scores.iter().all(|scores| scores.len() == weights.len()), "a set has other weights");
    let titles: Vec<String> = weights.iter().map(|weight| format!("{weight:.2}")).collect();
    let mut page = format!(
        "| {grade} | {} | others choose | and score |\n|{}\n",
        titles.join(" | "),
        "---|".repeat(weights.len() + 3)
    );
    let mut left_out = 0.0;
    for (at, (set, _)) in rows.iter().enumerate() {
        let chosen = best(&mean(&scores, Some(at)));
        left_out += scores[at][chosen];
        let shown = shown(&scores[at]);
        writeln!(page, "| {set} | {shown} | {:.2} | {:.1} |", weights[chosen], scores[at][chosen] * 100.0)?;
    }
    let all = mean(&scores, None);
    let left_out = left_out / rows.len() as f64 * 100.0;
    writeln!(page, "| mean | {} | {:.2} | {left_out:.1} |", shown(&all), weights[best(&all)])?;
    Ok(page)
}

/// The mean of each weight over the sets, without one of them.
fn mean(scores: &[Vec<f64>], without: Option<usize>) -> Vec<f64> {
    let counted = || scores.iter().enumerate().filter(|(at, _)| Some(*at) != without).map(|(_, scores)| scores);
    let weights = scores.first().map_or(0, Vec::len);
    (0..weights).map(|weight| counted().map(|of| of[weight]).sum::<f64>() / counted().count().max(1) as f64).collect()
}

fn best(scores: &[f64]) -> usize {
    (0..scores.len()).max_by(|a, b| scores[*a].total_cmp(&scores[*b])).unwrap_or_default()
}

fn shown(scores: &[f64]) -> String {
    scores.iter().map(|score| format!("{:.1}", score * 100.0)).collect::<Vec<_>>().join(" | ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_weight_is_chosen_without_the_set_it_is_judged_on() {
        let row = |full: [f64; 2]| json!({"weights": [0.4, 0.6], "ndcg": {"full": full}});
        let rows = [("a", row([0.9, 0.1])), ("b", row([0.5, 0.6])), ("c", row([0.5, 0.7]))];
        let page = table("full", &rows).unwrap();
        assert!(page.contains("| a | 90.0 | 10.0 | 0.60 | 10.0 |"), "{page}");
        assert!(page.contains("| b | 50.0 | 60.0 | 0.40 | 50.0 |"), "{page}");
        assert!(page.contains("| mean | 63.3 | 46.7 | 0.40 | 36.7 |"), "{page}");
    }
}
