//! Programs written by others that talk to the built binary: two generations of the Python and of the TypeScript client, the
//! inspector, and the conformance suite. Their versions are pinned in `tests/peers/`; what is installed is kept below `target/peers/` and made
//! again when a pin changes.

mod conformance;
pub(crate) mod http;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::bail;
use quipu_testkit::postgres::Cluster;

use crate::postgres;
use crate::shell::{self, command};
use crate::steps::Tally;

/// Holds the binary against a peer.
type Check = fn(&Path, &mut Tally) -> anyhow::Result<()>;

/// The peers by name, in the order they run.
pub(crate) const CHECKS: [(&str, Check); 10] = [
    ("peers: Python client, first generation", |binary, tally| python_client("python-1", binary, &[], tally)),
    ("peers: Python client, newest", |binary, tally| python_client("python-2", binary, &[], tally)),
    ("peers: Python client over HTTP, first generation", |binary, tally| {
        python_client("python-1", binary, &["http"], tally)
    }),
    ("peers: Python client over HTTP, newest", |binary, tally| python_client("python-2", binary, &["http"], tally)),
    ("peers: TypeScript clients over HTTP", http::typescript_clients),
    ("peers: inspector", inspector),
    ("peers: conformance suite", conformance::run),
    ("peers: Python client on a database", python_client_on_a_graph),
    ("peers: TypeScript clients on a database", http::typescript_clients_on_a_graph),
    ("peers: conformance suite on a database", conformance::run_on_a_graph),
];

/// Puts every peer in place.
pub(crate) fn install() -> anyhow::Result<()> {
    for (name, pins) in [("python-1", "requirements-1.txt"), ("python-2", "requirements-2.txt")] {
        install_python(name, pins)?;
    }
    install_node()
}

/// Puts Python packages in place, in an environment of their own.
pub(crate) fn install_python(name: &str, pins: &str) -> anyhow::Result<()> {
    system_package("python3", &["python3", "python3-venv"])?;
    install_once(name, pins, |place, pins| {
        // `ensurepip` is what Debian keeps apart from Python.
        if shell::run(command("python3", &["-c", "import ensurepip"]).stderr(std::process::Stdio::null())).is_err() {
            install_system_packages("python3-venv", &["python3-venv"])?;
        }
        shell::run(command("python3", &["-m", "venv"]).arg(place))?;
        let pip = ["install", "--quiet", "--disable-pip-version-check", "--requirement"];
        shell::run(command(place.join("bin/pip"), &pip).arg(pins))
    })
}

/// Puts the peers that run on Node in place.
pub(crate) fn install_node() -> anyhow::Result<()> {
    system_package("npm", &["nodejs", "npm"])?;
    install_once("node", "package.json", |place, pins| {
        fs::create_dir_all(place)?;
        fs::copy(pins, place.join("package.json"))?;
        let npm = ["install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"];
        shell::run(command("npm", &npm).current_dir(place))
    })
}

/// Makes a folder below `target/peers/` unless the one there was made from the same pins.
fn install_once(name: &str, pins: &str, make: impl FnOnce(&Path, &Path) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let pins = scripts().join(pins);
    let (place, stamp) = (place(name), place(&format!("{name}.stamp")));
    let wanted = fs::read_to_string(&pins)?;
    if fs::read_to_string(&stamp).is_ok_and(|made| made == wanted) {
        return Ok(());
    }
    println!("installing {name} from {}", pins.display());
    if place.exists() {
        fs::remove_dir_all(&place)?;
    }
    fs::create_dir_all(place.parent().expect("below target"))?;
    make(&place, &pins)?;
    Ok(fs::write(stamp, wanted)?)
}

/// Makes sure of a program, installing Debian's packages for it where it is missing and we may.
pub(crate) fn system_package(program: &str, packages: &[&str]) -> anyhow::Result<()> {
    if shell::exists(program) { Ok(()) } else { install_system_packages(program, packages) }
}

fn install_system_packages(program: &str, packages: &[&str]) -> anyhow::Result<()> {
    let is_root = shell::output(&mut command("id", &["-u"]))?.trim() == "0";
    if !is_root || !shell::exists("apt-get") {
        bail!(
            "`{program}` is missing; install it (Debian: apt-get install {}), or run `test --quick`",
            packages.join(" ")
        );
    }
    let apt = |arguments: &[&str]| shell::run(command("apt-get", arguments).env("DEBIAN_FRONTEND", "noninteractive"));
    apt(&["update", "--quiet=2"])?;
    apt(&[&["install", "--quiet=2", "--yes", "--no-install-recommends"], packages].concat())
}

fn python_client(name: &str, binary: &Path, way: &[&str], tally: &mut Tally) -> anyhow::Result<()> {
    let python = place(name).join("bin/python");
    let mut script = command(python, &["-X", "utf8"]);
    script.arg(scripts().join("python_client.py")).arg(binary).args(way);
    shell::run_watched(&mut script, |line| tally.read(line))
}

fn python_client_on_a_graph(binary: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    let Some(programs) = postgres::installed_or_skipped() else { return Ok(()) };
    let cluster = Cluster::start(programs);
    python_client("python-2", binary, &["http", &cluster.database()], tally)
}

fn inspector(binary: &Path, tally: &mut Tally) -> anyhow::Result<()> {
    let mut script = node();
    script.arg(scripts().join("inspector.mjs")).arg(binary).arg(place("node/node_modules/.bin/mcp-inspector"));
    shell::run_watched(&mut script, |line| tally.read(line))
}

/// The pinned Node: the system's is often too old for these programs.
pub(crate) fn node() -> std::process::Command {
    command(place("node/node_modules/.bin/node"), &[])
}

fn scripts() -> PathBuf {
    shell::root().join("tests/peers")
}

pub(crate) fn place(name: &str) -> PathBuf {
    shell::target().join("peers").join(name)
}
