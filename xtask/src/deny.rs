//! `cargo xtask deny`: the licences, bans and sources of dependencies that `deny.toml` allows.
//!
//! The file is that of cargo-deny, which can be used instead. Compiling it takes three minutes on two cores, and the packages
//! that have it compiled are too old for its format; what the file asks for can be read from `cargo metadata`. A rule that is
//! not known here is an error. Advisories are left out: their database comes over the network and changes by itself, so a run
//! would not say the same tomorrow.

use std::collections::{HashMap, HashSet};
use std::fs;

use anyhow::{Context, ensure};
use serde::Deserialize;

use crate::shell::{self, cargo};

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    graph: Graph,
    licenses: Licenses,
    bans: Bans,
    #[serde(rename = "sources")]
    _sources: Sources,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Graph {
    targets: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Licenses {
    allow: HashSet<String>,
    #[serde(rename = "unused-allowed-license")]
    _unused_allowed_license: Allowed,
    private: Private,
}

/// Crates that are not published have no licence to check.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Private {
    ignore: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Bans {
    #[serde(rename = "multiple-versions")]
    _multiple_versions: Allowed,
    #[serde(rename = "wildcards")]
    _wildcards: Denied,
    allow_wildcard_paths: bool,
    deny: Vec<BannedCrate>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BannedCrate {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Sources {
    #[serde(rename = "unknown-registry")]
    _unknown_registry: Denied,
    #[serde(rename = "unknown-git")]
    _unknown_git: Denied,
}

/// The only values that are implemented for a rule.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Allowed {
    Allow,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Denied {
    Deny,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: Vec<String>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Edge>,
}

#[derive(Deserialize)]
struct Edge {
    pkg: String,
    dep_kinds: Vec<EdgeKind>,
}

#[derive(Deserialize)]
struct EdgeKind {
    /// `dev`, `build`, or `None` for an ordinary dependency.
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    license: Option<String>,
    /// `None` for a crate of this workspace.
    source: Option<String>,
    publish: Option<Vec<String>>,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    req: String,
    path: Option<String>,
}

pub(crate) fn run() -> anyhow::Result<()> {
    let rules: Rules = toml::from_str(&fs::read_to_string(shell::root().join("deny.toml"))?).context("in deny.toml")?;
    let mut metadata = cargo(&["metadata", "--locked", "--all-features", "--format-version", "1"]);
    for target in &rules.graph.targets {
        metadata.args(["--filter-platform", target]);
    }
    let metadata: Metadata = serde_json::from_str(&shell::output(&mut metadata)?)?;
    let used: HashSet<&str> = metadata.resolve.nodes.iter().map(|node| node.id.as_str()).collect();
    let packages: Vec<&Package> =
        metadata.packages.iter().filter(|package| used.contains(package.id.as_str())).collect();
    ensure!(packages.len() > 100, "cargo metadata lists only {} packages", packages.len());
    let shipped = metadata.shipped();
    let faults = |package: &&Package| rules.faults(package, shipped.contains(package.id.as_str()));
    let faults: Vec<String> = packages.iter().flat_map(faults).collect();
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    println!("{} packages", packages.len());
    Ok(())
}

impl Metadata {
    /// The packages that the workspace uses other than for its tests: what is not redistributed may have any licence.
    fn shipped(&self) -> HashSet<&str> {
        let nodes: HashMap<&str, &Node> = self.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
        let mut waiting: Vec<&str> = self.workspace_members.iter().map(String::as_str).collect();
        let mut shipped = HashSet::new();
        while let Some(id) = waiting.pop() {
            if shipped.insert(id) {
                let edges = nodes.get(id).into_iter().flat_map(|node| &node.deps);
                let is_shipped = |edge: &&Edge| edge.dep_kinds.iter().any(|kind| kind.kind.as_deref() != Some("dev"));
                waiting.extend(edges.filter(is_shipped).map(|edge| edge.pkg.as_str()));
            }
        }
        shipped
    }
}

impl Rules {
    /// What is not allowed about a package.
    fn faults(&self, package: &Package, is_shipped: bool) -> Vec<String> {
        let Package { name, license, source, publish, dependencies, .. } = package;
        let mut faults = Vec::new();
        let is_private = self.licenses.private.ignore && publish.as_ref().is_some_and(Vec::is_empty);
        let is_licensed = license.as_deref().is_some_and(|license| is_allowed(license, &self.licenses.allow));
        if is_shipped && !is_private && !is_licensed {
            faults.push(format!("{name}: licence {}", license.as_deref().unwrap_or("is missing")));
        }
        if let Some(banned) = self.bans.deny.iter().find(|banned| banned.name == *name) {
            faults.push(format!("{name} is banned: {}", banned.reason));
        }
        if source.as_deref().is_some_and(|source| source != CRATES_IO) {
            faults.push(format!("{name} comes from {}", source.as_deref().unwrap_or_default()));
        }
        let is_ours = source.is_none();
        let is_open = |dependency: &&Dependency| {
            let is_path = dependency.path.is_some() && self.bans.allow_wildcard_paths;
            is_ours && dependency.req == "*" && !is_path
        };
        faults.extend(dependencies.iter().filter(is_open).map(|open| format!("{name}: {} has no version", open.name)));
        faults
    }
}

/// Whether an SPDX expression can be satisfied by the allowed licences.
fn is_allowed(expression: &str, allowed: &HashSet<String>) -> bool {
    // Older crates write `MIT/Apache-2.0`.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    let is_satisfied = any_of(&mut words, allowed);
    is_satisfied && words.next().is_none()
}

type Words<'w, 'a> = &'w mut std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any_of(words: Words<'_, '_>, allowed: &HashSet<String>) -> bool {
    let mut is_satisfied = all_of(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        is_satisfied |= all_of(words, allowed);
    }
    is_satisfied
}

fn all_of(words: Words<'_, '_>, allowed: &HashSet<String>) -> bool {
    let mut is_satisfied = licence(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        is_satisfied &= licence(words, allowed);
    }
    is_satisfied
}

fn licence(words: Words<'_, '_>, allowed: &HashSet<String>) -> bool {
    match words.next() {
        Some("(") => {
            let is_satisfied = any_of(words, allowed);
            words.next_if_eq(&")").is_some() && is_satisfied
        }
        Some(name) if words.next_if_eq(&"WITH").is_some() => {
            words.next().is_some_and(|exception| allowed.contains(&format!("{name} WITH {exception}")))
        }
        Some(name) => allowed.contains(name),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licence_expressions_are_evaluated() {
        let allowed = ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned).into();
        for (expression, expected) in [
            ("MIT", true),
            ("GPL-3.0-only", false),
            ("GPL-3.0-only OR MIT", true),
            ("MIT/Apache-2.0", true),
            ("MIT AND GPL-3.0-only", false),
            ("(GPL-3.0-only OR MIT) AND ISC", true),
            ("(GPL-3.0-only AND MIT) OR Apache-2.0", false),
            ("Apache-2.0 WITH LLVM-exception OR GPL-2.0", true),
            ("MIT WITH LLVM-exception", false),
            ("MIT ISC", false),
            ("(MIT", false),
            ("", false),
        ] {
            assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
        }
    }

    #[test]
    fn forbidden_packages_are_reported() {
        let rules: Rules = toml::from_str(&fs::read_to_string(shell::root().join("deny.toml")).unwrap()).unwrap();
        let faults = |package: serde_json::Value| rules.faults(&serde_json::from_value(package).unwrap(), true);
        let package = |name: &str, license: &str, source: &str| {
            let depends = serde_json::json!([{ "name": "open", "req": "*" }]);
            serde_json::json!({ "id": name, "name": name, "license": license, "source": source, "dependencies": depends })
        };
        assert!(faults(package("good", "MIT OR Apache-2.0", CRATES_IO)).is_empty());
        assert_eq!(faults(package("copyleft", "GPL-3.0-only", CRATES_IO)), ["copyleft: licence GPL-3.0-only"]);
        assert!(faults(package("openssl-sys", "MIT", CRATES_IO))[0].contains("is banned"));
        assert!(faults(package("forked", "MIT", "git+https://example.org/x"))[0].contains("comes from git+"));
        let mut own = package("own", "MIT", "");
        own["source"] = serde_json::Value::Null;
        assert_eq!(faults(own), ["own: open has no version"]);
    }
}
