//! The builtin model against the same model computed in floats by onnxruntime. `scripts/measure_embedding.py fixture` writes
//! what is compared with; the texts are in texts.json.

#![expect(clippy::unwrap_used, reason = "a test's own helpers")]

use quipu_core::ports::{Embedder, Role};
use quipu_embed::{Builtin, DIMENSIONS, MAX_TOKENS};
use serde_json::Value;
use sha2::{Digest, Sha256};

const REFERENCE: &str = include_str!("reference.jsonl");
/// The coarse encoder's vectors of the same texts, in floats: `scripts/export_coarse.py` writes them.
const COARSE_REFERENCE: &str = include_str!("coarse_reference.jsonl");

struct Case {
    text: String,
    tokens: Vec<u16>,
    vector: Vec<f32>,
}

fn cases() -> Vec<Case> {
    let case = |line: &str| {
        let entry: Value = serde_json::from_str(line).unwrap();
        let numbers = |key: &str| {
            entry[key].as_array().unwrap().iter().map(|number| number.as_i64().unwrap()).collect::<Vec<_>>()
        };
        Case {
            text: entry["text"].as_str().unwrap().to_owned(),
            tokens: numbers("tokens").into_iter().map(|token| u16::try_from(token).unwrap()).collect(),
            vector: numbers("vector").into_iter().map(|number| number as f32 / 10_000.0).collect(),
        }
    };
    REFERENCE.lines().map(case).collect()
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[test]
fn tokens_match_the_reference() {
    let model = Builtin::new();
    for Case { text, tokens, .. } in cases() {
        assert_eq!(model.tokens(&text), tokens, "{text:?}");
    }
}

#[test]
fn vectors_match_the_model_in_floats() {
    let model = Builtin::new();
    let cases = cases();
    assert!(cases.len() >= 40);
    assert!(cases.iter().any(|case| case.tokens.len() == MAX_TOKENS), "one text is longer than what is read");
    let texts: Vec<&str> = cases.iter().map(|case| case.text.as_str()).collect();
    let vectors = model.embed(Role::Passage, &texts).unwrap();
    for (case, vector) in cases.iter().zip(&vectors) {
        assert_eq!(vector.len(), DIMENSIONS);
        let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        assert!((length - 1.0).abs() < 1e-5, "length {length}");
        let cosine = cosine(vector, &case.vector);
        assert!(cosine >= 0.9993, "cosine {cosine} for {:?}", case.text);
    }
}

#[test]
fn vector_does_not_depend_on_other_texts() {
    let model = Builtin::new();
    let together = model.embed(Role::Query, &["bread", "", "the oven and the flour"]).unwrap();
    let alone = model.embed(Role::Passage, &["bread"]).unwrap();
    assert_eq!(together[0], alone[0]);
    assert_eq!(model.embed(Role::Query, &[]).unwrap(), Vec::<Vec<f32>>::new());
}

#[test]
fn similar_meanings_have_similar_vectors() {
    let model = Builtin::new();
    let vectors = model
        .embed(
            Role::Query,
            &["How do I bake sourdough?", "A recipe for bread with a natural starter", "Quarterly tax return"],
        )
        .unwrap();
    assert!(cosine(&vectors[0], &vectors[1]) > cosine(&vectors[0], &vectors[2]) + 0.1);
}

/// A changed asset is another space: then change what `Builtin::space` says, and write the new hash down.
#[test]
fn weights_match_their_documented_origin() {
    let readme = include_str!("../assets/README.md");
    for asset in [
        &include_bytes!("../assets/granite-embedding-30m-english.bin")[..],
        include_bytes!("../assets/coarse-encoder.bin"),
    ] {
        let hash: String = Sha256::digest(asset).iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(readme.contains(&hash), "assets/README.md does not have {hash}");
    }
}

#[test]
fn coarse_vectors_match_the_encoder_in_floats() {
    let model = Builtin::new();
    let mut encoder = model.coarse_encoder().unwrap();
    let expected: Vec<Vec<f32>> = COARSE_REFERENCE.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let cases = cases();
    assert_eq!(expected.len(), cases.len());
    for (case, expected) in cases.iter().zip(&expected) {
        let vector = encoder.encode(&case.text);
        let cosine = cosine(&vector, expected);
        assert!(cosine >= 0.998, "cosine {cosine} for {:?}", case.text);
        assert_eq!(vector, encoder.encode(&case.text), "what is remembered must not change a vector");
    }
}

#[test]
fn coarse_vectors_are_in_the_space_of_the_model() {
    let model = Builtin::new();
    let mut encoder = model.coarse_encoder().unwrap();
    let query = model.embed(Role::Query, &["How do I bake sourdough?"]).unwrap().remove(0);
    let near = cosine(&query, &encoder.encode("A recipe for bread with a natural starter"));
    let far = cosine(&query, &encoder.encode("The quarterly tax return is due in April"));
    assert!(near > far + 0.1, "near {near}, far {far}");
}
