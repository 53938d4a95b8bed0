//! Canonical entity types: agents write `bug`, `Bug` and `issue` for the same type.

use rustc_hash::FxHashMap;

/// Canonical types and their synonyms.
const KNOWN: [(&str, &[&str]); 31] = [
    ("Project", &["projects", "workspace", "workspaces", "context", "repo", "repository", "codebase"]),
    ("Framework", &["frameworks", "lib", "library"]),
    ("ApplicationStack", &["application_stack", "app_stack", "stack", "techstack", "tech_stack"]),
    ("Workflow", &["workflows", "process"]),
    ("BestPractice", &["best_practice", "practice", "guideline", "convention", "pattern"]),
    ("Task", &["tasks", "todo"]),
    ("Step", &["steps", "substep", "sub_step"]),
    ("Issue", &["issues", "bug", "problem"]),
    ("Error", &["errors", "exception"]),
    ("PossibleSolution", &["possible_solution", "solution", "workaround", "fix"]),
    ("Model", &["models", "activerecord_model"]),
    ("DatabaseTable", &["database_table", "table", "db_table"]),
    ("DatabaseSchema", &["database_schema", "schema", "db_schema"]),
    ("Class", &["classes", "module"]),
    ("APIEndpoint", &["api_endpoint", "endpoint", "api"]),
    ("Route", &["routes"]),
    ("Component", &["components", "widget"]),
    ("Service", &["services"]),
    ("Configuration", &["config", "setting", "settings"]),
    ("Migration", &["migrations", "db_migration"]),
    ("TestCase", &["test_case", "test", "spec"]),
    ("Permission", &["permissions", "role"]),
    ("User", &["users", "person"]),
    ("Preference", &["preferences", "pref"]),
    ("Constant", &["constants", "const"]),
    ("ProjectPlan", &["project_plan", "plan"]),
    ("Feature", &["features"]),
    ("Gem", &["gems", "rubygem"]),
    ("Tool", &["tools"]),
    ("Resource", &["resources"]),
    ("Documentation", &["docs", "doc", "readme"]),
];

/// The mapping from synonyms to canonical types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityTypes {
    canonical: FxHashMap<String, String>,
    /// By canonical type, its synonyms.
    variants: FxHashMap<String, Vec<String>>,
}

impl Default for EntityTypes {
    fn default() -> Self {
        let mut types = Self { canonical: FxHashMap::default(), variants: FxHashMap::default() };
        for (canonical, variants) in KNOWN {
            types.extend(canonical, variants.iter().copied());
        }
        types
    }
}

impl EntityTypes {
    /// The canonical types that every memory has.
    pub const CANONICAL: [&str; KNOWN.len()] = {
        let mut names = [""; KNOWN.len()];
        let mut at = 0;
        while at < KNOWN.len() {
            names[at] = KNOWN[at].0;
            at += 1;
        }
        names
    };

    /// Adds a canonical type or synonyms of it. Replaces earlier mappings of these words.
    pub fn extend<'a>(&mut self, canonical: &'a str, variants: impl IntoIterator<Item = &'a str>) {
        for written in variants.into_iter().chain([canonical]) {
            let written = key(written);
            let before = self.canonical.insert(written.clone(), canonical.to_owned());
            if let Some(others) = before.and_then(|before| self.variants.get_mut(&before)) {
                others.retain(|other| *other != written);
            }
            if written != key(canonical) {
                self.variants.entry(canonical.to_owned()).or_default().push(written);
            }
        }
    }

    /// The synonyms of a canonical type, lowercased.
    pub fn variants(&self, canonical: &str) -> &[String] {
        self.variants.get(canonical).map_or(&[], Vec::as_slice)
    }

    /// Whether a type was stored under another word than the given one, ignoring case.
    pub fn is_other_word(written: &str, kept: &str) -> bool {
        key(written) != key(kept)
    }

    /// The canonical type of a word; an unknown word is returned trimmed.
    pub fn canonical(&self, written: &str) -> String {
        self.canonical.get(&key(written)).map_or_else(|| written.trim().to_owned(), Clone::clone)
    }
}

fn key(written: &str) -> String {
    written.trim().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn synonyms_become_canonical_and_unknown_types_stay() {
        let types = EntityTypes::default();
        for (written, canonical) in [
            ("workspace", "Project"),
            (" Repo ", "Project"),
            ("BUG", "Issue"),
            ("apiendpoint", "APIEndpoint"),
            ("TestCase", "TestCase"),
            ("readme", "Documentation"),
            ("Cat", "Cat"),
            (" Sea Lion ", "Sea Lion"),
        ] {
            assert_eq!(types.canonical(written), canonical);
        }
    }

    #[test]
    fn added_types_replace_builtin_mappings() {
        let mut types = EntityTypes::default();
        types.extend("Paper", ["article", "preprint"]);
        types.extend("Ticket", ["bug"]);
        assert_eq!(types.canonical("Article"), "Paper");
        assert_eq!(types.canonical("paper"), "Paper");
        assert_eq!(types.canonical("bug"), "Ticket");
        assert_eq!(types.canonical("issue"), "Issue");
        assert_eq!(types.variants("Ticket"), ["bug"]);
        assert_eq!(types.variants("Issue"), ["issues", "problem"]);
        assert_eq!(types.variants("Cat"), [""; 0]);
    }
}
