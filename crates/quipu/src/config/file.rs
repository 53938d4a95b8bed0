//! The settings as the file has them: TOML, every key known, every value of its form.

use quipu_core::memory::DuplicateRule;
use toml::de::{DeTable, DeValue};

use super::keys::{Form, KEYS, Key, Word};
use super::mistake::{ConfigError, Place, listed, mistake, unknown};
use super::{Config, FILE};

/// What a later version will know. Somebody who has read of it is told so, rather than that it is a mistake.
const LATER: [&str; 1] = ["http"];

/// The keys of the table `[memory]`, which are not words.
const MEMORY_KEYS: [&str; 2] = ["memory.duplicate_distance", "memory.types"];

/// Every key of the file.
fn names() -> impl Iterator<Item = &'static str> + Clone {
    KEYS.iter().map(|key| key.name).chain(MEMORY_KEYS)
}

impl Config {
    /// Takes in the file's text.
    pub(super) fn take_file(&mut self, text: &str) -> Result<(), ConfigError> {
        let line = |at: usize| Place::Line(text[..at.min(text.len())].matches('\n').count() + 1);
        let table = DeTable::parse(text).map_err(|error| {
            let place = error.span().map_or_else(|| FILE.to_owned(), |span| line(span.start).to_string());
            let message = error.message().replace('\n', ", ");
            ConfigError { place, message, hint: "the file is TOML: `key = [\"value\"]`, one key a line".into() }
        })?;
        self.take_table("", table.get_ref(), &line)
    }

    /// Takes in one table; `above` is its name with a dot, empty for the whole file.
    fn take_table(
        &mut self,
        above: &str,
        table: &DeTable<'_>,
        line: &dyn Fn(usize) -> Place,
    ) -> Result<(), ConfigError> {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        for (key, value) in entries {
            let place = line(key.span().start);
            let name = format!("{above}{}", key.get_ref());
            if LATER.contains(&name.as_str()) {
                return Err(ConfigError {
                    place: place.to_string(),
                    message: format!("`{name}` is not in this version"),
                    hint: format!("leave it out; there are {}", listed(names())),
                });
            }
            if name == "memory" {
                self.take_memory(value.get_ref(), &place, &line)?;
                continue;
            }
            let Some(known) = KEYS.iter().find(|known| known.name == name) else {
                let below = format!("{name}.");
                match value.get_ref() {
                    DeValue::Table(table) if KEYS.iter().any(|known| known.name.starts_with(&below)) => {
                        self.take_table(&below, table, line)?;
                        continue;
                    }
                    _ => return Err(unknown(&place, "key", &name, names())),
                }
            };
            let words = known.words(value.get_ref(), &place, line)?;
            known.take(self, &words, &place)?;
        }
        Ok(())
    }
}

impl Config {
    /// The table `[memory]`, and `[memory.types]` in it.
    fn take_memory(
        &mut self,
        value: &DeValue<'_>,
        place: &Place,
        line: &impl Fn(usize) -> Place,
    ) -> Result<(), ConfigError> {
        let DeValue::Table(table) = value else {
            return Err(mistake(place, "`memory` must be a table", "write it as: [memory]"));
        };
        for (key, value) in table {
            let (name, place) = (key.get_ref(), line(key.span().start));
            match (name.as_ref(), value.get_ref()) {
                ("duplicate_distance", DeValue::Float(number)) => {
                    self.set_duplicate_distance(number.as_str(), &place)?;
                }
                ("duplicate_distance", DeValue::Integer(number)) => {
                    self.set_duplicate_distance(number.as_str(), &place)?;
                }
                ("duplicate_distance", _) => return Err(wrong_distance(&place)),
                ("types", DeValue::Table(types)) => {
                    for (canonical, variants) in types {
                        let place = line(canonical.span().start);
                        let canonical = canonical.get_ref();
                        let wrong = || {
                            let message = format!("`{canonical}` must be a list of strings");
                            mistake(&place, &message, "write it as: Paper = [\"article\", \"preprint\"]")
                        };
                        let DeValue::Array(variants) = variants.get_ref() else { return Err(wrong()) };
                        let words = variants.iter().map(|variant| match variant.get_ref() {
                            DeValue::String(text) => Ok(text.as_ref()),
                            _ => Err(wrong()),
                        });
                        let words: Vec<&str> = words.collect::<Result<_, _>>()?;
                        self.memory_types.extend(canonical, words);
                    }
                }
                ("types", _) => {
                    let hint = "write it as: [memory.types], then lines such as Paper = [\"article\", \"preprint\"]";
                    return Err(mistake(&place, "`types` must be a table", hint));
                }
                (other, _) => return Err(unknown(&place, "key", &format!("memory.{other}"), names())),
            }
        }
        Ok(())
    }

    fn set_duplicate_distance(&mut self, written: &str, place: &Place) -> Result<(), ConfigError> {
        match written.parse() {
            Ok(distance) if (0.0..=1.0).contains(&distance) => self.duplicates = DuplicateRule { distance },
            _ => return Err(wrong_distance(place)),
        }
        Ok(())
    }
}

fn wrong_distance(place: &Place) -> ConfigError {
    let hint = "0.25 is the default; 0 refuses nothing but a name or alias that is taken";
    mistake(place, "`duplicate_distance` must be a number from 0 to 1", hint)
}

impl Key {
    /// A value of the file as words.
    fn words(
        &self,
        value: &DeValue<'_>,
        place: &Place,
        line: &dyn Fn(usize) -> Place,
    ) -> Result<Vec<Word>, ConfigError> {
        match (self.form, value) {
            (Form::Number, DeValue::Integer(number)) => {
                Ok(vec![Word { text: number.as_str().to_owned(), place: place.clone() }])
            }
            (Form::Text, DeValue::String(text)) => Ok(vec![Word { text: text.to_string(), place: place.clone() }]),
            (Form::List | Form::FilledList, DeValue::Array(items)) => {
                let word = |item: &toml::Spanned<DeValue<'_>>| {
                    let place = line(item.span().start);
                    match item.get_ref() {
                        DeValue::String(text) => Ok(Word { text: text.to_string(), place }),
                        _ => Err(self.wrong_type(&place)),
                    }
                };
                items.iter().map(word).collect()
            }
            _ => Err(self.wrong_type(place)),
        }
    }

    fn wrong_type(&self, place: &Place) -> ConfigError {
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
            Form::List | Form::FilledList => {
                (format!("`{name}` must be a list of strings"), format!("write it as: {name} = [\"…\", \"…\"]"))
            }
        };
        ConfigError { place: place.to_string(), message, hint }
    }
}
