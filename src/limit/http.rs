//! HTTP fields: how limits stand, as draft-ietf-httpapi-ratelimit-headers-10 writes it.
//!
//! `RateLimit-Policy` says what each limit promises, `RateLimit` how it stands. A quota `q` is what can be there at
//! once, the window `w` how long all of it takes to come back, so that `q` and `w` together give burst and pace, and
//! `r` is never above `q`. Seconds are rounded up: who keeps to them is not refused, and no window is `w=0`.
//!
//! * A calendar quota has no `w`: its periods are not equally long, and a policy should not change from day to day.
//!   When the current one ends says `t`.
//! * A concurrency limit has no `w` either, because its leases are given back, and counts `concurrent-requests`.
//! * `t` is when the bucket is full again; of a limit that refused, when it would allow. So a refusal's
//!   `Retry-After` is never earlier than the `t` of what refused. Where nothing is spent there is no `t`.
//! * There is no `pk`: it would tell a client what its key is made of.
//!
//! Structured fields hold printable ASCII. A name is written with everything else, and the percent sign, as the
//! percent-encoded bytes of its UTF-8: `für%` is `f%c3%bcr%25`, so that different names stay different.

use std::fmt::Write;

use sfv::{Integer, KeyRef, ListSerializer, StringRef};

use super::asked::{AllAsked, Asked};
use super::definition::Limit;
use super::kind::Kind;

const QUOTA: &KeyRef = KeyRef::constant("q");
const UNIT: &KeyRef = KeyRef::constant("qu");
const WINDOW: &KeyRef = KeyRef::constant("w");
const LEFT: &KeyRef = KeyRef::constant("r");
const UNTIL: &KeyRef = KeyRef::constant("t");

/// Names and values of the fields: `RateLimit-Policy` and `RateLimit` where limits were asked, `Retry-After` where
/// there is a wait, in ms.
pub(crate) fn fields(asked: &AllAsked, wait_ms: Option<i64>) -> Vec<(&'static str, String)> {
    let (mut policies, mut standings) = (ListSerializer::new(), ListSerializer::new());
    for asked in asked.by_name() {
        let name = escaped(asked.limit.name());
        // What is escaped is printable ASCII.
        let name = StringRef::from_str(&name).unwrap_or(StringRef::EMPTY);
        let mut policy = policies.bare_item(name).parameter(QUOTA, integer(asked.limit.max_tokens()));
        if asked.limit.kind() == Kind::Concurrency {
            policy = policy.parameter(UNIT, const { StringRef::constant("concurrent-requests") });
        }
        if let Some(window_ms) = window_ms(&asked.limit) {
            let _ = policy.parameter(WINDOW, integer(seconds(window_ms)));
        }
        let standing = standings.bare_item(name).parameter(LEFT, integer(asked.remaining));
        let ahead_ms = ahead_ms(asked);
        if ahead_ms > 0 {
            let _ = standing.parameter(UNTIL, integer(seconds(ahead_ms)));
        }
    }
    let retry_after = wait_ms.map(|ms| seconds(ms).max(1).to_string());
    [("RateLimit-Policy", policies.finish()), ("RateLimit", standings.finish()), ("Retry-After", retry_after)]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

/// The older fields, of which there is one each: they are of the limit that refused the longest, else of the one with
/// the fewest tokens left. `X-RateLimit-Reset` is the instant of `t`, in whole seconds since the Unix epoch.
pub(crate) fn legacy_fields(asked: &AllAsked) -> Vec<(&'static str, String)> {
    let Some(tightest) = asked.by_name().into_iter().min_by_key(|asked| asked.slack()) else { return Vec::new() };
    vec![
        ("X-RateLimit-Limit", tightest.limit.max_tokens().to_string()),
        ("X-RateLimit-Remaining", tightest.remaining.to_string()),
        ("X-RateLimit-Reset", seconds(tightest.until.as_millis()).to_string()),
    ]
}

/// How long all that a bucket can hold takes to come back, where that is always the same.
fn window_ms(limit: &Limit) -> Option<i64> {
    match limit.kind() {
        Kind::FixedWindow | Kind::TokenBucket => Some(limit.full_refill_ms()),
        Kind::SlidingWindow | Kind::SlidingCounter => Some(limit.period_ms()),
        Kind::CalendarQuota | Kind::Concurrency => None,
    }
}

fn ahead_ms(asked: &Asked) -> i64 {
    asked.until.as_millis().saturating_sub(asked.now.as_millis()).max(0)
}

/// Whole seconds, rounded up.
fn seconds(ms: i64) -> i64 {
    ms.div_euclid(1_000) + i64::from(ms.rem_euclid(1_000) > 0)
}

/// Structured fields hold integers of 15 digits. More is said to be that many: nobody uses up either.
fn integer(n: i64) -> Integer {
    Integer::try_from(n).unwrap_or(Integer::MAX)
}

fn escaped(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'%' | ..0x20 | 0x7f.. => {
                // Writing to a text never fails.
                let _ = write!(text, "%{byte:02x}");
            }
            byte => text.push(char::from(byte)),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use sfv::{BareItem, List, ListEntry, Parser};

    use super::*;
    use crate::limit::{CalendarUnit, Decision, Key, Mode, Reason, Standing};
    use crate::time::Timestamp;
    use crate::value::Value;

    /// What a limit answers to a take of `cost` with `spent` tokens gone, all of it half a second after `now`.
    fn decision(limit: &Limit, spent: i64, cost: i64) -> Decision {
        let mut standing = Standing::new(limit, &Key::from("k"), None, Timestamp::from_millis(10_500));
        if spent > 0 {
            standing.spend(spent, false);
        }
        let verdict = standing.verdict(cost.into(), Mode::Take);
        standing.decision(verdict)
    }

    fn of(kind: Kind, name: &str, rate: i64, period_ms: i64) -> Limit {
        Limit::of_ms(kind, name, rate, period_ms).unwrap()
    }

    fn lines(fields: Vec<(&'static str, String)>) -> String {
        fields.into_iter().map(|(name, value)| format!("{name}: {value}\n")).collect()
    }

    /// The items of a field as a parser reads them: name, then parameters by their keys.
    fn parsed(value: &str) -> Vec<(String, Vec<(String, BareItem)>)> {
        let list: List = Parser::new(value).parse().unwrap();
        let items = list.into_iter().map(|entry| match entry {
            ListEntry::Item(item) => {
                let BareItem::String(name) = item.bare_item else { panic!("{value} has an item that is no string") };
                let parameters = item.params.into_iter().map(|(key, value)| (key.as_str().to_owned(), value));
                (name.as_str().to_owned(), parameters.collect())
            }
            ListEntry::InnerList(_) => panic!("{value} has a list in it"),
        });
        items.collect()
    }

    #[test]
    fn each_kind_has_its_policy() {
        let tb = of(Kind::TokenBucket, "l", 100, 60_000);
        let fw = of(Kind::FixedWindow, "l", 3, 1_000);
        let quota = |unit| Limit::calendar_quota("l", 500, unit, "Europe/Berlin").unwrap();
        for (limit, policy) in [
            (tb.clone(), r#""l";q=100;w=60"#),
            (tb.clone().capacity(10).unwrap(), r#""l";q=10;w=6"#),
            (fw.clone().capacity(8).unwrap(), r#""l";q=8;w=3"#),
            (of(Kind::FixedWindow, "l", 5, 500), r#""l";q=5;w=1"#),
            (of(Kind::FixedWindow, "l", 5, 1_500), r#""l";q=5;w=2"#),
            (of(Kind::SlidingWindow, "l", 5, 90_000), r#""l";q=5;w=90"#),
            (of(Kind::SlidingCounter, "l", 5, 90_000), r#""l";q=5;w=90"#),
            (of(Kind::Concurrency, "l", 5, 90_000), r#""l";q=5;qu="concurrent-requests""#),
            (quota(CalendarUnit::Day), r#""l";q=500"#),
            (quota(CalendarUnit::Month), r#""l";q=500"#),
            (of(Kind::TokenBucket, "l", i64::MAX, 1_000), r#""l";q=999999999999999;w=1"#),
        ] {
            let fields = decision(&limit, 0, 1).headers();
            assert_eq!(fields[0], ("RateLimit-Policy", policy.to_owned()));
            assert_eq!(parsed(policy).len(), 1);
            // Nothing is spent: nothing comes back.
            assert_eq!(fields[1].1, format!(r#""l";r={}"#, limit.max_tokens().min(999_999_999_999_999)));
            assert_eq!(fields.len(), 2, "no wait");
        }
    }

    #[test]
    fn fault_12_seconds_are_rounded_up_and_never_0() {
        for (rate, period_ms, spent, retry_after) in [
            (10, 1_000, 10, "1"),
            (1, 1_500, 1, "2"),
            (1, 1_000, 1, "1"),
            (1, 1_001, 1, "2"),
            (1_000, 1_000, 1_000, "1"),
        ] {
            let refused = decision(&of(Kind::TokenBucket, "l", rate, period_ms), spent, 1);
            assert_eq!(refused.headers()[2], ("Retry-After", retry_after.to_owned()));
            // Of what refused, `t` is the wait.
            assert_eq!(refused.headers()[1].1, format!(r#""l";r=0;t={retry_after}"#));
        }
    }

    #[test]
    fn there_is_a_retry_after_only_where_waiting_helps() {
        let limit = of(Kind::TokenBucket, "l", 10, 1_000);
        let never = decision(&limit, 2, 11);
        assert_eq!((never.reason, never.allowed), (Reason::Never, false));
        assert_eq!(lines(never.headers()), "RateLimit-Policy: \"l\";q=10;w=1\nRateLimit: \"l\";r=8;t=1\n");
        let slots = of(Kind::Concurrency, "l", 1, 1_000);
        let stale = Standing::new(&slots, &Key::global(), None, Timestamp::from_millis(0)).stale();
        assert!(!stale.allowed && stale.headers().iter().all(|(name, _)| *name != "Retry-After"));
    }

    #[test]
    fn the_older_fields_come_on_request() {
        let refused = decision(&of(Kind::FixedWindow, "l", 5, 60_000), 5, 1);
        let told = "RateLimit-Policy: \"l\";q=5;w=60\nRateLimit: \"l\";r=0;t=60\nRetry-After: 60\n";
        assert_eq!(lines(refused.headers()), told);
        let legacy = "X-RateLimit-Limit: 5\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 71\n";
        assert_eq!(lines(refused.headers_with_legacy()), format!("{told}{legacy}"));
    }

    #[test]
    fn shadow_limits_are_not_told() {
        let shadow = of(Kind::FixedWindow, "l", 5, 60_000).shadow().unwrap();
        assert!(decision(&shadow, 5, 1).headers_with_legacy().is_empty());
    }

    #[test]
    fn any_name_is_told_and_different_ones_differently() {
        let names =
            ["burst", "a b", r#"say "hi""#, r"back\slash", "100%", "für", "f%c3%bcr", "\u{7f}", "\n", "限流", "~"];
        let mut told = std::collections::BTreeSet::new();
        for name in names {
            let limit = of(Kind::FixedWindow, name, 5, 60_000);
            let fields = decision(&limit, 1, 1).headers();
            for (field, value) in fields {
                assert!(value.bytes().all(|byte| (0x20..0x7f).contains(&byte)), "{field}: {value}");
                let [(shown, parameters)] = &parsed(&value)[..] else { panic!("{value}") };
                assert_eq!(parameters.len(), 2);
                told.insert((field, shown.clone()));
                let plain = name.bytes().all(|byte| (0x20..0x7f).contains(&byte) && byte != b'%');
                assert!(!plain || shown == name, "{name} is told as {shown}");
            }
        }
        assert_eq!(told.len(), 2 * names.len());
        assert_eq!(escaped("für%"), "f%c3%bcr%25");
    }

    #[test]
    fn options_show_in_what_is_told() {
        let limit = of(Kind::FixedWindow, "l", 5, 60_000);
        let slow = limit.apply_option("min_interval", &Value::Int(2_500)).unwrap();
        let mut standing = Standing::new(&slow, &Key::from("k"), None, Timestamp::from_millis(0));
        standing.spend(1, true);
        let cooling = standing.decision(standing.verdict(1, Mode::Take));
        assert_eq!(cooling.reason, Reason::Cooldown);
        assert_eq!(cooling.headers()[1].1, r#""l";r=4;t=3"#, "four are left, and none for three seconds");
    }
}
