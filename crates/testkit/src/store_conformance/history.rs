//! Random histories of a store, compared with the store in plain maps.

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};
use quipu_core::model::{FileStat, Note, NoteKey};
use quipu_core::ports::{NoteChange, NoteStore};

use super::{NoteStorage, found, loaded, note, opened};
use crate::MemNoteStorage;

/// One step of a random history.
#[derive(Debug, Clone)]
enum Step {
    Apply(Vec<(Op, Index)>),
    Reopen,
    Search(usize),
}

#[derive(Debug, Clone)]
enum Op {
    Put(u32, Vec<usize>),
    Touch(i64),
    Remove,
}

const WORDS: [&str; 6] = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"];

/// Random histories, with the store closed and opened in between.
pub fn random_changes_match_the_model<S: NoteStorage>(storage: &S) {
    let op = prop_oneof![
        4 => (0..12_u32, prop::collection::vec(0..WORDS.len(), 0..8)).prop_map(|(key, words)| Op::Put(key, words)),
        1 => any::<i64>().prop_map(Op::Touch),
        2 => Just(Op::Remove),
    ];
    let step = prop_oneof![
        4 => prop::collection::vec((op, any::<Index>()), 0..6).prop_map(Step::Apply),
        1 => Just(Step::Reopen),
        2 => (0..WORDS.len()).prop_map(Step::Search),
    ];
    let mut runner = TestRunner::new(Config { cases: 24, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&prop::collection::vec(step, 1..16), |steps| {
        let model_storage = MemNoteStorage::default();
        let (mut model, mut store) = (opened(&model_storage), storage.open());
        empty(&store);
        for step in steps {
            match step {
                Step::Apply(ops) => apply_ops(&ops, &model_storage, &model, &store),
                Step::Reopen if storage.lasts() => {
                    drop((model, store));
                    (model, store) = (model_storage.open(), storage.open());
                    prop_assert_eq!(loaded(&store), loaded(&model));
                }
                Step::Reopen => {}
                Step::Search(word) => prop_assert_eq!(found(&store, WORDS[word]), found(&model, WORDS[word])),
            }
        }
        for word in WORDS {
            prop_assert_eq!(found(&store, word), found(&model, word));
        }
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

/// Loads a store and removes what an earlier history left.
fn empty(store: &impl NoteStore) {
    let removals: Vec<NoteChange<'_>> = loaded(store).into_keys().map(|key| NoteChange::Remove { key }).collect();
    store.apply(&removals).expect("changes apply");
}

/// Makes a valid list of the operations (what is touched or removed is there) and applies it to both.
fn apply_ops(ops: &[(Op, Index)], model_storage: &MemNoteStorage, model: &impl NoteStore, store: &impl NoteStore) {
    let mut present: Vec<u32> = loaded(&model_storage.open()).into_keys().map(|key| key.0).collect();
    let mut texts = Vec::new();
    for (op, _) in ops {
        if let Op::Put(_, words) = op {
            let words: Vec<&str> = words.iter().map(|word| WORDS[*word]).collect();
            texts.push(words.join(" ").replacen(' ', "\n## ", 1).replacen(' ', "\n", 1));
        }
    }
    let notes: Vec<Note> = texts.iter().map(|text| note("N.md", text)).collect();
    let mut puts = notes.iter().zip(&texts);
    let mut changes = Vec::new();
    for (op, pick) in ops {
        match *op {
            Op::Put(key, _) => {
                let (note, text) = puts.next().expect("there is a note for each put");
                changes.push(NoteChange::Put { key: NoteKey(key), note, text });
                present.retain(|known| *known != key);
                present.push(key);
            }
            Op::Touch(modified_ns) if !present.is_empty() => {
                let key = NoteKey(*pick.get(&present));
                changes.push(NoteChange::Touch { key, stat: FileStat { modified_ns, size: 1 } });
            }
            Op::Remove if !present.is_empty() => {
                let key = present.remove(pick.index(present.len()));
                changes.push(NoteChange::Remove { key: NoteKey(key) });
            }
            Op::Touch(_) | Op::Remove => {}
        }
    }
    model.apply(&changes).expect("changes apply");
    store.apply(&changes).expect("changes apply");
}
