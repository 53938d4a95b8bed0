//! The entities that a text names: notes it links to, names that memory knows, and names found by their spelling or by a
//! language model.

use rustc_hash::{FxHashMap, FxHashSet};

use super::by_model::not_used;
use super::folded_lines::FoldedLines;
use super::spelling::{UNKNOWN_TYPE, spelled_names};
use crate::Knowledge;
use crate::index::Snapshot;
use crate::memory::{EntityId, Memory, MemoryError, limits, name_key};
use crate::model::{Link, LinkSyntax, Note, NoteKey, fold};
use crate::parse::{link_sites, text_start};
use crate::ports::{NamedEntities, RelationFilter};

/// Bytes of a text that are read.
const MAX_BYTES: usize = 100 << 10;

/// Words of a name that memory knows.
const MAX_NAME_WORDS: usize = 5;

/// Mentions kept for each entity.
const MAX_MENTIONS: usize = 5;

/// Linked notes, and names of missing ones, that are looked for in the text. An answer has at most fifty entities.
const MAX_LOOKED_FOR: usize = 500;

/// Characters of the line of a mention.
const MAX_LINE: usize = 160;

/// Confidence by where a name was found.
const KNOWN: f32 = 0.95;
const OWN_TITLE: f32 = 0.9;
const LINKED: f32 = 0.8;
const BY_MODEL: f32 = 0.75;
/// A link that leads to no note names something; the spelling may tell more.
const UNRESOLVED: f32 = 0.5;

/// The entities and relations that a text names.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EntitySuggestions {
    /// Surest first.
    pub entities: Vec<SuggestedEntity>,
    /// Among these entities, by name.
    pub relations: Vec<SuggestedRelation>,
    /// Whether a language model found names, besides links and what memory knows.
    pub by_model: bool,
    /// Why a language model was not used, and which of its names were not.
    pub warnings: Vec<String>,
}

/// A named thing.
#[derive(Debug, Clone, PartialEq)]
pub struct SuggestedEntity {
    /// As memory has it, else as written.
    pub name: String,
    /// A canonical type of memory where the text tells one.
    pub entity_type: String,
    /// From 0 to 1.
    pub confidence: f32,
    /// The first places.
    pub mentions: Vec<Mention>,
    /// The entity of memory with this name or alias.
    pub existing: Option<EntityId>,
}

/// A place in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// Counted from 1, frontmatter included.
    pub line: usize,
    pub text: String,
}

/// How two entities are related.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuggestedRelation {
    /// Name of the source.
    pub from: String,
    /// Name of the target.
    pub to: String,
    /// `references` for a plain link.
    pub relation_type: String,
    /// Whether memory has it.
    pub is_known: bool,
}

/// Collects entities by the key of their name.
#[derive(Default)]
struct EntityCandidate {
    entities: Vec<SuggestedEntity>,
    by_key: FxHashMap<String, usize>,
    /// Names that turned out to be another entity's alias.
    aliases: FxHashMap<usize, usize>,
}

impl EntityCandidate {
    /// Adds a name, or a mention of one that is there. The surer of two finds decides the type.
    fn add(&mut self, name: &str, entity_type: &str, confidence: f32, mention: Option<Mention>) -> usize {
        let key = name_key(name);
        let at = *self.by_key.entry(key).or_insert_with(|| {
            self.entities.push(SuggestedEntity {
                name: name.to_owned(),
                entity_type: entity_type.to_owned(),
                confidence,
                mentions: Vec::new(),
                existing: None,
            });
            self.entities.len() - 1
        });
        let entity = &mut self.entities[at];
        if confidence > entity.confidence {
            (entity.confidence, entity.entity_type) = (confidence, entity_type.to_owned());
        }
        let is_new = |mention: &Mention| entity.mentions.iter().all(|known| known.line != mention.line);
        if entity.mentions.len() < MAX_MENTIONS && mention.as_ref().is_some_and(is_new) {
            entity.mentions.extend(mention);
        }
        at
    }

    /// The surest entities, ties in the order of the text.
    fn best(&self, limit: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.entities.len()).filter(|at| !self.aliases.contains_key(at)).collect();
        let confidence = |at: usize| self.entities[at].confidence;
        order.sort_by(|a, b| confidence(*b).total_cmp(&confidence(*a)).then(a.cmp(b)));
        order.truncate(limit);
        order
    }
}

impl Knowledge {
    /// The entities of a note, or of a text that is not one. `text` is the whole file.
    pub fn extract_entities(
        &self,
        note: Option<(&Snapshot, NoteKey)>,
        text: &str,
        limit: usize,
    ) -> Result<EntitySuggestions, MemoryError> {
        let text = &text[..text.floor_char_boundary(MAX_BYTES)];
        let body = if note.is_some() { text_start(text.as_bytes()) } else { 0 };
        let lines = FoldedLines::of(text);
        let mut found = EntityCandidate::default();
        let mut links: Vec<(usize, usize, String)> = Vec::new();
        match note {
            Some((snapshot, key)) => links = linked(snapshot, key, &lines, &mut found),
            None => self.linked_in_text(text, &lines, &mut found),
        }
        let title = note.map_or("", |(snapshot, key)| &snapshot.note(key).title);
        let (named, warnings) = self.named_by_model(title, &text[body..]);
        let by_model = named.is_some();
        match named {
            Some(named) => links.extend(add_named(&named, &lines, &mut found)),
            None => add_spelled(text, &lines, text[..body].lines().count(), &mut found),
        }
        if let Some(memory) = &self.memory {
            known_names(memory, &lines, &mut found)?;
        }
        let kept = found.best(limit);
        let entity = |at: usize| found.aliases.get(&at).copied().unwrap_or(at);
        let mut relations: Vec<SuggestedRelation> = links
            .iter()
            .map(|(from, to, relation_type)| (entity(*from), entity(*to), relation_type))
            .filter(|(from, to, _)| from != to && kept.contains(from) && kept.contains(to))
            .map(|(from, to, relation_type)| SuggestedRelation {
                from: found.entities[from].name.clone(),
                to: found.entities[to].name.clone(),
                relation_type: relation_type.clone(),
                is_known: false,
            })
            .collect();
        let entities: Vec<SuggestedEntity> = kept.iter().map(|at| found.entities[*at].clone()).collect();
        if let Some(memory) = &self.memory {
            mark_known(memory, &entities, &mut relations)?;
        }
        Ok(EntitySuggestions { entities, relations, by_model, warnings })
    }

    /// The notes that a text which is not a note links to, resolved as in a note at the vault's root.
    fn linked_in_text(&self, text: &str, lines: &FoldedLines<'_>, found: &mut EntityCandidate) {
        let sites = link_sites(text);
        if sites.is_empty() {
            return;
        }
        let (snapshot, targets) = self.indexer.resolve_from_root(sites.iter().map(|site| &site.link));
        let mut linked = LinkedNames::new(&snapshot, lines, found);
        for (site, target) in sites.iter().zip(targets) {
            match target {
                Some(target) => drop(linked.add(target)),
                None => linked.add_unresolved(&site.link),
            }
        }
    }

    /// What the language model finds in a text; `None` where it is not used.
    fn named_by_model(&self, title: &str, text: &str) -> (Option<NamedEntities>, Vec<String>) {
        if text.trim().is_empty() {
            return (None, Vec::new());
        }
        match self.entities_by_model(title, text) {
            Some(Ok(answer)) => (Some(answer.value), answer.warnings),
            Some(Err(why)) => (None, vec![not_used(&why)]),
            None => (None, Vec::new()),
        }
    }
}

/// Adds what a language model found, all of which is in the text. Returns its relations.
fn add_named(
    named: &NamedEntities,
    lines: &FoldedLines<'_>,
    found: &mut EntityCandidate,
) -> Vec<(usize, usize, String)> {
    for (name, entity_type) in &named.entities {
        let mut mentions = lines.with_name(name).map(|at| mention(lines, at)).take(MAX_MENTIONS).peekable();
        // A name may be spread over two lines.
        if mentions.peek().is_none() {
            found.add(name, entity_type, BY_MODEL, None);
        }
        for mention in mentions {
            found.add(name, entity_type, BY_MODEL, Some(mention));
        }
    }
    let place = |name: &str| found.by_key.get(&name_key(name)).copied();
    let relations = named.relations.iter();
    relations.filter_map(|said| Some((place(&said.from)?, place(&said.to)?, said.relation_type.clone()))).collect()
}

/// Adds names found by their spelling.
fn add_spelled(text: &str, lines: &FoldedLines<'_>, frontmatter_lines: usize, found: &mut EntityCandidate) {
    for name in spelled_names(text, frontmatter_lines) {
        for line in &name.lines {
            let mention = Some(mention(lines, line - 1));
            found.add(&name.name, name.entity_type, name.confidence, mention);
        }
    }
}

/// The note itself and the notes it links to, with the links between them.
fn linked(
    snapshot: &Snapshot,
    key: NoteKey,
    lines: &FoldedLines<'_>,
    found: &mut EntityCandidate,
) -> Vec<(usize, usize, String)> {
    let note = snapshot.note(key);
    let Some(title) = usable(&note.title) else { return Vec::new() };
    let own = found.add(title, &type_of(note), OWN_TITLE, None);
    let (mut links, mut seen) = (Vec::new(), FxHashSet::default());
    let mut names = LinkedNames::new(snapshot, lines, found);
    for (target, link_type) in snapshot.typed_links(key) {
        let Some(other) = names.add(target) else { continue };
        if other != own && seen.insert((other, link_type)) {
            links.push((own, other, link_type.name().to_owned()));
        }
    }
    snapshot.broken_links(key).for_each(|link| names.add_unresolved(link));
    links
}

/// Adds what a text links to. Each note and each name is looked for in the text once: a text of links has thousands.
struct LinkedNames<'a, 't> {
    snapshot: &'a Snapshot,
    lines: &'a FoldedLines<'t>,
    found: &'a mut EntityCandidate,
    /// The entities of notes.
    notes: FxHashMap<NoteKey, Option<usize>>,
    /// Names of missing notes.
    missing: FxHashSet<String>,
}

impl<'a, 't> LinkedNames<'a, 't> {
    fn new(snapshot: &'a Snapshot, lines: &'a FoldedLines<'t>, found: &'a mut EntityCandidate) -> Self {
        Self { snapshot, lines, found, notes: FxHashMap::default(), missing: FxHashSet::default() }
    }

    /// Adds a note that the text links to.
    fn add(&mut self, target: NoteKey) -> Option<usize> {
        if let Some(known) = self.notes.get(&target) {
            return *known;
        }
        let note = self.snapshot.note(target);
        let added = usable(&note.title).map(|title| {
            let mention = self.first_mention(&[note.path.stem(), title]);
            self.found.add(title, &type_of(note), LINKED, mention)
        });
        self.notes.insert(target, added);
        added
    }

    /// Adds the name in a wikilink that leads to no note yet.
    fn add_unresolved(&mut self, link: &Link) {
        let name = link.target.rsplit('/').next().and_then(usable);
        let Some(name) = name.filter(|_| link.syntax == LinkSyntax::Wiki && !link.is_attachment()) else { return };
        if !self.missing.contains(name) {
            let mention = self.first_mention(&[name]);
            self.found.add(name, UNKNOWN_TYPE, UNRESOLVED, mention);
            self.missing.insert(name.to_owned());
        }
    }

    /// The first line with one of these names.
    fn first_mention(&self, names: &[&str]) -> Option<Mention> {
        if self.notes.len() + self.missing.len() >= MAX_LOOKED_FOR {
            return None;
        }
        let line = names.iter().filter_map(|name| self.lines.with_name(name).next()).min()?;
        Some(mention(self.lines, line))
    }
}

/// The type of the thing that a note is about: by its frontmatter, else by a tag or the name of its folder.
fn type_of(note: &Note) -> String {
    const BY_PLACE: [(&str, &str); 10] = [
        ("person", "User"),
        ("persons", "User"),
        ("people", "User"),
        ("contact", "User"),
        ("contacts", "User"),
        ("project", "Project"),
        ("projects", "Project"),
        ("company", "Organization"),
        ("companies", "Organization"),
        ("organizations", "Organization"),
    ];
    let written = note.text_property("entity_type").or_else(|| note.text_property("type"));
    let written = written.filter(|written| !written.trim().is_empty() && written.chars().count() <= limits::TYPE);
    let folder = fold(note.path.folder().rsplit('/').next().unwrap_or_default());
    let tags = note.tags.iter().filter_map(|tag| tag.folded.rsplit('/').next());
    let mut places = tags.chain([folder.as_str()]);
    let by_place = places.find_map(|place| BY_PLACE.iter().find(|(word, _)| *word == place));
    written.unwrap_or_else(|| by_place.map_or("Documentation", |(_, kind)| kind).to_owned())
}

/// A title that memory can take as a name.
fn usable(title: &str) -> Option<&str> {
    let title = title.trim();
    (!title.is_empty() && title.chars().count() <= limits::NAME).then_some(title)
}

/// The mention in the line at a place, which is counted from 0.
fn mention(lines: &FoldedLines<'_>, at: usize) -> Mention {
    let text = lines.lines[at];
    let end = text.char_indices().nth(MAX_LINE).map_or(text.len(), |(at, _)| at);
    Mention { line: at + 1, text: text[..end].to_owned() }
}

/// Names and aliases of memory's entities that occur in the text.
fn known_names(memory: &Memory, lines: &FoldedLines<'_>, found: &mut EntityCandidate) -> Result<(), MemoryError> {
    let mut places: FxHashMap<String, Vec<Mention>> = FxHashMap::default();
    for (number, line) in lines.lines.iter().enumerate() {
        let words: Vec<(usize, &str)> = words_of(line);
        for (from, (start, _)) in words.iter().enumerate() {
            for (end, last) in &words[from..words.len().min(from + MAX_NAME_WORDS)] {
                let key = name_key(&line[*start..end + last.len()]);
                let mentions = places.entry(key).or_default();
                if mentions.len() < MAX_MENTIONS && mentions.last().is_none_or(|known| known.line != number + 1) {
                    mentions.push(mention(lines, number));
                }
            }
        }
    }
    // Also the names that were found otherwise, such as a title that is not in the text.
    let found_keys: FxHashSet<String> = found.by_key.keys().cloned().collect();
    let mut keys: Vec<String> = places.keys().cloned().chain(found_keys).collect();
    keys.sort_unstable();
    keys.dedup();
    let called = memory.store().entities_called(&keys)?;
    for (key, ids) in keys.iter().zip(called) {
        let Some(id) = ids.first() else { continue };
        let Some(entity) = memory.store().entities(&[*id])?.into_iter().flatten().next() else { continue };
        let at = found.add(&entity.name, &entity.entity_type, KNOWN, None);
        // A name may have been found by an alias.
        let by_alias = found.by_key.get(key).copied().filter(|other| *other != at);
        let mut mentions =
            by_alias.map(|other| std::mem::take(&mut found.entities[other].mentions)).unwrap_or_default();
        if let Some(other) = by_alias {
            found.aliases.insert(other, at);
        }
        mentions.extend(places.remove(key).unwrap_or_default());
        let known = &mut found.entities[at];
        known.existing = Some(entity.id);
        known.name.clone_from(&entity.name);
        known.mentions.append(&mut mentions);
        known.mentions.sort_by_key(|mention| mention.line);
        known.mentions.dedup();
        known.mentions.truncate(MAX_MENTIONS);
    }
    Ok(())
}

/// The words of a line between spaces and punctuation, with their places.
fn words_of(line: &str) -> Vec<(usize, &str)> {
    let is_part = |c: char| c.is_alphanumeric() || "-_.'’+#".contains(c);
    let words = line.split(|c: char| !is_part(c)).map(|word| word.trim_matches(['.', '\'', '’', '-']));
    words.filter(|word| !word.is_empty()).map(|word| (word.as_ptr() as usize - line.as_ptr() as usize, word)).collect()
}

/// Finds out which relations memory has.
fn mark_known(
    memory: &Memory,
    entities: &[SuggestedEntity],
    relations: &mut [SuggestedRelation],
) -> Result<(), MemoryError> {
    let id_of = |name: &str| entities.iter().find(|entity| entity.name == name).and_then(|entity| entity.existing);
    for relation in relations {
        let (Some(from), Some(to)) = (id_of(&relation.from), id_of(&relation.to)) else { continue };
        let filter = RelationFilter { from: Some(from), to: Some(to), ..RelationFilter::default() };
        let known = memory.find_relations(&filter, 0, 100)?;
        relation.is_known = known.iter().any(|known| known.relation_type == relation.relation_type);
    }
    Ok(())
}
