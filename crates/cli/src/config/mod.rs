//! The settings: `.quipu/config.toml` in the vault, then the environment, then flags; later wins.
//!
//! An unknown key or value is an error that names its place and the nearest known word.

mod error;
mod file;
mod keys;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::Duration;

use quipu_core::Knowledge;
use quipu_core::memory::{DuplicateRule, EntityTypes};
use quipu_core::parse::TitleRule;
use quipu_embed::{ChatKind, ChatProvider, Provider};
use quipu_server::own_files;
use quipu_tools::Toolset;

use error::unknown;
use keys::{KEYS, SettingText};

pub(crate) use error::{ConfigError, SettingSource};

/// The path of the file in the vault.
pub(crate) const FILE: &str = ".quipu/config.toml";

/// The address of a team's database. Not a key of the file, which may have come with the vault.
pub(crate) const DATABASE_VARIABLE: &str = "QUIPU_DATABASE_URL";

/// Variables without a key in the file: the vault, the database, the log level, and secrets that must not be in a file.
const OTHER_VARIABLES: [&str; 5] =
    ["QUIPU_VAULT", DATABASE_VARIABLE, "QUIPU_LOG", "QUIPU_EMBEDDING_KEY", "QUIPU_LLM_KEY"];

/// Variables of Quipu's development, which may be set when a test starts the program.
const OF_DEVELOPMENT: [&str; 3] = ["QUIPU_DATA", "QUIPU_POSTGRES", "QUIPU_WRITE_DOCS"];

/// The prefix of other variables of tests.
const OF_TESTS: &str = "QUIPU_TEST_";

/// All settings.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Config {
    /// Where titles come from.
    pub(crate) title_from: TitleRule,
    /// If not empty, only these files are notes.
    pub(crate) include: Vec<Pattern>,
    /// These files are not notes.
    pub(crate) exclude: Vec<Pattern>,
    /// `None` for all.
    pub(crate) toolsets: Option<Vec<Toolset>>,
    /// The rule for duplicates in memory.
    pub(crate) duplicates: DuplicateRule,
    /// Which words mean which entity type.
    pub(crate) memory_types: EntityTypes,
    /// Days that replaced and deleted versions are kept; 0 for ever.
    pub(crate) trash_days: u32,
    /// How long a changed source makes a note only possibly stale.
    pub(crate) stale_after: Duration,
    /// Whether search uses meaning alone.
    pub(crate) by_meaning_alone: bool,
    pub(crate) embedding: Embedding,
    pub(crate) llm: Llm,
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
            llm: Llm::default(),
            duplicates: DuplicateRule::default(),
            memory_types: EntityTypes::default(),
        }
    }
}

/// A provider as written; omitted fields have defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProviderSettings<Name> {
    provider: Name,
    model: Option<String>,
    url: Option<String>,
    /// Whether the environment sets them: the file may have come with the vault, the environment is the user's.
    provider_is_users: bool,
    url_is_users: bool,
}

/// The embedding provider.
pub(crate) type Embedding = ProviderSettings<ProviderName>;

/// The language model; `None` for none.
pub(crate) type Llm = ProviderSettings<Option<ChatKind>>;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ProviderName {
    #[default]
    Builtin,
    Ollama,
    OpenAi,
    None,
}

impl<Name> ProviderSettings<Name> {
    /// Whether the user chose where texts are sent.
    pub(crate) fn is_named_by_user(&self) -> bool {
        if self.url.is_some() { self.url_is_users } else { self.provider_is_users }
    }
}

impl Llm {
    /// The language model with its default address filled in. There is no default model, because models are renamed and removed.
    pub(crate) fn provider(&self) -> Option<ChatProvider> {
        let kind = self.provider?;
        let url = self.url.clone().unwrap_or_else(|| kind.default_url().to_owned());
        Some(ChatProvider { kind, url, model: self.model.clone().unwrap_or_default() })
    }
}

impl Embedding {
    /// The provider with defaults filled in.
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

/// A glob and where it was written. Opening the vault validates it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    pub(crate) glob: String,
    pub(crate) place: SettingSource,
}

impl Config {
    /// Loads the settings of a vault.
    pub(crate) fn load(vault: &Path) -> Result<Self, ConfigError> {
        let file = vault.join(FILE);
        let text = match own_files::text(&file) {
            Ok(text) => text.unwrap_or_default(),
            // `.quipu` itself is a file, so there is no configuration.
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
        Self::with_environment(&text)
    }

    /// The settings of notes that are not in a folder.
    pub(crate) fn of_environment() -> Result<Self, ConfigError> {
        Self::with_environment("")
    }

    fn with_environment(text: &str) -> Result<Self, ConfigError> {
        reject_unknown(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()))?;
        Self::read(text, |name| std::env::var(name).ok())
    }

    /// Reads the settings from a file's text and the environment.
    fn read(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        config.apply_file(text)?;
        for key in &KEYS {
            let Some(value) = variable(key.variable) else { continue };
            let place = SettingSource::Variable(key.variable);
            let word = |text| SettingText { text, place: place.clone() };
            let words: Vec<SettingText> = split_outside_braces(&value).into_iter().map(word).collect();
            key.apply(&mut config, &words, &place)?;
        }
        Ok(config)
    }
}

/// Rejects an unknown variable with our prefix: otherwise a typing error would silently have no effect.
fn reject_unknown(names: impl Iterator<Item = String>) -> Result<(), ConfigError> {
    let known = KEYS.iter().map(|key| key.variable).chain(OTHER_VARIABLES);
    let is_of_tests = |name: &str| name.starts_with(OF_TESTS) || OF_DEVELOPMENT.contains(&name);
    let is_ours = |name: &str| name.starts_with("QUIPU_") && !is_of_tests(name);
    let is_unknown = |name: &String| is_ours(name) && !known.clone().any(|known| known == name);
    // The first by name, so that the error is deterministic.
    match names.filter(is_unknown).min() {
        Some(name) => Err(unknown(&SettingSource::Environment, "variable", &name, known)),
        None => Ok(()),
    }
}

/// The items of a variable, separated by commas outside of braces: a comma in `{a,b}` belongs to the glob.
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
