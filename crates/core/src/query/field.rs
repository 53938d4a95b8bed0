//! The fields of a note that a query can name, and their values.

use crate::index::Snapshot;
use crate::model::{Note, NoteKey, Tag, Value, fold};

use super::scalar::{Scalar, Span};

/// A field of a note that a query can compare or sort by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Field {
    /// The note's id.
    Id,
    /// The folder of its file, without a slash at the end; empty in the vault's root.
    Folder,
    Title,
    Aliases,
    Tags,
    /// The date in its frontmatter (`created`, `created_at` or `date`), else at the start of its file name. The time in the
    /// file system is not used: a program that saves by renaming resets it.
    Created,
    /// When its file was last changed.
    Modified,
    /// Characters of its text.
    Chars,
    /// Notes that it links to.
    LinksOut,
    /// Notes that link to it.
    LinksIn,
    /// Links to no note.
    BrokenLinks,
    TasksOpen,
    /// Finished tasks.
    TasksDone,
    DocType,
    /// The names of its frontmatter properties.
    Properties,
    /// A frontmatter property, by its folded name, or by a path into maps: `meta.status`.
    Property(String),
    /// The notes it links to; only for conditions.
    LinksTo,
    /// The notes that link to it; only for conditions.
    LinkedFrom,
}

/// The type of a field's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldKind {
    Text,
    Number,
    Time,
    /// Decided by each value.
    Any,
    Note,
}

/// A value of a field for an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldValue {
    /// Nanoseconds since 1970.
    Time(i64),
    /// Any other value.
    Plain(Value),
}

const PROPERTY: &str = "property.";

/// The properties that tell when a note was created, the first of them that is a date.
const CREATED: [&str; 3] = ["created", "created_at", "date"];

impl Field {
    /// Every field except the properties, in the order of the documentation.
    pub const NAMED: [Self; 17] = [
        Self::Id,
        Self::Title,
        Self::Tags,
        Self::Created,
        Self::Modified,
        Self::Chars,
        Self::LinksOut,
        Self::LinksIn,
        Self::BrokenLinks,
        Self::TasksOpen,
        Self::TasksDone,
        Self::DocType,
        Self::Folder,
        Self::Aliases,
        Self::Properties,
        Self::LinksTo,
        Self::LinkedFrom,
    ];

    /// The field with this name.
    pub fn parse(name: &str) -> Option<Self> {
        match name.strip_prefix(PROPERTY) {
            Some("title") => Some(Self::Title),
            Some("tags") => Some(Self::Tags),
            Some(property) => Some(fold(property)).filter(|folded| !folded.is_empty()).map(Self::Property),
            None => Self::NAMED.into_iter().find(|field| field.name() == name),
        }
    }

    /// The name in a query.
    pub fn name(&self) -> String {
        let name = match self {
            Self::Id => "id",
            Self::Folder => "folder",
            Self::Title => "title",
            Self::Aliases => "aliases",
            Self::Tags => "tags",
            Self::Created => "created",
            Self::Modified => "modified",
            Self::Chars => "chars",
            Self::LinksOut => "links_out",
            Self::LinksIn => "links_in",
            Self::BrokenLinks => "broken_links",
            Self::TasksOpen => "tasks_open",
            Self::TasksDone => "tasks_done",
            Self::DocType => "doc_type",
            Self::Properties => "properties",
            Self::LinksTo => "links_to",
            Self::LinkedFrom => "linked_from",
            Self::Property(name) => return format!("{PROPERTY}{name}"),
        };
        name.to_owned()
    }

    /// Whether it can be shown, sorted and grouped by, and not only be in a condition.
    pub fn has_values(&self) -> bool {
        self.kind() != FieldKind::Note
    }

    pub(super) fn kind(&self) -> FieldKind {
        match self {
            Self::Id | Self::Folder | Self::Title | Self::Aliases | Self::Tags | Self::DocType | Self::Properties => {
                FieldKind::Text
            }
            Self::Created | Self::Modified => FieldKind::Time,
            Self::Chars | Self::LinksOut | Self::LinksIn | Self::BrokenLinks | Self::TasksOpen | Self::TasksDone => {
                FieldKind::Number
            }
            Self::Property(_) => FieldKind::Any,
            Self::LinksTo | Self::LinkedFrom => FieldKind::Note,
        }
    }

    /// Its value for an answer.
    pub fn value(&self, snapshot: &Snapshot, key: NoteKey) -> FieldValue {
        let note = snapshot.note(key);
        let text = |text: &str| Value::Text(text.to_owned());
        let number = |number: usize| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
        FieldValue::Plain(match self {
            Self::Id => text(note.id.as_str()),
            Self::Folder => text(note.path.folder()),
            Self::Title => text(&note.title),
            Self::Aliases => Value::List(note.aliases.iter().map(|alias| text(alias)).collect()),
            Self::Tags => Value::List(note.tags.iter().map(|tag| text(&tag.name)).collect()),
            Self::Created => created(note).map_or(Value::Null, |(written, _)| text(written)),
            Self::Modified => return FieldValue::Time(note.stat.modified_ns),
            Self::DocType => text(doc_type(note)),
            Self::Properties => Value::List(note.properties.iter().map(|(name, _)| text(name)).collect()),
            Self::Property(name) => match &properties(note, name)[..] {
                [] => Value::Null,
                [one] => (*one).clone(),
                several => Value::List(several.iter().map(|value| (*value).clone()).collect()),
            },
            Self::LinksTo | Self::LinkedFrom => Value::Null,
            Self::Chars | Self::LinksOut | Self::LinksIn | Self::BrokenLinks | Self::TasksOpen | Self::TasksDone => {
                number(self.count(snapshot, key))
            }
        })
    }

    /// Its values for comparisons, each with the spelling to show where that differs.
    pub(super) fn scalars(&self, snapshot: &Snapshot, key: NoteKey, add: &mut dyn FnMut(Scalar, Option<&Value>)) {
        let note = snapshot.note(key);
        let mut add_text = |text: &str| {
            let folded = fold(text);
            let written = (folded != text).then(|| Value::Text(text.to_owned()));
            add(Scalar::Text(folded), written.as_ref());
        };
        match self {
            Self::Id => add_text(note.id.as_str()),
            Self::Folder => add_text(note.path.folder()),
            Self::Title => add_text(&note.title),
            Self::Aliases => note.aliases.iter().for_each(|alias| add_text(alias)),
            Self::Tags => note.tags.iter().for_each(|Tag { name, .. }| add_text(name)),
            Self::DocType => add_text(doc_type(note)),
            Self::Properties => note.properties.iter().for_each(|(name, _)| add_text(name)),
            Self::Created => created(note).into_iter().for_each(|(_, span)| add(Scalar::Time(span), None)),
            Self::Modified => add(Scalar::Time(Span::instant(note.stat.modified_ns)), None),
            Self::Property(name) => properties(note, name).into_iter().for_each(|value| Scalar::each_of(value, add)),
            Self::LinksTo | Self::LinkedFrom => {}
            Self::Chars | Self::LinksOut | Self::LinksIn | Self::BrokenLinks | Self::TasksOpen | Self::TasksDone => {
                add(Scalar::Number(self.count(snapshot, key) as f64), None);
            }
        }
    }

    /// The value of a field of [`FieldKind::Number`].
    fn count(&self, snapshot: &Snapshot, key: NoteKey) -> usize {
        let counts = snapshot.note(key).counts;
        match self {
            Self::Chars => counts.chars,
            Self::LinksOut => snapshot.graph().out(key).len(),
            Self::LinksIn => snapshot.graph().incoming(key).len(),
            Self::BrokenLinks => snapshot.broken_links(key).count(),
            Self::TasksOpen => counts.tasks_open,
            Self::TasksDone => counts.tasks_done,
            _ => 0,
        }
    }
}

fn doc_type(note: &Note) -> &'static str {
    crate::model::DocType::of(note).name()
}

/// The values of a property: one, unless names differ only in case or a path leads through a list.
pub(super) fn properties<'n>(note: &'n Note, folded: &str) -> Vec<&'n Value> {
    let mut found = Vec::new();
    entries_at(&note.properties, folded, &mut found);
    found
}

fn entries_at<'n>(entries: &'n [(String, Value)], path: &str, found: &mut Vec<&'n Value>) {
    for (name, value) in entries {
        found.extend(is_named(name, path).then_some(value));
        for (dot, _) in path.match_indices('.').filter(|(dot, _)| is_named(name, &path[..*dot])) {
            values_at(value, &path[dot + 1..], found);
        }
    }
}

fn values_at<'n>(value: &'n Value, path: &str, found: &mut Vec<&'n Value>) {
    match value {
        Value::Map(entries) => entries_at(entries, path, found),
        Value::List(items) => items.iter().for_each(|item| values_at(item, path, found)),
        _ => {}
    }
}

/// Whether a name is this one when folded. Folding every name of every note would take most of a query's time.
fn is_named(name: &str, folded: &str) -> bool {
    if name.is_ascii() { name.eq_ignore_ascii_case(folded) } else { fold(name) == folded }
}

/// The date of a note as written, and what it means.
fn created(note: &Note) -> Option<(&str, Span)> {
    let dated = |text| Some((text, Span::parse(text)?));
    let from_property = CREATED.iter().filter_map(|name| note.property(name)?.as_text()).find_map(dated);
    from_property.or_else(|| dated(note.path.stem().get(..10)?))
}
