//! `cargo xtask deny`: the licences, bans and sources that `deny.toml` allows.
//!
//! Advisories are left out: their database comes over the network and changes by itself, so a run would not say the same
//! tomorrow. cargo-deny is built once, which takes about two minutes on two cores, and kept below `target/`.

use std::path::PathBuf;

use crate::shell::{self, cargo, command};

const VERSION: &str = "0.20.2";

pub(crate) fn run() -> anyhow::Result<()> {
    let program = installed()?;
    shell::run(&mut command(program, &["--all-features", "check", "licenses", "bans", "sources"]))
}

fn installed() -> anyhow::Result<PathBuf> {
    let place = shell::target().join("tools").join(format!("cargo-deny-{VERSION}"));
    let program = place.join("bin/cargo-deny");
    if !program.is_file() {
        let version = format!("cargo-deny@{VERSION}");
        let mut install = cargo(&["install", "--quiet", "--locked", &version, "--root"]);
        // Its own target folder, thrown away with it: shared with ours, each would rebuild what the other made.
        install.arg(&place).env("CARGO_TARGET_DIR", place.join("build")).env("CARGO_PROFILE_RELEASE_LTO", "off");
        shell::run(&mut install)?;
        std::fs::remove_dir_all(place.join("build"))?;
    }
    Ok(program)
}
