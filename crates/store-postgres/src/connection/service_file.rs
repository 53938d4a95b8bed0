//! PostgreSQL's service file: parameters of a connection under a name.

use std::path::PathBuf;

use super::address::AddressError;

const WHAT: &str = "cannot use the service file";

/// The parameters of a service.
pub(super) fn parameters(
    service: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<(String, String)>, AddressError> {
    let in_home = || variable("HOME").map(|home| PathBuf::from(home).join(".pg_service.conf"));
    let file = variable("PGSERVICEFILE").map(PathBuf::from).or_else(in_home);
    let file = file.ok_or_else(|| AddressError::Parameter("there is no service file: set PGSERVICEFILE".to_owned()))?;
    let failed = |cause: String| AddressError::File { what: WHAT, file: file.clone(), cause };
    #[expect(clippy::disallowed_methods, reason = "the file is named by the user, for PostgreSQL's programs")]
    let text = std::fs::read_to_string(&file).map_err(|error| failed(error.to_string()))?;
    let section = format!("[{service}]");
    let mut lines = text.lines().map(str::trim).skip_while(|line| *line != section);
    if lines.next().is_none() {
        return Err(failed(format!("it has no service {service:?}")));
    }
    let own = lines.take_while(|line| !line.starts_with('[')).filter(|line| !line.starts_with('#'));
    let pairs = own.filter_map(|line| line.split_once('='));
    Ok(pairs.map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned())).collect())
}
