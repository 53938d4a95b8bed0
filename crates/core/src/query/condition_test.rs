//! The ranges of values that pass a condition, against each value by itself.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::*;

const NOW: &str = "2025-02-01T12:00";

fn equals(wanted: &Operand, scalar: &Scalar) -> bool {
    match scalar {
        Scalar::Bool(flag) => wanted.flag == Some(*flag),
        Scalar::Number(number) => wanted.number == Some(*number),
        Scalar::Time(span) => wanted.span.is_some_and(|wanted| (wanted.start..wanted.end).contains(&span.start)),
        Scalar::Text(text) => *text == wanted.text,
        Scalar::Map => false,
    }
}

fn order(wanted: &Operand, scalar: &Scalar) -> Option<Ordering> {
    let order = match scalar {
        Scalar::Number(number) => number.total_cmp(&wanted.number?),
        Scalar::Time(span) => span.start.cmp(&wanted.span?.start),
        Scalar::Text(text) if wanted.number.is_none() && wanted.span.is_none() => text.cmp(&wanted.text),
        _ => return None,
    };
    Some(if equals(wanted, scalar) { Ordering::Equal } else { order })
}

fn passes(comparison: &Comparison, scalar: &Scalar) -> bool {
    match (comparison, scalar) {
        (Comparison::IsOneOf(wanted), _) => wanted.iter().any(|wanted| equals(wanted, scalar)),
        (Comparison::Order(operator, wanted), _) => order(wanted, scalar).is_some_and(|order| match operator {
            Operator::Lt => order.is_lt(),
            Operator::Le => order.is_le(),
            Operator::Gt => order.is_gt(),
            _ => order.is_ge(),
        }),
        (Comparison::Contains(part), Scalar::Text(text)) => text.contains(&part.text),
        (Comparison::StartsWith(start), Scalar::Text(text)) => text.starts_with(&start.text),
        (Comparison::Contains(part) | Comparison::StartsWith(part), _) => equals(part, scalar),
        (Comparison::TagContains(tag), Scalar::Text(text)) => text == tag || text.starts_with(&format!("{tag}/")),
        (Comparison::Within(period), Scalar::Time(span)) => span.start < period.end && period.start < span.end,
        (Comparison::TagContains(_) | Comparison::Within(_), _) => false,
    }
}

fn value() -> impl Strategy<Value = Value> {
    const DATES: [&str; 9] = [
        "2024-12",
        "2025-01",
        "2025-01-25",
        "2025-01-31",
        "2025-02-01",
        "2025-02-01T12:00",
        "2025-02-01 12:00:01",
        "2025-02-03",
        "2025-03",
    ];
    prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        (-2_i64..3).prop_map(Value::Int),
        prop::sample::select(vec![-0.0, 0.5, f64::NAN, -f64::NAN, f64::INFINITY]).prop_map(Value::Float),
        prop::sample::select(DATES.to_vec()).prop_map(|date| Value::Text(date.to_owned())),
        "[aAé/]{0,3}".prop_map(Value::Text),
        Just(Value::Map(Vec::new())),
    ]
}

proptest! {
    #[test]
    fn the_values_that_pass_are_those_that_pass_one_by_one(
        given in prop::collection::vec(prop::collection::vec(value(), 0..12), 1..3),
        field in prop::sample::select(vec![Field::Property("p".to_owned()), Field::Tags]),
        operator in prop::sample::select(Operator::ALL.to_vec()),
        wanted in prop::collection::vec(value(), 1..4),
        period in prop::sample::select(vec!["30m", "24h", "7d", "+30m", "+7d"]),
    ) {
        let mut column = Column::default();
        let mut scalars = Vec::new();
        for values in &given {
            values.iter().for_each(|value| Scalar::each_of(value, &mut |scalar, _| scalars.push(scalar)));
            column = column.with_values(scalars.clone());
        }
        scalars.sort();
        scalars.dedup();
        let wanted = match operator {
            Operator::In => Value::List(wanted),
            Operator::Within => Value::Text(period.to_owned()),
            _ => wanted[0].clone(),
        };
        let now = Span::parse(NOW).expect("a time").start;
        let Ok(condition) = Condition::new(field, operator, Some(&wanted), now) else { return Ok(()) };
        let Test::Values { passes: comparison, .. } = condition.test else { return Ok(()) };
        let mut passing = vec![false; column.len()];
        comparison.passing(&column).into_iter().for_each(|range| passing[range].fill(true));
        let one_by_one: Vec<bool> = scalars.iter().map(|scalar| passes(&comparison, scalar)).collect();
        prop_assert_eq!(passing, one_by_one, "{:?} of {:?}", comparison, scalars);
    }
}
