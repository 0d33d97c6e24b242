//! Numbers: whole-number arithmetic that rounds up and never wraps.

/// `a / b` rounded up; `a` from 0 up, `b` from 1 up.
pub(crate) fn div_ceil(a: i128, b: i128) -> i128 {
    a / b + i128::from(a % b > 0)
}

/// The nearest `i64`.
pub(crate) fn clamp_i64(n: i128) -> i64 {
    n.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}
