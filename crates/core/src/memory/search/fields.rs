//! The fields of an entity that are searched, and their weights.

/// A field of an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryField {
    Name,
    Type,
    /// Other names.
    Aliases,
    Description,
    Observations,
}

impl MemoryField {
    /// Every field, in display order.
    pub const ALL: [Self; 5] = [Self::Name, Self::Type, Self::Aliases, Self::Description, Self::Observations];

    /// The weight of a word here. A name says more than a sentence.
    pub(super) fn weight(self) -> f32 {
        match self {
            Self::Name => 2.5,
            Self::Aliases => 2.0,
            Self::Description => 1.2,
            Self::Observations => 1.0,
            Self::Type => 0.8,
        }
    }
}

/// A set of fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryFields(u8);

impl MemoryFields {
    /// All of them.
    pub const ALL: Self = Self(0b1_1111);

    /// With one more.
    pub fn with(self, field: MemoryField) -> Self {
        Self(self.0 | 1 << field as u8)
    }

    /// Whether a field is among them.
    pub fn has(self, field: MemoryField) -> bool {
        self.0 & 1 << field as u8 != 0
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// In display order.
    pub fn iter(self) -> impl Iterator<Item = MemoryField> {
        MemoryField::ALL.into_iter().filter(move |field| self.has(*field))
    }
}

impl FromIterator<MemoryField> for MemoryFields {
    fn from_iter<I: IntoIterator<Item = MemoryField>>(fields: I) -> Self {
        fields.into_iter().fold(Self::default(), Self::with)
    }
}
