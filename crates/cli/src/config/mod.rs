//! The settings: `.quipu/config.toml` in the vault, then the environment, then flags; later wins.
//!
//! Nothing is guessed: a key or value that is not known is an error that names its place and the nearest word.

mod file;
mod keys;
mod mistake;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::Duration;

use quipu_core::Knowledge;
use quipu_core::memory::{DuplicateRule, EntityTypes};
use quipu_core::parse::TitleRule;
use quipu_embed::Provider;
use quipu_server::own_files;
use quipu_tools::Toolset;

use keys::{KEYS, Word};
use mistake::unknown;

pub(crate) use mistake::{ConfigError, Place};

/// Where the file lies, from the vault's root.
pub(crate) const FILE: &str = ".quipu/config.toml";

/// Variables that stand for no key of the file: which vault, how much is told, and a secret that no file should hold.
const OTHER_VARIABLES: [&str; 3] = ["QUIPU_VAULT", "QUIPU_LOG", "QUIPU_EMBEDDING_KEY"];

/// Variables of Quipu's own development, which may be there when a test starts the program.
const OF_DEVELOPMENT: [&str; 2] = ["QUIPU_DATA", "QUIPU_WRITE_DOCS"];

/// Others that tests make up begin so.
const OF_TESTS: &str = "QUIPU_TEST_";

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

impl Config {
    /// The settings of a vault.
    pub(crate) fn load(vault: &Path) -> Result<Self, ConfigError> {
        let file = vault.join(FILE);
        let text = match own_files::text(&file) {
            Ok(text) => text.unwrap_or_default(),
            // `.quipu` itself is a file: then there is no configuration either.
            Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => String::new(),
            Err(error) => {
                let hint = match error.kind() {
                    std::io::ErrorKind::InvalidData => "save it as UTF-8 text",
                    std::io::ErrorKind::PermissionDenied => "make it and its folder readable for yourself (chmod u+rX)",
                    _ => "make it a text file that can be read, or remove it",
                };
                return Err(ConfigError { place: FILE.into(), message: error.to_string(), hint: hint.to_owned() });
            }
        };
        refuse_unknown(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()))?;
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
}

/// Refuses a variable that looks like one of ours and is none: a setting that has no effect is worse than none.
fn refuse_unknown(names: impl Iterator<Item = String>) -> Result<(), ConfigError> {
    let known = KEYS.iter().map(|key| key.variable).chain(OTHER_VARIABLES);
    let is_of_tests = |name: &str| name.starts_with(OF_TESTS) || OF_DEVELOPMENT.contains(&name);
    let is_ours = |name: &str| name.starts_with("QUIPU_") && !is_of_tests(name);
    let is_unknown = |name: &String| is_ours(name) && !known.clone().any(|known| known == name);
    // The first by name, so that the same environment always says the same.
    match names.filter(is_unknown).min() {
        Some(name) => Err(unknown(&Place::Environment, "variable", &name, known)),
        None => Ok(()),
    }
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
