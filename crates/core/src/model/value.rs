//! A value from a note's frontmatter.

/// A YAML value that JSON can express; mappings keep their order.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Null, or a key without a value.
    Null,
    /// `true` or `false`; YAML 1.2 has no `yes`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number. Infinities and NaN are text, since JSON has none.
    Float(f64),
    /// Text, and everything else that is not one of the other types, such as dates.
    Text(String),
    List(Vec<Value>),
    /// A mapping, in the order written.
    Map(Vec<(String, Value)>),
}

impl Value {
    /// The text of [`Value::Text`].
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A scalar as text; `None` for lists, mappings and null.
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
