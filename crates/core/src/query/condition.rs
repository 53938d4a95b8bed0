//! A condition on one field, checked against the field's kind when it is made.

use std::ops::Range;

use crate::model::{Value, fold};

use super::column::Column;
use super::field::{Field, FieldKind};
use super::scalar::{Scalar, ScalarKind, Span, duration, link_target};

/// How a field is compared with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// One value of the field equals the given one.
    Eq,
    /// No value of the field equals the given one; true for a note without the field.
    Ne,
    /// Less than the number, or before the start of the day or time.
    Lt,
    /// At most the number, or before the end of the day or time.
    Le,
    /// More than the number, or after the end of the day or time.
    Gt,
    /// At least the number, or from the start of the day or time.
    Ge,
    /// A value contains the text; for tags, the tag or one nested below it.
    Contains,
    /// A value starts with the text.
    StartsWith,
    /// One value of the field equals one of the given ones.
    In,
    /// The field has a value that is not blank.
    Exists,
    /// The field has no value, or a blank one.
    Missing,
    /// A time in the last `7d`, or in the next `+7d`.
    Within,
}

impl Operator {
    /// Every operator.
    pub const ALL: [Self; 12] = [
        Self::Eq,
        Self::Ne,
        Self::Lt,
        Self::Le,
        Self::Gt,
        Self::Ge,
        Self::Contains,
        Self::StartsWith,
        Self::In,
        Self::Exists,
        Self::Missing,
        Self::Within,
    ];

    /// The name in a query.
    pub fn name(self) -> &'static str {
        match self {
            Self::Eq => "eq",
            Self::Ne => "ne",
            Self::Lt => "lt",
            Self::Le => "le",
            Self::Gt => "gt",
            Self::Ge => "ge",
            Self::Contains => "contains",
            Self::StartsWith => "starts_with",
            Self::In => "in",
            Self::Exists => "exists",
            Self::Missing => "missing",
            Self::Within => "within",
        }
    }

    fn applies_to(self, kind: FieldKind) -> bool {
        match self {
            Self::Eq | Self::Ne | Self::In => true,
            Self::Lt | Self::Le | Self::Gt | Self::Ge | Self::Exists | Self::Missing => kind != FieldKind::Note,
            Self::Contains | Self::StartsWith => matches!(kind, FieldKind::Text | FieldKind::Any),
            Self::Within => matches!(kind, FieldKind::Time | FieldKind::Any),
        }
    }
}

/// Why a condition is not possible: what is wrong and what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConditionError(String);

/// A condition on one field.
#[derive(Debug, Clone)]
pub struct Condition {
    pub(super) field: Field,
    pub(super) test: Test,
}

#[derive(Debug, Clone)]
pub(super) enum Test {
    /// One of the note's values passes, or none does if `negated`.
    Values {
        passes: Comparison,
        negated: bool,
    },
    Exists,
    Missing,
    /// The note is linked with one of these, or with none if `negated`.
    Notes {
        names: Vec<String>,
        negated: bool,
    },
}

#[derive(Debug, Clone)]
pub(super) enum Comparison {
    IsOneOf(Vec<Operand>),
    Order(Operator, Operand),
    Contains(Operand),
    TagContains(String),
    StartsWith(Operand),
    Within(Span),
}

/// Values of `in` in one condition: as many as the notes of one answer.
const MAX_VALUES: usize = 1_000;

/// A given value. A text may also be a number, a date, or true or false, since a client may send any of these as text.
#[derive(Debug, Clone)]
pub(super) struct Operand {
    text: String,
    number: Option<f64>,
    span: Option<Span>,
    flag: Option<bool>,
}

impl Condition {
    /// Checks the operator and the value against the field. `now_ns` is what [`Operator::Within`] counts from.
    pub fn new(field: Field, operator: Operator, value: Option<&Value>, now_ns: i64) -> Result<Self, ConditionError> {
        let kind = field.kind();
        if !operator.applies_to(kind) {
            let allowed = Operator::ALL.into_iter().filter(|operator| operator.applies_to(kind)).map(Operator::name);
            return Err(ConditionError(format!(
                "`{}` does not apply to `{}`; allowed: {}",
                operator.name(),
                field.name(),
                allowed.collect::<Vec<_>>().join(", ")
            )));
        }
        let test = match (operator, value) {
            (Operator::Exists, None | Some(Value::Bool(true))) => Test::Exists,
            (Operator::Missing, None | Some(Value::Bool(true))) => Test::Missing,
            (Operator::Exists | Operator::Missing, Some(_)) => {
                return Err(ConditionError(format!("`{}` takes no value; use exists or missing", operator.name())));
            }
            (_, None) => return Err(ConditionError(format!("`{}` needs a value", operator.name()))),
            (Operator::In, Some(Value::List(items))) if items.len() > MAX_VALUES => {
                return Err(ConditionError(format!(
                    "`in` takes at most {MAX_VALUES} values and was given {}; split them over several queries",
                    items.len()
                )));
            }
            (Operator::In, Some(Value::List(items))) if !items.is_empty() => {
                let wanted: Result<Vec<Operand>, _> = items.iter().map(|item| Operand::new(&field, item)).collect();
                Test::is_one_of(&field, wanted?, false)
            }
            (Operator::In, Some(_)) => return Err(ConditionError("`in` needs a list of values".to_owned())),
            (Operator::Within, Some(value)) => Test::passes(Comparison::Within(period(value, now_ns)?)),
            (_, Some(value)) => {
                let wanted = Operand::new(&field, value)?;
                match operator {
                    Operator::Contains if field == Field::Tags => Test::passes(Comparison::TagContains(wanted.text)),
                    Operator::Contains => Test::passes(Comparison::Contains(wanted)),
                    Operator::StartsWith => Test::passes(Comparison::StartsWith(wanted)),
                    Operator::Lt | Operator::Le | Operator::Gt | Operator::Ge => {
                        Test::passes(Comparison::Order(operator, wanted))
                    }
                    _ => Test::is_one_of(&field, vec![wanted], operator == Operator::Ne),
                }
            }
        };
        Ok(Self { field, test })
    }

    /// The notes that the condition names.
    pub fn notes(&self) -> &[String] {
        match &self.test {
            Test::Notes { names, .. } => names,
            _ => &[],
        }
    }

    /// The compared field.
    pub fn field(&self) -> &Field {
        &self.field
    }
}

impl Test {
    fn passes(passes: Comparison) -> Self {
        Self::Values { passes, negated: false }
    }

    fn is_one_of(field: &Field, mut wanted: Vec<Operand>, negated: bool) -> Self {
        if *field == Field::Folder {
            // People write `sub/`, and `/` for the vault's root.
            wanted.iter_mut().for_each(|wanted| wanted.text = wanted.text.trim_matches('/').to_owned());
        }
        if field.kind() == FieldKind::Note {
            return Self::Notes { names: wanted.into_iter().map(|wanted| wanted.text).collect(), negated };
        }
        Self::Values { passes: Comparison::IsOneOf(wanted), negated }
    }
}

/// The period of a length of time: `7d` until now, `+7d` from now.
fn period(value: &Value, now_ns: i64) -> Result<Span, ConditionError> {
    let text = value.as_text().unwrap_or_default().trim();
    let length = duration(text.strip_prefix('+').unwrap_or(text)).ok_or_else(|| {
        ConditionError(
            "`within` needs a length of time: 30m, 24h, 7d, 2w or 1y for the past, +7d for the future".to_owned(),
        )
    })?;
    Ok(match text.starts_with('+') {
        true => Span { start: now_ns, end: now_ns.saturating_add(length) },
        // A file may be a moment newer than the clock.
        false => Span { start: now_ns.saturating_sub(length), end: now_ns.saturating_add(1_000_000_000) },
    })
}

fn tag(folded: &str) -> String {
    folded.trim_start_matches('#').trim_end_matches('/').to_owned()
}

impl Operand {
    fn new(field: &Field, value: &Value) -> Result<Self, ConditionError> {
        let Some(text) = value.to_plain_text() else {
            return Err(ConditionError(format!(
                "`{}` is compared with one text, number, true or false; use `in` for several",
                field.name()
            )));
        };
        // Links in properties are compared by what they name; a title may have brackets itself.
        let is_link = matches!(field.kind(), FieldKind::Any | FieldKind::Note);
        let text = if is_link { link_target(text.trim()) } else { text.trim() };
        let folded = fold(text);
        let wanted = Self {
            number: text.parse().ok().filter(|number: &f64| number.is_finite()),
            span: Span::parse(text),
            flag: folded.parse().ok(),
            text: if field.kind() == FieldKind::Note { text.to_owned() } else { folded },
        };
        match field.kind() {
            FieldKind::Number if wanted.number.is_none() => {
                Err(ConditionError(format!("`{}` is compared with a number", field.name())))
            }
            FieldKind::Time if wanted.span.is_none() => Err(ConditionError(format!(
                "`{}` is compared with an ISO date or time such as 2026-11-16; for the last days use `within` 7d",
                field.name()
            ))),
            _ if *field == Field::Tags => Ok(Self { text: tag(&wanted.text), ..wanted }),
            _ => Ok(wanted),
        }
    }

    /// The values of a column that equal it, by kind. A time is equal if it starts in the given day or time.
    fn equal(&self, column: &Column) -> impl Iterator<Item = (ScalarKind, Range<usize>)> {
        let flag = self.flag.map(|flag| (ScalarKind::Bool, column.between(&Scalar::Bool(flag), &Scalar::Bool(flag))));
        let number = self.number.map(|number| {
            // The two zeros are one number.
            let (least, most) = if number == 0.0 { (-0.0, 0.0) } else { (number, number) };
            (ScalarKind::Number, column.between(&Scalar::Number(least), &Scalar::Number(most)))
        });
        let time = self.span.map(|span| (ScalarKind::Time, column.starting_in(span)));
        let text = Scalar::Text(self.text.clone());
        let text = Some((ScalarKind::Text, column.between(&text, &text)));
        [flag, number, time, text].into_iter().flatten()
    }

    /// The values that have an order to it are those of its own kind: a text is not less than a number.
    fn has_order_to(&self, kind: ScalarKind) -> bool {
        match kind {
            ScalarKind::Number | ScalarKind::Time => true,
            ScalarKind::Text => self.number.is_none() && self.span.is_none(),
            ScalarKind::Bool | ScalarKind::Map => false,
        }
    }
}

impl Comparison {
    /// The numbers of the values of a column that pass. Only for a part of a text each value is read.
    pub(super) fn passing(&self, column: &Column) -> Vec<Range<usize>> {
        match self {
            Self::IsOneOf(wanted) => {
                wanted.iter().flat_map(|wanted| wanted.equal(column)).map(|(_, equal)| equal).collect()
            }
            Self::Order(operator, wanted) => {
                let ordered = wanted.equal(column).filter(|(kind, _)| wanted.has_order_to(*kind));
                let range = |(kind, equal): (ScalarKind, Range<usize>)| {
                    let all = column.of_kind(kind);
                    match operator {
                        Operator::Lt => all.start..equal.start,
                        Operator::Le => all.start..equal.end,
                        Operator::Gt => equal.end..all.end,
                        _ => equal.start..all.end,
                    }
                };
                ordered.map(range).collect()
            }
            Self::Contains(part) => {
                let texts = column.of_kind(ScalarKind::Text);
                let has_part = |at: &usize| column.text(*at).is_some_and(|text| text.contains(&part.text));
                let with_part = texts.filter(has_part).map(|at| at..at + 1);
                // A number and a date as people write them, and true or false, contain only themselves.
                with_part.chain(part.equal(column).map(|(_, equal)| equal)).collect()
            }
            Self::TagContains(tag) => {
                let own = Scalar::Text(tag.clone());
                vec![column.between(&own, &own), column.starting_with(&format!("{tag}/"))]
            }
            Self::StartsWith(start) => {
                let equal = start.equal(column).map(|(_, equal)| equal);
                equal.chain([column.starting_with(&start.text)]).collect()
            }
            Self::Within(period) => column.overlapping(*period),
        }
    }
}

#[cfg(test)]
#[path = "condition_test.rs"]
mod tests;
