//! `cargo xtask test`: everything that can break, in one command, on a machine that has only cargo.
//!
//! Cheap steps come first. The binary is built once, in the profile the tests use: its dependencies are optimised there, and
//! a second profile would double the time on a small machine.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;

use crate::shell::{self, Profile, cargo};
use crate::steps::{ONE, Steps};
use crate::{cargo_test, crash, data, deny, explorer, fuzz, instructions, peers, postgres, share, team};

pub(crate) fn run(quick: bool) -> ExitCode {
    let mut steps = Steps::default();
    steps.step("formatting", |tally| {
        *tally = ONE;
        shell::run(&mut cargo(&["fmt", "--all", "--check"])).context("`cargo fmt --all` fixes it")
    });
    steps.step("lints", |tally| {
        *tally = ONE;
        let clippy = ["clippy", "--quiet", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
        shell::run(&mut cargo(&clippy))
    });
    steps.step("documentation of the code", |tally| {
        *tally = ONE;
        let doc = ["doc", "--quiet", "--workspace", "--no-deps", "--document-private-items", "--locked"];
        shell::run(cargo(&doc).env("RUSTDOCFLAGS", "-D warnings"))
    });
    let mut real_data = None;
    steps.step("real data", |_| {
        real_data = data::unpacked()?;
        match &real_data {
            Some(folder) => println!("in {}", folder.display()),
            None => println!("skipped: there is no ../shared/data; the comparisons with real vaults say so too"),
        }
        Ok(())
    });
    let mut database = None;
    steps.step("PostgreSQL", |_| {
        match postgres::installed() {
            Ok(folder) => {
                println!("in {}", folder.display());
                database = Some(folder);
            }
            // Not every system has a package: the tests say that they are skipped.
            Err(error) => println!("skipped: {error:#}"),
        }
        Ok(())
    });
    steps.step("tests", |tally| {
        let tests = || {
            let mut tests = cargo(&["test", "--quiet", "--workspace", "--locked"]);
            // Snapshots and generated pages are compared here, never written.
            tests.env("INSTA_UPDATE", "no");
            if let Some(folder) = &real_data {
                tests.env("QUIPU_DATA", folder);
            }
            if let Some(folder) = &database {
                tests.env("QUIPU_POSTGRES", folder);
            }
            tests
        };
        cargo_test::run(tests, &[], tally)
    });
    if let Some(folder) = &database {
        steps.step("examples of the tools on a database", |tally| {
            let seeds = || {
                let mut seeds = cargo(&["test", "--quiet", "--workspace", "--locked", "--test", "e2e"]);
                seeds.env("QUIPU_TEST_TEAM", "1").env("QUIPU_POSTGRES", folder);
                seeds
            };
            cargo_test::run(seeds, &["seed_"], tally)
        });
    }
    if let Some(folder) = database.as_deref().and_then(postgres::older) {
        steps.step("store on an older PostgreSQL", |tally| {
            let tests = || {
                let mut tests = cargo(&["test", "--quiet", "--workspace", "--locked"]);
                // Of the whole workspace too, for the same reason as below.
                for name in ["access", "memory_conformance", "servers", "vault_conformance"] {
                    tests.args(["--test", name]);
                }
                tests.env("QUIPU_POSTGRES", &folder);
                tests
            };
            cargo_test::run(tests, &[], tally)
        });
    }
    steps.step("tokens of identity providers", |tally| {
        // Of the whole workspace, or all dependencies would be built once more with fewer features.
        let feature =
            ["--workspace", "--bin", "quipu", "--test", "e2e", "--features", "quipu/oauth", "--locked", "--quiet"];
        shell::run(cargo(&["clippy"]).args(feature).args(["--", "-D", "warnings"]))?;
        let tests = || {
            let mut tests = cargo(&["test"]);
            tests.args(feature);
            tests
        };
        cargo_test::run(tests, &["oauth"], tally)
    });
    steps.step("random renames", |tally| {
        *tally = ONE;
        fuzz::renames::run(fuzz::renames::SHORT, fuzz::SEED)
    });
    if !quick {
        steps.step("licences, bans and sources", |tally| {
            *tally = ONE;
            deny::run()
        });
        steps.step("instructions of the hot paths", |tally| instructions::run(false, tally));
        let mut binary = PathBuf::new();
        steps.step("binary", |_| {
            binary = shell::build_binary(Profile::Dev)?;
            Ok(())
        });
        steps.step("crash rounds", |tally| {
            *tally = ONE;
            crash::run(&binary, crash::ROUNDS, crash::SEED)
        });
        steps.step("crash rounds of memory", |tally| {
            *tally = ONE;
            crash::run_memory(&binary, crash::SEED)
        });
        steps.step("random operations on files", |tally| {
            *tally = ONE;
            fuzz::files::run(&binary, fuzz::files::SHORT, fuzz::SEED)
        });
        steps.step("owners killed", |tally| {
            *tally = ONE;
            share::run(&binary, share::KILLS, crash::SEED)
        });
        steps.step("team: faults", |tally| {
            *tally = ONE;
            match database {
                Some(_) => team::run(&binary, team::ROUNDS, team::SEED),
                None => {
                    println!("skipped: there is no PostgreSQL");
                    Ok(())
                }
            }
        });
        peer_steps(&mut steps, &binary);
        explorer::steps(&mut steps, &binary, real_data.as_deref());
    }
    steps.finish()
}

/// `cargo xtask peers`: that part alone.
pub(crate) fn run_peers() -> anyhow::Result<ExitCode> {
    let mut steps = Steps::default();
    peer_steps(&mut steps, &shell::build_binary(Profile::Dev)?);
    Ok(steps.finish())
}

fn peer_steps(steps: &mut Steps, binary: &Path) {
    steps.step("peers: installing", |_| peers::install());
    for (name, check) in peers::CHECKS {
        steps.step(name, |tally| check(binary, tally));
    }
}
