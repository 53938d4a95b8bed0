//! A link as it stands in a note, before anything is known of its target.

/// One link written in a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// How it was written.
    pub syntax: LinkSyntax,
    /// Where it points, as written: trimmed, percent-decoded where it was a Markdown link, without heading or block.
    /// Never empty.
    pub target: String,
    /// The part after `#`: a heading, or `^block`. Kept for display; the graph does not see it.
    pub fragment: Option<String>,
    /// The text shown instead of the target, unless it was a link type.
    pub label: Option<String>,
    /// What the link means.
    pub link_type: LinkType,
}

/// How a link was written, which decides how it is resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LinkSyntax {
    /// `[[target]]`
    Wiki,
    /// `![[target]]`
    Embed,
    /// `[text](target.md)` or `[text][reference]`
    Markdown,
    /// A target listed in the frontmatter under the name of a link type.
    Frontmatter,
    /// `{{< ref "target" >}}` or `{{< relref "target" >}}`, as Hugo has them.
    Shortcode,
}

/// What a link means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum LinkType {
    /// Mentions it.
    #[default]
    References,
    /// Needs it.
    DependsOn,
    /// Makes it real.
    Implements,
    /// Adds to it.
    Extends,
    /// Cannot hold together with it.
    ConflictsWith,
}

impl LinkType {
    /// Every type, in the order of the specification.
    pub const ALL: [Self; 5] =
        [Self::References, Self::DependsOn, Self::Implements, Self::Extends, Self::ConflictsWith];

    /// The word for it, in notes and on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::References => "references",
            Self::DependsOn => "depends_on",
            Self::Implements => "implements",
            Self::Extends => "extends",
            Self::ConflictsWith => "conflicts_with",
        }
    }

    /// How much a reader of one note needs the other: what it builds on before what it only mentions.
    pub fn strength(self) -> u8 {
        match self {
            Self::References => 0,
            Self::ConflictsWith => 1,
            Self::Extends => 2,
            Self::Implements => 3,
            Self::DependsOn => 4,
        }
    }

    /// The type a word names, if it names one. Spelled exactly so: any other label is display text.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|link_type| link_type.name() == name)
    }
}

impl Link {
    /// Whether the target is a picture, a recording or another file that is not a note, by its extension.
    ///
    /// Such a link is no fault when no note answers to it.
    pub fn is_attachment(&self) -> bool {
        has_attachment_extension(&self.target)
    }
}

/// Whether a path ends as the path of a picture, a recording or another file that is not a note.
pub(crate) fn has_attachment_extension(path: &str) -> bool {
    const EXTENSIONS: [&str; 46] = [
        "3gp",
        "avif",
        "base",
        "bib",
        "bmp",
        "canvas",
        "css",
        "csv",
        "doc",
        "docx",
        "excalidraw",
        "flac",
        "gif",
        "gz",
        "htm",
        "html",
        "ico",
        "jpeg",
        "jpg",
        "json",
        "m4a",
        "mkv",
        "mov",
        "mp3",
        "mp4",
        "odt",
        "ogg",
        "ogv",
        "opus",
        "pdf",
        "png",
        "pptx",
        "svg",
        "tar",
        "tif",
        "tiff",
        "txt",
        "wav",
        "webm",
        "webp",
        "xls",
        "xlsx",
        "xml",
        "yaml",
        "yml",
        "zip",
    ];
    path.rsplit_once('.').is_some_and(|(_, ext)| EXTENSIONS.binary_search(&ext.to_ascii_lowercase().as_str()).is_ok())
}
