//! Reads the settings file: TOML, with known keys and values of the right type.

use quipu_embed::Purpose;
use quipu_tools::nearest;
use toml::de::{DeTable, DeValue};

use super::error::{ConfigError, SettingSource, invalid, listed, unknown};
use super::keys::{Form, KEYS, SettingKey, SettingText};
use super::{Config, FILE};

/// Keys of a later version, which get their own message.
const LATER: [&str; 1] = ["http"];

/// Every key of the file.
fn names() -> impl Iterator<Item = &'static str> + Clone {
    KEYS.iter().map(|key| key.name)
}

impl Config {
    /// Applies the file's text.
    pub(super) fn apply_file(&mut self, text: &str) -> Result<(), ConfigError> {
        let line = |at: usize| SettingSource::Line(text[..at.min(text.len())].matches('\n').count() + 1);
        let table = DeTable::parse(text).map_err(|error| {
            let place = error.span().map_or_else(|| FILE.to_owned(), |span| line(span.start).to_string());
            let message = error.message().replace('\n', ", ");
            ConfigError { place, message, hint: "the file is TOML: `key = [\"value\"]`, one key per line".into() }
        })?;
        self.apply_table("", table.get_ref(), &line)
    }

    /// Applies one table; `above` is its name with a dot, empty for the whole file.
    fn apply_table(
        &mut self,
        above: &str,
        table: &DeTable<'_>,
        line: &dyn Fn(usize) -> SettingSource,
    ) -> Result<(), ConfigError> {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        for (key, value) in entries {
            let place = line(key.span().start);
            let name = format!("{above}{}", key.get_ref());
            if LATER.contains(&name.as_str()) {
                return Err(ConfigError {
                    place: place.to_string(),
                    message: format!("`{name}` is not supported by this version"),
                    hint: format!("remove it; the keys are {}", listed(names())),
                });
            }
            reject_secret(&name, &place)?;
            let Some(known) = KEYS.iter().find(|known| known.name == name) else {
                let below = format!("{name}.");
                match value.get_ref() {
                    DeValue::Table(table) if KEYS.iter().any(|known| known.name.starts_with(&below)) => {
                        self.apply_table(&below, table, line)?;
                    }
                    _ => return Err(unknown_key(&place, &name, value.get_ref())),
                }
                continue;
            };
            let words = known.words(value.get_ref(), &place, line)?;
            known.apply(self, &words, &place)?;
        }
        Ok(())
    }
}

/// Rejects a key of a provider, which must not be in a file.
fn reject_secret(name: &str, place: &SettingSource) -> Result<(), ConfigError> {
    let is_secret = |word: &str| ["key", "token", "secret"].iter().any(|secret| word.to_lowercase().contains(secret));
    for purpose in [Purpose::Embedding, Purpose::Llm] {
        let word = name.strip_prefix(&purpose.to_string()).and_then(|rest| rest.strip_prefix('.'));
        if word.is_some_and(is_secret) {
            return Err(ConfigError {
                place: place.to_string(),
                message: format!("cannot read `{name}` from a file, which is easily copied or committed"),
                hint: format!("remove it, and set {} in the environment", purpose.key_variable()),
            });
        }
    }
    Ok(())
}

/// Names the nearest key, or for a table the nearest table.
fn unknown_key(place: &SettingSource, name: &str, value: &DeValue<'_>) -> ConfigError {
    let error = unknown(place, "key", name, names());
    let tables = KEYS.iter().filter_map(|known| known.name.split_once('.').map(|(table, _)| table));
    match nearest(name, tables).filter(|_| matches!(value, DeValue::Table(_))) {
        Some(table) => {
            ConfigError { hint: format!("did you mean `[{table}]`? The keys are {}", listed(names())), ..error }
        }
        None => error,
    }
}

impl SettingKey {
    /// The words of a value in the file.
    fn words(
        &self,
        value: &DeValue<'_>,
        place: &SettingSource,
        line: &dyn Fn(usize) -> SettingSource,
    ) -> Result<Vec<SettingText>, ConfigError> {
        match (self.form, value) {
            (Form::Number, DeValue::Integer(number)) => {
                Ok(vec![SettingText { text: number.as_str().to_owned(), place: place.clone() }])
            }
            (Form::Fraction, DeValue::Float(number)) => {
                Ok(vec![SettingText { text: number.as_str().to_owned(), place: place.clone() }])
            }
            (Form::Fraction, DeValue::Integer(number)) => {
                Ok(vec![SettingText { text: number.as_str().to_owned(), place: place.clone() }])
            }
            (Form::Groups, DeValue::Table(groups)) => {
                let mut words = Vec::new();
                for (group, members) in groups {
                    words.extend(group_words(group.get_ref(), members.get_ref(), &line(group.span().start))?);
                }
                Ok(words)
            }
            (Form::Text, DeValue::String(text)) => {
                Ok(vec![SettingText { text: text.to_string(), place: place.clone() }])
            }
            (Form::List | Form::FilledList, DeValue::Array(items)) => {
                let word = |item: &toml::Spanned<DeValue<'_>>| {
                    let place = line(item.span().start);
                    match item.get_ref() {
                        DeValue::String(text) => Ok(SettingText { text: text.to_string(), place }),
                        _ => Err(self.wrong_type(&place)),
                    }
                };
                items.iter().map(word).collect()
            }
            _ => Err(self.wrong_type(place)),
        }
    }

    fn wrong_type(&self, place: &SettingSource) -> ConfigError {
        let name = self.name;
        let (message, hint) = match self.form {
            Form::Number => {
                let key = name.rsplit('.').next().unwrap_or(name);
                (format!("`{name}` must be a whole number"), format!("write it as: {key} = 7"))
            }
            Form::Text => {
                let key = name.rsplit('.').next().unwrap_or(name);
                (format!("`{name}` must be a string"), format!("write it as: {key} = \"…\""))
            }
            Form::Fraction => (format!("`{name}` must be a number from 0 to 1"), "write it as: 0.25".to_owned()),
            Form::Groups => {
                let hint = format!("write it as: [{name}], then lines such as Paper = [\"article\", \"preprint\"]");
                (format!("`{name}` must be a table"), hint)
            }
            Form::List | Form::FilledList => {
                (format!("`{name}` must be a list of strings"), format!("write it as: {name} = [\"…\", \"…\"]"))
            }
        };
        ConfigError { place: place.to_string(), message, hint }
    }
}

/// A line of a table of lists in the form of a variable: the list's name alone, then with each of its members.
fn group_words(group: &str, members: &DeValue<'_>, place: &SettingSource) -> Result<Vec<SettingText>, ConfigError> {
    let wrong = || {
        let message = format!("`{group}` must be a list of strings");
        invalid(place, &message, "write it as: Paper = [\"article\", \"preprint\"]")
    };
    let DeValue::Array(members) = members else { return Err(wrong()) };
    if group.contains('=') {
        return Err(invalid(place, &format!("`{group}` contains `=`"), "use another name"));
    }
    let mut words = vec![SettingText { text: group.to_owned(), place: place.clone() }];
    for member in members {
        let DeValue::String(member) = member.get_ref() else { return Err(wrong()) };
        words.push(SettingText { text: format!("{group}={member}"), place: place.clone() });
    }
    Ok(words)
}
