//! Starts a server as a client does and lists its tools, so that a mistake in the settings shows at once.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Launch;

/// A server answers while it reads the vault, but a loaded machine takes a few seconds to start one.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// How long a server may take to exit after its client disconnects.
const END: Duration = Duration::from_secs(5);

/// The id of the request for the tools.
const LIST: u64 = 2;

/// Starts a server in this folder and returns the number of its tools, or why it has none.
pub(crate) fn count_tools(launch: &Launch, folder: &Path) -> Result<usize, String> {
    let mut command = Command::new(&launch.program);
    command.args(&launch.arguments).current_dir(folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut server = command.spawn().map_err(|error| format!("cannot start {}: {error}", launch.program))?;
    let (keep, said) = channel();
    let stderr = server.stderr.take();
    // Read on another thread: a full pipe would block the server.
    std::thread::spawn(move || {
        let mut text = String::new();
        if let Some(mut stderr) = stderr {
            // After an error, the text read so far is still useful.
            let _ = stderr.read_to_string(&mut text);
        }
        let _ = keep.send(text);
    });
    let listed = ask(&mut server);
    end(&mut server);
    // A child process of the server may keep the pipe open.
    let said = said.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
    listed.map_err(|why| match said.lines().last() {
        Some(line) => format!("{why}; its last message: {line}"),
        None => why,
    })
}

fn ask(server: &mut Child) -> Result<usize, String> {
    let request = |id: u64, method: &str, params: Value| {
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
    };
    let client = json!({ "name": "quipu-install", "version": env!("CARGO_PKG_VERSION") });
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let lines = [
        request(1, "initialize", hello),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string(),
        request(LIST, "tools/list", json!({})),
    ];
    let ended = || "the server exited before it answered".to_owned();
    let mut stdin = server.stdin.take().ok_or_else(ended)?;
    stdin.write_all(format!("{}\n", lines.join("\n")).as_bytes()).map_err(|_| ended())?;
    let stdout = server.stdout.take().ok_or_else(ended)?;
    let (found, answers) = channel();
    // The thread ends with the server.
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let answer: Value = serde_json::from_str(&line).unwrap_or_default();
            if answer["id"] == LIST && found.send(answer).is_err() {
                return;
            }
        }
    });
    let answer = answers.recv_timeout(TIME_LIMIT).map_err(|error| match error {
        RecvTimeoutError::Timeout => format!("the server did not answer within {} seconds", TIME_LIMIT.as_secs()),
        RecvTimeoutError::Disconnected => ended(),
    })?;
    // Closing stdin disconnects, so not before the response has arrived.
    drop(stdin);
    match answer["result"]["tools"].as_array() {
        Some(tools) => Ok(tools.len()),
        None => Err(format!("the server refused to list its tools: {}", answer["error"]["message"])),
    }
}

/// Waits until the server exits, or kills it.
fn end(server: &mut Child) {
    let until = Instant::now() + END;
    while matches!(server.try_wait(), Ok(None)) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    // No effect on a process that has exited.
    let _ = server.kill();
    let _ = server.wait();
}
