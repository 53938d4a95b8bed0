//! The address of a database: a URL, completed by a service file, the environment and a password file, as with PostgreSQL's own
//! programs. A password is in no message and in no `Debug` output.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use super::password_file;
use super::service_file;
use super::tls::{Roots, TlsMode};

/// How long one attempt to connect to one host may take.
pub(super) const CONNECT: Duration = Duration::from_secs(5);

/// How long a call waits for a database that cannot be reached: longer than a standby needs to take over.
const PATIENCE: Duration = Duration::from_secs(30);

/// After this time without an acknowledgement a connection counts as lost.
const UNACKNOWLEDGED: Duration = Duration::from_secs(20);

/// How long a connection is silent before the system checks whether the other side still exists.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// What the database does about a process that vanished or was suspended in a transaction: it ends the transaction, whose locks
/// would block every other writer of the graph. A parameter of the URL with another value counts instead.
const SESSION: &str = "-c idle_in_transaction_session_timeout=5s -c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 \
                       -c tcp_keepalives_count=3 -c tcp_user_timeout=20s";

/// The tables are in a schema of their own, beside whatever else the database holds.
const SCHEMA: &str = "-c search_path=quipu,public";

/// A transaction that waits for a lock gives up after this part of the patience, and is tried again: so that it ends even if its
/// process vanished meanwhile, and a lock is not reported as an outage.
const LOCK_WAITS: u32 = 6;

const SCHEMES: [&str; 2] = ["postgresql://", "postgres://"];

/// Parameters that the driver does not know or knows differently, with the environment's variable for each. The first source
/// that has one counts: the URL, the service file, the environment.
const OWN: [(&str, Option<&str>); 10] = [
    ("host", Some("PGHOST")),
    ("port", Some("PGPORT")),
    ("dbname", Some("PGDATABASE")),
    ("user", Some("PGUSER")),
    ("password", Some("PGPASSWORD")),
    ("passfile", Some("PGPASSFILE")),
    ("sslmode", Some("PGSSLMODE")),
    ("sslrootcert", Some("PGSSLROOTCERT")),
    ("service", Some("PGSERVICE")),
    ("target_session_attrs", None),
];

/// Where a database is and how to log in. Shows neither the password nor the parameters.
pub struct DatabaseAddress {
    /// One for each host, in the order of the URL.
    pub(super) hosts: Vec<Config>,
    pub(super) tls: TlsMode,
    pub(super) roots: Roots,
    pub(super) patience: Duration,
}

/// Why an address cannot be used. The address is not repeated: it may hold a password.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// It is no URL of a PostgreSQL database.
    #[error(
        "it has the form postgresql://USER@HOST/DATABASE; `/`, `@` and `?` in a password are written %2F, %40 and %3F"
    )]
    Form,
    /// The driver does not accept it.
    #[error("{0}")]
    Parameter(String),
    /// A file that it names cannot be used.
    #[error("{what} {file}: {cause}", file = file.display())]
    File {
        what: &'static str,
        file: PathBuf,
        /// Why.
        cause: String,
    },
}

impl DatabaseAddress {
    /// Reads a URL with one or several hosts. What it lacks comes from the service that it or `PGSERVICE` names, from the
    /// variables `PGHOST`, `PGPORT`, `PGDATABASE`, `PGUSER`, `PGPASSWORD`, `PGSSLMODE`, `PGSSLROOTCERT`, and from the password
    /// file (`passfile`, `PGPASSFILE`, `~/.pgpass`).
    pub fn parse(url: &str) -> Result<Self, AddressError> {
        Self::parse_with(url, &|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn parse_with(url: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, AddressError> {
        let mut parts = UrlParts::split(url)?;
        let service = parts.own("service").or_else(|| variable("PGSERVICE"));
        let service = service.map_or(Ok(Vec::new()), |name| service_file::parameters(&name, variable))?;
        for (name, from_environment) in OWN {
            let known = parts.own(name).or_else(|| {
                let of_service = service.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
                of_service.or_else(|| from_environment.and_then(variable))
            });
            parts.set(name, known);
        }
        let mut hosts = parts.configs()?;
        let is_local = hosts.iter().all(is_local);
        let tls = match parts.own("sslmode") {
            None if is_local => TlsMode::Prefer,
            None => TlsMode::VerifyFull,
            Some(word) => TlsMode::from_word(&word)
                .ok_or_else(|| AddressError::Parameter(format!("unknown sslmode; one of {}", TlsMode::words())))?,
        };
        let roots = parts.own("sslrootcert").map_or(Roots::System, |file| Roots::named(&file));
        let passfile = parts.own("passfile").map(PathBuf::from);
        for config in &mut hosts {
            if config.get_password().is_some() {
                // The URL's own counts.
            } else if let Some(password) = parts.own("password") {
                config.password(password);
            } else {
                password_file::complete(config, passfile.as_deref(), variable)?;
            }
            complete(config, tls);
        }
        Ok(Self { hosts, tls, roots, patience: PATIENCE })
    }

    /// Sets how long a call waits for a database that cannot be reached; 30 seconds unless set.
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The hosts with the parameters of every session.
    pub(super) fn sessions(&self) -> Vec<Config> {
        let lock_timeout = (self.patience / LOCK_WAITS).as_millis().max(1);
        let mut hosts = self.hosts.clone();
        for config in &mut hosts {
            let given = config.get_options().unwrap_or_default();
            config.options(format!("{SESSION} -c lock_timeout={lock_timeout}ms {given} {SCHEMA}"));
        }
        hosts
    }
}

impl fmt::Display for DatabaseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<String> = self.hosts.iter().map(place).collect();
        write!(f, "{}", hosts.join(","))?;
        match self.hosts.first().and_then(Config::get_dbname) {
            Some(name) => write!(f, "/{name}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for DatabaseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DatabaseAddress({self}, {:?})", self.tls)
    }
}

/// Sets the options of every connection.
fn complete(config: &mut Config, tls: TlsMode) {
    config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    config.ssl_mode(match tls {
        TlsMode::Disable => SslMode::Disable,
        TlsMode::Prefer => SslMode::Prefer,
        TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => SslMode::Require,
    });
    if config.get_hosts().iter().any(|host| matches!(host, Host::Unix(_))) {
        // A socket of this machine: PostgreSQL has no TLS there.
        config.ssl_mode(SslMode::Disable);
    }
    if config.get_application_name().is_none() {
        config.application_name("quipu");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(UNACKNOWLEDGED);
    }
    config.keepalives_idle(KEEPALIVE);
}

/// The host and port of a configuration of one host.
pub(super) fn place(config: &Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(folder)) => folder.display().to_string(),
        None => "no host".to_owned(),
    };
    match config.get_ports().first() {
        Some(port) => format!("{host}:{port}"),
        None => host,
    }
}

fn is_local(config: &Config) -> bool {
    config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => name == "localhost" || name.parse().is_ok_and(|address: IpAddr| address.is_loopback()),
        Host::Unix(_) => true,
    })
}

/// A URL taken apart.
struct UrlParts {
    /// Scheme, user and password, up to the `@`.
    login: String,
    /// From the `/` before the name of the database.
    path: String,
    hosts: Vec<String>,
    own: Vec<(&'static str, String)>,
    /// The parameters of the driver, as they were written.
    parameters: Vec<String>,
}

impl UrlParts {
    fn split(url: &str) -> Result<Self, AddressError> {
        let scheme = SCHEMES.into_iter().find(|scheme| url.starts_with(scheme)).ok_or(AddressError::Form)?;
        let rest = &url[scheme.len()..];
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if path.contains('@') {
            // The rest of a password with a `/` in it, which would be treated as the name of the database.
            return Err(AddressError::Form);
        }
        let (login, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
        let mut parts = Self {
            login: format!("{scheme}{login}"),
            path: path.to_owned(),
            hosts: hosts.split(',').filter(|host| !host.is_empty()).map(str::to_owned).collect(),
            own: Vec::new(),
            parameters: Vec::new(),
        };
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (key, value) = parameter.split_once('=').ok_or(AddressError::Form)?;
            match OWN.iter().find(|(name, _)| *name == key) {
                Some((name, _)) => parts.own.push((name, decode(value)?)),
                None => parts.parameters.push(parameter.to_owned()),
            }
        }
        Ok(parts)
    }

    fn own(&self, name: &str) -> Option<String> {
        self.own.iter().find(|(key, _)| *key == name).map(|(_, value)| value.clone())
    }

    fn set(&mut self, name: &'static str, value: Option<String>) {
        self.own.retain(|(key, _)| *key != name);
        self.own.extend(value.map(|value| (name, value)));
    }

    /// The configuration of each host. What the URL itself has is not replaced.
    fn configs(&self) -> Result<Vec<Config>, AddressError> {
        let parameters = self.parameters.join("&");
        let parse = |host: &str| -> Result<Config, AddressError> {
            let url = format!("{}{host}{}?{parameters}", self.login, self.path);
            // The message of the driver names the parameter, never its value.
            let mut config: Config = url.parse().map_err(|error| AddressError::Parameter(chain(&error)))?;
            if let (None, Some(user)) = (config.get_user(), self.own("user")) {
                config.user(user);
            }
            if let (None, Some(name)) = (config.get_dbname(), self.own("dbname")) {
                config.dbname(name);
            }
            Ok(config)
        };
        if !self.hosts.is_empty() {
            return self.hosts.iter().map(|host| parse(host)).collect();
        }
        let Some(hosts) = self.own("host") else { return Err(AddressError::Form) };
        let ports = self.own("port").unwrap_or_else(|| "5432".to_owned());
        let ports = ports.split(',').map(str::parse::<u16>).collect::<Result<Vec<_>, _>>();
        let ports = ports.map_err(|_| AddressError::Parameter("the port is not a number".to_owned()))?;
        let hosts: Vec<&str> = hosts.split(',').collect();
        let placed = hosts.iter().enumerate().map(|(place, host)| {
            let mut config = parse("")?;
            config.host(*host).port(ports.get(place).or(ports.last()).copied().unwrap_or(5432));
            Ok(config)
        });
        placed.collect()
    }
}

fn decode(text: &str) -> Result<String, AddressError> {
    let decoded = percent_encoding::percent_decode_str(text).decode_utf8();
    decoded.map(std::borrow::Cow::into_owned).map_err(|_| AddressError::Form)
}

/// An error and its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let mut texts: Vec<String> = causes.map(ToString::to_string).collect();
    texts.dedup();
    texts.join(": ")
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test makes the files that the user would have")]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn parse(url: &str, variables: &[(&str, &str)]) -> DatabaseAddress {
        try_parse(url, variables).unwrap()
    }

    fn try_parse(url: &str, variables: &[(&str, &str)]) -> Result<DatabaseAddress, AddressError> {
        let of = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        DatabaseAddress::parse_with(url, &of)
    }

    fn password(address: &DatabaseAddress) -> Option<String> {
        address.hosts[0].get_password().map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[test]
    fn hosts_of_a_url_are_tried_in_order() {
        let address = parse("postgresql://ada@one:5433,two/notes?application_name=x", &[]);
        assert_eq!(address.to_string(), "one:5433,two:5432/notes");
        assert_eq!(address.hosts[1].get_user(), Some("ada"));
        assert_eq!(address.hosts[1].get_application_name(), Some("x"));
        assert_eq!(address.hosts[1].get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
        let address = parse("postgresql:///?host=one,two&port=1,2&dbname=d", &[("PGUSER", "eve")]);
        assert_eq!(address.to_string(), "one:1,two:2/d");
        assert_eq!(address.hosts[0].get_user(), Some("eve"));
    }

    #[test]
    fn remote_hosts_are_verified_unless_the_url_says_otherwise() {
        let mode = |url: &str| parse(url, &[]).tls;
        assert_eq!(mode("postgresql://db.example.org/x"), TlsMode::VerifyFull);
        assert_eq!(mode("postgresql://127.0.0.1,db.example.org/x"), TlsMode::VerifyFull);
        assert_eq!(mode("postgresql://localhost,[::1]/x"), TlsMode::Prefer);
        assert_eq!(mode("postgresql://%2Frun%2Fpostgresql/x"), TlsMode::Prefer);
        assert_eq!(mode("postgresql://db.example.org/x?sslmode=disable"), TlsMode::Disable);
        let error = try_parse("postgresql://x/y?sslmode=allow", &[]).unwrap_err().to_string();
        assert!(error.contains("verify-full"), "{error}");
    }

    #[test]
    fn password_comes_from_the_url_or_the_environment_and_is_never_shown() {
        let address = parse("postgresql://ada:s%40crt@h/x", &[("PGPASSWORD", "other")]);
        assert_eq!(password(&address).as_deref(), Some("s@crt"));
        let address = parse("postgresql://ada@h/x", &[("PGPASSWORD", "s@crt")]);
        assert_eq!(password(&address).as_deref(), Some("s@crt"));
        for shown in [format!("{address:?}"), address.to_string(), format!("{:?}", address.hosts)] {
            assert!(!shown.contains("s@crt"), "{shown}");
        }
        for wrong in [
            "postgresql://a:hidden@h/x?nope=hidden",
            "mysql://a:hidden@h",
            "postgresql://a:hidden@h:hidden/x",
            "postgresql://a:1/hidden@h/x",
        ] {
            let error = try_parse(wrong, &[]).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hidden"), "{error:?}");
        }
    }

    #[test]
    fn service_and_password_files_complete_the_url() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let file = folder.path().join(name);
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
            file.to_str().unwrap().to_owned()
        };
        let services =
            put("services", "# teams\n[other]\nhost=nowhere\n[team]\nhost = db.lan\ndbname=notes\nuser=ada\n");
        let passwords =
            put("passwords", "# hosts\nelsewhere:*:*:*:no\ndb.lan:5432:notes:ada:a\\:b\\\\c\n*:*:*:*:last\n");
        let variables = [("PGSERVICEFILE", services.as_str()), ("PGPASSFILE", passwords.as_str())];
        let address = parse("postgresql:///?service=team", &variables);
        assert_eq!(address.to_string(), "db.lan:5432/notes");
        assert_eq!(password(&address).as_deref(), Some("a:b\\c"));
        assert_eq!(password(&parse("postgresql://eve@h/x", &variables)).as_deref(), Some("last"));
        assert!(try_parse("postgresql:///?service=nobody", &variables).is_err());
        std::fs::set_permissions(&passwords, std::fs::Permissions::from_mode(0o644)).unwrap();
        let error = try_parse("postgresql://eve@h/x", &variables).unwrap_err().to_string();
        assert!(error.contains("chmod 600"), "{error}");
    }
}
