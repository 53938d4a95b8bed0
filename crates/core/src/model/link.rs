//! A link as written in a note, before it is resolved.

/// One link written in a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub syntax: LinkSyntax,
    /// Its target as written: trimmed, percent-decoded in a Markdown link, without heading or block. Never empty.
    pub target: String,
    /// The part after `#`: a heading, or `^block`. For display only; the graph ignores it.
    pub fragment: Option<String>,
    /// The text shown instead of the target, unless it is a link type.
    pub label: Option<String>,
    pub link_type: LinkType,
}

/// The syntax of a link, which decides how it is resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LinkSyntax {
    /// `[[target]]`
    Wiki,
    /// `![[target]]`
    Embed,
    /// `[text](target.md)` or `[text][reference]`
    Markdown,
    /// A target in the frontmatter: `"[[target]]"` under any key, or `target` under the name of a link type.
    Frontmatter,
    /// Hugo's `{{< ref "target" >}}` or `{{< relref "target" >}}`.
    Shortcode,
}

/// The type of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum LinkType {
    /// Mentions the target.
    #[default]
    References,
    /// Needs the target.
    DependsOn,
    /// Implements the target.
    Implements,
    /// Adds to the target.
    Extends,
    /// Contradicts the target.
    ConflictsWith,
}

impl LinkType {
    /// Every type, in the order of the specification.
    pub const ALL: [Self; 5] =
        [Self::References, Self::DependsOn, Self::Implements, Self::Extends, Self::ConflictsWith];

    /// Its name in notes and on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::References => "references",
            Self::DependsOn => "depends_on",
            Self::Implements => "implements",
            Self::Extends => "extends",
            Self::ConflictsWith => "conflicts_with",
        }
    }

    /// How much a reader of one note needs the other: a dependency more than a mention.
    pub fn strength(self) -> u8 {
        match self {
            Self::References => 0,
            Self::ConflictsWith => 1,
            Self::Extends => 2,
            Self::Implements => 3,
            Self::DependsOn => 4,
        }
    }

    /// The type with exactly this name; any other label is display text.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|link_type| link_type.name() == name)
    }
}

impl Link {
    /// Whether the target has the extension of an image, a recording or another file that is not a note. Such a link is not
    /// broken if no note matches.
    pub fn is_attachment(&self) -> bool {
        has_attachment_extension(&self.target)
    }
}

/// Whether a path has the extension of an image, a recording or another file that is not a note.
pub(crate) fn has_attachment_extension(path: &str) -> bool {
    const EXTENSIONS: &str = "3gp avif base bib bmp canvas css csv doc docx excalidraw flac gif gz htm html ico jpeg jpg json \
        m4a mkv mov mp3 mp4 odt ogg ogv opus pdf png pptx svg tar tif tiff txt wav webm webp xls xlsx xml yaml yml zip";
    let extension = path.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|extension| EXTENSIONS.split(' ').any(|known| known.eq_ignore_ascii_case(extension)))
}
