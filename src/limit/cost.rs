//! A cost: how many tokens an operation spends or gives back, from 1 up.

use std::fmt;

use crate::value::Value;

/// Tokens to spend or to give back, from 1 up.
///
/// ```
/// use tollgate::Cost;
/// assert_eq!(Cost::new(3).unwrap().tokens(), 3);
/// assert_eq!(Cost::new(0).unwrap_err().to_string(), "cost is 0, must be a whole number from 1 up");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost(i64);

/// Why something is not a cost.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cost is {0}, must be a whole number from 1 up")]
pub struct InvalidCost(pub(crate) String);

impl Cost {
    /// One token.
    pub const ONE: Cost = Cost(1);

    /// A cost of `tokens`. Errors: less than 1.
    pub fn new(tokens: i64) -> Result<Cost, InvalidCost> {
        if tokens < 1 { Err(InvalidCost(tokens.to_string())) } else { Ok(Cost(tokens)) }
    }

    /// A cost out of a script's or JSON's value. Errors: anything but an integer from 1 up.
    pub fn from_value(value: &Value) -> Result<Cost, InvalidCost> {
        match value {
            Value::Int(tokens) => Cost::new(*tokens),
            Value::Null => Err(InvalidCost("()".into())),
            other => Err(InvalidCost(other.to_string())),
        }
    }

    /// The number of tokens.
    pub const fn tokens(self) -> i64 {
        self.0
    }
}

impl Default for Cost {
    fn default() -> Self {
        Cost::ONE
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_negative_fractional_text_and_nothing_are_no_costs() {
        for value in [
            Value::Int(0),
            Value::Int(-3),
            Value::Int(i64::MIN),
            Value::Float(1.0),
            Value::Float(0.5),
            Value::Text("1".into()),
            Value::Null,
            Value::Bool(true),
            Value::Array(vec![Value::Int(1)]),
        ] {
            assert!(Cost::from_value(&value).is_err(), "{value}");
        }
        assert_eq!(Cost::from_value(&Value::Int(i64::MAX)).unwrap().tokens(), i64::MAX);
    }
}
