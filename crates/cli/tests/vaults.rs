//! Real vaults, served by the built program: every note is listed, every link that two other readers agree on is found, the
//! graph is the one networkx sees, and not a byte or a time of the vault changes.
//!
//! The data is not in the repository. `QUIPU_DATA` names the folder it was unpacked to; without it nothing is compared.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "a test that copies its data")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use quipu_testkit::client::Client;
use quipu_testkit::generate::Random;
use quipu_testkit::real_data;
use serde_json::{Value, json};

type Edges = BTreeSet<(String, String)>;

#[test]
fn every_note_of_a_vault_is_listed_and_nothing_in_it_changes() {
    let Some(data) = real_data() else { return };
    let mut listed = 0;
    for vault in vaults(&data) {
        let copy = Copied::new(&vault);
        let before = copy.state();
        let mut server = copy.serve();
        let ids = ids(&mut server);
        let expected: BTreeSet<String> = copy.ids().into_values().collect();
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

#[test]
fn every_typed_link_of_a_sample_project_is_an_edge() {
    let Some(data) = real_data() else { return };
    let sample = vault_folder(&data, "ubp-docs").join("examples/taskflow-docs");
    let copy = Copied::new(&sample);
    let mut server = copy.serve();
    let graph = server.call("ubp_get_graph", &json!({})).unwrap().expect_value();
    let count = |name: &str| graph[name].as_array().unwrap().len();
    // 34 links, two of them the same: the project's own tool finds 21 of these.
    assert_eq!((count("nodes"), count("edges")), (16, 33));
    let types: BTreeSet<&str> =
        graph["edges"].as_array().unwrap().iter().map(|edge| edge["type"].as_str().unwrap()).collect();
    assert_eq!(types.len(), 5, "{types:?}");
    assert!(server.close().unwrap().success());
}

#[test]
fn links_of_a_documentation_site_resolve_or_are_reported() {
    let Some(data) = real_data() else { return };
    let copy = Copied::new(&vault_folder(&data, "k8s-en-ja"));
    let is_site_link = |link: &quipu_core::model::Link| link.target.starts_with("/docs/");
    let pages = copy.state().into_iter().filter(|(path, _)| path.starts_with("en/docs/") && is_note(path));
    let links = pages.map(|(_, (bytes, _))| {
        let links = quipu_core::parse::parse(&String::from_utf8(bytes).unwrap()).links;
        links.iter().filter(|link| is_site_link(link)).count()
    });
    let total: usize = links.sum();
    // Some 850 more stand in HTML comments, in code, or have a shortcode in the middle of their path.
    assert!(total > 4_900, "only {total} links found");
    let examined = copy.run(&["doctor", "--json"]);
    let groups = examined["groups"].as_array().unwrap();
    assert!(groups.iter().all(|group| group["kind"] != "unresolved_links"), "{groups:?}");
    let findings = groups.iter().find(|group| group["kind"] == "broken_links").unwrap()["findings"].as_array().unwrap();
    let starts = |value: &Value, prefix: &str| value.as_str().is_some_and(|text| text.starts_with(prefix));
    let broken: usize = findings
        .iter()
        .filter(|finding| starts(&finding["path"], "en/docs/") && starts(&finding["message"], "(/docs/"))
        .map(|finding| finding["lines"].as_array().map_or(1, Vec::len))
        .sum();
    println!("{broken} of {total} links from the root are broken");
    assert!(broken > 0 && broken * 100 <= total * 5, "{broken} of {total}");
    let mut server = copy.serve();
    let hubs = server.call("get_hubs", &json!({ "metric": "in_degree", "limit": 5 })).unwrap().expect_value();
    assert!(hubs[4]["score"].as_f64().is_some_and(|score| score > 50.0), "{hubs}");
    for language in ["en", "ja"] {
        let (from, to) = (
            format!("{language}/docs/concepts/overview/_index.md"),
            format!("{language}/docs/concepts/workloads/pods/_index.md"),
        );
        assert!(find_path(&mut server, &from, &to).is_some(), "{from} {to}");
    }
    assert!(server.close().unwrap().success());
}

/// Links that the other readers take otherwise, each with the reason.
const TAKEN_OTHERWISE: [(&str, &str, &str); 4] = [
    ("test data/comments_markdown_style.md", "test data/comments_html_style.md", COMMENT),
    ("journal/2023-01-29.md", "Gloria.md", NEARER),
    ("journal/2023-02-17.md", "Gloria.md", NEARER),
    ("journal/2024-07-20.md", "Gloria.md", NEARER),
];
const COMMENT: &str = "it stands in an Obsidian comment, between `%%` and `%%`";
const NEARER: &str = "a name also in the note's own folder means that one";

#[test]
fn every_link_that_two_other_readers_agree_on_is_an_edge() {
    let Some(data) = real_data() else { return };
    let (mut compared, mut missing) = (0, Vec::new());
    for (name, root) in oracles(&data) {
        let copy = Copied::new(&root);
        let mut server = copy.serve();
        for (source, target) in read_edges(&data, &format!("{name}.consensus.tsv"), &copy.ids()) {
            // A note's own list of links is bounded; a way of one step is the link itself.
            let found = find_path(&mut server, &source, &target);
            let is_edge = found.is_some_and(|way| way["length"] == u64::from(source != target));
            let is_excused = TAKEN_OTHERWISE.iter().any(|(from, to, _)| (*from, *to) == (&source, &target));
            if is_edge == is_excused {
                missing.push(format!("{name}: {source} -> {target}"));
            }
            compared += 1;
        }
    }
    assert!(missing.is_empty(), "{} of {compared}:\n{}", missing.len(), missing.join("\n"));
    assert!(compared > 25_000, "only {compared} links compared");
}

/// The other program sees other links than we do in some vaults: it knows no aliases and no titles, and follows links in
/// places that we pass over. Where the graphs are equal every figure must be; where ours only has more edges, ways may only be
/// shorter.
#[test]
fn graph_agrees_with_networkx() {
    let Some(data) = real_data() else { return };
    let mut equal_graphs = 0;
    for (name, root) in oracles(&data) {
        let copy = Copied::new(&root);
        let mut server = copy.serve();
        let oracle = fs::read(oracle_file(&data, &format!("{name}.graph.json"))).unwrap();
        let oracle: Value = serde_json::from_slice(&oracle).unwrap();
        let is_no_loop = |(from, to): &(String, String)| from != to;
        let mut theirs = read_edges(&data, oracle["edge_source"].as_str().unwrap(), &copy.ids());
        theirs.retain(is_no_loop);
        let mut ours = edges(&mut server);
        ours.retain(is_no_loop);
        let (is_equal, has_all) = (ours == theirs, ours.is_superset(&theirs));
        let lacking = theirs.difference(&ours).count();
        println!("{name}: {} edges, theirs {}, of which {lacking} are not ours", ours.len(), theirs.len());
        for way in oracle["directed_path_lengths"].as_array().unwrap().iter().filter(|_| has_all) {
            let found = find_path(&mut server, id(&way[0]), id(&way[1])).expect("there is a way for them");
            let (found, length) = (found["length"].as_u64(), way[2].as_u64());
            assert!(if is_equal { found == length } else { found <= length }, "{name}: {way}, ours {found:?}");
        }
        if is_equal {
            equal_graphs += 1;
            for (key, metric) in [("top_in", "in_degree"), ("top_out", "out_degree"), ("top_pagerank", "pagerank")] {
                compare_hubs(&mut server, &oracle[key], metric, &name);
            }
            for pair in oracle["directed_unreachable"].as_array().unwrap() {
                assert_eq!(find_path(&mut server, id(&pair[0]), id(&pair[1])), None, "{name}: {pair}");
            }
        }
    }
    assert!(equal_graphs >= 3, "only {equal_graphs} graphs are equal");
}

/// Searches for a hundred random notes whose title no other note has, and for the hubs among such notes.
#[test]
fn a_title_finds_its_note_first() {
    let Some(data) = real_data() else { return };
    for name in ["garden-en", "k8s-en-ja", "obsidian-help-en-ja", "tasks"] {
        let copy = Copied::new(&vault_folder(&data, name));
        let mut server = copy.serve();
        if name == "tasks" {
            // In the others the searches run while vectors are made, so most of them go by words.
            copy.wait_for_vectors();
        }
        let titles = titles(&mut server);
        let mut owners: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        titles.iter().for_each(|(id, title)| owners.entry(title.to_lowercase()).or_default().push(id));
        let mut unique: Vec<&(String, String)> =
            titles.iter().filter(|(_, title)| owners[&title.to_lowercase()].len() == 1).collect();
        let hubs = server.call("get_hubs", &json!({ "metric": "in_degree", "limit": 50 })).unwrap().expect_value();
        let is_hub = |id: &str| hubs.as_array().unwrap().iter().any(|hub| hub["id"] == id);
        let hubs: Vec<&(String, String)> = unique.iter().copied().filter(|(id, _)| is_hub(id)).collect();
        let mut random = Random(12);
        let drawn: Vec<_> = (0..100).map(|_| unique.swap_remove(random.below(unique.len()))).collect();
        for (kind, notes) in [("notes", drawn), ("hubs", hubs)] {
            for tool in ["search", "ubp_search"] {
                let is_missed = |(id, title): &&&(String, String)| first(&mut server, tool, title) != *id;
                let missed: Vec<_> = notes.iter().filter(is_missed).collect();
                println!("{name}, {tool}: {} of {} {kind} first", notes.len() - missed.len(), notes.len());
                assert!(missed.len() * 100 <= notes.len(), "{name}, {tool}: not first: {missed:?}");
            }
        }
        if name == "garden-en" {
            // Another note is called agor.
            assert_eq!(first(&mut server, "search", "agora"), "agora.md");
            assert_eq!(first(&mut server, "ubp_search", "agora"), "agora.md");
        }
    }
}

/// Agents pay for links that they did not ask for.
#[test]
fn a_search_answer_is_not_mostly_links() {
    let Some(data) = real_data() else { return };
    let copy = Copied::new(&vault_folder(&data, "garden-en"));
    let mut server = copy.serve();
    let (mut links, mut all) = (0, 0);
    for query in ["agora", "how to take notes", "knowledge commons", "push", "reading list"] {
        let answer = server.call("search", &json!({ "query": query })).unwrap().expect_value();
        let results = answer.as_array().unwrap();
        assert_eq!(results.len(), 10, "{query}");
        links += results.iter().map(|result| result["links"].to_string().chars().count()).sum::<usize>();
        all += answer.to_string().chars().count();
    }
    println!("{links} of {all} characters are links");
    assert!(links * 2 < all, "{links} of {all}");
}

/// The id of the first result, whose score must be the best and within bounds.
fn first(server: &mut Client, tool: &str, query: &str) -> String {
    let answer = server.call(tool, &json!({ "query": query, "limit": 5 })).unwrap().expect_value();
    let results = answer.get("results").unwrap_or(&answer).as_array().unwrap();
    let scores: Vec<f64> = results.iter().map(|result| result["score"].as_f64().unwrap()).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b) && scores[0] <= 1.0, "{query}: {scores:?}");
    let id = results[0].get("id").unwrap_or(&results[0]["filepath"]);
    id.as_str().unwrap().to_lowercase()
}

fn id(path: &Value) -> &str {
    path.as_str().unwrap()
}

fn compare_hubs(server: &mut Client, top: &Value, metric: &str, name: &str) {
    let hubs = server.call("get_hubs", &json!({ "metric": metric, "limit": 50 })).unwrap().expect_value();
    for (place, (ours, theirs)) in hubs.as_array().unwrap().iter().zip(top.as_array().unwrap()).enumerate() {
        let (ours, theirs) = (ours["score"].as_f64().unwrap(), theirs[1].as_f64().unwrap());
        // Ranks are printed with four digits.
        assert!((ours - theirs).abs() <= theirs * 1e-3, "{name}: {metric} at place {place}: {ours}, theirs {theirs}");
    }
}

fn find_path(server: &mut Client, source: &str, target: &str) -> Option<Value> {
    let found = server.call("find_path", &json!({ "source": source, "target": target })).unwrap().expect_value();
    (!found.is_null()).then_some(found)
}

/// Every link of every note that leads to a note, of notes with fewer than a hundred.
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
    titles(server).into_iter().map(|(id, _)| id).collect()
}

/// Every note's id and title.
fn titles(server: &mut Client) -> Vec<(String, String)> {
    let mut titles = Vec::new();
    loop {
        let page = server.call("list_nodes", &json!({ "limit": 1000, "offset": titles.len() })).unwrap().expect_value();
        let nodes = page["nodes"].as_array().unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        titles.extend(nodes.iter().map(|node| (text(&node["id"]), text(&node["title"]))));
        if nodes.is_empty() || titles.len() as u64 == page["total"].as_u64().unwrap() {
            return titles;
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

    /// The JSON that a command prints about the vault.
    fn run(&self, arguments: &[&str]) -> Value {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
        let output = command.args(arguments).arg(self.folder.path()).env_remove("QUIPU_VAULT").output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Waits until a server has made coarse vectors of all passages.
    fn wait_for_vectors(&self) {
        let start = Instant::now();
        loop {
            let embedding = self.run(&["status", "--json"])["embedding"].take();
            if embedding["passages"].as_u64() > Some(0) && embedding["embedded"] == embedding["passages"] {
                return;
            }
            assert!(start.elapsed() < Duration::from_secs(300), "{embedding}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn serve(&self) -> Client {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
        Client::spawn(command.arg("serve").arg(self.folder.path()).env_remove("QUIPU_VAULT")).unwrap()
    }

    /// The id of every note by its path: the path in lower case, or the exact path where another file owns that id.
    fn ids(&self) -> BTreeMap<String, String> {
        let mut paths: Vec<String> = self.state().into_keys().filter(|path| is_note(path)).collect();
        paths.sort_by_key(|path| (*path != path.to_lowercase(), path.clone()));
        let mut owned = BTreeSet::new();
        let id = |path: String| {
            let lowercased = path.to_lowercase();
            let id = if owned.insert(lowercased.clone()) { lowercased } else { path.clone() };
            (path, id)
        };
        paths.into_iter().map(id).collect()
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

/// Edges between notes, by id.
fn read_edges(data: &Path, file: &str, ids: &BTreeMap<String, String>) -> Edges {
    let text = fs::read_to_string(oracle_file(data, file)).unwrap();
    let pairs = text.lines().skip(1).map(|line| line.split_once('\t').unwrap());
    pairs.filter_map(|(source, target)| Some((ids.get(source)?.clone(), ids.get(target)?.clone()))).collect()
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

/// Every tool that reads, with what it requires and nothing else, around the most linked note of a large vault.
#[test]
fn no_answer_of_a_read_tool_with_defaults_is_over_40_000_characters() {
    let Some(data) = real_data() else { return };
    let copy = Copied::new(&vault_folder(&data, "garden-en"));
    let mut server = copy.serve();
    let hub = server.call("get_hubs", &json!({})).unwrap().expect_value()[0]["id"].clone();
    let observations: Vec<String> = (0..200).map(|number| format!("{number} {}", "long ".repeat(60))).collect();
    let entity = json!({"name": "Agora", "entity_type": "Project", "observations": observations});
    server.call("create_entity", &entity).unwrap().expect_value();
    let tools = server.request("tools/list", &json!({})).unwrap().message["result"]["tools"].clone();
    let (mut called, mut longest) = (0, Vec::new());
    for tool in tools.as_array().unwrap().iter().filter(|tool| tool["annotations"]["readOnlyHint"] == true) {
        let name = tool["name"].as_str().unwrap();
        let required = tool["inputSchema"]["required"].as_array().cloned().unwrap_or_default();
        let value = |argument: &str| match argument {
            "id" | "source" | "target" | "path" | "filepath" => hub.clone(),
            "query" => json!("agora"),
            "tags" => json!(["push"]),
            "names" | "ids" => json!(["agora", hub]),
            "from" => json!("current"),
            "entity_id" => json!(1),
            "entity_ids" => json!([1]),
            other => panic!("{name} requires {other}: give it a value here"),
        };
        let arguments: serde_json::Map<String, Value> =
            required.iter().map(|name| (name.as_str().unwrap().to_owned(), value(name.as_str().unwrap()))).collect();
        // One of two arguments is required, which a schema cannot say.
        let only = (name == "extract_entities").then(|| json!({ "id": hub }));
        let mut calls = vec![only.unwrap_or_else(|| arguments.clone().into())];
        let deeper = [("get_node", json!({ "depth": 1 })), ("ubp_get_graph", json!({ "center": hub }))];
        for (_, more) in deeper.iter().filter(|(deeper, _)| *deeper == name) {
            let mut arguments = arguments.clone();
            arguments.extend(more.as_object().unwrap().clone());
            calls.push(arguments.into());
        }
        for arguments in calls {
            let answer = server.call(name, &arguments).unwrap();
            answer.expect_value();
            // Warnings are a block of their own.
            let blocks = answer.message["result"]["content"].as_array().unwrap();
            let chars = blocks.iter().map(|block| block["text"].as_str().unwrap().chars().count()).sum::<usize>();
            longest.push((chars, format!("{name} {arguments}")));
            called += 1;
        }
    }
    longest.sort_unstable();
    longest.reverse();
    assert!(called >= 25, "{called}");
    assert!(longest[0].0 <= 40_000, "{longest:#?}");
    assert!(server.close().unwrap().success());
}
