//! Comparison: values of one type, numbers with numbers, anything with `()` for equality; the rest is an error.
//!
//! The interpreter's own operators answer `false` for `() < 3` and `"5" < 3`. Turning its fast operators off would
//! cost every addition too, so while a file is read each comparison becomes an operator of ours, spelled `<?`,
//! for which only the functions below exist. The plain names are registered as well: by them the language
//! compares the elements of arrays and maps.

use std::cmp::Ordering;

use rhai::{Dynamic, EvalAltResult, ImmutableString, Module, NativeCallContext, Token};

use super::convert::type_name;
use super::host::limits::{DecisionValue, LimitValue};

type Verdict = Result<bool, Box<EvalAltResult>>;

/// Our operators: the token they replace, how ours and the plain one are spelled, and how strongly they bind.
pub(super) const OPERATORS: [(Token, &str, &str, u8); 6] = [
    (Token::EqualsTo, "==?", "==", 90),
    (Token::NotEqualsTo, "!=?", "!=", 90),
    (Token::LessThan, "<?", "<", 130),
    (Token::LessThanEqualsTo, "<=?", "<=", 130),
    (Token::GreaterThan, ">?", ">", 130),
    (Token::GreaterThanEqualsTo, ">=?", ">=", 130),
];

/// Our operator in place of a plain comparison.
pub(super) fn replaced(token: &Token) -> Option<Token> {
    let ours = match token {
        Token::EqualsTo => "==?",
        Token::NotEqualsTo => "!=?",
        Token::LessThan => "<?",
        Token::LessThanEqualsTo => "<=?",
        Token::GreaterThan => ">?",
        Token::GreaterThanEqualsTo => ">=?",
        _ => return None,
    };
    Some(Token::Custom(Box::new(ours.into())))
}

/// A message with comparisons as the file wrote them.
pub(super) fn plain(message: &str) -> String {
    let ours = OPERATORS.iter().find(|(_, ours, ..)| message.contains(&format!("`{ours}`")));
    ours.map_or_else(|| message.to_owned(), |(_, ours, plain, _)| message.replace(ours, plain))
}

/// Whether an order is what an operator asks for.
fn holds(operator: &str, order: Option<Ordering>) -> bool {
    match operator {
        "==" => order == Some(Ordering::Equal),
        "!=" => order != Some(Ordering::Equal),
        "<" => order == Some(Ordering::Less),
        "<=" => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        ">" => order == Some(Ordering::Greater),
        _ => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    }
}

/// Registers an operator for two types that have an order.
macro_rules! ordered {
    ($module:expr, $name:expr, $plain:expr, $left:ty, $right:ty, $compare:expr) => {{
        let plain: &'static str = $plain;
        $module.set_native_fn($name, move |a: $left, b: $right| -> Verdict { Ok(holds(plain, $compare(&a, &b))) });
    }};
}

/// Registers `==` or `!=` for a type that has no order.
macro_rules! equal {
    ($module:expr, $name:expr, $wanted:expr, $kind:ty) => {{
        let wanted: bool = $wanted;
        $module.set_native_fn($name, move |a: &mut $kind, b: $kind| -> Verdict { Ok((*a == b) == wanted) });
    }};
}

pub(super) fn register(module: &mut Module) {
    for (_, ours, plain, _) in OPERATORS {
        for name in [ours, plain] {
            ordered!(module, name, plain, i64, i64, |a: &i64, b: &i64| Some(a.cmp(b)));
            ordered!(module, name, plain, f64, f64, |a: &f64, b: &f64| a.partial_cmp(b));
            ordered!(module, name, plain, i64, f64, |a: &i64, b: &f64| int_with_float(*a, *b));
            ordered!(module, name, plain, f64, i64, |a: &f64, b: &i64| int_with_float(*b, *a).map(Ordering::reverse));
            ordered!(
                module,
                name,
                plain,
                ImmutableString,
                ImmutableString,
                |a: &ImmutableString, b: &ImmutableString| { Some(a.as_str().cmp(b.as_str())) }
            );
            ordered!(module, name, plain, char, char, |a: &char, b: &char| Some(a.cmp(b)));
            let wanted = plain == "==";
            if wanted || plain == "!=" {
                equal!(module, name, wanted, bool);
                equal!(module, name, wanted, rhai::Blob);
                equal!(module, name, wanted, LimitValue);
                equal!(module, name, wanted, DecisionValue);
                module.set_native_fn(name, move |_a: (), _b: ()| -> Verdict { Ok(wanted) });
            }
            module.set_native_fn(name, move |context: NativeCallContext, a: Dynamic, b: Dynamic| -> Verdict {
                any(&context, plain, a, b)
            });
        }
    }
}

/// Compares what no other function takes: containers by their elements, anything with `()`, and the rest not at all.
fn any(context: &NativeCallContext, operator: &str, mut a: Dynamic, mut b: Dynamic) -> Verdict {
    if matches!(operator, "==" | "!=") {
        if a.is_unit() || b.is_unit() {
            return Ok((a.is_unit() && b.is_unit()) == (operator == "=="));
        }
        if (a.is_array() && b.is_array()) || (a.is_map() && b.is_map()) {
            let verdict = context.call_native_fn_raw(operator, true, &mut [&mut a, &mut b])?;
            return Ok(verdict.as_bool().unwrap_or(false));
        }
    }
    Err(mismatch(context, operator, &a, &b))
}

/// The error by which the interpreter's `contains`, `index_of` and the like know that two elements merely differ.
fn mismatch(context: &NativeCallContext, operator: &str, a: &Dynamic, b: &Dynamic) -> Box<EvalAltResult> {
    let pair = format!("{operator} ({}, {})", type_name(a), type_name(b));
    Box::new(EvalAltResult::ErrorFunctionNotFound(pair, context.call_position()))
}

/// Compares exactly, without rounding the integer to a float.
fn int_with_float(a: i64, b: f64) -> Option<Ordering> {
    if b.is_nan() {
        return None;
    }
    // 2^63, the first float above every integer; each float below it in size has an exact whole part in i128.
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    if b >= BEYOND {
        return Some(Ordering::Less);
    }
    if b < -BEYOND {
        return Some(Ordering::Greater);
    }
    let whole = b.trunc();
    let order = i128::from(a).cmp(&(whole as i128));
    Some(order.then_with(|| 0.0_f64.partial_cmp(&(b - whole)).unwrap_or(Ordering::Equal)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_and_floats_compare_exactly() {
        for (a, b, order) in [
            (1, 1.0, Ordering::Equal),
            (1, 1.5, Ordering::Less),
            (-1, -1.5, Ordering::Greater),
            (i64::MAX, 9_223_372_036_854_775_807.0, Ordering::Less),
            (i64::MIN, -9_223_372_036_854_775_808.0, Ordering::Equal),
            ((1 << 53) + 1, 9_007_199_254_740_992.0, Ordering::Greater),
            (0, f64::INFINITY, Ordering::Less),
            (0, f64::NEG_INFINITY, Ordering::Greater),
        ] {
            assert_eq!(int_with_float(a, b), Some(order), "{a} {b}");
        }
        assert_eq!(int_with_float(0, f64::NAN), None);
    }
}
