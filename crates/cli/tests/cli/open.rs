//! `quipu open`: what other accounts of the machine can see of it, and what stays behind.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::sandbox::Sandbox;

/// A program in the place of `xdg-open`, which keeps its arguments and the page that they name.
fn browser(folder: &Path) -> PathBuf {
    let program = folder.join(if cfg!(target_os = "macos") { "open" } else { "xdg-open" });
    let script = "#!/bin/sh\nPATH=/usr/bin:/bin\ncp \"$1\" page.html\necho \"$@\" > started\nmv started arguments\n";
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o700)).unwrap();
    program
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Ends with the test.
struct Opened(Child);

impl Drop for Opened {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the command; gives the address that it printed.
fn open(vault: &Sandbox, bin: &Path) -> (Opened, String) {
    let mut command = vault.command(&["open"]);
    let mut child = Opened(command.env("PATH", bin).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let mut url = String::new();
    BufReader::new(child.0.stdout.take().unwrap()).read_line(&mut url).unwrap();
    (child, url.trim().to_owned())
}

/// Every account can read the arguments of a process.
#[test]
fn secret_is_passed_to_the_browser_in_a_private_file_deleted_after_use() {
    let (vault, bin) = (Sandbox::of("//- a.md\nx\n"), tempfile::tempdir().unwrap());
    browser(bin.path());
    let (_child, url) = open(&vault, bin.path());
    let (address, secret) = url.strip_prefix("http://").unwrap().split_once("/#k=").unwrap();
    wait_for("the browser is started", || vault.root().join("arguments").exists());
    let arguments = vault.read("arguments");
    assert!(!arguments.contains(secret) && !arguments.contains("k="), "{arguments}");
    let file = PathBuf::from(arguments.trim());
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700), "{}", file.display());
    let page = vault.read("page.html");
    assert!(page.contains(&format!("<meta http-equiv=\"refresh\" content=\"0; url={url}\">")), "{page}");

    let mut stream = TcpStream::connect(address).unwrap();
    let body = format!("{{\"secret\": \"{secret}\"}}");
    write!(
        stream,
        "POST /api/session HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("\"token\""), "{answer}");
    wait_for("the page is deleted once its secret is used", || !file.exists());
}

#[test]
fn page_with_an_unused_secret_is_deleted_at_exit() {
    let (vault, bin) = (Sandbox::of("//- a.md\nx\n"), tempfile::tempdir().unwrap());
    browser(bin.path());
    let (mut child, _) = open(&vault, bin.path());
    wait_for("the browser is started", || vault.root().join("arguments").exists());
    let file = PathBuf::from(vault.read("arguments").trim());
    assert!(file.exists());
    assert!(Command::new("kill").args(["-s", "INT", &child.0.id().to_string()]).status().unwrap().success());
    child.0.wait().unwrap();
    assert!(!file.exists());
}

/// The first visit of a large vault does not wait for the layout.
#[test]
fn graph_is_laid_out_before_a_page_asks_for_it() {
    let (vault, bin) = (Sandbox::of("//- a.md\n[[b]]\n//- b.md\n"), tempfile::tempdir().unwrap());
    browser(bin.path());
    let (_child, _) = open(&vault, bin.path());
    wait_for("the positions are kept", || vault.root().join(".quipu/index/layout").exists());
}
