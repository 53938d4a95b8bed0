//! `quipu watch`: the live trail in the terminal.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::sandbox::Sandbox;

/// A watch whose lines are read by a thread, so that a missing line fails instead of waiting for ever.
struct Watching {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Watching {
    fn start(vault: &Sandbox, arguments: &[&str]) -> Self {
        let mut command = vault.command(&[&["watch"], arguments].concat());
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        // It says that it watches before it does; it owns the vault by then.
        let mut said = [0; 8];
        stderr.read_exact(&mut said).unwrap();
        assert_eq!(&said, b"watching");
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            BufReader::new(stdout).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        thread::sleep(Duration::from_millis(500));
        Self { child, lines }
    }

    /// The next line that has some text.
    fn line_with(&self, text: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(Duration::from_secs(30));
            let line = line.unwrap_or_else(|_| panic!("no line with {text}"));
            if line.contains(text) {
                return line;
            }
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _already_ended = self.child.kill();
        let _already_ended = self.child.wait();
    }
}

#[test]
fn calls_and_changes_are_printed_as_they_happen() {
    let vault = Sandbox::of("//- a.md\nOne.\n");
    let watching = Watching::start(&vault, &[]);
    vault.run(&["call", "get_node", r#"{"id": "a.md"}"#]).expect(0);
    let line = watching.line_with("get_node");
    assert!(line.contains("a.md") && line.ends_with(" ms"), "{line}");
    vault.write("b.md", "Two.\n");
    let line = watching.line_with("b.md");
    assert!(line.contains("file") && line.contains("changed"), "{line}");
}

#[test]
fn only_writes_as_json() {
    let vault = Sandbox::of("//- a.md\nOne.\n");
    let watching = Watching::start(&vault, &["--writes", "--json"]);
    vault.run(&["call", "get_node", r#"{"id": "a.md"}"#]).expect(0);
    vault.run(&["call", "create_entity", r#"{"name": "Ada", "entity_type": "User"}"#]).expect(0);
    vault.run(&["call", "create_entity", r#"{"name": "Boat", "entity_type": "Thing"}"#]).expect(0);
    let related = r#"{"from_entity_id": 1, "to_entity_id": 2, "relation_type": "owns"}"#;
    vault.run(&["call", "create_relation", related]).expect(0);
    let line = watching.line_with("\"memory\"");
    let trace: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&trace["text"], &trace["writes"]), (&"+ Ada (User)".into(), &true.into()), "reads are left out");
    assert!(watching.line_with("owns").contains("Ada owns Boat"), "relations are shown by name");
}
