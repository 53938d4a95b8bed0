//! `quipu token`: creates, lists and revokes tokens for clients over HTTP.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use jiff::{SignedDuration, Timestamp};
use quipu_core::ports::{Clock, SystemClock};
use quipu_server::own_files::own_folder;
use quipu_server::served_vault::VaultSource;
use quipu_server::tokens::{Token, TokenFile, TokenScope};
use serde_json::{Value, json};

use super::open_vault::VaultLocation;
use super::output::{Line, Output};
use super::{Failure, Outcome, Shared, database, database_token};

/// Create, list and revoke tokens for clients over HTTP.
///
/// A token is shown once, when it is created; only its hash is stored. Running servers accept a new token at once and
/// reject a revoked one from the next request; tokens of a database, within two seconds.
#[derive(Debug, Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "\
Examples:
  quipu token new --name laptop                          create a token for reading and writing
  quipu token new --name ci --scope read --expires 30d   create a token for reading, for a month
  quipu token list
  quipu token revoke laptop
  quipu token new --name ci --graph team                 create a token for one graph
  quipu token list --database postgresql://quipu_admin@db/quipu

A client sends the token with each request: Authorization: Bearer quipu_…

JSON fields:
  {id, name, scope, created, expires, expired}; `new` adds token, and tokens of a database have
  graphs. `list` prints a list, and adds changed: true to a token that servers reject because
  its line was edited or signed with another key"
)]
pub(crate) struct TokenCommand {
    #[command(subcommand)]
    verb: TokenAction,
    /// Use the tokens in this PostgreSQL database instead of those of a folder.
    #[arg(long, value_name = "URL", global = true)]
    database: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(super) enum TokenAction {
    /// Create a token and show it once.
    New {
        /// Name the token, here and in memory's log.
        #[arg(long)]
        name: String,
        /// Allow reading tools only, all tools, or all tools and /metrics.
        #[arg(long, default_value = "write", value_parser = scope_parser())]
        scope: TokenScope,
        /// Expire after 90s, 12h, 90d, 4w, or never.
        #[arg(long, value_name = "TIME", default_value = "90d", value_parser = lifetime)]
        expires: Lifetime,
        /// Allow this graph of the database (repeatable); without --database, QUIPU_DATABASE_URL is used.
        #[arg(long = "graph", value_name = "NAME")]
        graphs: Vec<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// List tokens (secrets are never shown).
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token.
    Revoke {
        /// Name or id of the token.
        #[arg(value_name = "TOKEN")]
        which: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// Shown for a token that servers reject.
const CHANGED: &str = ", rejected: its line in .quipu/tokens.toml was edited or signed with another key; revoke it";

/// How long a token is valid; `None` for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lifetime(pub(super) Option<SignedDuration>);

fn scope_parser() -> impl TypedValueParser<Value = TokenScope> {
    PossibleValuesParser::new(TokenScope::ALL.map(TokenScope::name))
        .map(|name| TokenScope::from_name(&name).expect("clap rejects other values"))
}

fn lifetime(text: &str) -> Result<Lifetime, String> {
    if text == "never" {
        return Ok(Lifetime(None));
    }
    let seconds = text.char_indices().last().and_then(|(at, unit)| {
        let number: i64 = text[..at].parse().ok().filter(|number| (1..=36_500).contains(number))?;
        match unit {
            's' => Some(number),
            'h' => Some(number * 60 * 60),
            'd' => Some(number * 60 * 60 * 24),
            'w' => Some(number * 60 * 60 * 24 * 7),
            _ => None,
        }
    });
    let seconds = seconds.ok_or("write it as 90s, 12h, 90d, 4w or never")?;
    Ok(Lifetime(Some(SignedDuration::from_secs(seconds))))
}

impl TokenCommand {
    /// Works on the tokens of a folder, unless a database or a graph is named.
    pub(super) fn run(self, shared: &Shared, output: &mut Output) -> Result<Outcome, Failure> {
        let now = Timestamp::from_nanosecond(SystemClock.now_ns().into());
        let now = now.expect("64 bits of nanoseconds reach 1677 to 2262");
        let names_graphs = matches!(&self.verb, TokenAction::New { graphs, .. } if !graphs.is_empty());
        if self.database.is_some() || names_graphs {
            let database = database::open(self.database.as_deref())?;
            return database_token::run(&database, self.verb, now, output);
        }
        let location = VaultLocation::find(None, shared)?;
        if matches!(self.verb, TokenAction::New { .. }) && location.own_folder()?.is_none() {
            let folder = own_folder(&location.root);
            return Err(Failure::failed(format!(
                "cannot store tokens in {}: it is not a writable folder",
                folder.display()
            ))
            .hint("make it a folder that you can write; links are not followed"));
        }
        let file = TokenFile::of(&location.root);
        match self.verb {
            TokenAction::New { name, scope, expires, json, .. } => {
                check_name(&name)?;
                let expires = expires.0.and_then(|lifetime| now.checked_add(lifetime).ok());
                let (text, token) = file.add(&name, scope, now, expires)?;
                print_created(text, &line(&token, now), to_json(&token, now), json, output)?;
            }
            TokenAction::List { json } => {
                let tokens = file.list()?;
                let accepted = file.accepted(&tokens)?;
                if json {
                    let listed = tokens.iter().zip(accepted).map(|(token, is_accepted)| {
                        let mut listed = to_json(token, now);
                        listed["changed"] = json!(!is_accepted);
                        listed
                    });
                    output.json(&listed.collect::<Vec<_>>())?;
                } else if tokens.is_empty() {
                    output.aside(&Line::new().plain("there are no tokens; `quipu token new` creates one"));
                } else {
                    for (token, is_accepted) in tokens.iter().zip(accepted) {
                        let line = line(token, now);
                        output.line(&if is_accepted { line } else { line.yellow(CHANGED) })?;
                    }
                }
            }
            TokenAction::Revoke { which, json } => {
                let revoked = file.revoke(&which)?;
                if json {
                    output.json(&to_json(&revoked, now))?;
                } else {
                    output.line(&Line::new().plain("revoked ").bold(revoked.name))?;
                }
            }
        }
        Ok(Outcome::Fine)
    }
}

pub(super) fn check_name(name: &str) -> Result<(), Failure> {
    if name.trim().is_empty() || name.chars().count() > 64 || name.chars().any(char::is_control) {
        let message = "cannot use this name: a token's name has 1 to 64 characters and no control characters";
        return Err(Failure::usage(message));
    }
    if name.len() == 8 && name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Failure::usage("cannot use this name: eight hexadecimal digits are the id of a token"));
    }
    Ok(())
}

/// Prints the secret of a new token, and a line about the token unless the output is JSON.
pub(super) fn print_created(
    secret: String,
    about: &Line,
    mut fields: Value,
    json: bool,
    output: &mut Output,
) -> Result<(), Failure> {
    if json {
        fields["token"] = json!(secret);
        return output.json(&fields);
    }
    output.line(&Line::new().plain(secret))?;
    output.aside(about);
    output.aside(&Line::new().dim("Save it now: it is not shown again."));
    Ok(())
}

/// Adds when a token expires.
pub(super) fn with_expiry(line: Line, expires: Option<impl std::fmt::Display>, is_expired: bool) -> Line {
    match expires {
        None => line.plain(", does not expire"),
        Some(time) if is_expired => line.yellow(format!(", expired {time}")),
        Some(time) => line.plain(format!(", expires {time}")),
    }
}

fn line(token: &Token, now: Timestamp) -> Line {
    let line = Line::new().dim(token.id.clone()).plain("  ").bold(token.name.clone()).plain(format!(
        "  {}, created {}",
        token.scope.name(),
        token.created()
    ));
    with_expiry(line, token.expires(), token.is_expired(now))
}

fn to_json(token: &Token, now: Timestamp) -> Value {
    json!({
        "id": token.id,
        "name": token.name,
        "scope": token.scope.name(),
        "created": token.created(),
        "expires": token.expires(),
        "expired": token.is_expired(now),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_are_a_number_and_a_unit() {
        let hours = |text| lifetime(text).map(|lifetime| lifetime.0.map(|time| time.as_hours()));
        assert_eq!(lifetime("90s"), Ok(Lifetime(Some(SignedDuration::from_secs(90)))));
        assert_eq!(hours("12h"), Ok(Some(12)));
        assert_eq!(hours("90d"), Ok(Some(2160)));
        assert_eq!(hours("4w"), Ok(Some(672)));
        assert_eq!(hours("never"), Ok(None));
        for wrong in ["", "d", "0d", "-1d", "90", "9m", "99999d", "1.5d", "９d"] {
            assert!(hours(wrong).is_err(), "{wrong}");
        }
    }
}
