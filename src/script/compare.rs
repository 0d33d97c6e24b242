//! Comparison: values of one type, numbers with numbers, anything with `()` for equality; the rest is an error.
//!
//! The interpreter's own operators answer `false` for `() < 3` and `"5" < 3`. With its fast operators off it
//! asks registered functions first: the exact ones below for the types that compare, and the catch-all, which
//! errs, for every other pair.

use std::cmp::Ordering;

use rhai::{Dynamic, EvalAltResult, ImmutableString, Module, NativeCallContext};

use super::convert::type_name;
use super::host::limits::{DecisionValue, LimitValue};

type Verdict = Result<bool, Box<EvalAltResult>>;

/// Registers `== != < <= > >=` for two types that have an order.
macro_rules! ordered {
    ($module:expr, $left:ty, $right:ty, $compare:expr) => {
        $module.set_native_fn("==", |a: $left, b: $right| -> Verdict { Ok($compare(&a, &b) == Some(Ordering::Equal)) });
        $module.set_native_fn("!=", |a: $left, b: $right| -> Verdict { Ok($compare(&a, &b) != Some(Ordering::Equal)) });
        $module.set_native_fn("<", |a: $left, b: $right| -> Verdict { Ok($compare(&a, &b) == Some(Ordering::Less)) });
        $module
            .set_native_fn(">", |a: $left, b: $right| -> Verdict { Ok($compare(&a, &b) == Some(Ordering::Greater)) });
        $module.set_native_fn("<=", |a: $left, b: $right| -> Verdict {
            Ok(matches!($compare(&a, &b), Some(Ordering::Less | Ordering::Equal)))
        });
        $module.set_native_fn(">=", |a: $left, b: $right| -> Verdict {
            Ok(matches!($compare(&a, &b), Some(Ordering::Greater | Ordering::Equal)))
        });
    };
}

/// Registers `==` and `!=` for one type that has no order.
macro_rules! equal {
    ($module:expr, $kind:ty) => {
        $module.set_native_fn("==", |a: &mut $kind, b: $kind| -> Verdict { Ok(*a == b) });
        $module.set_native_fn("!=", |a: &mut $kind, b: $kind| -> Verdict { Ok(*a != b) });
    };
}

pub(super) fn register(module: &mut Module) {
    ordered!(module, i64, i64, |a: &i64, b: &i64| Some(a.cmp(b)));
    ordered!(module, f64, f64, |a: &f64, b: &f64| a.partial_cmp(b));
    ordered!(module, i64, f64, |a: &i64, b: &f64| int_with_float(*a, *b));
    ordered!(module, f64, i64, |a: &f64, b: &i64| int_with_float(*b, *a).map(Ordering::reverse));
    ordered!(module, ImmutableString, ImmutableString, |a: &ImmutableString, b: &ImmutableString| Some(
        a.as_str().cmp(b.as_str())
    ));
    ordered!(module, char, char, |a: &char, b: &char| Some(a.cmp(b)));
    equal!(module, bool);
    equal!(module, rhai::Blob);
    equal!(module, LimitValue);
    equal!(module, DecisionValue);
    module.set_native_fn("==", |_a: (), _b: ()| -> Verdict { Ok(true) });
    module.set_native_fn("!=", |_a: (), _b: ()| -> Verdict { Ok(false) });
    for operator in ["==", "!="] {
        let unequal = operator == "!=";
        module.set_native_fn(operator, move |context: NativeCallContext, a: Dynamic, b: Dynamic| -> Verdict {
            if a.is_unit() || b.is_unit() {
                return Ok((a.is_unit() && b.is_unit()) != unequal);
            }
            Err(mismatch(&context, operator, &a, &b))
        });
    }
    for operator in ["<", "<=", ">", ">="] {
        module.set_native_fn(operator, move |context: NativeCallContext, a: Dynamic, b: Dynamic| -> Verdict {
            Err(mismatch(&context, operator, &a, &b))
        });
    }
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
