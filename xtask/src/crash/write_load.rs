//! Many concurrent writes over one connection, until the server is killed.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use quipu_testkit::client::{Client, Wire};
use quipu_testkit::generate::Random;

use super::model::{Model, Target};

pub(super) const IN_PROGRESS: usize = 8;
const LONGEST: Duration = Duration::from_millis(400);

/// One kill in so many may come at any time after the start of the process, when it recovers from the last kill; the others
/// come during the writes.
const EARLY: usize = 4;

/// How long a start may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a server acknowledged.
#[derive(Debug, Default)]
pub(super) struct Acknowledged {
    pub(super) writes: u64,
    /// Writes that are redactions.
    pub(super) redactions: u64,
}

/// Writes until the server is dead; returns what it acknowledged.
pub(super) fn run(binary: &Path, vault: &Path, model: &mut Model, random: &mut Random) -> anyhow::Result<Acknowledged> {
    let mut server = super::server(binary, vault);
    server.stderr(std::process::Stdio::null());
    let (mut child, mut wire) = Client::start(&mut server).context("the server did not start")?.into_parts();
    let moment = Duration::from_micros(random.below(LONGEST.as_micros() as usize) as u64);
    let is_early = random.below(EARLY) == 0;
    let (started, began) = channel();
    let killer = thread::spawn(move || {
        if !is_early {
            // A server that never answers is killed too; the writer reports why.
            let _ = began.recv_timeout(PATIENCE);
        }
        thread::sleep(moment);
        // `kill` sends SIGKILL, which a process cannot handle.
        child.kill().and_then(|()| child.wait())
    });
    let mut acknowledged = Acknowledged::default();
    let outcome = write_on(&mut wire, model, random, &mut acknowledged, &started);
    killer.join().expect("the killer does not panic").context("the server could not be killed")?;
    match outcome {
        Err(error) if is_hung_up(&error) => Ok(acknowledged),
        Err(error) => Err(error),
        Ok(never) => match never {},
    }
}

fn write_on(
    wire: &mut Wire,
    model: &mut Model,
    random: &mut Random,
    acknowledged: &mut Acknowledged,
    started: &Sender<()>,
) -> anyhow::Result<std::convert::Infallible> {
    wire.shake_hands()?;
    let mut sent: HashMap<u64, (Target, &str)> = HashMap::new();
    loop {
        while sent.len() < IN_PROGRESS {
            let write = model.next_write(random);
            sent.insert(wire.send_call(write.tool, &write.arguments)?, (write.target, write.tool));
        }
        let answer = wire.receive()?;
        let (target, tool) = sent.remove(&answer.id).context("a response to an unknown request")?;
        if answer.value().is_none() {
            bail!("{tool} failed: {}", answer.message);
        }
        model.acknowledge(&target);
        acknowledged.writes += 1;
        acknowledged.redactions += u64::from(tool == "redact");
        // The killing thread may have ended already.
        let _ = started.send(());
    }
}

pub(super) fn is_hung_up(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    matches!(kind, Some(ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset))
}
