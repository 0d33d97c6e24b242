//! Comparison: one total order over values, the same as the order of their keys.
//!
//! Across types `() < bool < number < text < blob < array < map`. Integers and floats are one type and compare
//! exactly: 2^53 + 1 is greater than the float 2^53, which no conversion to floats could tell.

use std::cmp::Ordering;

use crate::value::Value;

static NULL: Value = Value::Null;

/// A field as filters, sorts and indexes see it: missing is `()`.
pub(super) fn or_null(field: Option<&Value>) -> &Value {
    field.unwrap_or(&NULL)
}

/// The place of a value's type among the types.
fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Int(_) | Value::Float(_) => 2,
        Value::Text(_) => 3,
        Value::Blob(_) => 4,
        Value::Array(_) => 5,
        Value::Map(_) => 6,
    }
}

/// The order of two values of any types.
pub(super) fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Int(a), Value::Float(b)) => int_with_float(*a, *b),
        (Value::Float(a), Value::Int(b)) => int_with_float(*b, *a).reverse(),
        // Values hold no NaN, so that only equal floats (0.0 and -0.0 too) have no other order.
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
        (Value::Text(a), Value::Text(b)) => a.cmp(b),
        (Value::Blob(a), Value::Blob(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let differing = a.iter().zip(b).map(|(a, b)| compare(a, b)).find(|order| order.is_ne());
            differing.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Map(a), Value::Map(b)) => {
            let pairs = a.iter().zip(b);
            let differing =
                pairs.map(|(a, b)| a.0.cmp(b.0).then_with(|| compare(a.1, b.1))).find(|order| order.is_ne());
            differing.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (a, b) => rank(a).cmp(&rank(b)),
    }
}

/// Whether two values are equal: whole arrays and maps, numbers by what they amount to.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    compare(a, b).is_eq()
}

/// The order of two values of one type; none across types.
pub(super) fn compare_within_type(a: &Value, b: &Value) -> Option<Ordering> {
    (rank(a) == rank(b)).then(|| compare(a, b))
}

fn int_with_float(n: i64, x: f64) -> Ordering {
    // The floats -2^63 and 2^63; between them the whole part of a float is an i64 exactly.
    const BELOW: f64 = i64::MIN as f64;
    const BEYOND: f64 = -(i64::MIN as f64);
    if x >= BEYOND {
        Ordering::Less
    } else if x < BELOW {
        Ordering::Greater
    } else {
        let floor = x.floor();
        n.cmp(&(floor as i64)).then(if floor < x { Ordering::Less } else { Ordering::Equal })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::element;

    pub(crate) fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::Int),
            (-3i64..3).prop_map(Value::Int),
            (-3i64..3).prop_map(|n| Value::Float(n as f64 / 2.0)),
            prop_oneof![Just(i64::MAX), Just(i64::MIN), (1i64 << 53)..((1 << 53) + 4)].prop_map(Value::Int),
            ((1i64 << 53)..((1 << 53) + 4)).prop_map(|n| Value::Float(n as f64)),
            any::<f64>().prop_filter("finite", |x| x.is_finite()).prop_map(Value::Float),
            Just(Value::Float(9_223_372_036_854_775_808.0)),
            "[a-b\0é]{0,3}".prop_map(Value::Text),
            proptest::collection::vec(0u8..2, 0..3).prop_map(Value::Blob),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
                proptest::collection::btree_map("[a-b\0]{1,2}", inner, 0..3).prop_map(Value::Map),
            ]
        })
    }

    proptest! {
        #[test]
        fn values_order_as_their_keys_do(a in any_value(), b in any_value()) {
            let key = |value: &Value| {
                let mut out = element::Encoded::new();
                element::put_element(&mut out, value);
                out
            };
            prop_assert_eq!(compare(&a, &b), key(&a).cmp(&key(&b)), "{:?} {:?}", a, b);
        }
    }

    #[test]
    fn integers_beyond_two_to_the_53_compare_exactly_with_floats() {
        let float = Value::Float(9_007_199_254_740_992.0);
        assert_eq!(compare(&Value::Int((1 << 53) + 1), &float), Ordering::Greater);
        assert!(equal(&Value::Int(1 << 53), &float));
        assert_eq!(compare(&Value::Int(i64::MAX), &Value::Float(9_223_372_036_854_775_808.0)), Ordering::Less);
        assert!(equal(&Value::Int(i64::MIN), &Value::Float(i64::MIN as f64)));
        assert_eq!(compare_within_type(&Value::Int(1), &"1".into()), None);
    }
}
