//! Runs a command that needs the index in the process that owns it.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::new_key;
use super::owner_client::{OwnerClient, OwnerConnectError, OwnerLost};
use super::owner_lock::{LockAttempt, OwnerInfo, OwnerLock, OwnerMode};
use super::wire::{ChangeNotice, OwnerRequest, OwnerResponse, receive};
use crate::own_files::own_folder;

/// How long a command waits for an owner that starts or exits.
const WAIT_TIMEOUT: Duration = Duration::from_secs(5);
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// How long a command that does not wait retries to reach the owner.
const NO_WAIT_TIMEOUT: Duration = Duration::from_secs(1);

/// The outcome of a command.
pub enum CommandOutcome {
    /// The owner ran it. This is its reply.
    Reply(Value),
    /// The owner could not run it.
    Failed(String),
    /// Run it in this process. While the lock is held, if there is one, no other process opens the index.
    RunHere(Option<OwnerLock>),
    /// Another process has the index and does not answer: only for a command that does not wait.
    Busy(OwnerInfo),
}

/// Whether a command waits for another command that holds the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitPolicy {
    UntilFree,
    Never,
}

/// A command for the owner of the index.
pub struct OwnerCommand {
    /// The command's name on the command line.
    pub name: &'static str,
    pub command: Value,
    pub retry: Retry,
    pub wait: WaitPolicy,
}

/// Whether a command may be sent to a second owner when the first exited without a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// It only reads, or has a key, so that it takes effect once.
    Yes,
    No,
}

/// Runs a command in the process that owns the vault, if there is one. Creates no `.quipu/` folder.
pub fn run_in_owner(root: &Path, command: OwnerCommand) -> CommandOutcome {
    let OwnerCommand { name, command, retry, wait } = command;
    let timeout = match wait {
        WaitPolicy::UntilFree => WAIT_TIMEOUT,
        WaitPolicy::Never => NO_WAIT_TIMEOUT,
    };
    let own_folder = own_folder(root);
    if !own_folder.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return CommandOutcome::RunHere(None);
    }
    let request = OwnerRequest::Command { command };
    let mut until = Instant::now() + timeout;
    loop {
        let owner = match OwnerLock::acquire(&own_folder, OwnerMode::Temporary, name) {
            LockAttempt::Acquired(lock) => return CommandOutcome::RunHere(Some(lock)),
            LockAttempt::Unavailable(_) => return CommandOutcome::RunHere(None),
            LockAttempt::HeldByOther(info) => info,
        };
        if wait == WaitPolicy::Never && owner.is_stopped() {
            return CommandOutcome::Busy(owner);
        }
        match OwnerClient::open(&own_folder, &new_key().to_string(), false) {
            Ok((owner, changes)) => match ask(owner, changes, &request) {
                Ok(outcome) => return outcome,
                Err(OwnerLost(error)) if retry == Retry::Yes => {
                    tracing::debug!(%error, "the owner process ended before it answered");
                    until = Instant::now() + timeout;
                }
                Err(_) => {
                    return CommandOutcome::Failed(
                        "the owner process ended before it answered; check whether the command took \
                         effect, and run it again if not"
                            .to_owned(),
                    );
                }
            },
            Err(OwnerConnectError::OtherVersion(welcome)) => {
                return CommandOutcome::Failed(welcome.other_version_message());
            }
            Err(OwnerConnectError::Unreachable(_)) => {}
        }
        let is_temporary = owner.mode == OwnerMode::Temporary;
        if wait == WaitPolicy::Never && (is_temporary || Instant::now() > until) {
            return CommandOutcome::Busy(owner);
        }
        if owner.mode == OwnerMode::Exclusive || (!is_temporary && Instant::now() > until) {
            tracing::debug!(?owner, "cannot connect to the owner process");
            return CommandOutcome::RunHere(None);
        }
        std::thread::sleep(RETRY_INTERVAL);
    }
}

/// Asks the owner and waits while it sends heartbeats: a command may take any time.
fn ask(owner: OwnerClient, mut changes: UnixStream, request: &OwnerRequest<'_>) -> Result<CommandOutcome, OwnerLost> {
    let owner = Arc::new(owner);
    let closing = owner.clone();
    std::thread::Builder::new().name("owner-heartbeat".into()).spawn(move || {
        while let Ok(Some(_)) = receive::<ChangeNotice>(&mut changes) {}
        closing.close();
    })?;
    match owner.ask_without_timeout(request)? {
        OwnerResponse::Command(reply) => Ok(CommandOutcome::Reply(reply)),
        OwnerResponse::Failed(why) => Ok(CommandOutcome::Failed(why)),
        other => {
            tracing::error!(?other, "the owner process sent an unexpected response");
            Ok(CommandOutcome::Failed(
                "the owner process sent an unexpected response; use the same version of quipu for all \
                 clients of this vault"
                    .to_owned(),
            ))
        }
    }
}
