//! PostgreSQL's password file: a line `HOST:PORT:DATABASE:USER:PASSWORD` for each database, the first that fits counts.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tokio_postgres::Config;
use tokio_postgres::config::Host;

use super::address::AddressError;

const WHAT: &str = "cannot use the password file";

/// Sets the password of a configuration of one host, if the file has one. A file that was not named may be missing.
pub(super) fn complete(
    config: &mut Config,
    named: Option<&Path>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<(), AddressError> {
    let file = match named {
        Some(file) => file.to_owned(),
        None => match variable("HOME").map(|home| PathBuf::from(home).join(".pgpass")) {
            Some(file) if file.is_file() => file,
            _ => return Ok(()),
        },
    };
    let failed = |cause: String| AddressError::File { what: WHAT, file: file.clone(), cause };
    let metadata = file.metadata().map_err(|error| failed(error.to_string()))?;
    if metadata.permissions().mode() & 0o077 != 0 {
        return Err(failed("other users can read it; `chmod 600` it".to_owned()));
    }
    #[expect(clippy::disallowed_methods, reason = "the file is named by the user, for PostgreSQL's programs")]
    let text = std::fs::read_to_string(&file).map_err(|error| failed(error.to_string()))?;
    if let Some(password) = text.lines().find_map(|line| password_for(config, line)) {
        config.password(password);
    }
    Ok(())
}

fn password_for(config: &Config, line: &str) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let [host, port, database, user, password] = fields(line).try_into().ok()?;
    let host_fits = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => host == *name,
        Some(Host::Unix(folder)) => host == "localhost" || Path::new(&host) == folder,
        None => false,
    };
    let fits = |pattern: &str, value: &str| pattern == "*" || pattern == value;
    let own_port = config.get_ports().first().copied().unwrap_or(5432).to_string();
    let user_name = config.get_user().unwrap_or_default();
    let database_name = config.get_dbname().unwrap_or(user_name);
    let all_fit = (host == "*" || host_fits)
        && fits(&port, &own_port)
        && fits(&database, database_name)
        && fits(&user, user_name);
    all_fit.then_some(password)
}

/// The parts between colons. A backslash escapes the character after it.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let last = fields.last_mut().expect("it starts with one");
        match character {
            '\\' => last.extend(characters.next()),
            ':' => fields.push(String::new()),
            other => last.push(other),
        }
    }
    fields
}
