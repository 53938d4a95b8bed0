//! The best hits of one query, in an order that depends on nothing but the notes.

use std::sync::Arc;

use quipu_core::model::NoteKey;
use quipu_core::ports::TextHit;
use rustc_hash::FxHashSet;
use tantivy::collector::sort_key::{SortBySimilarityScore, SortByStaticFastValue};
use tantivy::collector::{Count, FilterCollector, TopDocs};
use tantivy::query::Query;
use tantivy::{DocAddress, Order, Searcher};

use super::schema::{PLACE, key_and_section};

/// How many more hits than wanted are taken, in search of ties.
const TIES: usize = 32;

/// The notes a search is limited to.
type Among = Arc<FxHashSet<NoteKey>>;

/// The best sections: by score, ties by key and section.
pub(super) fn best(
    searcher: &Searcher,
    query: &dyn Query,
    limit: usize,
    among: Option<&Among>,
) -> tantivy::Result<Vec<TextHit>> {
    // By score alone tantivy may skip what cannot win, but leaves out ties as it likes. So some more are taken: where the
    // last of these scores less than the last wanted, no tie was left out.
    let more = limit.saturating_add(TIES);
    let by_score = TopDocs::with_limit(more).order_by_score();
    let found = match among {
        Some(among) => searcher.search(query, &FilterCollector::new(PLACE.into(), is_in(among), by_score))?,
        None => searcher.search(query, &by_score)?,
    };
    let is_complete = found.len() < more || found[more - 1].0 < found[limit - 1].0;
    let mut hits: Vec<(f32, u64)> = if is_complete {
        let place = |(score, address): (f32, DocAddress)| {
            let places = searcher.segment_reader(address.segment_ord).fast_fields().u64(PLACE)?;
            Ok(places.first(address.doc_id).map(|place| (score, place)))
        };
        found.into_iter().filter_map(|found| place(found).transpose()).collect::<tantivy::Result<_>>()?
    } else {
        let by_place = (SortByStaticFastValue::<u64>::for_field(PLACE), Order::Asc);
        let collector = TopDocs::with_limit(limit).order_by((SortBySimilarityScore, by_place));
        let found = match among {
            Some(among) => searcher.search(query, &FilterCollector::new(PLACE.into(), is_in(among), collector))?,
            None => searcher.search(query, &collector)?,
        };
        found.into_iter().filter_map(|((score, place), _)| Some((score, place?))).collect()
    };
    hits.sort_by(|(score, place), (other_score, other_place)| {
        other_score.total_cmp(score).then_with(|| place.cmp(other_place))
    });
    hits.truncate(limit);
    let hit = |(score, place)| {
        let (key, section) = key_and_section(place);
        TextHit { key: NoteKey(key), section, score }
    };
    Ok(hits.into_iter().map(hit).collect())
}

/// How many sections match.
pub(super) fn count(searcher: &Searcher, query: &dyn Query, among: Option<&Among>) -> tantivy::Result<usize> {
    match among {
        Some(among) => searcher.search(query, &FilterCollector::new(PLACE.into(), is_in(among), Count)),
        None => searcher.search(query, &Count),
    }
}

fn is_in(among: &Among) -> impl Fn(u64) -> bool + Send + Sync + Clone + 'static {
    let among = Arc::clone(among);
    move |place| among.contains(&NoteKey(key_and_section(place).0))
}
