//! A search, whole: words and meanings ranked, fused into one score, the client's project first.

use rustc_hash::{FxHashMap, FxHashSet};

use super::fields::{Field, Fields};
use super::text::TextHit;
use super::vectors::Near;
use crate::memory::error::MemoryError;
use crate::memory::memory::Memory;
use crate::memory::model::{Entity, EntityId, ObservationId, name_key};
use crate::memory::read::{Page, Subgraph};
use crate::ports::{Role, TextOwner};
use crate::session::Session;

/// Reciprocal rank fusion: how little the first places stand out.
const RANK_BASE: f32 = 60.0;

/// What words say counts twice as much as what meaning says: who searches memory mostly uses words that are in it.
const BY_WORDS: f32 = 2.0 / 3.0;

/// How many of the best by words are fused with the best by meaning.
const TEXT_WINDOW: usize = 1000;
const VECTOR_WINDOW: usize = 100;

/// What is not nearer than unrelated texts by this much is not about the query. The builtin model puts these at 0.5, and nine
/// in ten answers to a question above 0.65.
const NEARER_BY: f32 = 0.12;

/// By this much where no word of the query is there to bear it out: the builtin model puts what means nothing (`zzzzq`, `???`)
/// as near as 0.65 to short names.
const ALONE_NEARER_BY: f32 = 0.16;

/// What is outside the client's project shares the scale up to here, its members the rest of it: however well an outsider
/// fits, they come first.
const OUTSIDE: f32 = 0.5;

/// A search over everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchQuery {
    /// As typed.
    pub text: String,
    /// At most this many.
    pub limit: usize,
    /// Whose members come first, in place of the client's context.
    pub project: Option<EntityId>,
    /// What counts.
    pub by: SearchBy,
}

/// What counts in a search. Tools search by both; the parts are for measuring what each is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SearchBy {
    /// Words and meaning, fused.
    #[default]
    Both,
    /// Words alone.
    Words,
    /// Meaning alone.
    Meaning,
}

/// A search in some fields, page by page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubgraphQuery {
    /// As typed.
    pub text: String,
    /// Where to look.
    pub fields: Fields,
    /// Which part of the outcome.
    pub page: Page,
    /// Whose members come first, in place of the client's context.
    pub project: Option<EntityId>,
}

/// An entity found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Itself.
    pub entity: Entity,
    /// From 0 to 1, and comparable from one search to the next: 1 is first by every measure.
    pub score: f32,
    /// Where words of the query occur. None: found by meaning.
    pub fields: Fields,
    /// The observation that fits best.
    pub best: Option<ObservationId>,
}

/// One page of what was found.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundPage {
    /// Best first, with observations and the relations among them.
    pub subgraph: Subgraph,
    /// For each of its entities the observations that fit the query, best first.
    pub fitting: Vec<Vec<ObservationId>>,
    /// How many were found in all.
    pub total: u64,
}

impl Memory {
    /// The entities that fit a query best, best first.
    pub fn search(&self, session: &Session, query: &SearchQuery) -> Result<Vec<Found>, MemoryError> {
        let project = self.project_of(session, query.project)?;
        let ranked = self.rank(&query.text, Fields::ALL, project, query.limit, query.by)?;
        let mut page = ranked.hits;
        page.truncate(query.limit);
        let entities = self.store.entities(&page.iter().map(|hit| hit.entity).collect::<Vec<_>>())?;
        let found = page.into_iter().zip(entities).filter_map(|(hit, entity)| {
            Some(Found { entity: entity?, score: hit.score, fields: hit.fields, best: hit.best })
        });
        Ok(found.collect())
    }

    /// The part of the graph that fits a query.
    pub fn search_subgraph(&self, session: &Session, query: &SubgraphQuery) -> Result<FoundPage, MemoryError> {
        if query.fields.is_empty() {
            return Err(MemoryError::NoFields);
        }
        let project = self.project_of(session, query.project)?;
        let offset = usize::try_from(query.page.offset()).unwrap_or(usize::MAX);
        let ranked =
            self.rank(&query.text, query.fields, project, offset.saturating_add(query.page.size), SearchBy::Both)?;
        let page: Vec<&Hit> = ranked.hits.iter().skip(offset).take(query.page.size).collect();
        let ids: Vec<EntityId> = page.iter().map(|hit| hit.entity).collect();
        let entities = self.store.entities(&ids)?;
        let subgraph = self.with_surroundings(entities.into_iter().flatten().collect())?;
        let mut by_entity = if query.fields.has(Field::Observations) {
            self.follower.view()?.text.observations_with(&query.text, &ids)
        } else {
            FxHashMap::default()
        };
        for (entity, near) in page.iter().filter_map(|hit| Some((hit.entity, hit.near?))) {
            let fitting = by_entity.entry(entity).or_default();
            if !fitting.contains(&near) {
                fitting.push(near);
            }
        }
        let fitting = subgraph.entities.iter().map(|(entity, _)| by_entity.remove(&entity.id).unwrap_or_default());
        let fitting = fitting.collect();
        Ok(FoundPage { subgraph, fitting, total: ranked.total })
    }

    /// The project whose members come first: the one asked for, which must be there, or the client's context.
    fn project_of(&self, session: &Session, asked: Option<EntityId>) -> Result<Option<EntityId>, MemoryError> {
        match asked {
            Some(id) => Ok(Some(self.entity(id)?.id)),
            None => Ok(self.context(session)?.map(|entity| entity.id)),
        }
    }

    fn rank(
        &self,
        text: &str,
        fields: Fields,
        project: Option<EntityId>,
        needed: usize,
        by: SearchBy,
    ) -> Result<Ranked, MemoryError> {
        if text.trim().is_empty() {
            return Err(MemoryError::Blank { field: "query".into() });
        }
        let named = self.store.entities_called(&[name_key(text)])?.pop().unwrap_or_default();
        let members = project.map(|project| self.members(project)).transpose()?;
        let is_member = |entity: EntityId| members.as_ref().is_none_or(|members| members.contains(&entity));
        let vector = if by == SearchBy::Words { None } else { self.follower.embed(Role::Query, text) };
        let (mut by_words, by_meaning) = {
            let view = self.follower.view()?;
            // One vector is made of all these fields and does not say which of them is near: where one is not to be
            // searched, it cannot count.
            let of_entities = [Field::Name, Field::Aliases, Field::Type, Field::Description];
            let wants_entities = of_entities.into_iter().all(|field| fields.has(field));
            let wanted = |owner: TextOwner| match owner {
                TextOwner::Entity(_) => wants_entities,
                TextOwner::Observation(_) => fields.has(Field::Observations),
            };
            let at_least = self.follower.unrelated() + NEARER_BY;
            let by_meaning =
                vector.map(|vector| view.vectors.near(&vector, at_least, wanted, is_member, VECTOR_WINDOW));
            let by_words = if by == SearchBy::Meaning { Vec::new() } else { view.text.search(text, fields) };
            (by_words, by_meaning)
        };
        // Whoever types a name wants what has it.
        if fields.has(Field::Name) || fields.has(Field::Aliases) {
            let named: FxHashSet<EntityId> = named.into_iter().collect();
            by_words.iter_mut().filter(|hit| named.contains(&hit.entity)).for_each(|hit| hit.score += 1e6);
        }
        let found_by_words = by_words.len();
        let mut by_meaning = by_meaning.unwrap_or_default();
        let is_near: FxHashSet<EntityId> = by_meaning.iter().map(|near| near.entity).collect();
        // What is near keeps its words however far down they stand: it must not look as if it had none.
        let (near_too, others): (Vec<_>, Vec<_>) = by_words.into_iter().partition(|hit| is_near.contains(&hit.entity));
        let has_words: FxHashSet<EntityId> = near_too.iter().map(|hit| hit.entity).collect();
        let alone_at_least = self.follower.unrelated() + ALONE_NEARER_BY;
        by_meaning.retain(|near| near.cosine >= alone_at_least || has_words.contains(&near.entity));
        // Apart, so that no number of outsiders pushes a member out.
        let (mut inside, mut outside): (Vec<_>, Vec<_>) = others.into_iter().partition(|hit| is_member(hit.entity));
        keep_best(&mut inside, needed.max(TEXT_WINDOW));
        keep_best(&mut outside, needed.max(TEXT_WINDOW));
        let mut by_words = [near_too, inside, outside].concat();
        by_words.sort_unstable_by(best_first);
        let mut hits = fuse(&by_words, &by_meaning);
        if members.is_some() {
            for hit in &mut hits {
                hit.score =
                    if is_member(hit.entity) { OUTSIDE + (1.0 - OUTSIDE) * hit.score } else { OUTSIDE * hit.score };
            }
        }
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.entity.cmp(&b.entity)));
        let only_by_meaning = hits.iter().filter(|hit| hit.fields.is_empty()).count();
        Ok(Ranked { hits, total: (found_by_words + only_by_meaning) as u64 })
    }
}

struct Ranked {
    hits: Vec<Hit>,
    total: u64,
}

struct Hit {
    entity: EntityId,
    score: f32,
    fields: Fields,
    /// The observation that fits best by words, else by meaning.
    best: Option<ObservationId>,
    /// The observation that is nearest, if the entity was found by one.
    near: Option<ObservationId>,
}

fn best_first(a: &TextHit, b: &TextHit) -> std::cmp::Ordering {
    b.score.total_cmp(&a.score).then(a.entity.cmp(&b.entity))
}

/// Leaves the best `needed`, in no order.
fn keep_best(hits: &mut Vec<TextHit>, needed: usize) {
    if hits.len() > needed {
        hits.select_nth_unstable_by(needed, best_first);
        hits.truncate(needed);
    }
}

/// One score from two rankings: the sum of what each place is worth, as a share of the most it could be. With one ranking
/// alone the first is 1 as well, so a score means the same with and without vectors.
fn fuse(by_words: &[TextHit], by_meaning: &[Near]) -> Vec<Hit> {
    let worth = |place: usize| (RANK_BASE + 1.0) / (RANK_BASE + 1.0 + place as f32);
    let of_words = if by_meaning.is_empty() { 1.0 } else { BY_WORDS };
    let of_meaning = 1.0 - of_words;
    let mut hits: Vec<Hit> = by_words
        .iter()
        .enumerate()
        .map(|(place, hit)| Hit {
            entity: hit.entity,
            score: of_words * worth(place),
            fields: hit.fields,
            best: hit.best,
            near: None,
        })
        .collect();
    let place_of: FxHashMap<EntityId, usize> =
        hits.iter().enumerate().map(|(place, hit)| (hit.entity, place)).collect();
    for (place, near) in by_meaning.iter().enumerate() {
        match place_of.get(&near.entity) {
            Some(known) => {
                hits[*known].score += of_meaning * worth(place);
                hits[*known].best = hits[*known].best.or(near.observation);
                hits[*known].near = near.observation;
            }
            None => hits.push(Hit {
                entity: near.entity,
                score: of_meaning * worth(place),
                fields: Fields::default(),
                best: near.observation,
                near: near.observation,
            }),
        }
    }
    hits
}
