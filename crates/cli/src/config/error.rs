//! Errors in settings: where the setting is, and what was probably meant.

use std::fmt;

use quipu_tools::nearest;

use super::FILE;

/// Where a setting was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SettingSource {
    /// A line of the file, counted from 1.
    Line(usize),
    /// A variable of the environment.
    Variable(&'static str),
    /// The environment as a whole.
    Environment,
}

impl fmt::Display for SettingSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "{FILE}, line {line}"),
            Self::Variable(name) => f.write_str(name),
            Self::Environment => f.write_str("the environment"),
        }
    }
}

/// An invalid setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub(crate) struct ConfigError {
    pub(crate) place: String,
    pub(crate) message: String,
    pub(crate) hint: String,
}

pub(super) fn invalid(place: &SettingSource, message: &str, hint: &str) -> ConfigError {
    ConfigError { place: place.to_string(), message: message.to_owned(), hint: hint.to_owned() }
}

pub(super) fn unknown<'a>(
    place: &SettingSource,
    kind: &str,
    word: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> ConfigError {
    let all = listed(known.clone());
    let hint = match nearest(word, known) {
        Some(near) => format!("did you mean `{near}`? The {kind}s are {all}"),
        None => format!("the {kind}s are {all}"),
    };
    ConfigError { place: place.to_string(), message: format!("unknown {kind} `{word}`"), hint }
}

pub(super) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
