//! Real vaults, served by the built program: every note is listed, every link that two other readers agree on is found, the
//! graph is the one networkx sees, and not a byte or a time of the vault changes.
//!
//! The data is not in the repository. `QUIPU_DATA` names the folder it was unpacked to; without it nothing is compared.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a test that copies its data, or says that it has none"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use quipu_testkit::client::Client;
use serde_json::{Value, json};

type Edges = BTreeSet<(String, String)>;

#[test]
fn every_note_of_a_vault_is_listed_and_nothing_in_it_changes() {
    let Some(data) = data() else { return };
    let mut listed = 0;
    for vault in vaults(&data) {
        let copy = Copied::new(&vault);
        let before = copy.state();
        let mut server = copy.serve();
        let ids = ids(&mut server);
        let expected: BTreeSet<String> =
            before.keys().filter(|path| is_note(path)).map(|path| path.to_lowercase()).collect();
        assert_eq!(ids.iter().cloned().collect::<BTreeSet<_>>(), expected, "{}", vault.display());
        for id in &ids {
            let node = server.call("get_node", &json!({ "id": id, "depth": 1 })).unwrap().expect_value();
            assert_eq!(node["id"], json!(id));
        }
        assert!(server.close().unwrap().success());
        assert!(before == copy.state(), "{} was changed by being served", vault.display());
        listed += ids.len();
    }
    assert!(listed > 10_000, "only {listed} notes in {}", data.display());
}

/// Links that the other readers see and we do not, each with the reason.
const NOT_LINKS: [(&str, &str, &str); 1] = [(
    "test data/comments_markdown_style.md",
    "test data/comments_html_style.md",
    "it stands in an Obsidian comment, between `%%` and `%%`",
)];

#[test]
fn every_link_that_two_other_readers_agree_on_is_an_edge() {
    let Some(data) = data() else { return };
    let (mut compared, mut missing) = (0, Vec::new());
    for (name, root) in oracles(&data) {
        let copy = Copied::new(&root);
        let mut server = copy.serve();
        let ours = edges(&mut server);
        for edge in read_edges(&data, &format!("{name}.consensus.tsv")) {
            compared += 1;
            let excused = NOT_LINKS.iter().any(|(source, target, _)| (*source, *target) == (&edge.0, &edge.1));
            if ours.contains(&edge) == excused {
                missing.push(format!("{name}: {} -> {}", edge.0, edge.1));
            }
        }
    }
    assert!(missing.is_empty(), "{} of {compared}:\n{}", missing.len(), missing.join("\n"));
    assert!(compared > 25_000, "only {compared} links compared");
}

/// The other program sees fewer links than we do in most vaults, since it knows no aliases and no titles. Where the graphs
/// are equal, every figure must be; where ours has more edges, ways may only be shorter and degrees only higher.
#[test]
fn the_graph_is_the_one_that_networkx_sees() {
    let Some(data) = data() else { return };
    let mut equal_graphs = 0;
    for (name, root) in oracles(&data) {
        let copy = Copied::new(&root);
        let mut server = copy.serve();
        let oracle: Value =
            serde_json::from_slice(&fs::read(oracle_file(&data, &format!("{name}.graph.json"))).unwrap()).unwrap();
        let without_loops = |edges: Edges| -> Edges { edges.into_iter().filter(|(from, to)| from != to).collect() };
        let theirs = without_loops(read_edges(&data, oracle["edge_source"].as_str().unwrap()));
        let ours = without_loops(edges(&mut server));
        let is_equal = ours == theirs;
        let is_superset = ours.is_superset(&theirs);
        println!(
            "{name}: {} edges, {} of theirs, {} of theirs not ours{}",
            ours.len(),
            theirs.len(),
            theirs.difference(&ours).count(),
            if is_equal { ", equal" } else { "" }
        );
        equal_graphs += usize::from(is_equal);
        for (key, metric) in [("top_in", "in_degree"), ("top_out", "out_degree"), ("top_pagerank", "pagerank")] {
            if is_equal {
                compare_hubs(&mut server, &oracle[key], metric, &name);
            }
        }
        for way in oracle["directed_path_lengths"].as_array().unwrap() {
            let found = find_path(&mut server, &way[0], &way[1]);
            let (found, length) = (found.as_ref().and_then(|way| way["length"].as_u64()), way[2].as_u64());
            let holds = if is_equal { found == length } else { found.is_some() && found <= length };
            assert!(holds || !is_superset, "{name}: {way}, ours {found:?}");
        }
        for pair in oracle["directed_unreachable"].as_array().unwrap().iter().filter(|_| is_equal) {
            assert_eq!(find_path(&mut server, &pair[0], &pair[1]), None, "{name}: {pair}");
        }
    }
    assert!(equal_graphs >= 2, "only {equal_graphs} graphs are equal");
}

fn compare_hubs(server: &mut Client, top: &Value, metric: &str, name: &str) {
    let hubs = server.call("get_hubs", &json!({ "metric": metric, "limit": 50 })).unwrap().expect_value();
    let scores = |list: &Value, score: &dyn Fn(&Value) -> f64| -> Vec<f64> {
        list.as_array().unwrap().iter().map(score).collect()
    };
    let theirs = scores(top, &|hub| hub[1].as_f64().unwrap());
    let ours = scores(&hubs, &|hub| hub["score"].as_f64().unwrap());
    for (place, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        assert!((ours - theirs).abs() < 1e-5, "{name}: {metric} at place {place}: {ours}, theirs {theirs}");
    }
}

fn find_path(server: &mut Client, source: &Value, target: &Value) -> Option<Value> {
    let found = server.call("find_path", &json!({ "source": source, "target": target })).unwrap().expect_value();
    (!found.is_null()).then_some(found)
}

/// Every link of every note that leads to a note.
fn edges(server: &mut Client) -> Edges {
    let ids: BTreeSet<String> = ids(server).into_iter().collect();
    let mut edges = Edges::new();
    for id in &ids {
        let node = server.call("get_node", &json!({ "id": id })).unwrap().expect_value();
        for link in node["links"].as_array().unwrap() {
            let target = link["id"].as_str().unwrap();
            if ids.contains(target) {
                edges.insert((id.clone(), target.to_owned()));
            }
        }
    }
    edges
}

fn ids(server: &mut Client) -> Vec<String> {
    let mut ids = Vec::new();
    loop {
        let page = server.call("list_nodes", &json!({ "limit": 1000, "offset": ids.len() })).unwrap().expect_value();
        let nodes = page["nodes"].as_array().unwrap();
        ids.extend(nodes.iter().map(|node| node["id"].as_str().unwrap().to_owned()));
        if nodes.is_empty() || ids.len() as u64 == page["total"].as_u64().unwrap() {
            return ids;
        }
    }
}

/// A copy of a vault, times included, in a folder of its own.
struct Copied {
    folder: tempfile::TempDir,
}

impl Copied {
    fn new(vault: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for path in files_below(vault) {
            let to = folder.path().join(path.strip_prefix(vault).unwrap());
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(&path, &to).unwrap();
            let modified = fs::metadata(&path).unwrap().modified().unwrap();
            fs::File::options().write(true).open(&to).unwrap().set_modified(modified).unwrap();
        }
        Self { folder }
    }

    fn serve(&self) -> Client {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
        Client::spawn(command.arg("serve").arg(self.folder.path()).env_remove("QUIPU_VAULT")).unwrap()
    }

    /// Bytes and times of every file outside `.quipu`, by path.
    fn state(&self) -> BTreeMap<String, (Vec<u8>, SystemTime)> {
        let root = self.folder.path();
        let own = root.join(".quipu");
        let entry = |path: PathBuf| {
            let modified = fs::metadata(&path).unwrap().modified().unwrap();
            (path.strip_prefix(root).unwrap().to_str().unwrap().to_owned(), (fs::read(&path).unwrap(), modified))
        };
        files_below(root).into_iter().filter(|path| !path.starts_with(&own)).map(entry).collect()
    }
}

fn is_note(path: &str) -> bool {
    let hidden = path.split('/').any(|part| part.starts_with('.') || part == "node_modules");
    let extension = path.rsplit('.').next().unwrap_or_default().to_lowercase();
    !hidden && matches!(extension.as_str(), "md" | "markdown")
}

fn data() -> Option<PathBuf> {
    let folder = std::env::var_os("QUIPU_DATA").map(PathBuf::from);
    if folder.is_none() {
        println!("skipped: QUIPU_DATA not set");
    }
    folder
}

fn vaults(data: &Path) -> Vec<PathBuf> {
    let names = entries(data).into_iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
    names
        .filter_map(|name| name.strip_prefix("vault-").map(|vault| vault_folder(data, vault)))
        .filter(|vault| vault.is_dir())
        .collect()
}

fn vault_folder(data: &Path, name: &str) -> PathBuf {
    data.join(format!("vault-{name}/vault-{name}/vault"))
}

/// The name of each oracle, and the part of a vault that it saw: `vault__folder__folder`.
fn oracles(data: &Path) -> Vec<(String, PathBuf)> {
    let names = entries(&data.join("oracle-links/oracle-links"))
        .into_iter()
        .filter_map(|path| path.file_name()?.to_str()?.strip_suffix(".consensus.tsv").map(str::to_owned));
    let root = |name: &str| {
        name.split("__").skip(1).fold(vault_folder(data, name.split("__").next().unwrap()), |f, part| f.join(part))
    };
    names.map(|name| (name.clone(), root(&name))).collect()
}

fn oracle_file(data: &Path, name: &str) -> PathBuf {
    data.join("oracle-links/oracle-links").join(name)
}

fn read_edges(data: &Path, file: &str) -> Edges {
    let text = fs::read_to_string(oracle_file(data, file)).unwrap();
    // Pictures and other attachments are edges of theirs, and none of ours.
    let pairs = text.lines().skip(1).map(|line| line.split_once('\t').unwrap()).filter(|(_, target)| is_note(target));
    pairs.map(|(source, target)| (source.to_lowercase(), target.to_lowercase())).collect()
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let (folders, mut files): (Vec<_>, Vec<_>) = entries(folder).into_iter().partition(|path| path.is_dir());
    files.extend(folders.iter().flat_map(|folder| files_below(folder)));
    files
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries
}
