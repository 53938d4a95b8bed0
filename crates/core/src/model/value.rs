//! A value from a note's frontmatter.

/// YAML reduced to what JSON can say, the order of keys kept.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing, or a key without a value.
    Null,
    /// `true` or `false`; YAML 1.2 has no `yes`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number. Infinities and NaN are kept as text, since JSON has none.
    Float(f64),
    /// Text, and everything that is not clearly something else, dates included.
    Text(String),
    /// A list.
    List(Vec<Value>),
    /// A mapping, in the order written.
    Map(Vec<(String, Value)>),
}

impl Value {
    /// The text, where it is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A scalar as a person would write it; lists, mappings and null have no such form.
    pub fn to_plain_text(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Int(number) => Some(number.to_string()),
            Self::Float(number) => Some(number.to_string()),
            Self::Bool(flag) => Some(flag.to_string()),
            Self::Null | Self::List(_) | Self::Map(_) => None,
        }
    }
}
