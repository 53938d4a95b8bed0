//! Words in and beside a capitalized name that tell its type, or that it names nothing.

/// Words before the name of a person.
pub(super) const TITLES: [&str; 16] = [
    "dr",
    "mr",
    "mrs",
    "ms",
    "miss",
    "mx",
    "prof",
    "professor",
    "sir",
    "dame",
    "herr",
    "frau",
    "madame",
    "monsieur",
    "señor",
    "señora",
];

/// Verbs of which mostly a person is the subject.
pub(super) const VERBS: [&str; 36] = [
    "says",
    "said",
    "say",
    "asks",
    "asked",
    "writes",
    "wrote",
    "tells",
    "told",
    "thinks",
    "thought",
    "argues",
    "argued",
    "suggests",
    "suggested",
    "explains",
    "explained",
    "mentions",
    "mentioned",
    "replies",
    "replied",
    "answered",
    "believes",
    "believed",
    "claims",
    "claimed",
    "noted",
    "agreed",
    "joined",
    "lives",
    "lived",
    "prefers",
    "wants",
    "wanted",
    "described",
    "recommends",
];

/// Verbs that tell this only after the name: what follows `spoke` may be a language.
pub(super) const VERBS_AFTER: [&str; 3] = ["met", "spoke", "talked"];

/// Verbs of which mostly a person is the object.
pub(super) const VERBS_BEFORE: [&str; 12] =
    ["met", "meet", "emailed", "email", "ask", "asked", "call", "told", "tell", "thank", "thanks", "interviewed"];

/// Words before `with` and the name of a person.
pub(super) const BEFORE_WITH: [&str; 7] = ["met", "meet", "meeting", "spoke", "talk", "talked", "chat"];

/// Words before `by` and the name of a person.
pub(super) const DONE_BY: [&str; 13] = [
    "written", "reviewed", "said", "authored", "edited", "created", "led", "coined", "proposed", "invented", "founded",
    "approved", "book",
];

/// Lower-case words inside the name of a person.
pub(super) const PARTICLES: [&str; 12] = ["van", "von", "de", "da", "di", "del", "der", "den", "la", "le", "bin", "al"];

/// Properties of the frontmatter that name people.
pub(super) const PEOPLE: [&str; 14] = [
    "author",
    "authors",
    "people",
    "person",
    "attendees",
    "participants",
    "speaker",
    "speakers",
    "assignee",
    "owner",
    "reviewer",
    "reviewers",
    "interviewer",
    "contact",
];

/// Words beside months and weekdays that have a capital letter in English, or begin a sentence, and name nothing.
pub(super) const COMMON: [&str; 61] = [
    "english", "german", "french", "spanish", "japanese", "chinese", "i", "you", "he", "she", "we", "they", "who",
    "someone", "everyone", "the", "a", "an", "this", "that", "these", "those", "in", "on", "at", "for", "if", "when",
    "while", "after", "before", "and", "but", "or", "so", "my", "our", "your", "his", "her", "their", "its", "with",
    "from", "by", "to", "as", "also", "then", "ask", "call", "email", "meet", "met", "see", "read", "thanks", "thank",
    "talk", "write", "tell",
];

/// The type that the last word of a name tells.
pub(super) const KINDS: [(&str, &str); 17] = [
    ("api", "APIEndpoint"),
    ("framework", "Framework"),
    ("library", "Framework"),
    ("project", "Project"),
    ("service", "Service"),
    ("server", "Service"),
    ("team", "Organization"),
    ("inc", "Organization"),
    ("corp", "Organization"),
    ("llc", "Organization"),
    ("ltd", "Organization"),
    ("gmbh", "Organization"),
    ("corporation", "Organization"),
    ("university", "Organization"),
    ("institute", "Organization"),
    ("foundation", "Organization"),
    ("committee", "Organization"),
];

/// The type that the first word of a name tells.
pub(super) const FIRST_KINDS: [(&str, &str); 1] = [("project", "Project")];
