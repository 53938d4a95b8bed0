//! The files of `examples/team`: they are YAML, and every command of Quipu in them exists with its options.

use std::path::Path;

use saphyr_parser::Parser;

use crate::sandbox::Sandbox;

/// The commands in a file, as words after the program: in a shell's line, or in a list of arguments.
fn commands(text: &str) -> Vec<Vec<String>> {
    let words = |command: &str| command.split_whitespace().map(|word| word.trim_matches('"').to_owned()).collect();
    let mut found: Vec<Vec<String>> = Vec::new();
    for line in text.lines() {
        let in_shell = line.split(['|', '&', '(', ')', '`', '>', '"']).map(str::trim);
        found.extend(
            in_shell
                .filter_map(|part| part.rsplit_once("quipu ").filter(|(before, _)| starts(before)))
                .map(|(_, command)| words(command)),
        );
        if let Some((_, command)) = line.split_once("run --rm admin ") {
            found.push(words(command));
        }
        if let Some((_, list)) = line.split_once(": [serve,").filter(|_| !line.contains("entrypoint")) {
            found.push(words(&format!("serve {}", list.trim_end_matches(']').replace(',', " "))));
        }
    }
    found
}

/// Whether a command may follow: at the start, after variables, or where a comment or a list begins.
fn starts(before: &str) -> bool {
    let is_variable = |word: &str| word.contains('=') && !word.starts_with('-');
    before.split_whitespace().all(|word| is_variable(word) || matches!(word, "#" | "-"))
}

#[test]
fn examples_for_a_team_are_yaml_with_commands_that_exist() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/team");
    let sandbox = Sandbox::of("//- a.md\nx\n");
    let mut all = Vec::new();
    for file in std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()) {
        let text = std::fs::read_to_string(&file).unwrap();
        if file.extension().is_some_and(|extension| extension == "yaml") {
            let failed = Parser::new_from_str(&text).find_map(Result::err);
            assert!(failed.is_none(), "{}: {failed:?}", file.display());
        }
        all.extend(commands(&text));
    }
    let has = |start: &str| all.iter().any(|command| command.join(" ").starts_with(start));
    for start in ["db roles", "db init", "db migrate", "graph list", "graph create team", "token new", "serve --http"] {
        assert!(has(start), "{start} is not found in {all:?}");
    }
    // An unknown command or option is refused before the help is shown.
    let help = |command: &[String]| {
        let arguments: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
        sandbox.run(&arguments).code
    };
    // `quipu COMMAND` is a placeholder.
    for command in all.iter().filter(|command| command[0].starts_with(char::is_lowercase)) {
        assert_eq!(help(command), Some(0), "quipu {}", command.join(" "));
    }
    assert_eq!(help(&["serve".to_owned(), "--no-such-option".to_owned()]), Some(2));
}
