//! Positions, computed once for a graph and kept: in memory, and in `.quipu/index/` for the next start, so that a note is found where
//! it was. The file is derived: one that is missing or damaged costs the time to lay the graph out again.

use std::hash::{Hash, Hasher};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use quipu_layout::{Layout, LayoutNode, Point, draft, keeps_known, layout};
use quipu_own_folder::OwnFolder;
use quipu_tools::WholeGraph;
use rustc_hash::{FxHashMap, FxHasher};
use rustix::fs::OFlags;

use crate::own_files;

const FILE: &str = "layout";
const DRAFT: &str = "layout.new";

/// Says which format the rest has.
const MAGIC: &[u8; 8] = b"QLAYOUT1";

/// A row is the hash of an id and two coordinates.
const ROW: usize = 16;

/// More rows are not read: no vault has them.
const MAX_ROWS: usize = 4_000_000;

/// The layouts of one vault. One thread computes them, so that no request waits longer than it wants to.
pub(super) struct Layouts {
    /// The vault's; `None` where positions are kept in memory alone.
    root: Option<PathBuf>,
    progress: Mutex<LayoutProgress>,
    has_settled: Condvar,
    /// The last draft. Held while it is made: a second tab waits for it instead of making it too.
    draft: Mutex<Option<DraftLayout>>,
}

#[derive(Default)]
struct LayoutProgress {
    last: Option<Known>,
    /// The newest graph that waits to be laid out.
    wanted: Option<Arc<WholeGraph>>,
    is_running: bool,
    /// How many graphs were laid out.
    made: u64,
}

impl LayoutProgress {
    /// The layout of a graph of this shape, if it is known.
    fn of_shape(&self, shape: u64) -> Option<Arranged> {
        let known = self.last.as_ref().filter(|known| known.shape == shape)?;
        Some(Arranged { layout: known.layout.clone(), settled: true })
    }
}

struct Known {
    /// A hash of nodes and edges.
    shape: u64,
    layout: Arc<Layout>,
    positions: Arc<FxHashMap<u64, Point>>,
}

struct DraftLayout {
    shape: u64,
    /// How many graphs were laid out before: the next one brings positions to start from.
    made: u64,
    arranged: Arranged,
}

/// Where the nodes are, as far as it is known.
#[derive(Clone)]
pub(super) struct Arranged {
    pub(super) layout: Arc<Layout>,
    /// Whether this is the layout, and not the draft of one that is still computed.
    pub(super) settled: bool,
}

impl Layouts {
    pub(super) fn new(vault: Option<&Path>) -> Arc<Self> {
        let root = vault.map(Path::to_owned);
        Arc::new(Self { root, progress: Mutex::default(), has_settled: Condvar::new(), draft: Mutex::default() })
    }

    /// How many graphs were laid out: after a draft, a greater number says that it is worth asking again.
    pub(super) fn made(&self) -> u64 {
        self.progress.lock().made
    }

    /// Starts to lay a graph out.
    pub(super) fn start(self: &Arc<Self>, graph: &Arc<WholeGraph>) -> std::io::Result<()> {
        let shape = shape(&seeds(graph), &graph.edges);
        let mut progress = self.progress.lock();
        if progress.of_shape(shape).is_none() { self.want(&mut progress, graph) } else { Ok(()) }
    }

    /// The layout of a graph, or a draft if computing the layout takes longer than this.
    pub(super) fn of_graph(self: &Arc<Self>, graph: &Arc<WholeGraph>, patience: Duration) -> std::io::Result<Arranged> {
        let until = Instant::now() + patience;
        let seeds = seeds(graph);
        let shape = shape(&seeds, &graph.edges);
        let mut progress = self.progress.lock();
        if let Some(known) = progress.of_shape(shape) {
            return Ok(known);
        }
        self.want(&mut progress, graph)?;
        loop {
            let is_over = self.has_settled.wait_until(&mut progress, until).timed_out();
            if let Some(known) = progress.of_shape(shape) {
                return Ok(known);
            }
            if is_over {
                break;
            }
        }
        let before = progress.last.as_ref().map(|known| known.positions.clone());
        let made = progress.made;
        drop(progress);
        let mut kept = self.draft.lock();
        if let Some(draft) = kept.as_ref().filter(|draft| draft.shape == shape && draft.made == made) {
            return Ok(draft.arranged.clone());
        }
        let before = before.unwrap_or_else(|| Arc::new(self.read().unwrap_or_default()));
        let nodes = nodes(graph, &seeds, &before);
        let arranged = Arranged { layout: Arc::new(draft(&nodes, &pairs(graph))), settled: keeps_known(&nodes) };
        Ok(kept.insert(DraftLayout { shape, made, arranged }).arranged.clone())
    }

    fn want(self: &Arc<Self>, progress: &mut LayoutProgress, graph: &Arc<WholeGraph>) -> std::io::Result<()> {
        progress.wanted = Some(graph.clone());
        if !progress.is_running {
            let run = Run(self.clone());
            std::thread::Builder::new().name("layout".into()).spawn(move || run.until_none_waits())?;
            progress.is_running = true;
        }
        Ok(())
    }

    fn lay_out(&self, graph: &WholeGraph) {
        let seeds = seeds(graph);
        let shape = shape(&seeds, &graph.edges);
        let last = self.progress.lock().last.as_ref().map(|known| (known.shape, known.positions.clone()));
        if last.as_ref().is_some_and(|(known, _)| *known == shape) {
            return;
        }
        let before = last.map_or_else(|| Arc::new(self.read().unwrap_or_default()), |(_, positions)| positions);
        let made = Arc::new(layout(&nodes(graph, &seeds, &before), &pairs(graph)));
        let positions: FxHashMap<u64, Point> = seeds.iter().copied().zip(made.positions.iter().copied()).collect();
        if let Err(error) = self.write(&positions) {
            tracing::debug!(%error, "the positions of the graph are not kept");
        }
        let mut progress = self.progress.lock();
        progress.last = Some(Known { shape, layout: made, positions: Arc::new(positions) });
        progress.made += 1;
    }

    fn index(&self) -> std::io::Result<Option<OwnFolder>> {
        self.root.as_ref().map(|root| own_files::existing_index(root)).transpose()
    }

    fn read(&self) -> std::io::Result<FxHashMap<u64, Point>> {
        let mut bytes = Vec::new();
        let Some(index) = self.index()? else { return Ok(FxHashMap::default()) };
        let file = index.file(FILE, OFlags::RDONLY)?;
        file.take((MAX_ROWS * ROW + MAGIC.len()) as u64).read_to_end(&mut bytes)?;
        let rows = bytes.strip_prefix(MAGIC).unwrap_or_default();
        let row = |row: &[u8]| {
            let part = |from: usize| row[from..from + 4].try_into().expect("a row has sixteen bytes");
            let seed = u64::from_le_bytes(row[..8].try_into().expect("a row has sixteen bytes"));
            (seed, Point { x: f32::from_le_bytes(part(8)), y: f32::from_le_bytes(part(12)) })
        };
        Ok(rows.chunks_exact(ROW).map(row).filter(|(_, point)| point.x.is_finite() && point.y.is_finite()).collect())
    }

    /// Nothing is made where there is no index on disk.
    fn write(&self, positions: &FxHashMap<u64, Point>) -> std::io::Result<()> {
        let mut rows: Vec<(&u64, &Point)> = positions.iter().collect();
        rows.sort_unstable_by_key(|(seed, _)| **seed);
        let mut bytes = MAGIC.to_vec();
        for (seed, point) in rows {
            bytes.extend(seed.to_le_bytes());
            bytes.extend(point.x.to_le_bytes());
            bytes.extend(point.y.to_le_bytes());
        }
        let Some(folder) = self.index()? else { return Ok(()) };
        folder.file(DRAFT, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC)?.write_all(&bytes)?;
        folder.rename(DRAFT, FILE)
    }
}

/// The thread that lays graphs out. When it ends, for whatever reason, the next request starts another.
struct Run(Arc<Layouts>);

impl Run {
    fn until_none_waits(self) {
        loop {
            let mut progress = self.0.progress.lock();
            let Some(graph) = progress.wanted.take() else {
                progress.is_running = false;
                return;
            };
            drop(progress);
            self.0.lay_out(&graph);
            self.0.has_settled.notify_all();
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.progress.lock().is_running = false;
        }
    }
}

fn pairs(graph: &WholeGraph) -> Vec<(u32, u32)> {
    graph.edges.chunks_exact(3).map(|edge| (edge[0], edge[1])).collect()
}

/// A number for each node that only its id decides.
fn seeds(graph: &WholeGraph) -> Vec<u64> {
    let seed = |key: &[u8]| u64::from_le_bytes(blake3::hash(key).as_bytes()[..8].try_into().expect("a hash is longer"));
    let notes = graph.notes.id.iter().map(|id| seed(id.as_bytes()));
    notes.chain(graph.entities.id.iter().map(|id| seed(format!("entity:{id}").as_bytes()))).collect()
}

fn shape(seeds: &[u64], edges: &[u32]) -> u64 {
    let mut hasher = FxHasher::default();
    seeds.hash(&mut hasher);
    edges.hash(&mut hasher);
    hasher.finish()
}

fn nodes(graph: &WholeGraph, seeds: &[u64], before: &FxHashMap<u64, Point>) -> Vec<LayoutNode> {
    let most = graph.notes.rank.iter().copied().max().unwrap_or(1).max(1) as f32;
    let notes = graph.notes.rank.iter().zip(&graph.notes.folder);
    let notes = notes.map(|(rank, folder)| (2.0 + 8.0 * (*rank as f32 / most).sqrt(), *folder));
    let entities = graph.entities.id.iter().map(|_| (4.0, u32::MAX));
    let node = |((radius, group), seed): ((f32, u32), &u64)| LayoutNode {
        seed: *seed,
        radius,
        group,
        before: before.get(seed).copied(),
    };
    notes.chain(entities).zip(seeds).map(node).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(notes: usize) -> WholeGraph {
        let mut graph = WholeGraph::default();
        for n in 0..notes {
            graph.notes.id.push(format!("{n}.md"));
            graph.notes.rank.push(1);
            graph.notes.folder.push(0);
            graph.edges.extend([n as u32, (n as u32 + 1) % notes as u32, 0]);
        }
        graph
    }

    fn settled(layouts: &Arc<Layouts>, graph: WholeGraph) -> Arc<Layout> {
        let arranged = layouts.of_graph(&Arc::new(graph), Duration::from_secs(60)).unwrap();
        assert!(arranged.settled);
        arranged.layout
    }

    #[test]
    fn request_that_does_not_wait_gets_a_draft_and_later_the_layout() {
        let layouts = Layouts::new(None);
        let large = Arc::new(graph(1_000));
        let first = layouts.of_graph(&large, Duration::ZERO).unwrap();
        assert!(!first.settled && first.layout.positions.len() == 1_000);
        let last = layouts.of_graph(&large, Duration::from_secs(60)).unwrap();
        assert!(last.settled && last.layout.positions != first.layout.positions);
        assert_eq!((layouts.made(), &last.layout.communities), (1, &first.layout.communities));
        assert!(layouts.of_graph(&large, Duration::ZERO).unwrap().settled, "it is kept");
    }

    #[test]
    fn draft_is_kept_until_the_graph_or_what_is_known_changes() {
        let layouts = Layouts::new(None);
        // Nothing is laid out meanwhile.
        layouts.progress.lock().is_running = true;
        let draft = |nodes| {
            let arranged = layouts.of_graph(&Arc::new(graph(nodes)), Duration::ZERO).unwrap();
            assert!(!arranged.settled);
            arranged.layout
        };
        let first = draft(200);
        assert!(Arc::ptr_eq(&first, &draft(200)));
        assert!(!Arc::ptr_eq(&first, &draft(201)));
        let second = draft(200);
        layouts.progress.lock().made += 1;
        assert!(!Arc::ptr_eq(&second, &draft(200)));
    }

    #[test]
    fn layout_that_was_only_started_costs_no_draft() {
        let layouts = Layouts::new(None);
        layouts.start(&Arc::new(graph(1_000))).unwrap();
        assert!(layouts.draft.lock().is_none());
        assert!(layouts.of_graph(&Arc::new(graph(1_000)), Duration::from_secs(60)).unwrap().settled);
        assert_eq!(layouts.made(), 1);
        layouts.start(&Arc::new(graph(1_000))).unwrap();
        assert!(layouts.progress.lock().wanted.is_none(), "it is known");
    }

    #[test]
    fn layout_survives_a_restart_and_a_damaged_file_is_replaced() {
        let vault = tempfile::tempdir().unwrap();
        let index = own_files::index_folder(vault.path());
        quipu_own_folder_made(&index);
        let first = settled(&Layouts::new(Some(vault.path())), graph(20));
        let mut grown = graph(20);
        grown.notes.id.push("new.md".into());
        grown.notes.rank.push(1);
        grown.notes.folder.push(0);
        let second = settled(&Layouts::new(Some(vault.path())), grown);
        assert_eq!(second.positions[..20], first.positions[..], "another server found them");
        for damage in [&b""[..], b"QLAYOUT1half a row", &[0xff; 100]] {
            write(&index.join(FILE), damage);
            assert_eq!(settled(&Layouts::new(Some(vault.path())), graph(20)).positions.len(), 20);
        }
    }

    #[test]
    fn folder_of_another_account_is_neither_read_nor_written() {
        if !rustix::process::geteuid().is_root() {
            return quipu_testkit::skip("only root can give a folder to another account");
        }
        let vault = tempfile::tempdir().unwrap();
        let index = own_files::index_folder(vault.path());
        quipu_own_folder_made(&index);
        for folder in [index.as_path(), index.parent().unwrap()] {
            std::os::unix::fs::chown(folder, Some(65534), None).unwrap();
            settled(&Layouts::new(Some(vault.path())), graph(20));
            assert!(!index.join(FILE).exists());
            std::os::unix::fs::chown(folder, Some(0), None).unwrap();
        }
        settled(&Layouts::new(Some(vault.path())), graph(20));
        assert!(index.join(FILE).exists());
    }

    #[expect(clippy::disallowed_methods, reason = "a test's own files")]
    fn write(path: &Path, bytes: &[u8]) {
        std::fs::write(path, bytes).unwrap();
    }

    #[expect(clippy::disallowed_methods, reason = "a test's own files")]
    fn quipu_own_folder_made(path: &Path) {
        std::fs::create_dir_all(path).unwrap();
    }
}
