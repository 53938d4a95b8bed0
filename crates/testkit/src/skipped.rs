//! Says that a test was skipped: in its output, which the test program shows only of failed tests, and in the file that the
//! test command summarises.

use std::fs::OpenOptions;
use std::io::Write;

/// Names the file.
const FILE: &str = "QUIPU_TEST_SKIPPED";

/// Says why a test, or a part of it, is skipped on this machine.
#[expect(clippy::print_stdout, clippy::disallowed_methods, reason = "this is for the reader of a test's output")]
pub fn skip(why: &str) {
    println!("skipped: {why}");
    let Some(file) = std::env::var_os(FILE) else { return };
    let thread = std::thread::current();
    // The thread of a test has its name; a helper's thread has none.
    let test = thread.name().unwrap_or("a test");
    let line = format!("{test}\t{why}\n");
    // In one piece: several test programs write it.
    let written = OpenOptions::new().append(true).create(true).open(&file);
    let written = written.and_then(|mut file| file.write_all(line.as_bytes()));
    written.unwrap_or_else(|error| panic!("cannot write {}: {error}", file.display()));
}
