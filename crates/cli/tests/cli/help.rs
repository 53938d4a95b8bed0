//! Help and usage: every command explains itself.

use crate::sandbox::{Sandbox, check};

const COMMANDS: [&str; 31] = [
    "serve",
    "open",
    "watch",
    "picture",
    "index",
    "status",
    "search",
    "query",
    "call",
    "stale",
    "history",
    "diff",
    "revert",
    "restore",
    "audit",
    "undo",
    "merge",
    "backup",
    "verify",
    "import",
    "export",
    "doctor",
    "install",
    "token",
    "db",
    "graph",
    "push",
    "pull",
    "mirror",
    "trust",
    "completions",
];

#[test]
fn help_teaches_by_example() {
    let vault = Sandbox::example();
    check("help", &vault.run(&["--help"]).expect(0));
    for command in COMMANDS {
        let ran = vault.run(&[command, "--help"]).expect(0);
        assert!(ran.stdout.contains(&format!("Examples:\n  quipu {command}")), "{ran}");
        check(&format!("help_{command}"), &ran);
    }
}

#[test]
fn the_program_alone_prints_its_help() {
    let vault = Sandbox::example();
    let ran = vault.run(&[]).expect(2);
    assert!(ran.stderr.contains("Usage: quipu") && ran.stderr.contains("Exit codes:"), "{ran}");
}

#[test]
fn mistyped_command_gets_a_suggestion() {
    let vault = Sandbox::example();
    check("mistyped_command", &vault.run(&["serach", "ice"]).expect(2));
    check("mistyped_flag", &vault.run(&["index", "--rebiuld"]).expect(2));
    check("mistyped_toolset", &vault.run(&["serve", "--toolsets", "notes,dogs"]).expect(2));
}

#[test]
fn completions_contain_every_command() {
    let vault = Sandbox::example();
    for shell in ["bash", "zsh", "fish"] {
        let script = vault.run(&["completions", shell]).expect(0).stdout;
        for command in COMMANDS {
            assert!(script.contains(command), "{command} for {shell}");
        }
    }
}
