//! One name, one type: no two types of the product have the same name, so a name in a review or a stack trace says which one.
//!
//! One convention is exempt: a tool's file and a command's file are a namespace. They have `Params`, `Output`, parts of these
//! that only this file sees, and the type that is named for the tool or the command. None of them has the name of a type of the
//! domain.

use std::collections::{BTreeMap, BTreeSet};

use super::{product_files, without_tests};

/// The parts of a tool that every tool has.
const SHARED: [&str; 2] = ["Params", "Output"];

/// The domain: its names mean one thing everywhere.
const DOMAIN: &str = "crates/core/src/";

/// Types and traits of the prelude, and `Debug`.
const STANDARD: [&str; 18] = [
    "Box", "Clone", "Copy", "Debug", "Default", "Drop", "Eq", "Fn", "From", "Into", "Iterator", "Option", "Ord",
    "Result", "Send", "String", "Sync", "Vec",
];

/// Where each file is one tool or one command.
const ONE_EACH: [&str; 2] = ["crates/tools/src/", "crates/cli/src/commands/"];

#[test]
fn every_type_has_its_own_name() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let files: Vec<_> = product_files().into_iter().filter(|(path, _)| !path.contains("test")).collect();
    let of_domain: BTreeSet<&str> = files
        .iter()
        .filter(|(path, _)| path.starts_with(DOMAIN))
        .flat_map(|(_, text)| declared(text))
        .filter_map(|(name, is_private)| (!is_private).then_some(name))
        .collect();
    for (path, text) in &files {
        for (name, is_private) in declared(text) {
            if of_domain.contains(name) || !is_exempt(path, name, is_private) {
                places.entry(name.to_owned()).or_default().push(path.clone());
            }
        }
    }
    assert!(places.len() > 500, "only {} types were found", places.len());
    places.retain(|_, files| files.len() > 1);
    assert!(places.is_empty(), "several types have the same name; rename all but one: {places:#?}");
}

#[test]
fn no_type_has_the_name_of_a_standard_one() {
    for (path, text) in product_files() {
        let named = declared(&text).find(|(name, _)| STANDARD.contains(name));
        assert!(named.is_none(), "{path} declares {named:?}, which hides the standard one");
    }
}

fn is_exempt(path: &str, name: &str, is_private: bool) -> bool {
    let file = path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs").replace('_', "");
    let is_named_for_file = file.trim_start_matches("ubp").eq_ignore_ascii_case(name);
    let is_own = ONE_EACH.iter().any(|folder| path.starts_with(folder)) && (is_private || is_named_for_file);
    is_own || SHARED.contains(&name)
}

/// The types that a source declares outside its tests, and whether only its own file can name them.
fn declared(source: &str) -> impl Iterator<Item = (&str, bool)> {
    without_tests(source).lines().filter_map(|line| {
        let (is_private, declaration) = match line.strip_prefix("pub") {
            Some(rest) => (false, rest.split_once(' ').map(|(_, rest)| rest)?),
            None => (true, line),
        };
        let (keyword, rest) = declaration.split_once(' ')?;
        let is_type = ["struct", "enum", "trait", "type", "union"].contains(&keyword);
        let name = rest.split(|char: char| !char.is_alphanumeric()).next()?;
        (is_type && !name.is_empty()).then_some((name, is_private))
    })
}

#[test]
fn declarations_are_found_with_their_visibility() {
    let source = "pub(crate) struct Own<'a> {\nenum Inner {\n    struct Nested;\npub trait Port: Send {\nlet type_ = 1;\n\
                  #[cfg(test)]\nmod tests {\nstruct OfATest;\n";
    assert_eq!(declared(source).collect::<Vec<_>>(), [("Own", false), ("Inner", true), ("Port", false)]);
    assert!(is_exempt("crates/tools/src/pages/ubp_get_context.rs", "GetContext", false));
    assert!(!is_exempt("crates/core/src/query/mod.rs", "Query", false));
}
