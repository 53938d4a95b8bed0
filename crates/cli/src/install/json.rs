//! Settings in JSON with comments and trailing commas: one property is added or removed, and every other byte stays.

use std::collections::HashSet;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::{Map, Value};

use super::{EditError, Launch, SettingsFormat, is_harmless, strings};

/// Servers as an object below one key.
pub(super) struct Json {
    pub(super) section: &'static str,
    /// A server in the form of the client.
    pub(super) entry: fn(&Launch) -> Value,
}

impl SettingsFormat for Json {
    fn with(&self, text: &str, name: &str, launch: &Launch) -> Result<String, EditError> {
        let root = parse(text)?;
        let servers = self.object(&root)?.ok_or(()).or_else(|()| {
            let whole = root.object_value_or_create().ok_or_else(|| unexpected("the file"))?;
            whole.object_value_or_create(self.section).ok_or_else(|| unexpected(self.section))
        })?;
        servers.ensure_multiline();
        let entry = (self.entry)(launch);
        match servers.get(name) {
            Some(known) => set_launch(&known.object_value().ok_or_else(|| unexpected(name))?, entry)?,
            None => drop(servers.append(name, input(entry))),
        }
        self.checked(text, root.to_string(), name)
    }

    fn pruned(&self, text: &str, name: &str) -> Result<(String, Vec<String>), EditError> {
        let root = parse(text)?;
        let known = self.object(&root)?.and_then(|servers| servers.get(name)).and_then(|known| known.object_value());
        let Some(known) = known else { return Ok((text.to_owned(), Vec::new())) };
        reject_duplicates(&known, |_| true)?;
        let mut removed = Vec::new();
        for property in known.properties() {
            let field = property.name().and_then(|field| field.decoded_value().ok()).ok_or_else(|| unexpected(name))?;
            let value = property.value().and_then(|value| value.to_serde_value()).unwrap_or_default();
            if !is_harmless(&field, &value) {
                property.remove();
                removed.push(field);
            }
        }
        Ok((self.checked(text, root.to_string(), name)?, removed))
    }

    fn without(&self, text: &str, name: &str) -> Result<Option<String>, EditError> {
        let root = parse(text)?;
        let Some(known) = self.object(&root)?.and_then(|servers| servers.get(name)) else { return Ok(None) };
        known.remove();
        self.checked(text, root.to_string(), name).map(Some)
    }

    fn servers(&self, text: &str) -> Result<Vec<(String, Option<Launch>)>, EditError> {
        if let Err(error @ EditError::Twice(_)) = self.object(&parse(text)?) {
            return Err(error);
        }
        let servers = match value(text)? {
            Value::Object(mut whole) => whole.remove(self.section),
            _ => None,
        };
        let Some(Value::Object(servers)) = servers else { return Ok(Vec::new()) };
        Ok(servers.into_iter().map(|(name, entry)| (name, launch(&entry))).collect())
    }
}

impl Json {
    /// The object of servers; `None` if there is none yet.
    fn object(&self, root: &CstRootNode) -> Result<Option<CstObject>, EditError> {
        let Some(value) = root.value() else { return Ok(None) };
        let whole = value.as_object().ok_or_else(|| unexpected("the file"))?;
        reject_duplicates(&whole, |name| name == self.section)?;
        let Some(section) = whole.get(self.section) else { return Ok(None) };
        let servers = section.object_value().ok_or_else(|| unexpected(self.section))?;
        reject_duplicates(&servers, |_| true)?;
        Ok(Some(servers))
    }

    /// Returns the new text after checking that only this server differs.
    fn checked(&self, before: &str, after: String, name: &str) -> Result<String, EditError> {
        let rest = |text: &str| -> Result<Value, EditError> {
            let mut whole = value(text)?;
            if let Some(servers) = whole.get_mut(self.section).and_then(Value::as_object_mut) {
                servers.remove(name);
                if servers.is_empty() {
                    whole.as_object_mut().and_then(|whole| whole.remove(self.section));
                }
            }
            Ok(whole)
        };
        if rest(before)? == rest(&after)? { Ok(after) } else { Err(EditError::TooMuch) }
    }
}

/// The fields that say how a server is started.
const START: [&str; 2] = ["command", "args"];

/// Sets how an existing server is started. Its other fields stay, and missing ones are added.
fn set_launch(known: &CstObject, entry: Value) -> Result<(), EditError> {
    reject_duplicates(known, |_| true)?;
    let Value::Object(entry) = entry else { return Err(unexpected("the server")) };
    for (name, value) in entry {
        match known.get(&name) {
            Some(there) if START.contains(&name.as_str()) => there.set_value(input(value)),
            Some(_) => {}
            None => drop(known.append(&name, input(value))),
        }
    }
    Ok(())
}

/// Rejects an object with a duplicate name: programs differ in which of the two they use.
fn reject_duplicates(object: &CstObject, counts: impl Fn(&str) -> bool) -> Result<(), EditError> {
    let mut names = HashSet::new();
    for name in object.properties().iter().filter_map(|property| property.name()?.decoded_value().ok()) {
        if counts(&name) && !names.insert(name.clone()) {
            return Err(EditError::Twice(name));
        }
    }
    Ok(())
}

/// Comments and trailing commas, which editors accept; nothing looser.
fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

fn parse(text: &str) -> Result<CstRootNode, EditError> {
    CstRootNode::parse(text, &options()).map_err(|error| EditError::Unreadable(error.to_string()))
}

/// The parsed text. An empty text is an empty object.
fn value(text: &str) -> Result<Value, EditError> {
    let value = parse(text)?.to_serde_value();
    Ok(value.filter(|value| !value.is_null()).unwrap_or_else(|| Value::Object(Map::new())))
}

fn unexpected(what: &str) -> EditError {
    EditError::Unexpected(what.to_owned())
}

fn input(value: Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(value),
        Value::Number(value) => CstInputValue::Number(value.to_string()),
        Value::String(value) => CstInputValue::String(value),
        Value::Array(values) => CstInputValue::Array(values.into_iter().map(input).collect()),
        Value::Object(values) => {
            CstInputValue::Object(values.into_iter().map(|(name, value)| (name, input(value))).collect())
        }
    }
}

/// How a server is started: a program and its arguments, in one list or in two fields.
fn launch(entry: &Value) -> Option<Launch> {
    match &entry["command"] {
        Value::String(program) => {
            let arguments = if entry["args"].is_null() { Some(Vec::new()) } else { strings(&entry["args"]) };
            Some(Launch { program: program.clone(), arguments: arguments? })
        }
        list => {
            let mut words = strings(list)?.into_iter();
            Some(Launch { program: words.next()?, arguments: words.collect() })
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FORMAT: Json =
        Json { section: "servers", entry: |launch| json!({ "command": launch.program, "args": launch.arguments }) };

    fn quipu() -> Launch {
        Launch { program: "/bin/quipu".into(), arguments: vec!["serve".into(), "/home/ada/my \"notes\"".into()] }
    }

    #[test]
    fn comments_commas_and_spaces_stay_as_they_are() {
        let text = "// mine\n{\n\t\"a\": 1, // one\n\t\"servers\": {\n\t\t/* other */ \"other\": {\"command\": \"x\",},\n\t},\n\t\"z\": [1,2,],\n}\n";
        let with = FORMAT.with(text, "quipu", &quipu()).unwrap();
        assert!(
            with.starts_with(
                "// mine\n{\n\t\"a\": 1, // one\n\t\"servers\": {\n\t\t/* other */ \"other\": {\"command\": \"x\",},"
            ),
            "{with}"
        );
        assert!(with.ends_with("\t\"z\": [1,2,],\n}\n"), "{with}");
        assert_eq!(FORMAT.servers(&with).unwrap()[1], ("quipu".to_owned(), Some(quipu())));
        let without = FORMAT.without(&with, "quipu").unwrap().unwrap();
        assert_eq!(FORMAT.servers(&without).unwrap().len(), 1);
        assert!(without.contains("/* other */") && without.contains("// one"));
        assert_eq!(FORMAT.without(&without, "quipu").unwrap(), None);
    }

    #[test]
    fn settings_a_person_added_to_the_server_stay() {
        let typed = Json { entry: |launch| json!({ "type": "stdio", "command": launch.program }), ..FORMAT };
        let text = "{\"servers\": {\"quipu\": {\n  \"command\": \"old\",\n  \"env\": {\"A\": \"1\"}, // mine\n  \"disabled\": true\n}}}";
        let with = typed.with(text, "quipu", &quipu()).unwrap();
        assert!(with.contains("// mine"), "{with}");
        let server = json!({ "type": "stdio", "command": "/bin/quipu", "env": { "A": "1" }, "disabled": true });
        assert_eq!(value(&with).unwrap()["servers"]["quipu"], server);
        let other = text.replace("\"disabled\"", "\"type\": \"other\", \"disabled\"");
        assert!(typed.with(&other, "quipu", &quipu()).unwrap().contains("\"other\""));
        let twice = text.replace("\"disabled\"", "\"command\": \"x\", \"disabled\"");
        assert_eq!(typed.with(&twice, "quipu", &quipu()), Err(EditError::Twice("command".to_owned())));
    }

    #[test]
    fn fields_that_change_what_is_run_are_pruned() {
        let text = r#"{"servers": {"quipu": {"type": "stdio", "command": "quipu", "env": {"LD_PRELOAD": "./x.so"}, // mine
            "cwd": "/x", "disabled": true, "autoApprove": ["redact"]}, "other": {"env": {}}}}"#;
        let (pruned, removed) = FORMAT.pruned(text, "quipu").unwrap();
        assert_eq!(removed, ["env", "cwd", "autoApprove"]);
        let server = json!({ "type": "stdio", "command": "quipu", "disabled": true });
        assert_eq!(value(&pruned).unwrap()["servers"], json!({ "quipu": server, "other": { "env": {} } }));
        assert_eq!(FORMAT.pruned(&pruned, "quipu").unwrap(), (pruned.clone(), Vec::new()));
        let (pruned, removed) = FORMAT.pruned(&text.replace("stdio", "http"), "quipu").unwrap();
        assert!(removed.contains(&"type".to_owned()) && !pruned.contains("http"), "{pruned}");
        let twice = text.replace("\"cwd\"", "\"env\"");
        assert_eq!(FORMAT.pruned(&twice, "quipu"), Err(EditError::Twice("env".to_owned())));
    }

    #[test]
    fn empty_settings_get_a_server_section() {
        for text in ["", "\n", "{}", "{ \"a\": 1 }", "{\"servers\": {}}", "{\r\n  \"a\": 1\r\n}\r\n"] {
            let with = FORMAT.with(text, "quipu", &quipu()).unwrap();
            assert_eq!(FORMAT.servers(&with).unwrap(), [("quipu".to_owned(), Some(quipu()))], "{text:?}");
            let again = FORMAT.with(&with, "quipu", &quipu()).unwrap();
            assert_eq!(again, with, "adding it twice changes nothing");
        }
    }

    #[test]
    fn invalid_settings_are_not_changed() {
        for text in
            ["{", "[]", "\"x\"", "{\"servers\": []}", "{\"servers\": null}", "{'servers': {}}", "{a: 1}", "{} x"]
        {
            assert!(FORMAT.with(text, "quipu", &quipu()).is_err(), "{text}");
        }
    }

    #[test]
    fn duplicate_names_are_rejected() {
        let text = r#"{"servers": {}, "a": 1, "servers": {"quipu": {"command": "x"}}}"#;
        let twice = r#"{"servers": {"x": {"command": "x"}, "x": {"command": "y"}}}"#;
        for (text, name) in [(text, "servers"), (twice, "x")] {
            let error = EditError::Twice(name.to_owned());
            assert_eq!(FORMAT.with(text, "quipu", &quipu()), Err(error.clone()));
            assert_eq!(FORMAT.without(text, "quipu"), Err(error.clone()));
            assert_eq!(FORMAT.servers(text), Err(error));
        }
    }

    #[test]
    fn server_entry_is_read_in_both_formats() {
        let text = r#"{"servers": {"a": {"command": ["x", "y"]}, "b": {"command": "x"}, "c": {"url": "http://x"}, "d": {"command": [1]}}}"#;
        let launch = |arguments: &[&str]| {
            let arguments = arguments.iter().map(|&word| word.to_owned()).collect();
            Some(Launch { program: "x".into(), arguments })
        };
        let found: Vec<Option<Launch>> = FORMAT.servers(text).unwrap().into_iter().map(|(_, launch)| launch).collect();
        assert_eq!(found, [launch(&["y"]), launch(&[]), None, None]);
    }
}
