//! Settings in TOML: one table is added or removed, and every other byte stays.

use serde_json::Value as JsonValue;
use toml_edit::{Array, DocumentMut, Item, Table, value};

use super::{EditError, Launch, SettingsFormat, is_harmless};

/// Servers as tables below one key.
pub(super) struct Toml {
    pub(super) section: &'static str,
}

impl SettingsFormat for Toml {
    fn with(&self, text: &str, name: &str, launch: &Launch) -> Result<String, EditError> {
        let mut document = parse(text)?;
        let servers = document.entry(self.section).or_insert_with(|| {
            // Implicit: only the tables below it get a header, as people write it.
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        });
        let servers = servers.as_table_like_mut().ok_or_else(|| EditError::Unexpected(self.section.to_owned()))?;
        match servers.get_mut(name) {
            Some(known) => {
                let known = known.as_table_like_mut().ok_or_else(|| EditError::Unexpected(name.to_owned()))?;
                known.insert("command", value(&launch.program));
                known.insert("args", value(Array::from_iter(&launch.arguments)));
            }
            None => {
                let mut table = Table::new();
                table.insert("command", value(&launch.program));
                table.insert("args", value(Array::from_iter(&launch.arguments)));
                servers.insert(name, Item::Table(table));
            }
        }
        self.checked(text, document.to_string(), name)
    }

    fn pruned(&self, text: &str, name: &str) -> Result<(String, Vec<String>), EditError> {
        let mut document = parse(text)?;
        let servers = document.get_mut(self.section).and_then(Item::as_table_like_mut);
        let known = servers.and_then(|servers| servers.get_mut(name)).and_then(Item::as_table_like_mut);
        let Some(known) = known else { return Ok((text.to_owned(), Vec::new())) };
        let is_kept = |field: &str, item: &Item| is_harmless(field, &item.as_str().into());
        let removed: Vec<String> =
            known.iter().filter(|(field, item)| !is_kept(field, item)).map(|(field, _)| field.to_owned()).collect();
        removed.iter().for_each(|field| drop(known.remove(field)));
        Ok((self.checked(text, document.to_string(), name)?, removed))
    }

    fn without(&self, text: &str, name: &str) -> Result<Option<String>, EditError> {
        let mut document = parse(text)?;
        let servers = document.get_mut(self.section).and_then(Item::as_table_like_mut);
        if servers.and_then(|servers| servers.remove(name)).is_none() {
            return Ok(None);
        }
        self.checked(text, document.to_string(), name).map(Some)
    }

    fn servers(&self, text: &str) -> Result<Vec<(String, Option<Launch>)>, EditError> {
        let document = parse(text)?;
        let Some(servers) = document.get(self.section).and_then(Item::as_table_like) else { return Ok(Vec::new()) };
        Ok(servers.iter().map(|(name, entry)| (name.to_owned(), launch(entry))).collect())
    }
}

impl Toml {
    /// Returns the new text after checking that only this server differs.
    fn checked(&self, before: &str, after: String, name: &str) -> Result<String, EditError> {
        let rest = |text: &str| -> Result<JsonValue, EditError> {
            let table: toml::Table =
                toml::from_str(text).map_err(|error| EditError::Unreadable(error.message().to_owned()))?;
            let mut table = table;
            let is_empty = table.get_mut(self.section).and_then(toml::Value::as_table_mut).is_some_and(|servers| {
                servers.remove(name);
                servers.is_empty()
            });
            if is_empty {
                table.remove(self.section);
            }
            serde_json::to_value(table).map_err(|error| EditError::Unreadable(error.to_string()))
        };
        if rest(before)? == rest(&after)? { Ok(after) } else { Err(EditError::TooMuch) }
    }
}

fn parse(text: &str) -> Result<DocumentMut, EditError> {
    text.parse().map_err(|error: toml_edit::TomlError| EditError::Unreadable(error.message().to_owned()))
}

fn launch(entry: &Item) -> Option<Launch> {
    let entry = entry.as_table_like()?;
    let program = entry.get("command")?.as_str()?.to_owned();
    let arguments = match entry.get("args") {
        None => Vec::new(),
        Some(list) => list.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<_>>()?,
    };
    Some(Launch { program, arguments })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: Toml = Toml { section: "mcp_servers" };

    fn quipu() -> Launch {
        Launch { program: "/bin/quipu".into(), arguments: vec!["serve".into(), "/home/ada/notes".into()] }
    }

    #[test]
    fn table_is_added_and_removed_and_the_rest_stays() {
        let text = "# mine\nmodel = \"o\"   # best\n\n[mcp_servers.other]\ncommand = 'x'\n\n[z]\na = 1\n";
        let with = FORMAT.with(text, "quipu", &quipu()).unwrap();
        assert!(with.starts_with("# mine\nmodel = \"o\"   # best\n\n[mcp_servers.other]\ncommand = 'x'\n"), "{with}");
        assert!(
            with.contains("[mcp_servers.quipu]\ncommand = \"/bin/quipu\"\nargs = [\"serve\", \"/home/ada/notes\"]\n"),
            "{with}"
        );
        assert_eq!(FORMAT.servers(&with).unwrap()[1], ("quipu".to_owned(), Some(quipu())));
        assert_eq!(FORMAT.without(&with, "quipu").unwrap().unwrap(), text);
        assert_eq!(FORMAT.without(text, "quipu").unwrap(), None);
    }

    #[test]
    fn settings_a_person_added_to_the_server_stay() {
        let text = "[mcp_servers.quipu]\ncommand = \"old\"\nstartup_timeout_sec = 20\n";
        let with = FORMAT.with(text, "quipu", &quipu()).unwrap();
        assert!(with.contains("startup_timeout_sec = 20") && with.contains("/bin/quipu"), "{with}");
    }

    #[test]
    fn fields_that_change_what_is_run_are_pruned() {
        let text = "[mcp_servers.quipu]\ncommand = \"quipu\"\nenabled = false\ncwd = \"/x\"\n\n[mcp_servers.quipu.env]\nA = \"1\"\n";
        let (pruned, removed) = FORMAT.pruned(text, "quipu").unwrap();
        assert_eq!(removed, ["cwd", "env"]);
        assert_eq!(pruned, "[mcp_servers.quipu]\ncommand = \"quipu\"\nenabled = false\n");
    }

    #[test]
    fn invalid_settings_are_not_changed() {
        for text in ["[", "mcp_servers = 1\n", "[mcp_servers]\nquipu = 1\n"] {
            assert!(FORMAT.with(text, "quipu", &quipu()).is_err(), "{text}");
        }
        assert_eq!(FORMAT.with("", "quipu", &quipu()).unwrap().lines().next(), Some("[mcp_servers.quipu]"));
    }
}
