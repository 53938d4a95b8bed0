//! A link and the bytes it stands on, so that a rename can rewrite it.

use std::ops::Range;

use super::scalar::Style;
use crate::model::Link;

/// One link of a text and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkSite {
    /// What it says.
    pub link: Link,
    /// The whole link, brackets included. For a frontmatter link, the YAML scalar.
    pub range: Range<usize>,
    /// Just the target: no fragment, no label. For a reference link it lies in the definition, which several links may
    /// share.
    pub target_range: Range<usize>,
    /// How a new target has to be written.
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
    /// A Markdown destination in which escapes or entities hide where the path ends: `target_range` is all of it, and
    /// this follows the path.
    Escaped { rest: String },
    /// Inside a shortcode.
    Shortcode,
    /// Part of a YAML scalar.
    Yaml { scalar: Range<usize>, text: String, target: Range<usize>, style: Style, in_flow: bool },
}

impl LinkSite {
    /// Moves every range, for a link read from a part of the text.
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
