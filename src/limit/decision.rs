//! A decision: the answer of a limit, or of several at once.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::time::Timestamp;
use crate::value::{Map, Value};

use super::asked::AllAsked;
use super::http;

/// Why a take was refused, as a stable word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// It was not.
    #[default]
    None,
    /// The last accepted take was too short a time ago.
    Cooldown,
    /// Too few tokens are there.
    Limited,
    /// The key is blocked.
    Blocked,
    /// The cost never fits; waiting does not help.
    Never,
    /// The lease is over, or was never given out: nothing was changed.
    Stale,
}

impl Reason {
    /// The word: `""`, `"limited"`, `"cooldown"`, `"blocked"`, `"never"`, or of a lease `"stale"`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::None => "",
            Reason::Limited => "limited",
            Reason::Cooldown => "cooldown",
            Reason::Blocked => "blocked",
            Reason::Never => "never",
            Reason::Stale => "stale",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One limit that refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The limit's name.
    pub name: Arc<str>,
    /// Milliseconds until this limit alone would allow; 0 when it never will.
    pub wait: i64,
}

/// A lease that a concurrency limit gave out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Granted {
    /// The limit's name.
    pub name: Arc<str>,
    /// What the lease is renewed and released by: greater than that of every lease before it of the same bucket.
    pub lease: i64,
}

/// What a limit answered. A refusal is an answer, not an error: look at it.
///
/// Of several limits at once, `limit`, `remaining`, `used` and `reset_at` are those of the tightest one: the
/// one with the fewest tokens left, and of equals the first by name.
#[must_use = "a decision that nobody looks at admits everything"]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decision {
    /// Whether it may be done.
    pub allowed: bool,
    /// Most tokens that can be there at once.
    pub limit: i64,
    /// Tokens left, from 0 to `limit`.
    pub remaining: i64,
    /// Tokens spent and not yet worn off, a started one counting whole; above `limit` where some are spent in advance.
    pub used: i64,
    /// Milliseconds until the same would be allowed for a lone caller; 0 when allowed, and when it never will be.
    pub retry_after: i64,
    /// When the bucket is full again.
    pub reset_at: Timestamp,
    /// Milliseconds to wait before doing reserved work.
    pub delay: i64,
    /// Why it was refused.
    pub reason: Reason,
    /// Every limit that refused, each with its wait.
    pub violated: Vec<Violation>,
    /// The shadow limits that would have refused.
    pub would_refuse: Vec<Arc<str>>,
    /// The leases that concurrency limits gave out.
    pub leases: Vec<Granted>,
    /// The name of the limit that the numbers are of.
    pub name: Arc<str>,
    /// Every limit that was asked, for HTTP.
    pub(crate) asked: AllAsked,
}

impl Decision {
    /// The lease that was given out; the first, of several limits at once.
    pub fn lease(&self) -> Option<i64> {
        self.leases.first().map(|granted| granted.lease)
    }

    /// The HTTP fields that tell a client how it stands, as names and values: `RateLimit-Policy` and `RateLimit`
    /// ([draft-ietf-httpapi-ratelimit-headers-10](https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/10/))
    /// with an item for each limit that was asked, by name, and on a refusal that has a wait `Retry-After`, in whole
    /// seconds rounded up. What a limit's key is made of is not told.
    ///
    /// A policy's `q` is what can be there at once and `w` how long all of it takes to come back; calendar quotas,
    /// whose periods are not equally long, and concurrency limits have no `w`. `t` is when the bucket is full again;
    /// of a limit that refused, when it would allow. A limit's name is percent-encoded where it is not printable
    /// ASCII, and so is a percent sign in it. Shadow limits, and those that an operator has lifted, are left out.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Engine, Limit};
    ///
    /// let engine = Engine::builder().memory().open()?;
    /// let burst = Limit::fixed_window("burst", 100, Duration::from_secs(60))?;
    /// let taken = engine.transaction(|tx| tx.take(&burst, "ada", 50))?;
    /// assert_eq!(taken.headers(), [
    ///     ("RateLimit-Policy", r#""burst";q=100;w=60"#.to_owned()),
    ///     ("RateLimit", r#""burst";r=50;t=60"#.to_owned()),
    /// ]);
    /// let refused = engine.transaction(|tx| tx.take(&burst, "ada", 51))?;
    /// assert_eq!(refused.headers()[2], ("Retry-After", "60".to_owned()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        // A limit that never allows, and a lease that is over, have no wait.
        http::fields(&self.asked, Some(self.retry_after).filter(|wait| !self.allowed && *wait > 0))
    }

    /// [`headers`](Decision::headers) and the older `X-RateLimit-Limit`, `-Remaining` and `-Reset`, which know one
    /// limit: the one that refused the longest, else the one with the fewest tokens left. The reset is in whole
    /// seconds since the Unix epoch.
    pub fn headers_with_legacy(&self) -> Vec<(&'static str, String)> {
        let mut fields = self.headers();
        fields.extend(http::legacy_fields(&self.asked));
        fields
    }

    /// The decision as a map, every field of it always there. Where leases were given out, `lease` is the first of
    /// them and `leases` all, by the names of their limits.
    pub fn to_value(&self) -> Value {
        let violated = self.violated.iter().map(|violation| {
            Value::Map(Map::from([
                ("name".to_owned(), Value::from(&*violation.name)),
                ("wait".to_owned(), Value::Int(violation.wait)),
            ]))
        });
        let fields = [
            ("allowed", Value::Bool(self.allowed)),
            ("limit", Value::Int(self.limit)),
            ("remaining", Value::Int(self.remaining)),
            ("used", Value::Int(self.used)),
            ("retry_after", Value::Int(self.retry_after)),
            ("reset_at", Value::Int(self.reset_at.as_millis())),
            ("delay", Value::Int(self.delay)),
            ("reason", Value::from(self.reason.as_str())),
            ("violated", Value::Array(violated.collect())),
            ("would_refuse", Value::Array(self.would_refuse.iter().map(|name| Value::from(&**name)).collect())),
        ];
        let mut map: Map = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        if let Some(lease) = self.lease() {
            map.insert("lease".to_owned(), Value::Int(lease));
            let leases = self.leases.iter().map(|granted| (granted.name.to_string(), Value::Int(granted.lease)));
            map.insert("leases".to_owned(), Value::Map(leases.collect()));
        }
        Value::Map(map)
    }
}

/// As [`to_value`](Decision::to_value) has it.
impl Serialize for Decision {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_and_the_serialized_form_are_one() {
        let name: Arc<str> = "login".into();
        let decision = Decision {
            allowed: false,
            limit: 5,
            remaining: 0,
            used: 5,
            retry_after: 300,
            reset_at: Timestamp::from_millis(1_000),
            delay: 0,
            reason: Reason::Limited,
            violated: vec![Violation { name: name.clone(), wait: 300 }],
            would_refuse: vec!["shadow".into()],
            leases: Vec::new(),
            name,
            asked: AllAsked::default(),
        };
        assert_eq!(Value::from_serde(&decision).unwrap(), decision.to_value());
        let text = concat!(
            r#"{"allowed":false,"delay":0,"limit":5,"reason":"limited","remaining":0,"reset_at":1000,"#,
            r#""retry_after":300,"used":5,"violated":[{"name":"login","wait":300}],"would_refuse":["shadow"]}"#
        );
        assert_eq!(decision.to_value().to_json(), text);
        let granted = Granted { name: "slots".into(), lease: 7 };
        let leased = Decision { leases: vec![granted], ..decision };
        assert!(leased.to_value().to_json().contains(r#""lease":7,"leases":{"slots":7},"limit":5"#));
    }
}
