//! What memory is worth, in numbers: `contradictions`, `duplicates`, `recall` and `speed`. `cargo xtask memory` runs it.
//!
//! The first three read sets of real data that are not part of the repository; each set is a folder below the one given.

#![expect(clippy::disallowed_methods, clippy::print_stdout, clippy::unwrap_used, reason = "a development tool")]
#![expect(clippy::cast_possible_truncation, reason = "small numbers")]

use std::collections::{HashMap, HashSet};
use std::fs::read_to_string;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use quipu_core::Session;
use quipu_core::memory::{
    Bulk, BulkEntity, Creation, DetailPart, DuplicateRule, EntityDraft, EntityId, EntityTypes, Memory, MemoryFields,
    MemoryParts, Observation, ObservationId, PageRequest, SearchBy, SearchQuery, SubgraphQuery, contradictions,
};
use quipu_core::ports::{Author, EmbedError, Embedder, EntityRef, MemoryChange, NewEntity, Role, SystemClock};
use quipu_embed::Builtin;
use quipu_store_embedded::MemoryDatabase;
use serde_json::Value;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["duplicates", data] => {
            for set in ["er-abt-buy", "er-dblp-acm", "er-febrl1-people"] {
                let folder = set_in(data, set);
                if folder.is_dir() {
                    duplicates(&folder, set);
                } else {
                    println!("{set} is not in {data}");
                }
            }
        }
        ["merges", data] => {
            println!(
                "| set | embedder | suggested below 0.3 | true, of the suggested | suggested, of the true |\n|---|---|---|---|---|"
            );
            for set in ["er-abt-buy", "er-dblp-acm", "er-febrl1-people"] {
                merges(&set_in(data, set), set, None);
                merges(&set_in(data, set), set, Some(Arc::new(Builtin::new())));
            }
        }
        ["contradictions", data] => contradicting(&set_in(data, "mem-locomo")),
        ["recall", data] => recall(&set_in(data, "mem-locomo")),
        ["speed", sizes @ ..] => sizes.iter().for_each(|size| speed(size.parse().unwrap())),
        ["vectors", sizes @ ..] => sizes.iter().for_each(|size| vectors(size.parse().unwrap())),
        _ => {
            println!(
                "measure_memory contradictions DATA | duplicates DATA | merges DATA | recall DATA | speed ENTITIES… | vectors ENTITIES…"
            );
        }
    }
}

/// An archive may have been unpacked into a folder of its own name.
fn set_in(data: &str, set: &str) -> PathBuf {
    let folder = Path::new(data).join(set);
    let inner = folder.join(set);
    if inner.is_dir() { inner } else { folder }
}

fn memory(store: MemoryDatabase, embedder: Option<Arc<dyn Embedder>>) -> Memory {
    Memory::new(MemoryParts {
        store: Arc::new(store),
        embedder,
        clock: Arc::new(SystemClock),
        types: EntityTypes::default(),
        rule: DuplicateRule::default(),
    })
}

fn author() -> Author {
    Author { client: "measure".into(), tool: "measure".into(), at_ns: 0, request: None }
}

fn rows(file: &Path) -> Vec<Value> {
    read_to_string(file).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Whether a true duplicate came before, and the distance to the closest of those before.
type Curve = Vec<(bool, f32)>;
type Twins = HashMap<String, HashSet<String>>;

/// Every entity of a set comes one after the other, as agents would create them. One that has a true duplicate among
/// those before it should be refused, any other should not.
fn duplicates(set: &Path, name: &str) {
    let mut twins: Twins = HashMap::new();
    for line in read_to_string(set.join("matches.tsv")).unwrap().lines().skip(1) {
        let (a, b) = line.split_once('\t').unwrap();
        twins.entry(a.into()).or_default().insert(b.into());
        twins.entry(b.into()).or_default().insert(a.into());
    }
    let embedder: Arc<dyn Embedder> = Arc::new(Builtin::new());
    let entities = rows(&set.join("entities.jsonl"));
    let curves = [
        by_memory(&entities, &twins, Some(embedder.clone())),
        by_memory(&entities, &twins, None),
        by_cosine(&entities, &twins, &*embedder),
    ];
    println!("\n{name}: true duplicates held back / distinct things held back, in percent\n");
    println!("| distance below | the rule | without embedder | cosine alone |\n|---|---|---|---|");
    for threshold in [0.01, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4] {
        let cell = |curve: &Curve| {
            let share = |is_twin: bool| {
                let all: Vec<_> = curve.iter().filter(|(twin, _)| *twin == is_twin).collect();
                let held = all.iter().filter(|(_, distance)| *distance < threshold).count();
                100.0 * held as f32 / all.len() as f32
            };
            format!("{:.1} / {:.2}", share(true), share(false))
        };
        println!("| {threshold} | {} |", curves.iter().map(cell).collect::<Vec<_>>().join(" | "));
    }
}

fn by_memory(entities: &[Value], twins: &Twins, embedder: Option<Arc<dyn Embedder>>) -> Curve {
    let memory = memory(MemoryDatabase::in_memory().unwrap(), embedder);
    let mut seen: HashSet<String> = HashSet::new();
    let mut curve = Vec::new();
    for entity in entities {
        let id = entity["id"].as_str().unwrap().to_owned();
        let draft = EntityDraft {
            name: entity["name"].as_str().unwrap().to_owned(),
            entity_type: entity["type"].as_str().unwrap().to_owned(),
            ..EntityDraft::default()
        };
        if draft.name.trim().is_empty() {
            continue;
        }
        let has_twin = twins.get(&id).is_some_and(|twins| !twins.is_disjoint(&seen));
        let closest = memory.closest_to(draft.clone()).unwrap();
        if std::env::var_os("SHOW").is_some()
            && let Some((other, distance)) = &closest
            && *distance < 0.25
            && !has_twin
        {
            println!("held back: {} ~ {} ({distance:.3})", draft.name, other.name);
        }
        let distance = match memory.create_entity(draft, true, &author()).unwrap() {
            Creation::Created(_) => closest.map_or(1.0, |(_, distance)| distance),
            Creation::Duplicate { .. } => 0.0,
        };
        while memory.embed_some(64).unwrap().missing > 0 {}
        curve.push((has_twin, distance));
        seen.insert(id);
    }
    curve
}

/// All entities of a set at once; the pairs that `suggest_merges` offers should be the true ones.
fn merges(set: &Path, name: &str, embedder: Option<Arc<dyn Embedder>>) {
    let has_embedder = if embedder.is_some() { "builtin" } else { "none" };
    let memory = memory(MemoryDatabase::in_memory().unwrap(), embedder);
    let mut ids: HashMap<String, EntityId> = HashMap::new();
    for entity in rows(&set.join("entities.jsonl")) {
        let text = |field: &str| entity[field].as_str().unwrap().to_owned();
        let draft = EntityDraft { name: text("name"), entity_type: text("type"), ..EntityDraft::default() };
        // An equal name cannot be stored twice.
        if !draft.name.trim().is_empty()
            && let Creation::Created(made) = memory.create_entity(draft, true, &author()).unwrap()
        {
            ids.insert(text("id"), made.id);
        }
    }
    while memory.embed_some(64).unwrap().missing > 0 {}
    let lines = read_to_string(set.join("matches.tsv")).unwrap();
    let pair = |line: &str| {
        let (a, b) = line.split_once('\t').unwrap();
        let (a, b) = (*ids.get(a)?, *ids.get(b)?);
        Some((a.min(b), a.max(b)))
    };
    let twins: HashSet<(EntityId, EntityId)> = lines.lines().skip(1).filter_map(pair).collect();
    let suggested = memory.suggest_merges(0.3, usize::MAX, None).unwrap();
    let right = suggested.iter().filter(|pair| twins.contains(&(pair.a.id.min(pair.b.id), pair.a.id.max(pair.b.id))));
    let right = right.count();
    let percent = |of: usize| 100.0 * right as f32 / of.max(1) as f32;
    println!(
        "| {name} | {has_embedder} | {} | {:.1} % | {:.1} % |",
        suggested.len(),
        percent(suggested.len()),
        percent(twins.len())
    );
}

fn by_cosine(entities: &[Value], twins: &Twins, embedder: &dyn Embedder) -> Curve {
    let mut seen: HashSet<String> = HashSet::new();
    let mut vectors: Vec<Vec<f32>> = Vec::new();
    let mut curve = Vec::new();
    for entity in entities {
        let id = entity["id"].as_str().unwrap().to_owned();
        let text = format!("{}: {}", entity["type"].as_str().unwrap(), entity["name"].as_str().unwrap());
        let vector = embedder.embed(Role::Passage, &[&text]).unwrap().remove(0);
        let dot = |other: &Vec<f32>| other.iter().zip(&vector).map(|(a, b)| a * b).sum::<f32>();
        let nearest = vectors.iter().map(dot).fold(-1.0, f32::max);
        curve.push((twins.get(&id).is_some_and(|twins| !twins.is_disjoint(&seen)), 1.0 - nearest));
        vectors.push(vector);
        seen.insert(id);
    }
    curve
}

/// Every turn of the conversations is an entity with one observation; a question should find the turns that answer it.
/// The warnings about the observations of each person in each conversation. A person reads whether they are right.
fn contradicting(set: &Path) {
    let mut of_person: HashMap<(String, String), Vec<Observation>> = HashMap::new();
    let rows = rows(&set.join("observations.jsonl"));
    for (number, row) in rows.iter().enumerate() {
        let text = |field: &str| row[field].as_str().unwrap().to_owned();
        let observation = Observation {
            id: ObservationId(i64::try_from(number).unwrap()),
            entity: EntityId(0),
            text: text("text"),
            created_ns: 0,
            updated_ns: 0,
        };
        of_person.entry((text("conv"), text("entity"))).or_default().push(observation);
    }
    let pairs: Vec<_> = of_person.values().flat_map(|observations| contradictions(observations)).collect();
    println!("{} observations of {} entities: {} contradictions", rows.len(), of_person.len(), pairs.len());
    let text = |id: ObservationId| &rows[usize::try_from(id.0).unwrap()]["text"];
    for (older, newer) in pairs {
        println!("- {}\n  {}", text(older), text(newer));
    }
}

fn recall(set: &Path) {
    let memory = memory(MemoryDatabase::in_memory().unwrap(), Some(Arc::new(Builtin::new())));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut of_turn: HashMap<(String, String), EntityId> = HashMap::new();
    for turn in rows(&set.join("turns.jsonl")) {
        let key = (text(&turn["conv"]), text(&turn["id"]));
        let draft = EntityDraft {
            name: format!("{} {}", key.0, key.1),
            entity_type: "Turn".into(),
            observations: vec![format!("{}: {}", text(&turn["speaker"]), text(&turn["text"]))],
            ..EntityDraft::default()
        };
        if let Creation::Created(entity) = memory.create_entity(draft, true, &author()).unwrap() {
            of_turn.insert(key, entity.id);
        }
    }
    let start = Instant::now();
    while memory.embed_some(256).unwrap().missing > 0 {}
    println!("{} turns, vectors made in {:.0} s\n", of_turn.len(), start.elapsed().as_secs_f32());
    let questions = rows(&set.join("questions.jsonl")).into_iter().filter(|question| question["category"] != 5);
    let questions: Vec<Question> = questions
        .map(|question| {
            let conversation = text(&question["conv"]);
            let turns = question["evidence"].as_array().unwrap().iter();
            let evidence = turns.filter_map(|turn| of_turn.get(&(conversation.clone(), text(turn))).copied()).collect();
            Question { text: text(&question["question"]), conversation, evidence }
        })
        .filter(|question| !question.evidence.is_empty())
        .collect();
    println!("| | recall@5 | recall@10 | p50 ms | p95 ms |\n|---|---|---|---|---|");
    for (name, by) in [
        ("words", Some(SearchBy::Words)),
        ("meaning", Some(SearchBy::Meaning)),
        ("fused", Some(SearchBy::Both)),
        ("fused, search_subgraph", None),
    ] {
        let mut times = Vec::new();
        let mut ask = |question: &Question| {
            let start = Instant::now();
            let found = found(&memory, &question.text, by);
            times.push(start.elapsed());
            found
        };
        let found: Vec<Vec<EntityId>> = questions.iter().map(&mut ask).collect();
        let (at_5, at_10) = shares(&questions.iter().collect::<Vec<_>>(), &found);
        let (p50, p95) = percentiles(&mut times);
        println!("| {name} | {at_5:.3} | {at_10:.3} | {p50:.1} | {p95:.1} |");
    }
    halves(&memory, &questions);
}

/// A question, and the turns that answer it.
struct Question {
    text: String,
    conversation: String,
    evidence: HashSet<EntityId>,
}

/// The mean share of the evidence among the first five and the first ten.
fn shares(questions: &[&Question], found: &[Vec<EntityId>]) -> (f32, f32) {
    let share = |limit: usize| {
        let of_one = |(question, found): (&&Question, &Vec<EntityId>)| {
            let hits = found.iter().take(limit).filter(|id| question.evidence.contains(id)).count();
            hits as f32 / question.evidence.len() as f32
        };
        questions.iter().zip(found).map(of_one).sum::<f32>() / questions.len() as f32
    };
    (share(5), share(10))
}

/// Whether what words count beside meaning was read into the data: chosen on half of the conversations, judged on the others.
fn halves(memory: &Memory, questions: &[Question]) {
    let ranked = |question: &Question, limit: usize, by: SearchBy| -> Vec<EntityId> {
        let query = SearchQuery { text: question.text.clone(), limit, project: None, by };
        let found = memory.search(&Session::default(), &query).unwrap();
        found.into_iter().map(|found| found.entity.id).collect()
    };
    // As many of each as the search itself fuses.
    let rankings: Vec<[Vec<EntityId>; 2]> = questions
        .iter()
        .map(|question| [ranked(question, 1000, SearchBy::Words), ranked(question, 100, SearchBy::Meaning)])
        .collect();
    let mut conversations: Vec<&str> = questions.iter().map(|question| question.conversation.as_str()).collect();
    conversations.sort_unstable();
    conversations.dedup();
    let half_of =
        |question: &Question| conversations.iter().position(|name| *name == question.conversation).unwrap() % 2;
    let judged = |half: usize, of_words: f32| {
        let (questions, rankings): (Vec<&Question>, Vec<_>) =
            questions.iter().zip(&rankings).filter(|(question, _)| half_of(question) == half).unzip();
        let found: Vec<Vec<EntityId>> = rankings.into_iter().map(|ranking| fused(ranking, of_words)).collect();
        shares(&questions, &found)
    };
    println!("\n| words count, of 1 | first half: recall@5, @10 | second half: recall@5, @10 |\n|---|---|---|");
    let weights: Vec<f32> = (0..=12).map(|twelfths| twelfths as f32 / 12.0).collect();
    for weight in &weights {
        let [(first_5, first_10), (second_5, second_10)] = [judged(0, *weight), judged(1, *weight)];
        println!("| {weight:.2} | {first_5:.3}, {first_10:.3} | {second_5:.3}, {second_10:.3} |");
    }
    for (half, name) in [(0, "first"), (1, "second")] {
        let best = |a: &&f32, b: &&f32| judged(half, **a).1.total_cmp(&judged(half, **b).1);
        let chosen = *weights.iter().max_by(best).unwrap();
        let (at_5, at_10) = judged(1 - half, chosen);
        println!("chosen by recall@10 on the {name} half: {chosen:.2}; on the other half {at_5:.3}, {at_10:.3}");
    }
}

/// The ten best of two rankings, as the search fuses them.
fn fused([by_words, by_meaning]: &[Vec<EntityId>; 2], of_words: f32) -> Vec<EntityId> {
    let mut scores: HashMap<EntityId, f32> = HashMap::new();
    for (ranking, weight) in [(by_words, of_words), (by_meaning, 1.0 - of_words)] {
        for (place, id) in ranking.iter().enumerate() {
            *scores.entry(*id).or_default() += weight * 61.0 / (61.0 + place as f32);
        }
    }
    let mut best: Vec<(EntityId, f32)> = scores.into_iter().collect();
    best.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    best.into_iter().take(10).map(|(id, _)| id).collect()
}

/// The ten best, by `search` or, without a measure, by `search_subgraph`.
fn found(memory: &Memory, question: &str, by: Option<SearchBy>) -> Vec<EntityId> {
    let session = Session::default();
    let text = question.to_owned();
    match by {
        Some(by) => {
            let found = memory.search(&session, &SearchQuery { text, limit: 10, project: None, by }).unwrap();
            found.into_iter().map(|found| found.entity.id).collect()
        }
        None => {
            let page = PageRequest { number: 1, size: 10 };
            let query = SubgraphQuery { text, fields: MemoryFields::ALL, page, project: None };
            let found = memory.search_subgraph(&session, &query).unwrap().subgraph.entities;
            found.into_iter().map(|(entity, _)| entity.id).collect()
        }
    }
}

/// The middle one and the one that five in a hundred exceed, in milliseconds.
fn percentiles(times: &mut [Duration]) -> (f64, f64) {
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1000.0;
    (at(0.5), at(0.95))
}

/// Entities with three observations and a relation each, then each kind of call many times.
fn speed(entities: usize) {
    let folder = tempfile::tempdir_in("target").unwrap();
    let file = folder.path().join("memory.db");
    let mut prose = Prose::new();
    let open = || memory(MemoryDatabase::open(&file).unwrap(), None);
    let start = Instant::now();
    fill(&open(), entities, &mut prose);
    let filling = start.elapsed();
    let memory = Arc::new(open());
    let start = Instant::now();
    Memory::read_ahead(&memory)().unwrap();
    println!(
        "\n{entities} entities: filled in {:.1} s, read for searching in {:.2} s, {:.0} MB on disk\n",
        filling.as_secs_f32(),
        start.elapsed().as_secs_f32(),
        std::fs::metadata(&file).unwrap().len() as f64 / 1e6
    );
    println!("| call | p50 ms | p95 ms |\n|---|---|---|");
    let session = Session::default();
    let search = |text: String, project: Option<i64>| {
        let project = project.map(EntityId);
        memory.search(&session, &SearchQuery { text, limit: 20, project, by: SearchBy::Both }).unwrap();
    };
    let common = prose.words[3].clone();
    measure("create_entity", 100, &mut |round| {
        let name = format!("{} new {round}", prose.sentence(2));
        let draft = EntityDraft { name, entity_type: "Thing".into(), ..EntityDraft::default() };
        assert!(matches!(memory.create_entity(draft, false, &author()).unwrap(), Creation::Created(_)));
    });
    measure("create_observation", 100, &mut |round| {
        memory.create_observation(EntityId(round as i64 + 1), &prose.sentence(14), &author()).unwrap();
    });
    measure("create_relation", 100, &mut |round| {
        let (from, to) = (EntityId(round as i64 + 1), EntityId(round as i64 + 2));
        memory.create_relation(from, to, "next", &author()).unwrap();
    });
    measure("search_entities, a common word", 100, &mut |_| search(common.clone(), None));
    measure("search_entities, three words", 100, &mut |_| search(prose.sentence(3), None));
    measure("search_entities, in a project", 100, &mut |_| search(common.clone(), Some(1)));
    measure("search_subgraph, three words", 100, &mut |_| {
        let page = PageRequest { number: 1, size: 20 };
        let query = SubgraphQuery { text: prose.sentence(3), fields: MemoryFields::ALL, page, project: None };
        memory.search_subgraph(&session, &query).unwrap();
    });
    let part = DetailPart { observations_offset: 0, relations_offset: 0, limit: 100 };
    measure("get_entity", 100, &mut |round| drop(memory.entity_detail(EntityId(round as i64 + 1), part).unwrap()));
    measure("list_entities, last page", 100, &mut |_| {
        memory.list_entities(PageRequest { number: (entities / 20) as u64, size: 20 }).unwrap();
    });
    measure("bulk_update of 50", 20, &mut |round| {
        let draft = |number| BulkEntity {
            name: format!("bulk {round} {number}"),
            entity_type: "Thing".into(),
            ..BulkEntity::default()
        };
        let bulk = Bulk { entities: (0..50).map(draft).collect(), ..Bulk::default() };
        memory.bulk_update(&bulk, &author()).unwrap();
    });
    measure("suggest_merges", 3, &mut |_| drop(memory.suggest_merges(0.3, 20, None).unwrap()));
}

/// Searching and pairing with a vector for every entity and observation. Real ones would take hours to make, so these lie in
/// made-up directions, as far from each other as those of the builtin model do.
fn vectors(entities: usize) {
    let folder = tempfile::tempdir_in("target").unwrap();
    let memory = memory(MemoryDatabase::open(&folder.path().join("memory.db")).unwrap(), Some(Arc::new(MadeUp)));
    let mut prose = Prose::new();
    fill(&memory, entities, &mut prose);
    while memory.embed_some(4096).unwrap().missing > 0 {}
    println!("\n{entities} entities with {} vectors\n\n| call | p50 ms | p95 ms |\n|---|---|---|", entities * 4);
    let session = Session::default();
    measure("search_entities, three words, with vectors", 100, &mut |_| {
        let query = SearchQuery { text: prose.sentence(3), limit: 20, project: None, by: SearchBy::Both };
        memory.search(&session, &query).unwrap();
    });
    measure("search_subgraph, three words, with vectors", 100, &mut |_| {
        let page = PageRequest { number: 1, size: 20 };
        let query = SubgraphQuery { text: prose.sentence(3), fields: MemoryFields::ALL, page, project: None };
        memory.search_subgraph(&session, &query).unwrap();
    });
    measure("create_entity, with vectors", 100, &mut |round| {
        let draft = EntityDraft {
            name: format!("{} new {round}", prose.sentence(2)),
            entity_type: "Thing".into(),
            ..EntityDraft::default()
        };
        memory.create_entity(draft, false, &author()).unwrap();
    });
    measure("suggest_merges, with vectors", 3, &mut |_| drop(memory.suggest_merges(0.3, 20, None).unwrap()));
}

/// A direction for each text, and half of it the same for all.
struct MadeUp;

impl Embedder for MadeUp {
    fn space(&self) -> &str {
        "made up"
    }

    fn worth_beyond_english(&self) -> f32 {
        1.0
    }

    fn unrelated(&self) -> f32 {
        0.5
    }

    fn embed(&self, _role: Role, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let direction = |seed: u64| {
            let mut state = seed | 1;
            let numbers: Vec<f32> = (0..384)
                .map(|_| {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    (state >> 40) as f32 / (1_u32 << 24) as f32 - 0.5
                })
                .collect();
            let length = numbers.iter().map(|number| number * number).sum::<f32>().sqrt();
            numbers.into_iter().map(move |number| number / length)
        };
        let vector = |text: &&str| {
            let seed = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
            });
            let both = direction(42).zip(direction(seed));
            both.map(|(common, own)| (common + own) * std::f32::consts::FRAC_1_SQRT_2).collect()
        };
        Ok(texts.iter().map(vector).collect())
    }
}

fn measure(name: &str, rounds: usize, call: &mut dyn FnMut(usize)) {
    let time = |round| {
        let start = Instant::now();
        call(round);
        start.elapsed()
    };
    let mut times: Vec<Duration> = (0..rounds).map(time).collect();
    let (p50, p95) = percentiles(&mut times);
    println!("| {name} | {p50:.2} | {p95:.2} |");
}

/// Straight into the store: looking for duplicates of each would take most of the time.
fn fill(memory: &Memory, entities: usize, prose: &mut Prose) {
    for first in (0..entities).step_by(1000) {
        let mut changes = Vec::new();
        for number in first..(first + 1000).min(entities) {
            let made = EntityRef::Made(changes.len());
            changes.push(MemoryChange::CreateEntity(NewEntity {
                name: format!("{} {number}", prose.sentence(2)),
                entity_type: "Thing".into(),
                description: Some(prose.sentence(8)),
                ..NewEntity::default()
            }));
            let observe = |_| MemoryChange::AddObservation { entity: made, text: prose.sentence(14) };
            changes.extend((0..3).map(observe));
            let to = if first == 0 { EntityRef::Made(0) } else { EntityRef::Id(EntityId(first as i64 / 2 + 1)) };
            changes.push(MemoryChange::AddRelation { from: made, to, relation_type: "part_of".into() });
        }
        memory.store().apply(&changes, &author()).unwrap();
    }
}

/// Made-up words, of which some are much more common than others.
struct Prose {
    words: Vec<String>,
    seed: u64,
}

impl Prose {
    fn new() -> Self {
        let syllables =
            ["ka", "to", "mi", "re", "su", "lan", "dor", "vi", "pex", "qua", "zin", "bo", "fer", "gul", "hy", "jo"];
        let word = |number: usize| {
            [number % 16, number / 16 % 16, number / 256 % 16, number / 4096 % 16]
                .map(|digit| syllables[digit])
                .concat()
        };
        Self { words: (0..20_000).map(word).collect(), seed: 7 }
    }

    fn sentence(&mut self, count: usize) -> String {
        let words = (0..count).map(|_| {
            self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let share = ((self.seed >> 33) as f64 / f64::from(1_u32 << 31)).powi(3);
            self.words[(share * (self.words.len() - 1) as f64) as usize].as_str()
        });
        words.collect::<Vec<_>>().join(" ")
    }
}
