//! The settings: `.quipu/config.toml` in the vault, then the environment, then flags; later wins.
//!
//! Nothing is guessed: a key or value that is not known is an error that names its place and the nearest word.

#![expect(clippy::disallowed_methods, reason = "the configuration file is the program's own, not a note")]

use std::fmt;
use std::path::Path;
use std::time::Duration;

use quipu_core::Knowledge;
use quipu_core::memory::{DuplicateRule, EntityTypes};
use quipu_core::parse::{TitleRule, TitleSource};
use quipu_embed::Provider;
use quipu_tools::{Toolset, nearest};
use toml::de::{DeTable, DeValue};

/// Where the file lies, from the vault's root.
pub(crate) const FILE: &str = ".quipu/config.toml";

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Config {
    /// Where titles come from.
    pub(crate) title_from: TitleRule,
    /// Only these are notes, when there are any.
    pub(crate) include: Vec<Pattern>,
    /// These are not.
    pub(crate) exclude: Vec<Pattern>,
    /// `None`: all of them.
    pub(crate) toolsets: Option<Vec<Toolset>>,
    /// What counts as a duplicate in memory.
    pub(crate) duplicates: DuplicateRule,
    /// Which words mean which type of entity.
    pub(crate) memory_types: EntityTypes,
    /// How many days replaced and deleted versions are kept; 0 for ever.
    pub(crate) trash_days: u32,
    /// How long a note may lag behind its sources.
    pub(crate) stale_after: Duration,
    /// Whether notes are searched by meaning alone.
    pub(crate) by_meaning_alone: bool,
    /// Who turns texts into vectors.
    pub(crate) embedding: Embedding,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            title_from: TitleRule::default(),
            include: Vec::new(),
            exclude: Vec::new(),
            toolsets: None,
            trash_days: 90,
            stale_after: Knowledge::STALE_AFTER,
            by_meaning_alone: false,
            embedding: Embedding::default(),
            duplicates: DuplicateRule::default(),
            memory_types: EntityTypes::default(),
        }
    }
}

/// Who turns texts into vectors, as written; what is left out has a default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Embedding {
    provider: ProviderName,
    model: Option<String>,
    url: Option<String>,
    /// Whether the environment names them: then the user does, and not whoever made the vault.
    provider_is_users: bool,
    url_is_users: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ProviderName {
    #[default]
    Builtin,
    Ollama,
    OpenAi,
    None,
}

impl Embedding {
    /// Whether it is the user who says where texts are sent.
    pub(crate) fn is_named_by_user(&self) -> bool {
        if self.url.is_some() { self.url_is_users } else { self.provider_is_users }
    }

    /// The provider that is meant.
    pub(crate) fn provider(&self) -> Provider {
        let or = |given: &Option<String>, default: &str| given.clone().unwrap_or_else(|| default.to_owned());
        match self.provider {
            ProviderName::Builtin => Provider::Builtin,
            ProviderName::None => Provider::None,
            ProviderName::Ollama => Provider::Ollama {
                url: or(&self.url, Provider::OLLAMA_URL),
                model: or(&self.model, Provider::OLLAMA_MODEL),
            },
            ProviderName::OpenAi => Provider::OpenAi {
                url: or(&self.url, Provider::OPENAI_URL),
                model: or(&self.model, Provider::OPENAI_MODEL),
            },
        }
    }
}

/// A glob, and where it was written: whether it is one is found out later, by whoever uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    pub(crate) glob: String,
    pub(crate) place: Place,
}

/// Where a setting was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// A line of the file, counted from 1.
    Line(usize),
    /// A variable of the environment.
    Variable(&'static str),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "{FILE}, line {line}"),
            Self::Variable(name) => f.write_str(name),
        }
    }
}

/// What is wrong with the settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub(crate) struct ConfigError {
    pub(crate) place: String,
    pub(crate) message: String,
    /// What to do.
    pub(crate) hint: String,
}

/// One setting: its key in the file, its variable, and how words become its value. A dot stands for a table:
/// `staleness.days` is `days` below `[staleness]`.
struct Key {
    name: &'static str,
    variable: &'static str,
    form: Form,
    set: fn(&mut Config, &[Word]) -> Result<(), ConfigError>,
}

/// What a value looks like in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A list of strings, of which an empty one says something.
    List,
    /// A list of strings that is a mistake when it is empty.
    FilledList,
    /// A whole number.
    Number,
    /// One string.
    Text,
}

/// One item of a list, and where it stands.
struct Word {
    text: String,
    place: Place,
}

impl Word {
    fn is_users(&self) -> bool {
        matches!(self.place, Place::Variable(_))
    }
}

/// Every key there is.
const KEYS: [Key; 10] = [
    Key { name: "title_from", variable: "QUIPU_TITLE_FROM", form: Form::FilledList, set: set_title_from },
    Key { name: "include", variable: "QUIPU_INCLUDE", form: Form::List, set: set_include },
    Key { name: "exclude", variable: "QUIPU_EXCLUDE", form: Form::List, set: set_exclude },
    Key { name: "toolsets", variable: "QUIPU_TOOLSETS", form: Form::FilledList, set: set_toolsets },
    Key { name: "staleness.days", variable: "QUIPU_STALENESS_DAYS", form: Form::Number, set: set_staleness_days },
    Key { name: "search.mode", variable: "QUIPU_SEARCH_MODE", form: Form::Text, set: set_search_mode },
    Key {
        name: "embedding.provider",
        variable: "QUIPU_EMBEDDING_PROVIDER",
        form: Form::Text,
        set: set_embedding_provider,
    },
    Key { name: "embedding.model", variable: "QUIPU_EMBEDDING_MODEL", form: Form::Text, set: set_embedding_model },
    Key { name: "embedding.url", variable: "QUIPU_EMBEDDING_URL", form: Form::Text, set: set_embedding_url },
    Key { name: "trash_days", variable: "QUIPU_TRASH_DAYS", form: Form::Number, set: set_trash_days },
];

/// What a later version will know. Somebody who has read of it is told so, rather than that it is a mistake.
const LATER: [&str; 1] = ["http"];

/// The keys of the table `[memory]`.
const MEMORY_KEYS: [&str; 2] = ["duplicate_distance", "types"];

/// Nobody waits longer than that for anything.
const MAX_DAYS: u32 = 36_500;

impl Config {
    /// The settings of a vault.
    pub(crate) fn load(vault: &Path) -> Result<Self, ConfigError> {
        let file = vault.join(FILE);
        // A pipe would be waited for without end.
        if std::fs::metadata(&file).is_ok_and(|metadata| !metadata.is_file()) {
            let hint = "put a text file in its place, or remove it".to_owned();
            return Err(ConfigError { place: FILE.into(), message: "it is not a file".into(), hint });
        }
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            // `.quipu` itself may be a file: then there is no configuration either.
            Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
                String::new()
            }
            Err(error) => {
                let hint = "make the file readable UTF-8 text, or remove it".to_owned();
                return Err(ConfigError { place: FILE.into(), message: error.to_string(), hint });
            }
        };
        warn_of_unknown_variables();
        Self::read(&text, |name| std::env::var(name).ok())
    }

    /// The settings from a file's text and the environment.
    fn read(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        config.take_file(text)?;
        for key in &KEYS {
            let Some(value) = variable(key.variable) else { continue };
            let place = Place::Variable(key.variable);
            let word = |text| Word { text, place: place.clone() };
            let words: Vec<Word> = split_outside_braces(&value).into_iter().map(word).collect();
            key.take(&mut config, &words, &place)?;
        }
        Ok(config)
    }

    fn take_file(&mut self, text: &str) -> Result<(), ConfigError> {
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
                    hint: format!("leave it out; there are {}", listed(KEYS.iter().map(|key| key.name))),
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
                    _ => return Err(unknown(&place, "key", &name, KEYS.iter().map(|key| key.name))),
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
                (other, _) => return Err(unknown(&place, "key", other, MEMORY_KEYS.into_iter())),
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

fn mistake(place: &Place, message: &str, hint: &str) -> ConfigError {
    ConfigError { place: place.to_string(), message: message.to_owned(), hint: hint.to_owned() }
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

    fn take(&self, config: &mut Config, words: &[Word], place: &Place) -> Result<(), ConfigError> {
        if words.is_empty() && self.form != Form::List {
            return Err(ConfigError {
                place: place.to_string(),
                message: format!("`{}` is empty", self.name),
                hint: "name at least one, or leave it out for the default".into(),
            });
        }
        (self.set)(config, words)
    }
}

/// Variables are shared with other programs and versions, so one that is not known is no error.
fn warn_of_unknown_variables() {
    let known = || KEYS.iter().map(|key| key.variable).chain(["QUIPU_VAULT", "QUIPU_LOG", "QUIPU_EMBEDDING_KEY"]);
    for name in std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()) {
        if name.starts_with("QUIPU_") && !known().any(|known| known == name) {
            let meant = nearest(&name, known()).map_or(String::new(), |near| format!("; did you mean {near}?"));
            tracing::warn!("{name} is not a setting{meant}");
        }
    }
}

fn set_title_from(config: &mut Config, words: &[Word]) -> Result<(), ConfigError> {
    const SOURCES: [(&str, TitleSource); 3] = [
        ("frontmatter", TitleSource::Frontmatter),
        ("heading", TitleSource::Heading),
        ("filename", TitleSource::FileName),
    ];
    config.title_from = TitleRule(chosen(words, "title source", &SOURCES)?);
    Ok(())
}

fn set_include(config: &mut Config, words: &[Word]) -> Result<(), ConfigError> {
    config.include = patterns(words);
    Ok(())
}

fn set_exclude(config: &mut Config, words: &[Word]) -> Result<(), ConfigError> {
    config.exclude = patterns(words);
    Ok(())
}

fn set_toolsets(config: &mut Config, words: &[Word]) -> Result<(), ConfigError> {
    let toolsets: Vec<(&str, Toolset)> = Toolset::ALL.iter().map(|toolset| (toolset.name(), *toolset)).collect();
    config.toolsets = Some(chosen(words, "toolset", &toolsets)?);
    Ok(())
}

fn set_staleness_days(config: &mut Config, words: &[Word]) -> Result<(), ConfigError> {
    config.stale_after = Duration::from_secs(u64::from(days("staleness.days", words)?) * 24 * 60 * 60);
    Ok(())
}

fn set_search_mode(config: &mut Config, words: &[Word]) -> Result<(), ConfigError> {
    const MODES: [(&str, bool); 2] = [("hybrid", false), ("semantic", true)];
    config.by_meaning_alone = chosen(words, "search mode", &MODES)?.contains(&true);
    Ok(())
}

fn set_embedding_provider(config: &mut Config, words: &[Word]) -> Result<(), ConfigError> {
    const PROVIDERS: [(&str, ProviderName); 4] = [
        ("builtin", ProviderName::Builtin),
        ("ollama", ProviderName::Ollama),
        ("openai", ProviderName::OpenAi),
        ("none", ProviderName::None),
    ];
    for provider in chosen(words, "embedding provider", &PROVIDERS)? {
        config.embedding.provider = provider;
    }
    config.embedding.provider_is_users = words.iter().all(Word::is_users);
    Ok(())
}

fn set_embedding_model(config: &mut Config, words: &[Word]) -> Result<(), ConfigError> {
    config.embedding.model = words.first().map(|word| word.text.clone());
    Ok(())
}

fn set_embedding_url(config: &mut Config, words: &[Word]) -> Result<(), ConfigError> {
    config.embedding.url = words.first().map(|word| word.text.clone());
    config.embedding.url_is_users = words.iter().all(Word::is_users);
    Ok(())
}

fn set_trash_days(config: &mut Config, words: &[Word]) -> Result<(), ConfigError> {
    config.trash_days = days("trash_days", words)?;
    Ok(())
}

fn days(name: &str, words: &[Word]) -> Result<u32, ConfigError> {
    let word = &words[0];
    let days = word.text.parse::<u32>().ok().filter(|days| *days <= MAX_DAYS && words.len() == 1);
    days.ok_or_else(|| ConfigError {
        place: word.place.to_string(),
        message: format!("`{name}` is {}", word.text),
        hint: format!("it must be a whole number from 0 to {MAX_DAYS}"),
    })
}

fn patterns(words: &[Word]) -> Vec<Pattern> {
    words.iter().map(|word| Pattern { glob: word.text.clone(), place: word.place.clone() }).collect()
}

/// The values that words stand for.
fn chosen<T: Copy>(words: &[Word], kind: &str, known: &[(&str, T)]) -> Result<Vec<T>, ConfigError> {
    let find = |word: &Word| known.iter().find(|(name, _)| *name == word.text).map(|(_, value)| *value);
    let names = known.iter().map(|(name, _)| *name);
    words.iter().map(|word| find(word).ok_or_else(|| unknown(&word.place, kind, &word.text, names.clone()))).collect()
}

fn unknown<'a>(place: &Place, kind: &str, word: &str, known: impl Iterator<Item = &'a str> + Clone) -> ConfigError {
    let all = listed(known.clone());
    let hint = match nearest(word, known) {
        Some(near) => format!("did you mean `{near}`? There are {all}"),
        None => format!("there are {all}"),
    };
    ConfigError { place: place.to_string(), message: format!("unknown {kind} `{word}`"), hint }
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// A variable's items: separated by commas, but a comma in `{a,b}` belongs to the glob.
fn split_outside_braces(value: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let items = value.split(|c: char| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    items.map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, variables: &[(&str, &str)]) -> Result<Config, String> {
        let variable = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, v)| (*v).to_owned());
        Config::read(text, variable).map_err(|error| format!("{error}\nhint: {}", error.hint))
    }

    #[test]
    fn the_environment_wins_over_the_file() {
        let file = "title_from = [\"heading\", \"filename\"]\nexclude = [\"drafts/**\"]\n";
        let config = read(file, &[("QUIPU_EXCLUDE", "old/**, *.{bak,tmp}.md ,")]).unwrap();
        assert_eq!(config.title_from, TitleRule(vec![TitleSource::Heading, TitleSource::FileName]));
        let globs: Vec<&str> = config.exclude.iter().map(|pattern| pattern.glob.as_str()).collect();
        assert_eq!(globs, ["old/**", "*.{bak,tmp}.md"]);
        assert_eq!(read("", &[]).unwrap(), Config::default());
        assert_eq!(read("trash_days = 7\n", &[]).unwrap().trash_days, 7);
        assert_eq!(read("trash_days = 7\n", &[("QUIPU_TRASH_DAYS", "0")]).unwrap().trash_days, 0);
    }

    #[test]
    fn a_number_stands_below_its_table_or_in_its_variable() {
        let days = |config: Config| config.stale_after.as_secs() / 86_400;
        assert_eq!(days(read("", &[]).unwrap()), 7);
        assert_eq!(days(read("[staleness]\ndays = 30\n", &[]).unwrap()), 30);
        assert_eq!(days(read("staleness.days = 30", &[("QUIPU_STALENESS_DAYS", "0")]).unwrap()), 0);
        for (text, expected) in [
            (
                "[staleness]\ndays = \"7\"",
                "line 2: `staleness.days` must be a whole number\nhint: write it as: days = 7",
            ),
            (
                "[staleness]\ndays = -1",
                "line 2: `staleness.days` is -1\nhint: it must be a whole number from 0 to 36500",
            ),
            ("staleness = 7", "line 1: unknown key `staleness`\nhint: did you mean `staleness.days`?"),
            ("[staleness]\nday = 7", "line 2: unknown key `staleness.day`\nhint: did you mean `staleness.days`?"),
        ] {
            let error = read(text, &[]).unwrap_err();
            assert!(error.starts_with(&format!(".quipu/config.toml, {expected}")), "{text:?} gave {error:?}");
        }
        assert!(read("", &[("QUIPU_STALENESS_DAYS", "soon")]).unwrap_err().contains("`staleness.days` is soon"));
    }

    #[test]
    fn memory_has_a_table_of_its_own() {
        let text = "[memory]\nduplicate_distance = 0.1\n\n[memory.types]\nPaper = [\"article\"]\n";
        let config = read(text, &[]).unwrap();
        assert_eq!(config.duplicates, DuplicateRule { distance: 0.1 });
        assert_eq!(config.memory_types.canonical("Article"), "Paper");
        for (text, expected) in [
            ("[memory]\nduplicate_distance = 2\n", "line 2: `duplicate_distance` must be a number from 0 to 1"),
            ("[memory]\nduplicates = 2\n", "line 2: unknown key `duplicates`"),
            ("[memory.types]\nPaper = \"article\"\n", "line 2: `Paper` must be a list of strings"),
            ("memory = 1\n", "line 1: `memory` must be a table"),
        ] {
            let error = read(text, &[]).unwrap_err();
            assert!(error.contains(expected), "{text:?} gave {error:?}");
        }
    }

    #[test]
    fn a_mistake_is_named_with_its_place_and_the_nearest_word() {
        for (text, expected) in [
            (
                "\n\nexclud = []\n",
                "unknown key `exclud`\nhint: did you mean `exclude`? There are `title_from`, `include`, `exclude`, `toolsets`, `staleness.days`, `search.mode`, `embedding.provider`, `embedding.model`, `embedding.url`, `trash_days`",
            ),
            (
                "exclude = []\n\ntoolsets = [\n  \"note\",\n]\n",
                "unknown toolset `note`\nhint: did you mean `notes`? There are `notes`, `docs`, `pages`, `memory`",
            ),
            (
                "[http]\nport = 1\n",
                "`http` is not in this version\nhint: leave it out; there are `title_from`, `include`, `exclude`, `toolsets`, `staleness.days`, `search.mode`, `embedding.provider`, `embedding.model`, `embedding.url`, `trash_days`",
            ),
            ("toolsets = []\n", "`toolsets` is empty\nhint: name at least one, or leave it out for the default"),
            ("title_from = []\n", "`title_from` is empty\nhint: name at least one, or leave it out for the default"),
            ("exclude = \"a\"\n", "`exclude` must be a list of strings\nhint: write it as: exclude = [\"…\", \"…\"]"),
            (
                "# ok\ninclude = [1]\n",
                "`include` must be a list of strings\nhint: write it as: include = [\"…\", \"…\"]",
            ),
        ] {
            let error = read(text, &[]).unwrap_err();
            assert!(error.ends_with(expected), "{text:?} gave {error:?}");
        }
        assert!(read("\n\nexclud = []\n", &[]).unwrap_err().starts_with(".quipu/config.toml, line 3: "));
        assert!(read("toolsets = [\n  \"note\",\n]", &[]).unwrap_err().starts_with(".quipu/config.toml, line 2: "));
        assert!(read("a = [\n\"x\"\n", &[]).unwrap_err().starts_with(".quipu/config.toml, line "));
        let error = read("", &[("QUIPU_TITLE_FROM", "header")]).unwrap_err();
        assert!(error.starts_with("QUIPU_TITLE_FROM: unknown title source `header`\nhint: did you mean `heading`?"));
    }
}
