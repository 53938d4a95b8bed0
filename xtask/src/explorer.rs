//! `cargo xtask explorer`: the web page for people. Its built files must match their sources, and it must work in a browser: Chromium,
//! without a window, driven by Playwright; axe checks accessibility. `CHROMIUM=PATH` names another Chromium or Chrome.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, ensure};

use crate::shell::{self, Profile, command};
use crate::steps::{Steps, Tally};
use crate::{data, peers};

/// Real vaults. The first, of a few hundred notes in two languages, is shown in the browser; the picture of each is compared with the
/// answers of the tools.
const REAL_VAULTS: [&str; 5] =
    ["vault-obsidian-help-en-ja", "vault-garden-en", "vault-k8s-en-ja", "vault-quartz-docs", "vault-foam"];

pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let binary = shell::build_binary(Profile::Dev)?;
    let mut all = Steps::default();
    all.step("peers: installing", |_| peers::install_node());
    steps(&mut all, &binary, data::unpacked()?.as_deref());
    Ok(all.finish())
}

/// The steps, for `cargo xtask test` too. Node is in place by then.
pub(crate) fn steps(steps: &mut Steps, binary: &Path, real_data: Option<&Path>) {
    steps.step("explorer: built files", built_files);
    steps.step("explorer: browser", |tally| browser(binary, real_data, tally));
}

/// `--build`: writes `web/dist`.
pub(crate) fn build() -> anyhow::Result<()> {
    peers::install_node()?;
    let web = copied_sources()?;
    install_packages(&web)?;
    let made = built(&web)?;
    let dist = shell::root().join("web/dist");
    fs::remove_dir_all(&dist)?;
    shell::run(command("cp", &["-r"]).arg(made).arg(dist))
}

/// `--screenshots`: writes `docs/images`.
pub(crate) fn screenshots() -> anyhow::Result<()> {
    peers::install_node()?;
    let binary = shell::build_binary(Profile::Dev)?;
    let root = shell::root();
    let mut screenshots = script("screenshots.mjs");
    screenshots
        .env(CHROMIUM, chromium()?)
        .arg(binary)
        .arg(peers::place("node"))
        .arg(root.join("examples/vault"))
        .arg(root.join("docs/images"));
    shell::run(&mut screenshots)
}

/// `--measure`: prints a table, or writes it into the page of the explorer.
pub(crate) fn measure(profile: Profile, writes: bool) -> anyhow::Result<()> {
    peers::install_node()?;
    let binary = shell::build_binary(profile)?;
    let mut measure = script("measure.mjs");
    measure.env(CHROMIUM, chromium()?).arg(binary).arg(peers::place("node")).arg(match profile {
        Profile::Dev => "development",
        Profile::Release => "release",
    });
    measure.arg(shell::root().join("examples/vault"));
    match lighthouse() {
        Ok(place) => drop(measure.env("LIGHTHOUSE", place)),
        Err(error) => println!("skipped: accessibility by Lighthouse, which cannot be installed here: {error:#}"),
    }
    if writes {
        measure.arg(shell::root().join("docs/explorer.md"));
    }
    shell::run(&mut measure)
}

/// The folder with Lighthouse, which only measurements need.
fn lighthouse() -> anyhow::Result<PathBuf> {
    let place = shell::target().join("explorer/lighthouse");
    let pins = shell::root().join("tests/explorer/lighthouse/package.json");
    let (wanted, stamp) = (fs::read_to_string(&pins)?, place.join("stamp"));
    if !fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        fs::create_dir_all(&place)?;
        fs::write(place.join("package.json"), &wanted)?;
        let npm = ["install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"];
        shell::run(command("npm", &npm).current_dir(&place))?;
        fs::write(stamp, wanted)?;
    }
    Ok(place)
}

/// Builds the files again and compares. Compressed files are compared by what is in them: they differ between versions of zlib.
fn built_files(tally: &mut Tally) -> anyhow::Result<()> {
    let web = copied_sources()?;
    if let Err(error) = install_packages(&web) {
        println!("skipped: the packages of web/package-lock.json cannot be installed here: {error:#}");
        return Ok(());
    }
    let made = built(&web)?;
    let dist = shell::root().join("web/dist");
    let (built, committed) = (files(&made)?, files(&dist)?);
    ensure!(built == committed, "web/dist has other files than its sources give; run `cargo xtask explorer --build`");
    for file in &built {
        let same = match file.extension().is_some_and(|extension| extension == "gz") {
            true => unpacked(&made.join(file))? == unpacked(&dist.join(file))?,
            false => fs::read(made.join(file))? == fs::read(dist.join(file))?,
        };
        ensure!(same, "web/dist/{} does not match its sources; run `cargo xtask explorer --build`", file.display());
        tally.passed += 1;
    }
    Ok(())
}

/// A copy of the sources: the checkout gets no `node_modules`.
fn copied_sources() -> anyhow::Result<PathBuf> {
    let web = shell::target().join("explorer/web");
    fs::create_dir_all(&web)?;
    let sources = shell::root().join("web");
    for name in ["src", "package.json", "package-lock.json", "build.mjs", "tsconfig.json"] {
        let copy = web.join(name);
        if copy.is_dir() {
            fs::remove_dir_all(&copy)?;
        }
        shell::run(command("cp", &["-r"]).arg(sources.join(name)).arg(&copy))?;
    }
    Ok(web)
}

/// Installs the packages of a copy, unless they are of the same lock file. Needs the network.
fn install_packages(web: &Path) -> anyhow::Result<()> {
    let stamp = shell::target().join("explorer/stamp");
    let packages = fs::read_to_string(web.join("package-lock.json"))?;
    if !fs::read_to_string(&stamp).is_ok_and(|installed| installed == packages) {
        let npm = ["ci", "--no-audit", "--no-fund", "--loglevel=error"];
        shell::run(command("npm", &npm).current_dir(web)).context("npm ci failed")?;
        fs::write(stamp, packages)?;
    }
    Ok(())
}

/// The folder of files built from a copy whose packages are installed. Fails where the types or the sizes are wrong.
fn built(web: &Path) -> anyhow::Result<PathBuf> {
    let node = |arguments: &[&str]| shell::run(peers::node().args(arguments).current_dir(web));
    node(&["node_modules/typescript/bin/tsc", "--noEmit"])?;
    node(&["build.mjs"])?;
    Ok(web.join("dist"))
}

fn browser(binary: &Path, real_data: Option<&Path>, tally: &mut Tally) -> anyhow::Result<()> {
    let chromium = match chromium() {
        Ok(chromium) => chromium,
        Err(error) if std::env::var_os(CHROMIUM).is_some() => return Err(error),
        Err(error) => {
            println!("skipped: the tests in a browser: {error:#}");
            return Ok(());
        }
    };
    let mut browser = script("browser.mjs");
    browser.env(CHROMIUM, chromium);
    browser.arg(binary).arg(peers::place("node")).arg(shell::root().join("examples/vault"));
    match real_data {
        Some(folder) => drop(browser.args(REAL_VAULTS.map(|vault| folder.join(vault).join(vault)))),
        None => println!("skipped: the real vaults; there is no ../shared/data"),
    }
    shell::run_watched(&mut browser, |line| tally.read(line))
}

/// The variable that names the browser.
const CHROMIUM: &str = "CHROMIUM";

/// What Chromium and its relatives are called, and where macOS keeps one.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const MAC_BROWSER: &str = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome";

/// The browser: what the variable names, else an installed one, else Debian's package.
fn chromium() -> anyhow::Result<PathBuf> {
    if let Some(named) = std::env::var_os(CHROMIUM) {
        let named = PathBuf::from(named);
        ensure!(named.is_file(), "{CHROMIUM} names {}, which is not a file", named.display());
        return Ok(named);
    }
    let installed = || BROWSERS.iter().find_map(|name| shell::place_of(name)).or_else(|| existing(MAC_BROWSER));
    if let Some(found) = installed() {
        return Ok(found);
    }
    peers::system_package("chromium", &["chromium"])?;
    installed().context("the package `chromium` has no program of that name")
}

fn existing(path: &str) -> Option<PathBuf> {
    Some(PathBuf::from(path)).filter(|path| path.is_file())
}

fn script(name: &str) -> std::process::Command {
    let mut script = peers::node();
    script.arg(shell::root().join("tests/explorer").join(name));
    script
}

/// Every file below a folder, from there, sorted.
fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(folder)?.to_owned());
            }
        }
    }
    found.sort();
    Ok(found)
}

fn unpacked(file: &Path) -> anyhow::Result<Vec<u8>> {
    let unpacked = command("gzip", &["-dc"]).arg(file).output()?;
    ensure!(unpacked.status.success(), "{} is not gzip", file.display());
    Ok(unpacked.stdout)
}
