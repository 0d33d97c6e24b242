//! Numbers: whole-number arithmetic that rounds up and never wraps.

/// `a / b` rounded up; `a` from 0 up, `b` from 1 up.
pub(crate) fn div_ceil(a: i128, b: i128) -> i128 {
    // Nearly all numbers are small, and dividing small ones takes a tenth of the time.
    match (u64::try_from(a), u64::try_from(b)) {
        (Ok(a), Ok(b)) => a.div_ceil(b).into(),
        _ => a / b + i128::from(a % b > 0),
    }
}

/// `a / b` rounded down; `b` from 1 up.
pub(crate) fn div_floor(a: i128, b: i64) -> i128 {
    match i64::try_from(a) {
        Ok(a) => a.div_euclid(b).into(),
        Err(_) => a.div_euclid(b.into()),
    }
}

/// The nearest `i64`.
pub(crate) fn clamp_i64(n: i128) -> i64 {
    n.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quick_divisions_are_divisions(a in any::<i64>(), wide in any::<i128>(), b in 1..=i64::MAX, shift in 0..127u32) {
            for a in [i128::from(a), wide, wide >> shift] {
                prop_assert_eq!(div_floor(a, b), a.div_euclid(b.into()));
                let up = a.checked_abs().unwrap_or(0);
                prop_assert_eq!(div_ceil(up, b.into()), up / i128::from(b) + i128::from(up % i128::from(b) > 0));
            }
        }
    }
}
