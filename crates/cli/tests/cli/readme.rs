//! The example session at the top of README.md, run as a reader would.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::sandbox::Sandbox;

#[test]
fn readme_example_shows_the_real_output() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    let (_, session) = readme.split_once("```console\n").expect("the README has an example");
    let (session, _) = session.split_once("```").expect("the example ends");
    let vault = Sandbox::example();
    let mut commands = 0;
    for step in session.split("$ ").skip(1) {
        let (command, expected) = step.split_once('\n').expect("a command ends with its line");
        let Some(arguments) = command.strip_prefix("quipu ") else {
            assert_eq!(command, "cd examples/vault");
            continue;
        };
        // Through a shell, since the example has quotes and a redirection.
        let line = format!("'{}' {arguments}", env!("CARGO_BIN_EXE_quipu"));
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).current_dir(vault.root()).stdin(Stdio::null());
        shell.env_clear().env("HOME", vault.root().parent().unwrap());
        let ran = vault.ran(shell.output().unwrap()).expect(0);
        // A terminal shows warnings too. They come before the answer. Progress appears only on a busy machine.
        let warnings = ran.stderr.lines().filter(|line| !line.starts_with("embedding: "));
        let warnings: String = warnings.map(|line| format!("{line}\n")).collect();
        let shown = format!("{warnings}{}", ran.stdout);
        assert_eq!(comparable(&shown), comparable(expected), "{command}\n{ran}");
        commands += 1;
    }
    assert!(commands >= 4, "the example has {commands} commands");
}

/// Without times and durations, which differ in each run.
fn comparable(text: &str) -> String {
    let is_time = |word: &str| word.ends_with('Z') && word.starts_with("20");
    let mut words = text.trim().split(' ').map(str::to_owned).collect::<Vec<_>>();
    words.iter_mut().filter(|word| is_time(word)).for_each(|word| *word = "[TIME]".to_owned());
    match words.as_slice() {
        [before @ .., _, unit] if unit == "ms" || unit == "s" => before.join(" "),
        words => words.join(" "),
    }
}
