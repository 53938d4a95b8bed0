//! A whole search: ranks by words and by meaning, fused into one score, members of the client's project first.

use rustc_hash::{FxHashMap, FxHashSet};

use super::fields::{MemoryField, MemoryFields};
use super::text::EntityTextHit;
use super::vectors::Near;
use crate::memory::error::MemoryError;
use crate::memory::memory::Memory;
use crate::memory::model::{Entity, EntityId, ObservationId, name_key};
use crate::memory::read::{PageRequest, Subgraph};
use crate::ports::{Role, TextOwner};
use crate::session::Session;

/// The constant of reciprocal rank fusion: higher values flatten the first ranks.
const RANK_BASE: f32 = 60.0;

/// The weight of words: twice that of meaning, since queries mostly use words that are in memory.
const BY_WORDS: f32 = 2.0 / 3.0;

/// How many of the best by words and by meaning are fused.
const TEXT_WINDOW: usize = 1000;
const VECTOR_WINDOW: usize = 100;

/// The least cosine of a hit above that of unrelated texts. The builtin model puts these at 0.5, and nine in ten answers to a
/// question above 0.65.
const NEARER_BY: f32 = 0.12;

/// The least cosine above that of unrelated texts for a hit without any word of the query: the builtin model puts nonsense
/// (`zzzzq`, `???`) as near as 0.65 to short names.
const ALONE_NEARER_BY: f32 = 0.16;

/// Entities outside the client's project score below this, members above: members always come first.
const OUTSIDE: f32 = 0.5;

/// A search over everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchQuery {
    /// As typed.
    pub text: String,
    /// At most this many.
    pub limit: usize,
    /// The project whose members come first, instead of the client's context.
    pub project: Option<EntityId>,
    pub by: SearchBy,
}

/// The rankings of a search. Tools use both; benchmarks compare the parts.
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
    /// The fields to search.
    pub fields: MemoryFields,
    /// The page of results.
    pub page: PageRequest,
    /// The project whose members come first, instead of the client's context.
    pub project: Option<EntityId>,
}

/// An entity that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundEntity {
    pub entity: Entity,
    /// From 0 to 1, comparable between searches: 1 is first in every ranking.
    pub score: f32,
    /// The fields with words of the query. Empty: found by meaning.
    pub fields: MemoryFields,
    /// The observation that fits best.
    pub best: Option<ObservationId>,
}

/// One page of results.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundPage {
    /// Best first, with observations and the relations among them.
    pub subgraph: Subgraph,
    /// For each of its entities, the matching observations, best first.
    pub fitting: Vec<Vec<ObservationId>>,
    /// The number of all results.
    pub total: u64,
}

impl Memory {
    /// The entities that match a query best, best first.
    pub fn search(&self, session: &Session, query: &SearchQuery) -> Result<Vec<FoundEntity>, MemoryError> {
        let project = self.project_of(session, query.project)?;
        let ranked = self.rank(&query.text, MemoryFields::ALL, project, query.limit, query.by)?;
        let mut page = ranked.hits;
        page.truncate(query.limit);
        let entities = self.store.entities(&page.iter().map(|hit| hit.entity).collect::<Vec<_>>())?;
        let found = page.into_iter().zip(entities).filter_map(|(hit, entity)| {
            Some(FoundEntity { entity: entity?, score: hit.score, fields: hit.fields, best: hit.best })
        });
        Ok(found.collect())
    }

    /// The subgraph that matches a query.
    pub fn search_subgraph(&self, session: &Session, query: &SubgraphQuery) -> Result<FoundPage, MemoryError> {
        if query.fields.is_empty() {
            return Err(MemoryError::NoFields);
        }
        let project = self.project_of(session, query.project)?;
        let offset = usize::try_from(query.page.offset()).unwrap_or(usize::MAX);
        let ranked =
            self.rank(&query.text, query.fields, project, offset.saturating_add(query.page.size), SearchBy::Both)?;
        let page: Vec<&EntityHit> = ranked.hits.iter().skip(offset).take(query.page.size).collect();
        let ids: Vec<EntityId> = page.iter().map(|hit| hit.entity).collect();
        let entities = self.store.entities(&ids)?;
        let subgraph = self.with_surroundings(entities.into_iter().flatten().collect())?;
        let mut by_entity = if query.fields.has(MemoryField::Observations) {
            self.follower.view_so_far()?.text.observations_with(&query.text, &ids)
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

    /// The project whose members come first: the requested one, which must exist, or the client's context.
    fn project_of(&self, session: &Session, asked: Option<EntityId>) -> Result<Option<EntityId>, MemoryError> {
        match asked {
            Some(id) => Ok(Some(self.entity(id)?.id)),
            None => Ok(self.context(session)?.map(|entity| entity.id)),
        }
    }

    fn rank(
        &self,
        text: &str,
        fields: MemoryFields,
        project: Option<EntityId>,
        needed: usize,
        by: SearchBy,
    ) -> Result<RankedEntities, MemoryError> {
        if text.trim().is_empty() {
            return Err(MemoryError::Blank { field: "query".into() });
        }
        let named = self.store.entities_called(&[name_key(text)])?.pop().unwrap_or_default();
        let members = project.map(|project| self.members(project)).transpose()?;
        let is_member = |entity: EntityId| members.as_ref().is_none_or(|members| members.contains(&entity));
        let vector = if by == SearchBy::Words { None } else { self.follower.embed(Role::Query, text) };
        let (mut by_words, by_meaning) = {
            let view = self.follower.view_so_far()?;
            // One vector covers all these fields: it counts only when all are searched.
            let of_entities = [MemoryField::Name, MemoryField::Aliases, MemoryField::Type, MemoryField::Description];
            let wants_entities = of_entities.into_iter().all(|field| fields.has(field));
            let wanted = |owner: TextOwner| match owner {
                TextOwner::Entity(_) => wants_entities,
                TextOwner::Observation(_) => fields.has(MemoryField::Observations),
            };
            let at_least = self.follower.unrelated() + NEARER_BY;
            let by_meaning =
                vector.map(|vector| view.vectors.near(&vector, at_least, wanted, is_member, VECTOR_WINDOW));
            let by_words = if by == SearchBy::Meaning { Vec::new() } else { view.text.search(text, fields) };
            (by_words, by_meaning)
        };
        // A query that is a name ranks that entity first.
        if fields.has(MemoryField::Name) || fields.has(MemoryField::Aliases) {
            let named: FxHashSet<EntityId> = named.into_iter().collect();
            by_words.iter_mut().filter(|hit| named.contains(&hit.entity)).for_each(|hit| hit.score += 1e6);
        }
        let found_by_words = by_words.len();
        let mut by_meaning = by_meaning.unwrap_or_default();
        let is_near: FxHashSet<EntityId> = by_meaning.iter().map(|near| near.entity).collect();
        // Entities near in meaning keep their word hits, whatever their rank: they must not look as if they had none.
        let (near_too, others): (Vec<_>, Vec<_>) = by_words.into_iter().partition(|hit| is_near.contains(&hit.entity));
        let has_words: FxHashSet<EntityId> = near_too.iter().map(|hit| hit.entity).collect();
        let alone_at_least = self.follower.unrelated() + ALONE_NEARER_BY;
        by_meaning.retain(|near| near.cosine >= alone_at_least || has_words.contains(&near.entity));
        // Cut separately, so that entities outside the project never push out a member.
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
        Ok(RankedEntities { hits, total: (found_by_words + only_by_meaning) as u64 })
    }
}

struct RankedEntities {
    hits: Vec<EntityHit>,
    total: u64,
}

struct EntityHit {
    entity: EntityId,
    score: f32,
    fields: MemoryFields,
    /// The best observation by words, else by meaning.
    best: Option<ObservationId>,
    /// The observation that is nearest, if the entity was found by one.
    near: Option<ObservationId>,
}

fn best_first(a: &EntityTextHit, b: &EntityTextHit) -> std::cmp::Ordering {
    b.score.total_cmp(&a.score).then(a.entity.cmp(&b.entity))
}

/// Keeps the best `needed`, in no order.
fn keep_best(hits: &mut Vec<EntityTextHit>, needed: usize) {
    if hits.len() > needed {
        hits.select_nth_unstable_by(needed, best_first);
        hits.truncate(needed);
    }
}

/// Fuses two rankings: the weighted sum of the reciprocal ranks, scaled so that the first is 1, with one ranking or two.
fn fuse(by_words: &[EntityTextHit], by_meaning: &[Near]) -> Vec<EntityHit> {
    let worth = |place: usize| (RANK_BASE + 1.0) / (RANK_BASE + 1.0 + place as f32);
    let of_words = if by_meaning.is_empty() { 1.0 } else { BY_WORDS };
    let of_meaning = 1.0 - of_words;
    let mut hits: Vec<EntityHit> = by_words
        .iter()
        .enumerate()
        .map(|(place, hit)| EntityHit {
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
            None => hits.push(EntityHit {
                entity: near.entity,
                score: of_meaning * worth(place),
                fields: MemoryFields::default(),
                best: near.observation,
                near: near.observation,
            }),
        }
    }
    hits
}
