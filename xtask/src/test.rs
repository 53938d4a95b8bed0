//! `cargo xtask test`: everything that can break, in one command, on a machine that has only cargo.
//!
//! Cheap steps come first. The binary is built once, in the profile the tests use: its dependencies are optimised there, and
//! a second profile would double the time on a small machine. A step that waits for servers of its own is a process of its own,
//! which is killed when its time is over.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;

use crate::shell::{self, Profile, cargo};
use crate::steps::{ONE, Steps, Tally};
use crate::{cargo_test, data, deny, fuzz, instructions, peers, postgres};

/// The tests, which are built first.
const TESTS_LIMIT: Duration = Duration::from_secs(30 * 60);

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
    steps.step_within(TESTS_LIMIT, "tests", |tally| {
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
                let mut seeds = cargo(&["test", "--quiet", "--workspace", "--locked"]);
                seeds.env("QUIPU_TEST_TEAM", "1").env("QUIPU_POSTGRES", folder);
                seeds
            };
            cargo_test::run(seeds, &["seed_"], tally)
        });
    }
    steps.step("random renames", |tally| {
        *tally = ONE;
        shell::run(&mut shell::xtask(&["fuzz", "renames", "--rounds", &fuzz::renames::SHORT.to_string()])?)
    });
    if !quick {
        steps.step("licences, bans and sources", |tally| {
            *tally = ONE;
            deny::run()
        });
        steps.step("crash rounds", |tally| {
            *tally = ONE;
            shell::run(&mut shell::xtask(&["crash"])?)
        });
        steps.step("random operations on files", |tally| {
            *tally = ONE;
            shell::run(&mut shell::xtask(&["fuzz", "files", "--rounds", &fuzz::files::SHORT.to_string()])?)
        });
        steps.step("owners killed", |tally| {
            *tally = ONE;
            shell::run(&mut shell::xtask(&["share"])?)
        });
        steps.step("team: faults", |tally| {
            *tally = ONE;
            match database {
                Some(_) => shell::run(&mut shell::xtask(&["team"])?),
                None => {
                    println!("skipped: there is no PostgreSQL");
                    Ok(())
                }
            }
        });
        steps.step("peers", |tally| steps_of("peers", tally));
        steps.step("explorer", |tally| steps_of("explorer", tally));
    }
    // The last steps build other features and targets, over what the steps before them use.
    if let Some(folder) = database.as_deref().and_then(postgres::older) {
        steps.step("store on an older PostgreSQL", |tally| {
            let tests = || {
                let mut tests = cargo(&["test", "--quiet", "--workspace", "--locked"]);
                // Of the whole workspace, for the same reason as below.
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
    if !quick {
        steps.step("instructions of the hot paths", |tally| instructions::run(false, tally));
    }
    steps.finish()
}

/// `cargo xtask peers`: that part alone.
pub(crate) fn run_peers() -> anyhow::Result<ExitCode> {
    let mut steps = Steps::default();
    let binary = shell::build_binary(Profile::Dev)?;
    steps.step("peers: installing", |_| peers::install());
    for (name, check) in peers::CHECKS {
        steps.step(name, |tally| check(&binary, tally));
    }
    Ok(steps.finish())
}

/// Runs the steps of another command, whose last line has the totals.
fn steps_of(command: &str, tally: &mut Tally) -> anyhow::Result<()> {
    shell::run_watched(&mut shell::xtask(&[command])?, |line| {
        let mut found = Tally::default();
        found.read(line);
        if found.passed + found.failed > 0 {
            *tally = found;
        }
    })
}
