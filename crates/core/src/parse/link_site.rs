//! A link and its byte ranges, so that a rename can rewrite it.

use std::ops::Range;

use super::scalar::QuoteStyle;
use crate::model::Link;

/// A link of a text and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkSite {
    pub link: Link,
    /// The whole link, brackets included. For a frontmatter link, the YAML scalar.
    pub range: Range<usize>,
    /// The target without fragment and label. For a reference link it is in the definition, which several links may share.
    pub target_range: Range<usize>,
    /// The syntax of a new target.
    pub(super) form: TargetForm,
}

/// The syntax around a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TargetForm {
    /// Between double brackets.
    Wiki,
    /// A Markdown destination without brackets.
    Bare,
    /// A Markdown destination in `<…>`.
    Angle,
    /// A Markdown destination with escapes or entities, so that the end of the path in the source is unknown:
    /// `target_range` is the whole destination, and `rest` follows the path.
    Escaped { rest: String },
    /// Inside a shortcode.
    Shortcode,
    /// Part of a YAML scalar, whose text has the syntax `inner` around the target.
    Yaml {
        scalar: Range<usize>,
        text: String,
        target: Range<usize>,
        inner: Box<Self>,
        style: QuoteStyle,
        in_flow: bool,
    },
}

impl LinkSite {
    /// Shifts every range, for a link read from a part of the text.
    pub(super) fn shifted(mut self, by: usize) -> Self {
        let shift = |range: &mut Range<usize>| *range = range.start + by..range.end + by;
        shift(&mut self.range);
        shift(&mut self.target_range);
        if let TargetForm::Yaml { scalar, .. } = &mut self.form {
            shift(scalar);
        }
        self
    }
}
