//! The settings: key in the file, variable in the environment, and how words become the value.
//!
//! A new setting is a line in [`KEYS`] and a function that sets its value.

use std::time::Duration;

use quipu_core::memory::DuplicateRule;
use quipu_core::parse::{TitleRule, TitleSource};
use quipu_embed::ChatKind;
use quipu_tools::Toolset;

use super::error::{ConfigError, SettingSource, invalid, unknown};
use super::{Config, Pattern, ProviderName};

/// One setting: its key in the file, its variable, and how words become its value. A dot stands for a table:
/// `staleness.days` is `days` below `[staleness]`.
pub(super) struct SettingKey {
    pub(super) name: &'static str,
    pub(super) variable: &'static str,
    pub(super) form: Form,
    set: fn(&mut Config, &[SettingText]) -> Result<(), ConfigError>,
}

/// The type of a value in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A list of strings that may be empty.
    List,
    /// A list of strings that must not be empty.
    FilledList,
    /// A whole number.
    Number,
    /// A number from 0 to 1.
    Fraction,
    /// One string.
    Text,
    /// A table of lists of strings. In a variable each member follows the name of its list: `Paper=article,Paper=preprint`.
    Groups,
}

/// One item of a value, and where it was written.
pub(super) struct SettingText {
    pub(super) text: String,
    pub(super) place: SettingSource,
}

impl SettingText {
    /// Whether the user set it: the file may have come with the vault.
    fn is_users(&self) -> bool {
        matches!(self.place, SettingSource::Variable(_))
    }
}

/// All keys.
pub(super) const KEYS: [SettingKey; 15] = [
    SettingKey { name: "title_from", variable: "QUIPU_TITLE_FROM", form: Form::FilledList, set: set_title_from },
    SettingKey { name: "include", variable: "QUIPU_INCLUDE", form: Form::List, set: set_include },
    SettingKey { name: "exclude", variable: "QUIPU_EXCLUDE", form: Form::List, set: set_exclude },
    SettingKey { name: "toolsets", variable: "QUIPU_TOOLSETS", form: Form::FilledList, set: set_toolsets },
    SettingKey {
        name: "staleness.days",
        variable: "QUIPU_STALENESS_DAYS",
        form: Form::Number,
        set: set_staleness_days,
    },
    SettingKey { name: "search.mode", variable: "QUIPU_SEARCH_MODE", form: Form::Text, set: set_search_mode },
    SettingKey {
        name: "embedding.provider",
        variable: "QUIPU_EMBEDDING_PROVIDER",
        form: Form::Text,
        set: set_embedding_provider,
    },
    SettingKey {
        name: "embedding.model",
        variable: "QUIPU_EMBEDDING_MODEL",
        form: Form::Text,
        set: set_embedding_model,
    },
    SettingKey { name: "embedding.url", variable: "QUIPU_EMBEDDING_URL", form: Form::Text, set: set_embedding_url },
    SettingKey { name: "llm.provider", variable: "QUIPU_LLM_PROVIDER", form: Form::Text, set: set_llm_provider },
    SettingKey { name: "llm.model", variable: "QUIPU_LLM_MODEL", form: Form::Text, set: set_llm_model },
    SettingKey { name: "llm.url", variable: "QUIPU_LLM_URL", form: Form::Text, set: set_llm_url },
    SettingKey { name: "trash_days", variable: "QUIPU_TRASH_DAYS", form: Form::Number, set: set_trash_days },
    SettingKey {
        name: "memory.duplicate_distance",
        variable: "QUIPU_MEMORY_DUPLICATE_DISTANCE",
        form: Form::Fraction,
        set: set_duplicate_distance,
    },
    SettingKey { name: "memory.types", variable: "QUIPU_MEMORY_TYPES", form: Form::Groups, set: set_memory_types },
];

/// A hundred years.
const MAX_DAYS: u32 = 36_500;

impl SettingKey {
    /// Sets the value.
    pub(super) fn apply(
        &self,
        config: &mut Config,
        words: &[SettingText],
        place: &SettingSource,
    ) -> Result<(), ConfigError> {
        if words.is_empty() && !matches!(self.form, Form::List | Form::Groups) {
            return Err(ConfigError {
                place: place.to_string(),
                message: format!("`{}` is empty", self.name),
                hint: "give at least one value, or remove it to use the default".into(),
            });
        }
        (self.set)(config, words)
    }
}

fn set_title_from(config: &mut Config, words: &[SettingText]) -> Result<(), ConfigError> {
    const SOURCES: [(&str, TitleSource); 3] = [
        ("frontmatter", TitleSource::Frontmatter),
        ("heading", TitleSource::Heading),
        ("filename", TitleSource::FileName),
    ];
    config.title_from = TitleRule(chosen(words, "title source", &SOURCES)?);
    Ok(())
}

fn set_include(config: &mut Config, words: &[SettingText]) -> Result<(), ConfigError> {
    config.include = patterns(words);
    Ok(())
}

fn set_exclude(config: &mut Config, words: &[SettingText]) -> Result<(), ConfigError> {
    config.exclude = patterns(words);
    Ok(())
}

fn set_toolsets(config: &mut Config, words: &[SettingText]) -> Result<(), ConfigError> {
    let toolsets: Vec<(&str, Toolset)> = Toolset::CHOICES.iter().map(|toolset| (toolset.name(), *toolset)).collect();
    config.toolsets = Some(chosen(words, "toolset", &toolsets)?);
    Ok(())
}

fn set_staleness_days(config: &mut Config, words: &[SettingText]) -> Result<(), ConfigError> {
    config.stale_after = Duration::from_secs(u64::from(days("staleness.days", words)?) * 24 * 60 * 60);
    Ok(())
}

fn set_search_mode(config: &mut Config, words: &[SettingText]) -> Result<(), ConfigError> {
    const MODES: [(&str, bool); 2] = [("hybrid", false), ("semantic", true)];
    config.by_meaning_alone = chosen(words, "search mode", &MODES)?.contains(&true);
    Ok(())
}

fn set_embedding_provider(config: &mut Config, words: &[SettingText]) -> Result<(), ConfigError> {
    const PROVIDERS: [(&str, ProviderName); 4] = [
        ("builtin", ProviderName::Builtin),
        ("ollama", ProviderName::Ollama),
        ("openai", ProviderName::OpenAi),
        ("none", ProviderName::None),
    ];
    for provider in chosen(words, "embedding provider", &PROVIDERS)? {
        config.embedding.provider = provider;
    }
    config.embedding.provider_is_users = words.iter().all(SettingText::is_users);
    Ok(())
}

fn set_embedding_model(config: &mut Config, words: &[SettingText]) -> Result<(), ConfigError> {
    config.embedding.model = words.first().map(|word| word.text.clone());
    Ok(())
}

fn set_embedding_url(config: &mut Config, words: &[SettingText]) -> Result<(), ConfigError> {
    config.embedding.url = words.first().map(|word| word.text.clone());
    config.embedding.url_is_users = words.iter().all(SettingText::is_users);
    Ok(())
}

fn set_llm_provider(config: &mut Config, words: &[SettingText]) -> Result<(), ConfigError> {
    const PROVIDERS: [(&str, Option<ChatKind>); 4] = [
        ("ollama", Some(ChatKind::Ollama)),
        ("openai", Some(ChatKind::OpenAi)),
        ("anthropic", Some(ChatKind::Anthropic)),
        ("none", None),
    ];
    for provider in chosen(words, "language model provider", &PROVIDERS)? {
        config.llm.provider = provider;
    }
    config.llm.provider_is_users = words.iter().all(SettingText::is_users);
    Ok(())
}

fn set_llm_model(config: &mut Config, words: &[SettingText]) -> Result<(), ConfigError> {
    config.llm.model = words.first().map(|word| word.text.clone());
    Ok(())
}

fn set_llm_url(config: &mut Config, words: &[SettingText]) -> Result<(), ConfigError> {
    config.llm.url = words.first().map(|word| word.text.clone());
    config.llm.url_is_users = words.iter().all(SettingText::is_users);
    Ok(())
}

fn set_trash_days(config: &mut Config, words: &[SettingText]) -> Result<(), ConfigError> {
    config.trash_days = days("trash_days", words)?;
    Ok(())
}

fn set_duplicate_distance(config: &mut Config, words: &[SettingText]) -> Result<(), ConfigError> {
    let word = &words[0];
    match word.text.parse() {
        Ok(distance) if (0.0..=1.0).contains(&distance) && words.len() == 1 => {
            config.duplicates = DuplicateRule { distance };
            Ok(())
        }
        _ => {
            let hint = "the default is 0.25; 0 rejects only a name or alias that is already used";
            Err(invalid(&word.place, "`memory.duplicate_distance` must be a number from 0 to 1", hint))
        }
    }
}

fn set_memory_types(config: &mut Config, words: &[SettingText]) -> Result<(), ConfigError> {
    for word in words {
        let (canonical, variant) = match word.text.split_once('=') {
            Some((canonical, variant)) => (canonical.trim(), Some(variant.trim())),
            None => (word.text.as_str(), None),
        };
        if canonical.is_empty() || variant.is_some_and(str::is_empty) {
            let message = format!("`{}` is not a type and a word for it", word.text);
            return Err(invalid(&word.place, &message, "write it as: Paper=article,Paper=preprint"));
        }
        config.memory_types.extend(canonical, variant);
    }
    Ok(())
}

fn days(name: &str, words: &[SettingText]) -> Result<u32, ConfigError> {
    let word = &words[0];
    let days = word.text.parse::<u32>().ok().filter(|days| *days <= MAX_DAYS && words.len() == 1);
    days.ok_or_else(|| ConfigError {
        place: word.place.to_string(),
        message: format!("`{name}` cannot be {}", word.text),
        hint: format!("use a whole number from 0 to {MAX_DAYS}"),
    })
}

fn patterns(words: &[SettingText]) -> Vec<Pattern> {
    words.iter().map(|word| Pattern { glob: word.text.clone(), place: word.place.clone() }).collect()
}

/// The values that the words name.
fn chosen<T: Copy>(words: &[SettingText], kind: &str, known: &[(&str, T)]) -> Result<Vec<T>, ConfigError> {
    let find = |word: &SettingText| known.iter().find(|(name, _)| *name == word.text).map(|(_, value)| *value);
    let names = known.iter().map(|(name, _)| *name);
    words.iter().map(|word| find(word).ok_or_else(|| unknown(&word.place, kind, &word.text, names.clone()))).collect()
}
