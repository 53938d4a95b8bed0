//! What is true of everything that is printed.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use crate::sandbox::Sandbox;

#[test]
fn closed_output_pipe_is_no_error() {
    let vault = Sandbox::of("//- a.md\nx\n");
    let links: String = (0..20_000).map(|number| format!("[[missing {number}]]\n")).collect();
    vault.write("links.md", links);
    // Without an index a slow machine gets a hint about `quipu index`.
    vault.run(&["index", "--no-embed"]).expect(0);
    let mut child = vault.command(&["doctor", "--all"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert_eq!(first, "Almost no link resolves (1)\n");
    let status = child.wait().unwrap();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!((status.code(), stderr.as_str()), (Some(0), ""));
}

#[test]
#[cfg(target_os = "linux")]
fn output_that_cannot_be_written_is_an_error() {
    let vault = Sandbox::example();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ran = vault.ran(vault.command(&["status"]).stdout(full).output().unwrap()).expect(1);
    assert!(ran.stderr.starts_with("error: cannot write the output: "), "{ran}");
}

#[test]
fn escape_sequences_in_notes_are_neutralized() {
    let vault = Sandbox::of("//- a.md\n---\ntitle: \"plain\"\n---\n");
    vault.write("b.md", "## Head\u{9b}31m \x1b]0;owned\x07\n\nneedle \x1b[2J and \u{85}[[to\x1bnowhere]]\n");
    for arguments in [&["search", "needle"][..], &["search", "needle", "--json"], &["doctor"], &["doctor", "--json"]] {
        let ran = vault.run(arguments).expect(0);
        assert!(!ran.stdout.chars().any(|c| c.is_control() && c != '\n'), "{arguments:?}: {:?}", ran.stdout);
    }
    let json = vault.run(&["search", "needle", "--json"]).expect(0).json();
    assert!(json["hits"][0]["snippet"].as_str().unwrap().contains("\x1b[2J"), "JSON keeps the text: {json}");
}

#[test]
fn redirected_output_has_no_colours() {
    let vault = Sandbox::example();
    for arguments in [&["--help"][..], &["status"], &["doctor"], &["search", "ice"], &["serach"]] {
        let ran = vault.run(arguments);
        assert!(!ran.stdout.contains('\x1b') && !ran.stderr.contains('\x1b'), "{ran}");
    }
}

#[test]
fn escape_sequences_in_tool_errors_are_neutralized() {
    let vault = Sandbox::of("//- a.md\nx\n");
    let ran = vault.run(&["call", "get_document", "{\"path\": \"\\u001b]0;owned\\u0007\\u009b2J.md\"}"]).expect(1);
    let is_harmless = |text: &str| !text.chars().any(|c| c.is_control() && c != '\n');
    assert!(is_harmless(&ran.stdout) && is_harmless(&ran.stderr), "{:?} {:?}", ran.stdout, ran.stderr);
    vault.run(&["call", "create_entity", "{\"name\": \"\\u001b[31m\\u009b2J\", \"entity_type\": \"Person\"}"]);
    for arguments in [&["audit"][..], &["audit", "--json"], &["export"], &["status"]] {
        let ran = vault.run(arguments);
        assert!(is_harmless(&ran.stdout) && is_harmless(&ran.stderr), "{arguments:?}: {:?}", ran.stdout);
    }
}
