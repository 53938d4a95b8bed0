//! Settings and the mistakes in them, as examples.

use quipu_core::memory::DuplicateRule;
use quipu_core::parse::{TitleRule, TitleSource};

use super::keys::KEYS;
use super::{Config, OTHER_VARIABLES};

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
fn numbers_are_read_from_tables_and_variables() {
    let days = |config: Config| config.stale_after.as_secs() / 86_400;
    assert_eq!(days(read("", &[]).unwrap()), 7);
    assert_eq!(days(read("[staleness]\ndays = 30\n", &[]).unwrap()), 30);
    assert_eq!(days(read("staleness.days = 30", &[("QUIPU_STALENESS_DAYS", "0")]).unwrap()), 0);
    for (text, expected) in [
        ("[staleness]\ndays = \"7\"", "line 2: `staleness.days` must be a whole number\nhint: write it as: days = 7"),
        ("[staleness]\ndays = -1", "line 2: `staleness.days` cannot be -1\nhint: use a whole number from 0 to 36500"),
        ("[embeding]\nmodel = \"x\"", "line 1: unknown key `embeding`\nhint: did you mean `[embedding]`?"),
        ("staleness = 7", "line 1: unknown key `staleness`\nhint: did you mean `staleness.days`?"),
        ("[staleness]\nday = 7", "line 2: unknown key `staleness.day`\nhint: did you mean `staleness.days`?"),
    ] {
        let error = read(text, &[]).unwrap_err();
        assert!(error.starts_with(&format!(".quipu/config.toml, {expected}")), "{text:?} gave {error:?}");
    }
    assert!(read("", &[("QUIPU_STALENESS_DAYS", "soon")]).unwrap_err().contains("`staleness.days` cannot be soon"));
}

#[test]
fn memory_settings_have_environment_variables() {
    let text = "[memory]\nduplicate_distance = 0.1\n\n[memory.types]\nPaper = [\"article\"]\n";
    let variables =
        [("QUIPU_MEMORY_DUPLICATE_DISTANCE", "0.3"), ("QUIPU_MEMORY_TYPES", "Paper=preprint, Tool = gadget, Boat")];
    let config = read(text, &variables).unwrap();
    assert_eq!(config.duplicates, DuplicateRule { distance: 0.3 }, "the later wins");
    for (word, canonical) in [("article", "Paper"), ("preprint", "Paper"), ("gadget", "Tool"), ("boat", "Boat")] {
        assert_eq!(config.memory_types.canonical(word), canonical);
    }
    for (variable, value) in [
        ("QUIPU_MEMORY_DUPLICATE_DISTANCE", "2"),
        ("QUIPU_MEMORY_DUPLICATE_DISTANCE", "0.1,0.2"),
        ("QUIPU_MEMORY_TYPES", "=x"),
    ] {
        let error = read("", &[(variable, value)]).unwrap_err();
        assert!(error.starts_with(variable), "{error}");
    }
}

#[test]
fn memory_settings_have_their_own_table() {
    let text = "[memory]\nduplicate_distance = 0.1\n\n[memory.types]\nPaper = [\"article\"]\n";
    let config = read(text, &[]).unwrap();
    assert_eq!(config.duplicates, DuplicateRule { distance: 0.1 });
    assert_eq!(config.memory_types.canonical("Article"), "Paper");
    for (text, expected) in [
        ("[memory]\nduplicate_distance = 2\n", "line 2: `memory.duplicate_distance` must be a number from 0 to 1"),
        ("[memory]\nduplicates = 2\n", "line 2: unknown key `memory.duplicates`"),
        ("[memory.types]\nPaper = \"article\"\n", "line 2: `Paper` must be a list of strings"),
        (
            "[memory]\nduplicate_distance = \"near\"\n",
            "line 2: `memory.duplicate_distance` must be a number from 0 to 1",
        ),
        ("[memory]\ntypes = 1\n", "line 2: `memory.types` must be a table"),
        ("[memory.types]\n\"a=b\" = []\n", "line 2: `a=b` contains `=`"),
        ("memory = 1\n", "line 1: unknown key `memory`"),
    ] {
        let error = read(text, &[]).unwrap_err();
        assert!(error.contains(expected), "{text:?} gave {error:?}");
    }
}

#[test]
fn config_error_names_its_location_and_the_nearest_key() {
    for (text, expected) in [
        (
            "\n\nexclud = []\n",
            "unknown key `exclud`\nhint: did you mean `exclude`? The keys are `title_from`, `include`, `exclude`, `toolsets`, `staleness.days`, `search.mode`, `embedding.provider`, `embedding.model`, `embedding.url`, `llm.provider`, `llm.model`, `llm.url`, `trash_days`, `memory.duplicate_distance`, `memory.types`",
        ),
        (
            "exclude = []\n\ntoolsets = [\n  \"note\",\n]\n",
            "unknown toolset `note`\nhint: did you mean `notes`? The toolsets are `notes`, `docs`, `pages`, `memory`, `work`, `upkeep`, `essential`",
        ),
        (
            "[http]\nport = 1\n",
            "`http` is not supported by this version\nhint: remove it; the keys are `title_from`, `include`, `exclude`, `toolsets`, `staleness.days`, `search.mode`, `embedding.provider`, `embedding.model`, `embedding.url`, `llm.provider`, `llm.model`, `llm.url`, `trash_days`, `memory.duplicate_distance`, `memory.types`",
        ),
        ("toolsets = []\n", "`toolsets` is empty\nhint: give at least one value, or remove it to use the default"),
        ("title_from = []\n", "`title_from` is empty\nhint: give at least one value, or remove it to use the default"),
        ("exclude = \"a\"\n", "`exclude` must be a list of strings\nhint: write it as: exclude = [\"…\", \"…\"]"),
        ("# ok\ninclude = [1]\n", "`include` must be a list of strings\nhint: write it as: include = [\"…\", \"…\"]"),
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

#[test]
fn unknown_quipu_variable_is_an_error() {
    let refused = |names: &[&str]| super::reject_unknown(names.iter().map(|name| (*name).to_owned()));
    refused(&["PATH", "QUIPU", "QUIPU_VAULT", "QUIPU_LOG", "QUIPU_LLM_KEY", "QUIPU_EXCLUDE", "QUIPU_TEST_X"]).unwrap();
    let error = refused(&["QUIPU_EXCLUD", "QUIPU_ZZZ"]).unwrap_err();
    assert_eq!(error.to_string(), "the environment: unknown variable `QUIPU_EXCLUD`");
    assert!(
        error.hint.starts_with("did you mean `QUIPU_EXCLUDE`? The variables are `QUIPU_TITLE_FROM`,"),
        "{}",
        error.hint
    );
}

#[test]
fn language_model_settings_have_their_own_table() {
    assert_eq!(read("", &[]).unwrap().llm.provider(), None);
    let text = "[llm]\nprovider = \"anthropic\"\nmodel = \"m\"\n";
    let provider = read(text, &[]).unwrap().llm.provider().unwrap();
    assert_eq!((provider.url.as_str(), provider.model.as_str()), ("https://api.anthropic.com", "m"));
    assert!(!read(text, &[]).unwrap().llm.is_named_by_user());
    assert!(read(text, &[("QUIPU_LLM_PROVIDER", "ollama")]).unwrap().llm.is_named_by_user());
    assert_eq!(read(text, &[("QUIPU_LLM_PROVIDER", "none")]).unwrap().llm.provider(), None);
    for (text, expected) in [
        (
            "[llm]\nprovider = \"antropic\"",
            "line 2: unknown language model provider `antropic`\nhint: did you mean `anthropic`?",
        ),
        ("[llm]\nmodle = \"m\"", "line 2: unknown key `llm.modle`\nhint: did you mean `llm.model`?"),
        ("[lllm]\nmodel = \"m\"", "line 1: unknown key `lllm`\nhint: did you mean `[llm]`?"),
        ("[llm]\nurl = 1", "line 2: `llm.url` must be a string"),
        (
            "[llm]\napi_key = \"x\"",
            "line 2: cannot read `llm.api_key` from a file, which is easily copied or committed\nhint: remove it, and set \
             QUIPU_LLM_KEY in the environment",
        ),
    ] {
        let error = read(text, &[]).unwrap_err();
        assert!(error.starts_with(&format!(".quipu/config.toml, {expected}")), "{text:?} gave {error:?}");
    }
}

#[test]
fn every_key_and_variable_is_documented() {
    let page = include_str!("../../../../docs/settings.md");
    let rows: Vec<&str> = page.lines().collect();
    let settings = KEYS.iter().map(|key| format!("| `{}` | `{}` |", key.name, key.variable));
    for start in settings.chain(OTHER_VARIABLES.map(|variable| format!("| `{variable}` |"))) {
        assert!(rows.iter().any(|row| row.starts_with(&start)), "docs/settings.md has no row `{start}`");
    }
}
