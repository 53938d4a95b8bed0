//! `quipu token --database`: tokens that all servers of a database accept, each for some of its graphs.

use jiff::Timestamp;
use quipu_store_postgres::{NewToken, PostgresDatabase, TokenError, TokenRecord};
use serde_json::{Value, json};

use super::database::failed;
use super::output::{Line, Output};
use super::token::{TokenAction, check_name, print_created, with_expiry};
use super::{Failure, Outcome};

pub(super) fn run(
    database: &PostgresDatabase,
    verb: TokenAction,
    now: Timestamp,
    output: &mut Output,
) -> Result<Outcome, Failure> {
    match verb {
        TokenAction::New { name, scope, expires, graphs, json } => {
            check_name(&name)?;
            if graphs.is_empty() {
                let message = "cannot create a token of a database without a graph";
                return Err(Failure::usage(message).hint("give one with --graph; `quipu graph list` lists the graphs"));
            }
            let expires = expires.0.and_then(|lifetime| now.checked_add(lifetime).ok());
            let new = NewToken { name: &name, scope: scope.name(), graphs: &graphs, created: now, expires };
            let (text, token) = database.create_token(&new).map_err(|error| refused(&error))?;
            print_created(text, &line(&token, now), to_json(&token, now), json, output)?;
        }
        TokenAction::List { json } => {
            let tokens = database.tokens().map_err(|error| failed(&error))?;
            if json {
                output.json(&tokens.iter().map(|token| to_json(token, now)).collect::<Vec<_>>())?;
            } else if tokens.is_empty() {
                let hint = "there are no tokens; `quipu token new --graph NAME` creates one";
                output.aside(&Line::new().plain(hint));
            }
            for token in tokens.iter().filter(|_| !json) {
                output.line(&line(token, now))?;
            }
        }
        TokenAction::Revoke { which, json } => {
            let revoked = database.revoke_token(&which).map_err(|error| refused(&error))?;
            if json {
                output.json(&to_json(&revoked, now))?;
            } else {
                output.line(&Line::new().plain("revoked ").bold(revoked.name))?;
                output.aside(&Line::new().dim("Running servers reject it within two seconds."));
            }
        }
    }
    Ok(Outcome::Fine)
}

fn line(token: &TokenRecord, now: Timestamp) -> Line {
    let TokenRecord { id, name, scope, created, expires, .. } = token;
    let graphs = graph_names(token);
    let line = Line::new().dim(id.clone()).plain("  ").bold(name.clone()).plain(format!(
        "  {scope} of {}, created {created}",
        if graphs.is_empty() { "no graph".to_owned() } else { graphs.join(", ") }
    ));
    with_expiry(line, *expires, is_expired(token, now))
}

fn graph_names(token: &TokenRecord) -> Vec<&str> {
    token.graphs.iter().map(|graph| graph.name.as_str()).collect()
}

fn to_json(token: &TokenRecord, now: Timestamp) -> Value {
    json!({
        "id": token.id,
        "name": token.name,
        "scope": token.scope,
        "graphs": graph_names(token),
        "created": token.created.to_string(),
        "expires": token.expires.map(|time| time.to_string()),
        "expired": is_expired(token, now),
    })
}

fn is_expired(token: &TokenRecord, now: Timestamp) -> bool {
    token.expires.is_some_and(|time| time <= now)
}

fn refused(error: &TokenError) -> Failure {
    match error {
        TokenError::Failed(error) => failed(error),
        TokenError::Random(_) => Failure::failed(error.to_string()),
        TokenError::Exists(_) | TokenError::NoGraph(_) | TokenError::Unknown(_) => Failure::usage(error.to_string()),
    }
}
